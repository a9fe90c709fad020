"""Record linkage: how many candidate pairs of two registers match, and how good a threshold is.

The patients of both registers are protected. What is published is noisy numbers of pairs from each
threshold of the score on, by what clerical review found; precision, recall and F1 follow from them.

- `document`: linkage on disk: the request, its certificate, noisy numbers, and what follows
- `linking`: the verb `linkage`: plan, charge both registers, read, count, write
- `request`: two registers, thresholds, caps and columns, read strictly from a document
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
