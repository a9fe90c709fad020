"""Code systems: thousands of codes become a few public categories.

- `atc`: the Anatomical Therapeutic Chemical classification of drugs, by its prefixes
- `code_files`: the office's own lists, as CSV or from a folder of OMOP vocabularies
- `code_lists`: a system and a roll-up by name; chapters of ICD-9-CM
- `code_tree`: a list of codes with their parents, and their groups at a level
- `codes`: what a column says of its codes: system, level to model, level to emit
- `discovery`: codes that a fit discovers: what one may look like, and those that were found
- `icd10`: chapters and blocks of ICD-10-CM and ICD-10-GM, from `icd10cm.csv` and `icd10gm.csv`
- `several`: cells that hold several codes: separator, number, order
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
