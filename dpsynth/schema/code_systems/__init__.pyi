from .atc import AtcGroups as AtcGroups
from .code_lists import code_list as code_list
from .icd10 import Icd10 as Icd10
from .icd10 import icd10 as icd10
