"""The event of counts of linked pairs, where the patients of two registers are protected.

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

LINKAGE = "linkage"
"""What certificates and a policy's list of models call record linkage, which no generator makes."""
MAX_CAP = 10_000
MAX_CELLS = 1_000
_MOST_RECORDS = 2  # that a person has: one in each register
_MAX_TABLE_SIGMA = 1000.0  # above it, the Gaussian bound costs 1.1e-6 of epsilon, and less time
_MAX_SIGMA = 2.0**54
_MIN_SIGMA = 0.3  # below this a count is all but exact
_MIN_SIGMA_OF_BOUND = 2 * SMOOTHING


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
