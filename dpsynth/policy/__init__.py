"""The policy of an office: what may be spent, on what, and what a release needs.

This room decides whether a fit is admitted, and advises on a budget that would be.

- `advice`: which constraint binds, and budgets that satisfy all of them
- `fits`: a fit as the rules of a policy take it: one that is asked for, and one that counts
- `interpretation`: a policy in words, for people who did not write it
- `limits`: what a policy is made of: caps on epsilon, tiers, groups of datasets, a least
  population
- `one_unit`: epsilons for a row and for a patient must not be added
- `policy`: what an office may still spend, as one public document
- `reader`: from a document to the values of a `Policy`: every mistake is noted before any is
  reported
- `rules`: may this fit be run, after all that was spent, and what is left
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
