from .choice import subject_of as subject_of
from .linked_tables import LinkedTables as LinkedTables
from .one_table import OneTable as OneTable
from .subject import Subject as Subject
