"""The policy of an office: what may be spent, on what, and what a release needs.

This room decides whether a fit is admitted, and advises on a budget that would be.

- `advice`: which constraint binds, and budgets that satisfy all of them
- `limits`: what a policy is made of: caps on epsilon, tiers, groups of datasets, a least
  population
- `policy`: what an office may still spend, as one public document, and in words
- `rules`: may this fit be run, after all that was spent, and what is left
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
