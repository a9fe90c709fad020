"""Tables of cells: counts, means and variances, and what follows from them.

- `areas`: means by area where some areas are small: merged, or drawn towards the others
- `counts`: how many patients or rows there are in each cell
- `digits`: how many digits of a figure mean something
- `keys`: counts by codes that nobody declared, of those that enough patients have
- `margins`: tables of counts that share columns, made to agree
- `means`: means, totals and proportions, with Fieller's interval
- `variances`: variances and standard deviations, with an interval that needs no linearisation
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
