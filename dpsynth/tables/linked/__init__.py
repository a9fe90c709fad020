"""The tables of a schema of linked tables: found, opened and written together.

- `opening`: the tables of a schema of linked tables, opened together
- `simulated`: the demo cohort of linked tables: histories of simulated patients
- `splitting`: splitting linked tables into train and holdout, by patient, over all tables at once
- `writing`: the tables of a synthetic cohort, written together, whole or not at all
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
