"""The events of statistics, linkage and labels, and what each costs.

The event of sums over rows: counts, sums of clipped values, counts of pairs of cells.

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

The event of counts with discrete Laplace noise: narrower than Gaussian where few are asked.

**The mechanism.** A table of cells, where each of the at most k rows of a unit adds 1 to at most
one cell, or the unit adds 1, ``once``, to each of the cells that its rows have. Each cell gets
discrete Laplace noise of scale b: P(z) proportional to exp(-|z| / b) on whole numbers (OpenDP).

**What it costs** (add or remove a unit). A unit moves the cells by whole numbers of sum at most k.

- Where each cell moves by at most 1 (``once``, or k = 1), the pair of laws is a product of at most
  k pairs of noise that is moved by 1. Their loss is 1 / b or -1 / b and nothing else: that is
  randomised response with parameter 1 / b, composed k times. Cells that do not move cost nothing.
- Otherwise the ratio of the two laws lies within exp(+-k / b), by the triangle inequality over all
  cells; randomised response with parameter k / b dominates any such pair (as for a choice, below).
  The first bound does not hold here: moved by 2, noise has a loss of 2 / b with half of its mass or
  more, and two pairs that are moved by 1 have it with less.

**Replacing a unit** moves cells by a sum of at most 2 k, and each by at most 1 or 2 k as before:
`substituted` has units of twice the rows.

**Against Gaussian noise.** Laplace noise of a query grows with the number of queries of a plan, and
Gaussian noise with its root. docs/statistics.md has figures; stats/statistics_request.py chooses.

The event of choosing the best k of several candidates by their scores, and what it costs.

**The mechanism.** Candidates have whole-number scores u(c) of the cohort, of which one unit moves
each by at most D. To every score OpenDP adds Gumbel noise of scale b, and names the k candidates
with the largest noisy scores, in that order (``make_noisy_top_k``). That is the exponential
mechanism run k times, each time without those already chosen (Durfee and Rogers, Practical
Differentially Private Top-k Selection with Pay-what-you-get Composition, NeurIPS 2019, lemma 4.2).

**What a choice costs.** P(c) is proportional to exp(u(c) / b). Let v(c) be the score with one unit
more. Where scores are **monotone** (a unit can only raise them, or can only lower them), all
differences v(c) - u(c) lie in one interval of length D; in general they lie in [-D, D], of length
2 D. Call the length R. P'(c) / P(c) = exp((v(c) - u(c)) / b) / z, where z, the mean of these
factors under P, lies between the least and the largest of them. So the ratio lies within
[exp(-R / b), exp(R / b)]: a choice is e-private with e = R / b, and so is each of the k, given
those before. A count of units with a property is monotone with D = 1. A difference of two counts, a
correlation, or AIM's distance of a marginal to a model is not, and to charge it as if it were would
claim half of what is spent.

**Replacing a unit.** Where one unit takes another's place, changes of scores lie in [-D, D] if a
unit can only raise them, and in [-2 D, 2 D] otherwise: twice the range, and so twice the epsilon of
each choice (`substituted`).

**In a plan.** A pair of laws whose ratio is within exp(+-e) is dominated by randomised response
with parameter e (Kairouz, Oh, Viswanath, The Composition Theorem for Differential Privacy, ICML
2015, theorem 3.4 and its proof), which is composed k times.

The event of counts of linked pairs, where the patients of two registers are protected.

**What is counted.** Record linkage gives candidate pairs: a record of register A, a record of
register B, and what is known of the pair. A cell is a set of pairs (those that reach a threshold
and are a match, say). Whether a pair is in a cell follows from its own rows alone. A cell's number
is the size of a *largest b-matching* of its pairs: the most pairs that can be chosen so that no
record of either register is in more than k of them. Where no record has more than k pairs of the
cell, that is the number of its pairs. Each number gets discrete Gaussian noise of scale sigma.

**How far a record moves it.** Let G be the pairs of a cell, v a record of either register, and G' =
G without the pairs of v; f is the size of a largest b-matching.

1. A b-matching of G' is one of G, so f(G') <= f(G).
2. Take a largest b-matching of G and leave out its pairs of v: at most k. The rest is a b-matching
   of G', so f(G') >= f(G) - k.

So each cell moves by 0 to k. A person with one record in each register is removed with both, in two
such steps: by 0 to 2 k. Nothing more is used of a cell, so cells may overlap, and may be many or
few: C cells move by whole numbers of an L2 norm of at most S = r k sqrt(C), where r is how many
records of both registers together one person has (``records``: 1 or 2).

**What is not sound** (tests/guarantees/test_p20_linked_pairs.py counts each).

- *Keep the first k pairs of each record, then count by cell.* A pair that is kept takes a place of
  both its records. The removal of one record frees places, into which pairs of other records move,
  which frees places of theirs, and so on: as many pairs may change as there are records, and any
  cell may move by as many.
- *One largest b-matching of all pairs, then count by cell.* Its size moves by at most k, but there
  are many largest ones, and the removal of one record may turn all of it into another.
- *A cap for the records of one register alone*: a record of the other may have any number of pairs.

That each cell has a b-matching of its own costs the root of C, and is stable.

**What that costs.** Where r k = 1, each cell moves by at most 1, and the pair of laws is dominated
by the product of C pairs (N_Z(0, s^2), N_Z(1, s^2)), as in accounting.py. Otherwise the shift is a
vector of whole numbers of norm at most S with at most C entries that are not 0, and the Gaussian
bound of accounting.py holds.

**Replacing a person** by another: without both, a cell has f. With either it has from f to f + r k,
so from the one to the other it moves by at most r k, up or down: no further than by adding or
removing (a cell that moves by -1 has the mirror image of the same pair).

The event of stays over a window of periods: how many units are there in each.

**The mechanism.** A series has a number for each period of each group: how many units have a stay
there that covers the period, each counted once. A filter makes another series of each
(`stay_filters`), and each of its numbers gets discrete Gaussian noise of scale sigma. Both are in
parts of a unit, whole numbers.

**How far a unit moves it** (add or remove a unit with at most k stays of at most L periods each).
By at most S = sqrt(k m) in L2, with m from `stay_filters`: in a group, its stays come down to
stays without a common period, at most as many; those of different groups move different numbers, so
their squares add up too. At most k T numbers move, T being the periods of the window.

**What that costs.** The shift is a vector of whole numbers of norm at most S, so the Gaussian bound
of accounting.py (steps 1 to 5, with k T moving cells) holds; entries need not be positive there.

**Replacing a unit** moves it by the difference of two such vectors: by at most 2 S (`replacement`),
which is S of four times the stays (`substituted`).

The event of teachers that vote on the labels of public rows (PATE), and what it costs.

**The mechanism.** Each unit goes to one of T teachers, by a draw of its own (`votes.dealt`). A
teacher is trained on the rows of its units and on nothing else private, and names for each of n
public rows one of C classes, or abstains. The votes are counted, n C counts, and each count gets
discrete Gaussian noise of scale sigma. The label of a row is the class with the most noisy votes:
post-processing of what is released, as is all that a student learns from it (Papernot, Abadi,
Erlingsson, Goodfellow, Talwar, Semi-supervised Knowledge Transfer for Deep Learning from Private
Training Data, ICLR 2017; GNMax: Papernot et al., Scalable Private Learning with PATE, ICLR 2018).

**How far a unit moves it** (add or remove a unit with all its rows). The draws of the other units
do not depend on it, so compare the two tables with the same draws for all others, and the same
coins for each teacher. Then one teacher, at most, has other rows, and it may change all of its n
votes. In each query one vote leaves a class and comes to another, so two counts move by 1, or one
count where the teacher abstains in one of the two tables, as a teacher without rows does. So at
most 2 n counts move, each by 1, and the shift has an L2 norm of at most sqrt(2 n). It is *not* n
times 1, or sqrt(n): that would be a vote that comes or goes, and not one that moves.

Both steps need what `votes.dealt` does. If units were shuffled and cut into T equal parts, a unit
more would move the cuts, and with them other units into other teachers: all of the votes could
change. If a unit's rows could reach two teachers, 4 n counts could move.

**What that costs.** Given the draws and the coins, the pair of laws is dominated by the product of
2 n pairs (N_Z(0, s^2), N_Z(1, s^2)): a count that moves by -1 has the mirror image of the same
pair, and one that does not move costs nothing. The hockey-stick divergence is jointly convex, so
this holds for the mixture over draws and coins as well. Above a sigma of 1000 the Gaussian bound of
accounting.py stands for it, with a shift of norm sqrt(2 n) over 2 n counts.

**Nothing depends on how the votes fall.** The bound of the papers that shrinks where teachers agree
is a function of the private votes, and so is an epsilon that is computed from it. It is not
computed here at all. So a threshold on agreement (Confident-GNMax) would be paid for without any
gain; whoever wants to leave out rows without a clear majority does so by the noisy votes, for free.

**Replacing a unit** by another: with the same draws for all others, the one leaves its teacher and
the other comes to hers. These are two steps as above, by way of the table without both, and each
moves the counts by at most sqrt(2 n): together at most 2 sqrt(2 n), reached where the two teachers
turn the same votes (2 n counts move by 2). It is no further than one step if both draws are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy.noisy_event import (
    DISCRETE,
    GAUSSIAN,
    PURE,
    SMOOTHING,
    Loss,
    NoisyEvent,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)

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


MAX_CANDIDATES = 1_000_000
_MAX_EPSILON = 50.0  # of one choice


@dataclass(frozen=True)
class TopChoice(NoisyEvent):
    """The k best of several candidates, by the exponential mechanism.

    Attributes:
        name: the event's name within its plan.
        chosen: k, how many candidates are named.
        candidates: how many there are: public.
        sensitivity: D, how far one unit moves a score at most.
        monotone: whether a unit that is added can only raise scores.
        scale: b, of the Gumbel noise on a score; ``UNDECIDED`` in a share.

    Example:
        >>> event = TopChoice("diagnoses", 10, 700, sensitivity=1, monotone=True, scale=20.0)
        >>> event.epsilon_each
        0.05
    """

    kind = "top_choice"
    noise_field = "scale"
    chosen: int
    candidates: int
    sensitivity: int
    monotone: bool
    scale: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "candidates", self.candidates, maximum=MAX_CANDIDATES)
        require_count(self.name, "chosen", self.chosen, maximum=self.candidates)
        require_count(self.name, "sensitivity", self.sensitivity, maximum=2**31)
        if not isinstance(self.monotone, bool):
            raise InputError(f"event '{self.name}': monotone must be true or false")
        require_noise(self.name, "scale", self.scale)

    @property
    def range(self) -> int:
        """R: the length of an interval that holds all changes of scores by one unit."""
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    @property
    def replacement(self) -> float:
        """How much more a choice costs where one unit takes another's place."""
        return 2.0

    def substituted(self) -> TopChoice:
        """Return the choice that costs what this one does where a unit takes another's place."""
        if self.monotone:
            return replace(self, monotone=False)
        return replace(self, sensitivity=2 * self.sensitivity)

    @property
    def epsilon_each(self) -> float:
        """Epsilon of one choice, given those before it."""
        return self.range / self.scale

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves a score."""
        return self.scale / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: randomised response, once for each choice."""
        return Loss(PURE, self.epsilon_each, self.chosen)

    def mu(self) -> float:
        """GDP parameter of Gaussian noise that a composition charges about the same."""
        return self.epsilon_each * math.sqrt(self.chosen)

    def with_mu(self, mu: float) -> TopChoice:
        """Return the event with the noise that has this parameter, rounded up."""
        require_mu(self.name, mu)
        each = min(mu / math.sqrt(self.chosen), _MAX_EPSILON)
        return replace(self, scale=round_up(self.range / each))


LINKAGE = "linkage"
"""What certificates and a policy's list of models call record linkage, which no generator makes."""
MAX_CAP = 10_000
MAX_CELLS = 1_000
_MOST_RECORDS = 2  # that a person has: one in each register


@dataclass(frozen=True)
class LinkCounts(NoisyEvent):
    """Sizes of largest b-matchings of pairs, by cell, each with discrete Gaussian noise.

    Attributes:
        name: the event's name within its plan.
        cells: C, how many sets of pairs are counted.
        cap: k, in at most how many pairs of a cell a record counts.
        records: r, how many records of both registers together one person has: 1 or 2.
        sigma: parameter of the noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on integers;
            ``UNDECIDED`` in a share.

    Example:
        >>> event = LinkCounts("matches", cells=4, cap=3, records=2, sigma=24.0)
        >>> event.sensitivity, round(event.mu(), 2)
        (12.0, 0.5)
    """

    kind = "link_counts"
    noise_field = "sigma"
    cells: int
    cap: int
    records: int
    sigma: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "cells", self.cells, maximum=MAX_CELLS)
        require_count(self.name, "cap", self.cap, maximum=MAX_CAP)
        require_count(self.name, "records", self.records, maximum=_MOST_RECORDS)
        require_noise(self.name, "sigma", self.sigma)
        if self.decided and self.sigma > _MAX_SIGMA:
            raise InputError(f"event '{self.name}': sigma is more than 64 bits hold")
        if self.moves > 1 and self.sigma < _MIN_SIGMA_OF_BOUND:
            raise InputError(
                f"event '{self.name}': sigma must be at least {_MIN_SIGMA_OF_BOUND:g} where a "
                "person moves a cell by more than 1; its privacy bound needs it"
            )

    @property
    def moves(self) -> int:
        """By how much one person moves a cell, at most."""
        return self.records * self.cap

    @property
    def sensitivity(self) -> float:
        """L2 norm of the largest shift by one person."""
        return self.moves * math.sqrt(self.cells)

    @property
    def replacement(self) -> float:
        """How much further a person moves the counts that takes another's place: no further."""
        return 1.0

    def substituted(self) -> LinkCounts:
        """Return the counts that cost what these do where one person takes another's place."""
        return self

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one person moves."""
        return self.sigma / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: cell by cell, or by the bound of accounting.py."""
        if self.moves == 1 and self.sigma <= _MAX_TABLE_SIGMA:
            return Loss(DISCRETE, self.sigma, self.cells)
        smooth = math.sqrt(self.sigma**2 - SMOOTHING**2)
        return Loss(GAUSSIAN, smooth / self.sensitivity, moved=self.cells)

    def mu(self) -> float:
        """GDP parameter: sensitivity over the scale of the (dominating) Gaussian."""
        smoothing = 0.0 if self.moves == 1 else SMOOTHING
        return self.sensitivity / math.sqrt(self.sigma**2 - smoothing**2)

    def with_mu(self, mu: float) -> LinkCounts:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        if self.moves == 1:
            return replace(self, sigma=round_up(max(self.sensitivity / mu, _MIN_SIGMA)))
        sigma = math.hypot(self.sensitivity / mu, SMOOTHING)
        return replace(self, sigma=round_up(max(sigma, _MIN_SIGMA_OF_BOUND)))


MAX_PERIODS = 10_000


@dataclass(frozen=True)
class StaySums(NoisyEvent):
    """Units that are there in each period, filtered, with discrete Gaussian noise.

    Attributes:
        name: the event's name within its plan.
        periods: T, of the window.
        longest: L, the most periods that a stay covers.
        stays_per_unit: k, at most this many stays of a privacy unit count.
        sigma: parameter of the noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on integers, in
            parts of a unit; ``UNDECIDED`` in a share.

    Example:
        >>> event = StaySums("beds", 365, longest=31, stays_per_unit=1, sigma=2.0**24)
        >>> round(event.sensitivity / 2**20, 3), round(event.mu(), 3)
        (1.931, 0.121)
    """

    kind = "stay_sums"
    noise_field = "sigma"
    periods: int
    longest: int
    stays_per_unit: int
    sigma: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "periods", self.periods, maximum=MAX_PERIODS)
        require_count(self.name, "longest", self.longest, maximum=self.periods)
        require_count(self.name, "stays_per_unit", self.stays_per_unit, maximum=1_000_000)
        require_noise(self.name, "sigma", self.sigma)
        if self.decided and not _MIN_SIGMA_OF_BOUND <= self.sigma <= _MAX_SIGMA:
            raise InputError(
                f"event '{self.name}': sigma must be at least {_MIN_SIGMA_OF_BOUND:g}, and no "
                "more than 64 bits hold"
            )

    @property
    def moved(self) -> int:
        """Largest number of cells that a unit moves."""
        return self.stays_per_unit * self.periods

    @property
    def sensitivity(self) -> float:
        """L2 norm of the largest shift by one unit, in parts of it."""
        pass

        # with numpy, which --help does without
        from dpsynth.privacy.stay_filters import most_moved

        one = most_moved(self.periods, self.longest)
        return math.sqrt(self.stays_per_unit * one) * (1 + 1e-12)

    @property
    def replacement(self) -> float:
        """How much further a unit moves the series that takes another's place, at most."""
        return 2.0

    def substituted(self) -> StaySums:
        """Return the series that cost what these do where one unit takes another's place."""
        return replace(self, stays_per_unit=4 * self.stays_per_unit)

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves."""
        return self.sigma / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: by the Gaussian bound of accounting.py."""
        smooth = math.sqrt(self.sigma**2 - SMOOTHING**2)
        return Loss(GAUSSIAN, smooth / self.sensitivity, moved=self.moved)

    def mu(self) -> float:
        """GDP parameter: sensitivity over the scale of the dominating Gaussian."""
        return self.sensitivity / math.sqrt(self.sigma**2 - SMOOTHING**2)

    def with_mu(self, mu: float) -> StaySums:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        sigma = math.hypot(self.sensitivity / mu, SMOOTHING)
        return replace(self, sigma=round_up(max(sigma, _MIN_SIGMA_OF_BOUND)))


LABELS = "labels"
"""What certificates and a policy's list of models call such labels, which no generator makes."""
MAX_TEACHERS = 100_000
MAX_QUERIES = 1_000_000
MAX_CLASSES = 1_000
_MOVED_OF_A_VOTE = 2  # counts of one query: the class that a vote leaves, and the one it comes to


@dataclass(frozen=True)
class TeacherVotes(NoisyEvent):
    """Counts of the votes of teachers, each with discrete Gaussian noise.

    Attributes:
        name: the event's name within its plan.
        teachers: T, among whom the units are dealt.
        queries: n, public rows on which each teacher votes.
        classes: C, what a vote may name.
        sigma: parameter of the noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on integers;
            ``UNDECIDED`` in a share.

    Example:
        >>> event = TeacherVotes("labels", teachers=100, queries=50, classes=2, sigma=40.0)
        >>> event.sensitivity, event.mu()
        (10.0, 0.25)
    """

    kind = "teacher_votes"
    noise_field = "sigma"
    teachers: int
    queries: int
    classes: int
    sigma: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "teachers", self.teachers, maximum=MAX_TEACHERS)
        require_count(self.name, "queries", self.queries, maximum=MAX_QUERIES)
        require_count(self.name, "classes", self.classes, maximum=MAX_CLASSES)
        if self.classes < 2:
            raise InputError(f"event '{self.name}': a vote needs at least 2 classes")
        require_noise(self.name, "sigma", self.sigma)

    @property
    def moved(self) -> int:
        """Largest number of counts that a unit moves, each by 1."""
        return _MOVED_OF_A_VOTE * self.queries

    @property
    def sensitivity(self) -> float:
        """L2 norm of the largest shift by one unit."""
        return math.sqrt(self.moved)

    @property
    def replacement(self) -> float:
        """How much further a unit moves the counts that takes another's place, at most."""
        return 2.0

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves."""
        return self.sigma / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: count by count, or by the bound of accounting.py."""
        if self.sigma <= _MAX_TABLE_SIGMA:
            return Loss(DISCRETE, self.sigma, self.moved)
        smooth = math.sqrt(self.sigma**2 - SMOOTHING**2)
        return Loss(GAUSSIAN, smooth / self.sensitivity, moved=self.moved)

    def mu(self) -> float:
        """GDP parameter: sensitivity over the scale of the noise."""
        return self.sensitivity / self.sigma

    def with_mu(self, mu: float) -> TeacherVotes:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        return replace(self, sigma=round_up(max(self.sensitivity / mu, _MIN_SIGMA)))
