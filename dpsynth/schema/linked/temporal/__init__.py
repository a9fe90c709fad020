"""Temporal rules: what must hold between the rows of one patient, in all of her tables.

- `checks`: what is wrong with a rule for the tables of a package
- `parser`: from the text of a rule to its tree, whose operands are terms
- `patient_rows`: the cells that terms name, for each patient
- `rule`: one rule, and for which patients it holds
- `terms`: what a rule compares: a cell of the first, the last or each row, a count, an event
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
