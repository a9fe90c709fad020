"""The event of teachers that vote on the labels of public rows (PATE), and what it costs.

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

LABELS = "labels"
"""What certificates and a policy's list of models call such labels, which no generator makes."""
MAX_TEACHERS = 100_000
MAX_QUERIES = 1_000_000
MAX_CLASSES = 1_000
_MOVED_OF_A_VOTE = 2  # counts of one query: the class that a vote leaves, and the one it comes to
_MAX_TABLE_SIGMA = 1000.0  # above it, the Gaussian bound costs 1.1e-6 of epsilon, and less time
_MIN_SIGMA = 0.3  # below this a count is all but exact


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
