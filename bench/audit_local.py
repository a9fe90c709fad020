"""Games on the local model: does a perturbed answer show which of two answers a person gave?

The attacker knows everything but which of two rows a person has, sees her reports, and scores them
by the likelihood ratio. Nobody else takes part: there is nobody to hide among.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distinguishing_game import Game
from tradeoff_curves import PureCurve

from dpsynth.privacy.entropy import Entropy
from dpsynth.stats.local import RESPONSE, UNARY, Randomiser

Floats = np.ndarray[Any, np.dtype[np.float64]]
EPSILON = 2.0
OUT, IN = 0, 1  # the person's category, in each column


@dataclass(frozen=True)
class Unflipped:
    """A broken twin's coins: the bit of the own category is always sent."""

    source: Entropy

    def integers(self, low: int, high: int, size: Any) -> Any:
        """Draw integers; of two, the larger one."""
        drawn = self.source.integers(low, high, size)
        return np.ones_like(drawn) if high == 2 else drawn


def local_game(name: str, columns: Sequence[Randomiser], source: Any, *, tight: bool) -> Game:
    """Make a game: which of two rows does a person have, who reports every column?"""

    def scores(member: bool, runs: int) -> Floats:
        codes = np.full(runs, IN if member else OUT)
        total = np.zeros(runs)
        for one in columns:
            reports = one.reports(codes, source)
            if one.kind == RESPONSE:
                total += 1.0 * (reports == IN) - (reports == OUT)
            else:
                total += reports[:, IN] - reports[:, OUT]
        return total

    cut = len(columns) - 0.5  # all reports speak for it, and none against it
    return Game(name, scores, PureCurve(EPSILON), EPSILON, 0.0, cut=cut, tight=tight)


def sound(source: Entropy) -> list[Game]:
    """List the games on the randomisers as they are."""
    return [
        local_game(
            "local: one answer of two", [Randomiser(RESPONSE, 2, EPSILON)], source, tight=True
        ),
        local_game("local: one answer of 40", [Randomiser(UNARY, 40, EPSILON)], source, tight=True),
        local_game(
            "local: answers to two questions",
            [Randomiser(RESPONSE, 3, EPSILON / 2)] * 2,
            source,
            tight=True,
        ),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins."""
    return [
        local_game(
            "local: each of two questions spends all",
            [Randomiser(RESPONSE, 3, EPSILON)] * 2,
            source,
            tight=True,
        ),
        local_game(
            "local: the own bit is always sent",
            [Randomiser(UNARY, 40, EPSILON)],
            Unflipped(source),
            tight=True,
        ),
        local_game(
            "local: twice the epsilon", [Randomiser(RESPONSE, 2, 2 * EPSILON)], source, tight=True
        ),
    ]
