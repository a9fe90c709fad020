"""The event of counts with discrete Laplace noise: narrower than Gaussian where few are asked.

**The mechanism.** A table of cells, where each of the at most k rows of a unit adds 1 to at most
one cell, or the unit adds 1, ``once``, to each of the cells that its rows have. Each cell gets
discrete Laplace noise of scale b: P(z) proportional to exp(-|z| / b) on whole numbers (OpenDP).

**What it costs** (add or remove a unit). A unit moves the cells by whole numbers of sum at most k.

- Where each cell moves by at most 1 (``once``, or k = 1), the pair of laws is a product of at most
  k pairs of noise that is moved by 1. Their loss is 1 / b or -1 / b and nothing else: that is
  randomised response with parameter 1 / b, composed k times. Cells that do not move cost nothing.
- Otherwise the ratio of the two laws lies within exp(+-k / b), by the triangle inequality over all
  cells; randomised response with parameter k / b dominates any such pair (choice_event.py). The
  first bound does not hold here: moved by 2, noise has a loss of 2 / b with half of its mass or
  more, and two pairs that are moved by 1 have it with less.

**Replacing a unit** moves cells by a sum of at most 2 k, and each by at most 1 or 2 k as before:
`substituted` has units of twice the rows.

**Against Gaussian noise.** Laplace noise of a query grows with the number of queries of a plan, and
Gaussian noise with its root. docs/statistics.md has figures; stats/planning.py chooses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy._validate import (
    NoisyEvent,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)
from dpsynth.privacy.answers.event import RowSums
from dpsynth.privacy.losses.loss import PURE, Loss

_MIN_SCALE = 0.1  # below this a count is all but exact
_ANY_SIGMA = 10.0
_MAX_SCALE = 2.0**40  # sums and noise stay far below 2^62


@dataclass(frozen=True)
class LaplaceCounts(NoisyEvent):
    """Counts of cells, each with discrete Laplace noise.

    Attributes:
        name: the event's name within its plan.
        rows_per_unit: at most this many rows of a privacy unit count.
        once: whether a unit counts at most once in a cell.
        scale: b of the noise; ``UNDECIDED`` in a share.

    Example:
        >>> event = LaplaceCounts("by sex", rows_per_unit=1, once=False, scale=2.0)
        >>> event.loss.parameter, round(event.sd, 2), event.reach(0.05)
        (0.5, 2.8, 6)
    """

    kind = "laplace_counts"
    noise_field = "scale"
    rows_per_unit: int
    once: bool
    scale: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "rows_per_unit", self.rows_per_unit, maximum=1_000_000)
        if not isinstance(self.once, bool):
            raise InputError(f"event '{self.name}': once must be true or false")
        require_noise(self.name, "scale", self.scale)
        if self.decided and not _MIN_SCALE <= self.scale <= _MAX_SCALE:
            raise InputError(f"event '{self.name}': the scale is not one that can be drawn")

    @property
    def counted(self) -> RowSums:
        """The sums that these counts are, by which rows are checked; its noise plays no part."""
        return RowSums(self.name, 1, self.rows_per_unit, 1, False, self.once, False, _ANY_SIGMA)

    @property
    def unit_steps(self) -> bool:
        """Whether a unit moves each cell by at most 1."""
        return self.once or self.rows_per_unit == 1

    @property
    def replacement(self) -> float:
        """How much further a unit moves the counts that takes another's place, at most."""
        return 2.0

    def substituted(self) -> LaplaceCounts:
        """Return the counts that cost what these do where one unit takes another's place."""
        if not self.unit_steps:
            return replace(self, rows_per_unit=2 * self.rows_per_unit)
        return replace(self, rows_per_unit=2 * self.rows_per_unit, once=True)

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves."""
        return self.scale / self.rows_per_unit

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: randomised response."""
        if self.unit_steps:
            return Loss(PURE, 1 / self.scale, self.rows_per_unit)
        return Loss(PURE, self.rows_per_unit / self.scale)

    def mu(self) -> float:
        """GDP parameter of Gaussian noise that a composition of many charges about the same."""
        loss = self.loss
        return loss.parameter * math.sqrt(loss.times)

    def with_mu(self, mu: float) -> LaplaceCounts:
        """Return the event with the noise that has this parameter, rounded up."""
        require_mu(self.name, mu)
        moved = self.rows_per_unit**0.5 if self.unit_steps else float(self.rows_per_unit)
        return replace(self, scale=round_up(max(moved / mu, _MIN_SCALE)))

    @property
    def sd(self) -> float:
        """Standard deviation of the noise on a count."""
        stay = math.exp(-1 / self.scale)
        return math.sqrt(2 * stay) / -math.expm1(-1 / self.scale)

    def reach(self, chance: float) -> int:
        """Return the least whole number that the noise is beyond, to either side, with this chance.

        P(|z| > w) = 2 q^(w + 1) / (1 + q) with q = exp(-1 / b).
        """
        stay = math.exp(-1 / self.scale)
        return max(0, math.ceil(-self.scale * math.log(chance * (1 + stay) / 2) - 1 - 1e-9))
