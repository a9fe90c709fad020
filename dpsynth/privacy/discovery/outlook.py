"""What discovery will find, said before any data is opened: from the event and public facts.

**Assumed**, and said beside the figures: so many codes occur, the i-th commonest in a share of the
cells proportional to 1 / i (Zipf's law), and units have the same number of rows, none of them with
the same code twice. A real table differs, and only the figures depend on it, never the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.privacy.discovery.event import MASS, CodeDiscovery, weight
from dpsynth.privacy.discovery.key_event import KeyCounts

Floats = npt.NDArray[np.float64]
Z95 = 1.6448536269514722  # the 95 % quantile of the normal law


@dataclass(frozen=True)
class Expected:
    """What is expected of one column, as numbers of codes and as a share of its cells.

    Attributes:
        found: codes that are found.
        missed: codes that occur and are not found.
        cells: share of the cells whose code is not found.
    """

    found: float
    missed: float
    cells: float


@dataclass(frozen=True)
class Outlook:
    """How likely codes, or keys, are to be found.

    Attributes:
        event: of the plan, with its noise.

    Example:
        >>> event = CodeDiscovery("codes", 1, 1, delta=1e-7, noise_multiplier=5.0)
        >>> outlook = Outlook(event)
        >>> outlook.units_needed(0.5), outlook.units_needed(0.95)
        (27, 36)
    """

    event: CodeDiscovery | KeyCounts

    @property
    def _whole(self) -> int:
        """What a unit counts that has one code."""
        return MASS if isinstance(self.event, CodeDiscovery) else 1

    @property
    def threshold(self) -> float:
        """The threshold in whole units, each with this code alone."""
        return self.event.threshold / self._whole

    @property
    def spread(self) -> float:
        """Standard deviation of the noise on a number of units."""
        return self.event.sigma / self._whole

    def found(self, units: Floats, codes_each: float = 1.0) -> Floats:
        """Return the probability that a code is found which so many units have.

        Args:
            units: with the code.
            codes_each: different codes of each of them, over all columns.
        """
        from scipy.special import ndtr

        known = np.asarray(units, dtype=np.float64)
        shared = math.sqrt(codes_each) if isinstance(self.event, CodeDiscovery) else 1.0
        above = known / shared - self.threshold + 0.5 / self._whole  # numbers are whole
        return np.where(known > 0, ndtr(above / self.spread), 0.0)

    def units_needed(self, chance: float, codes_each: int = 1) -> int:
        """Return how many units must have a code so that it is found with this probability."""
        from scipy.special import ndtri

        count = self.event.threshold + float(ndtri(chance)) * self.event.sigma
        whole = weight(codes_each) if isinstance(self.event, CodeDiscovery) else 1
        return max(1, math.ceil(count / whole))

    def expected(
        self, codes: int, units: int, rows_per_unit: float, codes_each: float | None = None
    ) -> Expected:
        """Return what is found and missed of a column, by the assumptions of the module.

        Args:
            codes: that occur in the column.
            units: of the population.
            rows_per_unit: on average, in the table of the column.
            codes_each: different codes of each unit over all columns; if None, as many as its rows
                times the columns.
        """
        shares = 1 / np.arange(1, codes + 1)
        shares /= shares.sum()
        rows = min(rows_per_unit, self.event.rows_per_unit)
        if isinstance(self.event, KeyCounts) and not self.event.once:
            having = units * rows * shares
        else:
            having = units * -np.expm1(rows * np.log1p(-np.minimum(shares, 1 - 1e-12)))
        columns = self.event.columns if isinstance(self.event, CodeDiscovery) else 1
        each = rows * columns if codes_each is None else codes_each
        chances = self.found(having, max(1.0, each))
        found = float(chances.sum())
        return Expected(found, codes - found, float(shares @ (1 - chances)))


def optimal_probability(units: int, epsilon: float, delta: float) -> float:
    """Return the largest probability with which an (epsilon, delta)-private mechanism finds a code.

    Of one code per unit: pi(0) = 0, and pi(n) = min(e^epsilon pi(n - 1) + delta,
    1 - e^-epsilon (1 - pi(n - 1) - delta), 1). It is what a plan is compared with; no fit runs it.

    Source: Desfontaines, Voss, Gipson and Mandayam, arXiv 2006.03684, theorem 1.

    >>> [round(optimal_probability(n, 1.0, 0.01), 3) for n in (1, 2, 3, 10)]
    [0.01, 0.037, 0.111, 1.0]
    """
    chance = 0.0
    for _ in range(units):
        lower = math.exp(epsilon) * chance + delta
        chance = min(lower, 1 - math.exp(-epsilon) * (1 - chance - delta), 1.0)
    return chance
