"""The certificate: what a fit guarantees, in numbers and in words.

This room decides what may be claimed about a run, and says what the claim does not cover.

- `added_rules`: rules that people added after a fit, and which of them the guarantee covers
- `budget_breakdown`: what each event of a certificate was for, in words, and its part of the
  budget
- `certificate`: what was spent on whose protection, and what that does not cover
- `charge`: where a ledger keeps it, and what its dataset had spent by then
- `interpretation`: what a certificate means for whoever is in the data: a bound on what an
  attacker may believe
- `statements`: what a certificate says in words: what is exact, what is floating point, what is
  not covered
- `table_bound`: what counts of each linked table: which rows of a patient, and how many at most
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
