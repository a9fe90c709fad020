"""The statistics of attacks: who plays, what was found, and what that refutes.

- `one_run`: what guesses about many canaries in one data set refute
- `people`: who plays in an attack: members, non-members, and the people that the attacker knows
  anyway
- `result`: what an attack found, how sure that is, and what it could have seen: never one alone
- `table_attack`: the record of an attack on a synthetic table: what audits, controls and reports
  know about it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
