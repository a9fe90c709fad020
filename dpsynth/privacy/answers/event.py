"""The event of sums over rows: counts, sums of clipped values, counts of pairs of cells.

**The mechanism.** A release has one or more *parts*, each a vector of cells. A row adds a whole
number between -V and V to at most one cell of each part. Each cell gets discrete Gaussian noise of
scale sigma.

**How far a unit moves it** (add or remove a unit with at most k rows, h parts). A row moves each
part by a vector with one entry of at most V, and so all parts by a vector of L2 norm at most
V sqrt(h); k rows move them by at most S = k V sqrt(h), reached by k identical rows. At most k h
cells move. Where a unit counts in a cell only ``once``, however many of its rows are there, V is 1
and it moves at most k h cells by 1 each: S = sqrt(k h). Where its rows share a whole (``shared``),
what they add to a part has absolute values with a sum of at most V, and so an L2 norm of at most V:
S = V sqrt(h).

**What that costs.** Where every cell that moves does so by at most 1 (V = 1 and k = 1, or once),
the pair of laws is dominated by the product of k h pairs (N_Z(0, s^2), N_Z(1, s^2)), as for joint
histograms in accounting.py; a cell that moves by -1 has the mirror image of the same pair, and one
that does not move costs nothing. Otherwise the shift is a vector of whole numbers of norm at most
S, and the Gaussian bound of accounting.py (steps 1 to 5, with k h moving cells) holds: nothing in
it needs the entries to be positive.

**Replacing a unit** (the adjacency of "substitution", where one unit takes the place of another)
moves the parts by the difference of two such vectors. If no row adds a negative number, entries of
the two vectors have the same sign, and |a - b|^2 <= |a|^2 + |b|^2 <= 2 S^2: a histogram of units
moves by 2 in L1, and by sqrt(2) in L2. Otherwise it is |a - b| <= 2 S. `replacement` gives the
factor, and `substituted` the sums of twice or four times the parts, which cost as much; a
certificate states the factor beside its claim, which is about adding or removing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy._validate import (
    SMOOTHING,
    NoisyEvent,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)
from dpsynth.privacy.losses.loss import DISCRETE, GAUSSIAN, Loss

MAX_VALUE = 2**31
_MAX_TABLE_SIGMA = 1000.0  # above it, the Gaussian bound costs 1.1e-6 of epsilon, and less time
# sums and noise stay below 2^62: noise that is cut off shows what it is added to
_MAX_SIGMA = 2.0**54
_MIN_SIGMA = 0.3  # below this a count is all but exact
_MIN_SIGMA_OF_BOUND = 2 * SMOOTHING


@dataclass(frozen=True)
class RowSums(NoisyEvent):
    """Sums over rows, each cell with discrete Gaussian noise.

    Attributes:
        name: the event's name within its plan.
        parts: how many vectors of cells a row adds to, at most one cell in each.
        rows_per_unit: at most this many rows of a privacy unit count.
        largest: V, the largest number in absolute terms that a row adds to a cell.
        signed: whether a row may add negative numbers.
        once: whether a unit counts at most once in a cell; then ``largest`` is 1.
        shared: whether ``largest`` is what all rows of a unit add to a part, together.
        sigma: parameter of the noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on integers;
            ``UNDECIDED`` in a share.

    Example:
        >>> event = RowSums("visits", 1, rows_per_unit=3, largest=1, signed=False, once=False,
        ...                 shared=False, sigma=30.0)
        >>> event.sensitivity, round(event.mu(), 3)
        (3.0, 0.1)
    """

    kind = "row_sums"
    noise_field = "sigma"
    parts: int
    rows_per_unit: int
    largest: int
    signed: bool
    once: bool
    shared: bool
    sigma: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "parts", self.parts, maximum=10_000)
        require_count(self.name, "rows_per_unit", self.rows_per_unit, maximum=1_000_000)
        require_count(self.name, "largest", self.largest, maximum=MAX_VALUE)
        for field, value in (
            ("signed", self.signed),
            ("once", self.once),
            ("shared", self.shared),
        ):
            if not isinstance(value, bool):
                raise InputError(f"event '{self.name}': {field} must be true or false")
        if self.once and (self.largest != 1 or self.signed or self.shared):
            raise InputError(f"event '{self.name}': a unit that counts once adds 1 to a cell")
        require_noise(self.name, "sigma", self.sigma)
        if self.decided and self.sigma > _MAX_SIGMA:
            raise InputError(
                f"event '{self.name}': sigma is more than 64 bits hold; take a larger epsilon, or "
                "fewer rows of a unit"
            )
        if not self.unit_steps and self.sigma < _MIN_SIGMA_OF_BOUND:
            raise InputError(
                f"event '{self.name}': sigma must be at least {_MIN_SIGMA_OF_BOUND:g} where a unit "
                "moves a cell by more than 1; its privacy bound needs it"
            )

    @property
    def unit_steps(self) -> bool:
        """Whether a unit moves each cell by at most 1."""
        return self.once or (self.largest == 1 and (self.shared or self.rows_per_unit == 1))

    @property
    def moved(self) -> int:
        """Largest number of cells that a unit moves."""
        return self.rows_per_unit * self.parts

    @property
    def sensitivity(self) -> float:
        """L2 norm of the largest shift by one unit."""
        if self.once:
            return math.sqrt(self.moved)
        rows = 1 if self.shared else self.rows_per_unit
        return rows * self.largest * math.sqrt(self.parts)

    @property
    def replacement(self) -> float:
        """How much further a unit moves the sums that takes another's place, at most."""
        return 2.0 if self.signed else math.sqrt(2.0)

    def substituted(self) -> RowSums:
        """Return the sums that cost what these do where one unit takes another's place."""
        return replace(self, parts=self.parts * (4 if self.signed else 2))

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves."""
        return self.sigma / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: cell by cell, or by the bound of accounting.py."""
        if self.unit_steps and self.sigma <= _MAX_TABLE_SIGMA:
            return Loss(DISCRETE, self.sigma, self.moved)
        smooth = math.sqrt(self.sigma**2 - SMOOTHING**2)
        return Loss(GAUSSIAN, smooth / self.sensitivity, moved=self.moved)

    def mu(self) -> float:
        """GDP parameter: sensitivity over the scale of the (dominating) Gaussian."""
        smoothing = 0.0 if self.unit_steps else SMOOTHING
        return self.sensitivity / math.sqrt(self.sigma**2 - smoothing**2)

    def with_mu(self, mu: float) -> RowSums:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        if self.unit_steps:
            return replace(self, sigma=round_up(max(self.sensitivity / mu, _MIN_SIGMA)))
        sigma = math.hypot(self.sensitivity / mu, SMOOTHING)
        return replace(self, sigma=round_up(max(sigma, _MIN_SIGMA_OF_BOUND)))
