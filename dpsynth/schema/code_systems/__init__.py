"""Code systems: thousands of codes become a few public categories.

- `atc`: the Anatomical Therapeutic Chemical classification of drugs, by its prefixes
- `code_lists`: a system and a roll-up by name; chapters of ICD-9-CM
- `icd10`: chapters and blocks of ICD-10-CM and ICD-10-GM, from `icd10cm.csv` and `icd10gm.csv`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
