"""The events of discovery: codes and keys that nobody declared, above a threshold.

The event of code discovery: noisy numbers of patients, published above a threshold only.

**The mechanism.** Of a unit, at most k rows are kept, and so at most L = k J different codes in
the J columns whose codes are discovered. A unit with d different codes adds w(d) =
floor(M / sqrt(d)) to the count of each of them, M = `MASS` standing for one whole unit. Each count
that is not zero gets discrete Gaussian noise of scale sigma. A code is found if its noisy count is
at least the threshold T. A code that nobody has is never found.

**Why the noise is enough for codes that others have too.** Compare a cohort with the same and one
more unit. Let S be the codes of the unit that others have, and N those that nobody else has. On S
the counts differ by a vector of whole numbers of L2 norm at most w(d) sqrt(d) <= M. Other counts
are the same. By the argument of accounting.py (steps 1 to 5, with at most L cells that move) the
noise is dominated by a continuous Gaussian of scale sqrt(sigma^2 - s^2), s = SMOOTHING; sigma is
chosen so that this is at least M times ``noise_multiplier``.

**Why the threshold is enough for codes that nobody else has.** Without the unit, no code of N can
be found. With it, each of at most d codes has the count w(d), and is found with probability p(d) =
P(w(d) + Z >= T). Noise is independent, so some code of N is found with probability at most 1 - (1 -
p(d))^d, which T keeps at or below ``delta`` for each d from 1 to L (`threshold`). P(Z >= m) for the
discrete Gaussian is at most that of the continuous one at m - 1 (Canonne, Kamath and Steinke,
arXiv 2004.00010, proposition 25), so T is rounded up to the safe side.

**Both together, within a plan.** Let b <= delta be the probability that some code of N is found.
Then the law with the unit is P = (1 - b) P0 + b B, where P0 is the law in which the codes of N are
left out, and B is only on results that name one of them. The law without the unit, Q, never names
one. By the first step (P0, Q) is dominated by a pair of Gaussians, whatever later events are run on
the result (they are composed adaptively). Let H(e) be the hockey-stick divergence of the whole
composition of these dominating pairs at epsilon e; it falls with e, by at most 1 for each unit of
e, and is at most 1.

- Unit added: sup_A P(A) - exp(e) Q(A) <= b + sup_A (1 - b) P0(A) - exp(e) Q(A) <= b + H(e).
- Unit removed: the best A holds no result that names a code of N, so it is sup_A Q(A) - exp(e)
  (1 - b) P0(A) = H(e + ln(1 - b)) <= H(e) - ln(1 - b).

-ln(1 - b) is at least b, so the plan loses at most -ln(1 - delta) of its delta by the event, once,
in both directions. `set_aside` gives this number; the accountant takes it off the budget's delta
before it reads epsilon off the composition, and so all events together keep the (epsilon, delta)
that was asked for.

**One code per unit.** With L = 1 this is the thresholded Gaussian. Of all mechanisms that are
(epsilon, delta)-private *on their own*, the one of Desfontaines, Voss, Gipson and Mandayam
(Differentially private partition selection, PoPETs 2022, arXiv 2006.03684, theorem 1) finds most;
bench/discovery.py has it. Within a plan it finds less: its privacy loss is bounded by an
epsilon of its own, and so its threshold is about ln(1 / delta) / epsilon, where that of a Gaussian
of the same share of the budget is about sqrt(2 ln(1 / delta)) / mu, and a composition of many
events charges both about the same, epsilon^2 and mu^2. docs/benchmarks.md has figures. So the plan
uses the Gaussian for one code as for several (Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin,
Differentially Private Set Union, ICML 2020, section 5, with noise on whole numbers; the weights are
theirs).

**Renyi.** The event has no finite Renyi divergence, because a code of N is impossible without its
unit. So a fit that discovers codes counts in a ledger's cap by its epsilon and delta alone.

The event of counts by keys that nobody declared: above a threshold, with their noise.

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
from dpsynth.privacy.answer_events import RowSums
from dpsynth.privacy.noisy_event import (
    GAUSSIAN,
    MIN_NOISE_MULTIPLIER,
    SMOOTHING,
    Loss,
    NoisyEvent,
    is_number,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)

MASS = 2**16
"""What a unit with a single code adds to its count: counts are in parts of a unit."""

_ROUNDING = 1 + 1e-9  # of a quantile, above what floats lose in it


@dataclass(frozen=True)
class CodeDiscovery(NoisyEvent):
    """Noisy numbers of units with each code that occurs, of which those above a threshold are kept.

    Attributes:
        name: the event's name within its plan.
        columns: how many columns' codes are discovered, under one bound for all of them.
        rows_per_unit: at most this many rows of a privacy unit are looked at.
        delta: largest probability that some code is found that one unit alone has.
        noise_multiplier: scale of the noise over one whole unit; ``UNDECIDED`` in a share.

    Example:
        >>> event = CodeDiscovery("codes", 1, 1, delta=1e-7, noise_multiplier=5.0)
        >>> round(event.threshold / MASS, 2)  # units that have this code alone
        27.0
    """

    kind = "code_discovery"
    noise_field = "noise_multiplier"
    columns: int
    rows_per_unit: int
    delta: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "columns", self.columns, maximum=10_000)
        require_count(self.name, "rows_per_unit", self.rows_per_unit, maximum=1_000_000)
        require_noise(self.name, "noise_multiplier", self.noise_multiplier)
        if not is_number(self.delta) or not 0 < self.delta <= 0.1:
            raise InputError(f"event '{self.name}': delta must be above 0 and at most 0.1")
        if self.most_codes > MASS:
            raise InputError(
                f"event '{self.name}': a unit may have up to {self.most_codes} codes; at most"
                f" {MASS} can be counted. Lower max_rows, or discover fewer columns"
            )

    @property
    def most_codes(self) -> int:
        """Largest number of different codes of a unit, over all columns."""
        return self.columns * self.rows_per_unit

    @property
    def loss(self) -> Loss:
        """How a plan accounts for its noise: as chosen histograms."""
        moved = self.rows_per_unit * self.columns
        return Loss(GAUSSIAN, self.noise_multiplier, moved=moved)

    @property
    def set_aside(self) -> float:
        """What the threshold takes of a plan's delta: -ln(1 - delta)."""
        return -math.log1p(-self.delta)

    def mu(self) -> float:
        """GDP parameter of the noise; the threshold is paid for by ``delta``."""
        return 1 / self.noise_multiplier

    def with_mu(self, mu: float) -> CodeDiscovery:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        return replace(self, noise_multiplier=round_up(max(1 / mu, MIN_NOISE_MULTIPLIER)))

    @property
    def sigma(self) -> float:
        """Scale of the discrete Gaussian noise on a count, in parts of a unit."""
        return round_up(math.hypot(MASS * self.noise_multiplier, SMOOTHING) * _ROUNDING)

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on a count."""
        return self.sigma

    @property
    def threshold(self) -> int:
        """Least noisy count with which a code is found, in parts of a unit."""
        from scipy.special import ndtri

        sigma = self.sigma

        def needed(codes: int) -> int:
            chance = -math.expm1(math.log1p(-self.delta) / codes)  # of each code of a unit
            quantile = -float(ndtri(chance)) * _ROUNDING
            return weight(codes) + math.ceil(sigma * quantile) + 1

        return max(map(needed, range(1, self.most_codes + 1)))


def weight(codes: int) -> int:
    """Return what a unit with so many different codes adds to each of them: floor(M / sqrt(d)).

    >>> weight(1) == MASS, weight(4) == MASS // 2, weight(5)
    (True, True, 29308)
    """
    return math.isqrt(MASS**2 // codes)


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
