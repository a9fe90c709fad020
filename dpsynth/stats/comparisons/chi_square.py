"""A test of several differences at once: they are all 0, or they are not.

Differences that add up to 0, with covariance V under the null hypothesis (of people and of noise),
are compared with it: x' V^-1 x over all of them but the last, which follows from the others. It has
a chi-square law with as many degrees of freedom, as far as the differences are normal (Gaboardi,
Lim, Rogers, Vadhan, Differentially Private Chi-Squared Hypothesis Testing, ICML 2016). No numbers
are drawn: whoever has the answers gets the same figures.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

Floats = npt.NDArray[np.float64]
Facts = dict[str, float]
CLEAR = 3.0
"""A number that is divided by must be this many standard deviations of its noise above 0."""


def tested(differences: Floats, covariance: Floats) -> Facts:
    """Compare differences ``[n]`` with their covariance ``[n, n]``, both without the last.

    >>> tested(np.array([2.0]), np.array([[1.0]]))
    {'chi-square': 4.0, 'degrees of freedom': 1, 'p-value': 0.0455}
    """
    statistic = float(differences @ np.linalg.solve(covariance, differences))
    degrees = len(differences)
    return {
        "chi-square": round(statistic, 3),
        "degrees of freedom": degrees,
        "p-value": round(float(chdtrc(degrees, max(statistic, 0.0))), 4),
    }


def undecided(degrees: int) -> Facts:
    """Return the facts of a test that noise leaves nothing to: it finds no difference."""
    return {"chi-square": 0.0, "degrees of freedom": degrees, "p-value": 1.0}
