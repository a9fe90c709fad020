"""The distinguishing game: can an attacker tell neighbours apart better than was claimed?

Many times over, a mechanism runs on data without a unit and with it. The attacker gives each
outcome a score, higher where the unit seems to be in, and says "in" above a cut. The cut is known
before, or chosen on a part of the outcomes; the error rates are counted on the others: so their
bounds hold, whatever the score is. A weak attack proves little; none can accuse a mechanism
that keeps its claim, but with the probability that the bounds fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tradeoff_curves import PureCurve, TradeoffCurve, refuted

from dpsynth.eval.core import Rate

Floats = NDArray[np.float64]
Scores = Callable[[bool, int], Floats]

CHOOSING = 0.2  # of the outcomes: for the cut
FAILS = 5e-7  # of one bound: an honest mechanism is accused with probability 1e-6 a game at most


@dataclass(frozen=True)
class Game:
    """A mechanism, an attack on it, and what it claims.

    Attributes:
        name: what is attacked.
        scores: (whether the unit is in, runs) to one score a run, ``[runs]``.
        curve: the mechanism's trade-off, as claimed.
        epsilon: as claimed, at ``delta``.
        delta: of the claim.
        cut: where the attacker begins to say "in"; None if it is chosen on a part of the runs.
        tight: whether the attack is the best one, so that most of the claim must show.
    """

    name: str
    scores: Scores
    curve: TradeoffCurve
    epsilon: float
    delta: float
    cut: float | None = None
    tight: bool = True

    def most(self, runs: int, fails: float = FAILS) -> float:
        """Return the epsilon that an attack without an error would refute in so many runs."""
        counted = runs if self.cut is not None else runs - _size(runs)
        low = Rate(counted, counted).bounds(fails)[0]
        return refuted(self.curve, low, 1 - low, self.delta)

    def play(self, runs: int, fails: float = FAILS) -> GameFinding:
        """Play with so many runs without the unit and as many with it.

        Raises:
            ValueError: if no attack at all could refute the claim in so few runs.
        """
        if self.most(runs, fails) <= self.epsilon:
            raise ValueError(f"{self.name}: {runs} runs could refute nothing; play more")
        return judged(self, self.scores(False, runs), self.scores(True, runs), fails)


@dataclass(frozen=True)
class GameFinding:
    """What a game showed.

    Attributes:
        game: as played.
        refuted: the mechanism's epsilon is above this, but with probability 2 ``fails``; 0 where
            nothing was shown.
        false: rate of "in" without the unit.
        true: rate of "in" with it.
    """

    game: Game
    refuted: float
    false: Rate
    true: Rate

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.refuted > self.game.epsilon

    @property
    def share(self) -> float:
        """How much of the claimed epsilon the attack could show."""
        return self.refuted / self.game.epsilon


def judged(game: Game, out: Floats, within: Floats, fails: float = FAILS) -> GameFinding:
    """Turn scores without and with the unit into what they refute.

    Raises:
        ValueError: if a score is no finite number: it would count as "out", whatever it hides.
    """
    if not (np.isfinite(out).all() and np.isfinite(within).all()):
        raise ValueError(f"{game.name}: a score is not a finite number")
    cut, size = game.cut, 0
    if cut is None:
        size = _size(len(out))
        cut = _chosen_cut(game.curve, out[:size], within[:size], len(out) - size, fails)
    false = Rate(int((out[size:] > cut).sum()), len(out) - size)
    true = Rate(int((within[size:] > cut).sum()), len(within) - size)
    is_refuted = refuted(game.curve, true.bounds(fails)[0], false.bounds(fails)[1], game.delta)
    return GameFinding(game, is_refuted, false, true)


def _size(runs: int) -> int:
    """Return how many runs choose the cut."""
    return max(1, round(CHOOSING * runs))


def _chosen_cut(
    curve: TradeoffCurve, out: Floats, within: Floats, runs: int, fails: float
) -> float:
    """Choose the cut that would show most if ``runs`` more outcomes fell as these few did.

    What would show is measured in probits, or for a curve without delta by the ratio of the rates.
    """
    from scipy.special import ndtri

    cuts = np.unique(np.quantile(np.concatenate([out, within]), np.linspace(0.02, 0.98, 49)))
    best, chosen = -np.inf, float(cuts[len(cuts) // 2])
    for cut in cuts:
        low = Rate(round(float((within > cut).mean()) * runs), runs).bounds(fails)[0]
        high = Rate(round(float((out > cut).mean()) * runs), runs).bounds(fails)[1]
        if isinstance(curve, PureCurve):
            with np.errstate(divide="ignore"):
                apart = max(np.log(low) - np.log(high), np.log1p(-high) - np.log1p(-low))
        else:
            apart = float(ndtri(low) - ndtri(high))
        if apart > best:
            best, chosen = float(apart), float(cut)
    return chosen
