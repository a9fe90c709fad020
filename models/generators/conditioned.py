"""A network under a condition: rows are proposed, weighed, and chosen by their weights.

A network draws its columns in a fixed order, so a condition on a late column does not reach the
early ones. Proposals meet the condition, and carry as weight how likely their early columns made it
(`BinnedNetwork.propose`). Of many proposals, rows are chosen in proportion to their weights, by
systematic resampling (Rubin 1988, "Using the SIR algorithm to simulate posterior distributions";
Kitagawa 1996, section 2.3): the law is that of the conditioned network as proposals grow in number.

**How many proposals.** Weights that differ make few proposals count: n proposals are worth
(sum w)^2 / sum w^2 equal ones, their effective number (Kong 1992). A pilot tells the rate r of
effective proposals, and `EFFECTIVE` / r are made for each row, `MOST` at a time at most. So rows
seldom share a proposal, unless r is so small that `MOST` is reached; then `effective` says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsynth.models import Codes
from dpsynth.models.generators.binned_network import BinnedNetwork
from dpsynth.models.generators.latent_aim import Aim, effective
from dpsynth.models.marginals import Binning
from dpsynth.models.marginals.binning import least_narrowed

Floats = npt.NDArray[np.float64]
Truth = npt.NDArray[np.bool_]

EFFECTIVE = 4  # effective proposals for each row that is asked for
FEWEST = 4_000  # proposals
MOST = 400_000
PILOT = 5_000  # from which the share of a condition is told, and the rate,
PILOTS = 8  # so many times at most, until
CLEAR = 1_000  # of them are effective
AT_ONCE = 50_000
NONE = float(np.sqrt(np.finfo(np.float32).tiny))  # of the rows: what a network cannot draw


@dataclass(frozen=True, eq=False)
class ConditionedNetwork:
    """A fitted network, kept to a condition.

    Attributes:
        network: over binned columns.
        binning: that draws allowed codes where it can.
        factors: of the bins of some columns: how likely each meets the condition.
        weights: of the bins of the first column, where it weighs rows; None if it does not.
        aim: where the network looks for rows; None where it has no such place.
        share: of all rows, that meet the condition.
        rate: effective proposals over proposals.
    """

    network: BinnedNetwork
    binning: Binning
    factors: Mapping[int, Floats]
    weights: Floats | None
    aim: Aim | None = None
    share: float = 0.0
    rate: float = 1.0

    @classmethod
    def of(
        cls, network: BinnedNetwork, binning: Binning, allowed: Mapping[int, Truth]
    ) -> tuple[ConditionedNetwork | None, float]:
        """Keep a network to allowed codes of some columns, by their place in the table.

        Rows may hold other codes of the same bins, which have to be thrown away; `least_narrowed`
        says where.

        Returns:
            None if no row can meet the condition; and the share of the rows in the bins.
        """

        def given(loose: Collection[int]) -> tuple[ConditionedNetwork | None, float]:
            law = cls._of(network, binning, allowed, loose)
            return (law, law.share) if law.share > NONE else (None, 0.0)

        return least_narrowed(allowed, given)

    @classmethod
    def _of(
        cls,
        network: BinnedNetwork,
        binning: Binning,
        allowed: Mapping[int, Truth],
        loose: Collection[int],
    ) -> ConditionedNetwork:
        drawn, weights = binning.domain.drawn, binning.row_factors()
        places = {drawn[place]: some for place, some in allowed.items()}
        kept, factors = binning.given(places, [drawn[place] for place in loose])
        law = cls(network, kept, factors, weights)
        if not all(own.any() for own in factors.values()):
            return law
        rng = np.random.default_rng(0)
        law = replace(law, aim=network.aimed(law._factors, rng))
        logs = np.empty(0)
        for _ in range(PILOTS):
            logs = np.append(logs, law._proposed(PILOT, rng)[1])
            if (counted := effective(logs)) >= CLEAR:
                break
        alone = np.zeros(PILOT)
        if weights is not None:
            alone = network.propose(PILOT, rng, {0: weights})[1]
        share = float(np.exp(logs).mean() / np.exp(alone).mean())
        return replace(law, share=share, rate=counted / len(logs))

    def effective(self, rows: int) -> float:
        """Return about how many effective proposals so many rows are chosen from."""
        return self._number(rows) * self.rate

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes; rows may repeat their bins where few proposals count."""
        bins, logs = self._proposed(self._number(rows), rng)
        weights = np.exp(logs - logs.max())
        ends = np.cumsum(weights)
        points = (rng.random() + np.arange(rows)) / rows * ends[-1]
        chosen = np.minimum(np.searchsorted(ends, points, side="right"), len(ends) - 1)
        found = rng.permutation(bins[chosen]).astype(np.int64)
        return self.binning.refine(found, rng, even=even)

    def _number(self, rows: int) -> int:
        return max(FEWEST, min(MOST, math.ceil(EFFECTIVE * rows / max(self.rate, 1e-9))))

    @property
    def _factors(self) -> dict[int, Floats]:
        factors = dict(self.factors)
        if self.weights is not None:
            factors[0] = self.weights * factors.get(0, 1.0)
        return factors

    def _proposed(
        self, number: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.uint16], Floats]:
        sizes = [min(AT_ONCE, number - start) for start in range(0, number, AT_ONCE)]
        parts = [self.network.propose(size, rng, self._factors, self.aim) for size in sizes]
        bins = np.concatenate([rows.astype(np.uint16) for rows, _ in parts])
        return bins, np.concatenate([logs for _, logs in parts])
