"""Statistics of linked tables: which table an entry is of, and which rows that is.

Each table is asked as a single one would be, whose rows also have the columns of their patient. The
unit is the patient, and at most `max_rows` rows of her in that table count: the cap by which a fit
bounds her too. So how far she moves an answer is derived where it is for a single table.

- `reading`: linked tables, read, and put to their patients
- `tables`: the tables of a schema that can be asked, and the codes of their columns
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
