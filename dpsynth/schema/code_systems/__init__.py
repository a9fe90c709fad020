"""Code systems: thousands of codes become a few public categories.

- `code_files`: the office's own lists, as CSV or from a folder of OMOP vocabularies
- `code_lists`: a system and a roll-up by name; chapters of ICD-9-CM
- `code_tree`: a list of codes with their parents, and their groups at a level
- `codes`: what a column says of its codes: system, level to model, level to emit
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
