"""The event of counts by keys that nobody declared: above a threshold, with their noise.

**The mechanism.** A key is what a row has in some columns, of which one or more have codes that
nobody listed. A row has at most one key, and at most k rows of a unit count. Either each row adds
1 to its key (a unit adds numbers r_1, ..., r_d of sum at most k to d keys), or a unit adds 1,
``once``, to each of the at most k keys that its rows have. Each key that somebody has gets discrete
Gaussian noise of scale sigma, and is listed with its noisy count if that is at least the threshold
T. A key that nobody has is never listed.

**Keys that others have too.** There a unit moves the counts by whole numbers, as those of declared
cells: `RowSums` with one part derives what this costs (`sums`), cell by cell where each moves by at
most 1, and by the Gaussian bound of L2 norm k otherwise. To list is to forget those below T.

**Keys that nobody else has.** Let g(r) = Phi(-(T - r - 1) / sigma). It is at least the probability
that such a key of r is listed, P(Z >= T - r) for the discrete Gaussian Z (Canonne, Kamath and
Steinke, arXiv 2004.00010, proposition 25: at most the continuous tail at T - r - 1). The
probability b that some key is listed which the unit alone has is at most the sum of g(r_i). Where
it counts ``once``, that is at most k g(1). Else it is largest at an extreme of the numbers, as g is
convex up to T - 1: for d keys at (k - d + 1, 1, ..., 1), g(k - d + 1) + (d - 1) g(1), which is
convex in d and so at most the larger of g(k) and k g(1). T is the least whole number that keeps
this at or below ``delta``.

**Both together, within a plan:** as for discovered codes (discovery/event.py): the law with the
unit is (1 - b) P0 + b B, P0 on keys of others; the plan gives up -ln(1 - delta) of its delta.

**Replacing a unit** moves counts as `RowSums` has it, by sqrt(2) times as much. With b and b' of
the two units, sup_A P(A) - exp(e) Q(A) <= b + H(e + ln(1 - b')) <= b + H(e) - ln(1 - b'): twice as
much of delta is given up. `substituted` has units of twice the rows, which move at least so far,
and no key by more than 1 where none did before.

**Renyi.** None is finite, as for discovered codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy._validate import NoisyEvent, is_number, require_count, require_noise
from dpsynth.privacy.answers.event import RowSums
from dpsynth.privacy.losses.loss import Loss

_ROUNDING = 1 + 1e-9  # of a quantile, above what floats lose in it


@dataclass(frozen=True)
class KeyCounts(NoisyEvent):
    """Noisy counts of keys that nobody declared, of which those from a threshold on are listed.

    Attributes:
        name: the event's name within its plan.
        rows_per_unit: at most this many rows of a privacy unit count.
        once: whether a unit counts once for each of its keys, however many of its rows have it.
        delta: largest probability that some key is listed that one unit alone has.
        sigma: parameter of the discrete Gaussian noise on a count; ``UNDECIDED`` in a share.

    Example:
        >>> event = KeyCounts("by ward", rows_per_unit=1, once=True, delta=1e-7, sigma=5.0)
        >>> event.threshold
        28
    """

    kind = "key_counts"
    noise_field = "sigma"
    rows_per_unit: int
    once: bool
    delta: float
    sigma: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_noise(self.name, "sigma", self.sigma)
        require_count(self.name, "rows_per_unit", self.rows_per_unit, maximum=1_000_000)
        if not is_number(self.delta) or not 0 < self.delta <= 0.1:
            raise InputError(f"event '{self.name}': delta must be above 0 and at most 0.1")
        _ = self.sums

    @property
    def sums(self) -> RowSums:
        """The event of the same counts, were their keys declared."""
        return RowSums(
            self.name,
            parts=1,
            rows_per_unit=self.rows_per_unit,
            largest=1,
            signed=False,
            once=self.once,
            shared=False,
            sigma=self.sigma,
        )

    @property
    def loss(self) -> Loss:
        """How a plan accounts for its noise."""
        return self.sums.loss

    @property
    def set_aside(self) -> float:
        """What the threshold takes of a plan's delta: -ln(1 - delta)."""
        return -math.log1p(-self.delta)

    @property
    def replacement(self) -> float:
        """How much further a unit moves counts that takes another's place, at most."""
        return self.sums.replacement

    def substituted(self) -> KeyCounts:
        """Return counts that cost at least what these do where one unit takes another's place."""
        twice = self.delta * (2 - self.delta)
        rows, once = 2 * self.rows_per_unit, self.sums.unit_steps  # a key moves by 1, as before
        return replace(self, rows_per_unit=rows, once=once, delta=twice)

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves."""
        return self.sums.relative_noise

    def mu(self) -> float:
        """GDP parameter of the noise; the threshold is paid for by ``delta``."""
        return self.sums.mu()

    def with_mu(self, mu: float) -> KeyCounts:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        return replace(self, sigma=self.sums.with_mu(mu).sigma)

    @property
    def threshold(self) -> int:
        """Least noisy count with which a key is listed."""
        from scipy.special import ndtri

        def needed(count: int, chance: float) -> int:
            return count + math.ceil(-float(ndtri(chance)) * _ROUNDING * self.sigma) + 1

        alone = needed(1, self.delta / self.rows_per_unit)
        return alone if self.once else max(alone, needed(self.rows_per_unit, self.delta))
