from .atc import AtcGroups as AtcGroups
from .icd10 import Icd10 as Icd10
from .icd10 import icd10 as icd10
