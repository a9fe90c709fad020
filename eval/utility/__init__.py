"""Does the synthetic table serve: models, regressions, survival, subgroups.

- `effects`: risk ratios of a target by every other column: their size and their sign
- `group_means`: the first table that an analyst makes
- `learners`: what a declared target asks of a model, and the models by which usefulness is
  tried
- `subgroups`: subgroups: are small groups kept as well as large ones, and which is kept worst?
- `summary`: usefulness: would someone who has only the synthetic table learn what the source
  teaches?
- `survival`: kaplan-Meier curves and Cox regression, where the schema declares time and event
- `tstr`: train on synthetic, test on real: what a model loses when it learns from the synthetic
  table
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
