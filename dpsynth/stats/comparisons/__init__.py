"""Comparisons: do groups differ? Tests and curves whose error includes the noise.

All of it is computed from noisy answers. Tests are about the people behind the extract: their null
law holds the chance of who is in it and the noise, so that a test at 5 % is wrong in 5 of 100.

- `chi_square`: a test of several differences at once, with their covariance
- `competing`: the statistic of times to one of several events, by groups
- `curves`: survival from noisy counts, its bands, and the log-rank test
- `differences`: the difference of two groups' means
- `incidence`: cumulative incidence from noisy counts, where one event precludes another
- `independence`: whether two columns are independent, from their noisy table
- `survival`: the statistic of times to an event, by groups
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
