from .reading import read_linked_rows as read_linked_rows
from .tables import AskedTable as AskedTable
from .tables import LinkedTables as LinkedTables
