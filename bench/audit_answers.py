"""Games on answers to declared questions: sums over rows, stays, choices of the commonest value.

The attacker knows everything but whether one more unit is there. Her rows add as much as they can,
to the same cells; of a choice, she has the value that is as common as one that she has not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from audit_counts import CLAIM, Blocks, Silence
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.privacy.answer_events import LaplaceCounts, RowSums, StaySums, TopChoice
from dpsynth.privacy.answers import (
    Contributions,
    Stays,
    laplace_counts,
    row_sums,
    stay_sums,
    top_choice,
)
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.plan import PrivacyPlan, Share
from dpsynth.privacy.stay_filters import WHOLE

Floats = np.ndarray[Any, np.dtype[np.float64]]
SIZE = 3  # cells of each part
EVENTS = {
    "counts": RowSums(
        "sums", 1, 1, largest=1, signed=False, once=False, shared=False, sigma=UNDECIDED
    ),
    "counts of four rows": RowSums(
        "sums", 1, 4, 1, signed=False, once=False, shared=False, sigma=UNDECIDED
    ),
    "patients in four cells": RowSums(
        "sums", 1, 4, 1, signed=False, once=True, shared=False, sigma=UNDECIDED
    ),
    "sums that four rows share": RowSums(
        "sums", 1, 4, 100, signed=True, once=False, shared=True, sigma=UNDECIDED
    ),
    "sums in a tree": RowSums(
        "sums", 5, 2, 100, signed=True, once=False, shared=False, sigma=UNDECIDED
    ),
}


@dataclass(frozen=True)
class ChoiceCurve:
    """Randomised response, composed.

    Attributes:
        epsilon_each: of one choice.
        chosen: how many.
    """

    epsilon_each: float
    chosen: int

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return the least delta at each epsilon."""
        from dpsynth.privacy.noisy_event import PURE, Loss

        loss = Loss(PURE, self.epsilon_each * dial, self.chosen).distribution(1e-4)
        return np.asarray(loss.get_delta_for_epsilon(epsilons))

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        from dpsynth.privacy.noisy_event import PURE, Loss

        loss = Loss(PURE, self.epsilon_each * dial, self.chosen).distribution(1e-4)
        return float(loss.get_epsilon_for_delta(delta))


def paid(event: RowSums | StaySums | TopChoice) -> Any:
    """Return an event that has the whole claim for itself."""
    [found] = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).events
    return found


def paid_laplace(*, once: bool) -> Any:
    """Return counts with Laplace noise that have the whole claim for themselves."""
    event = LaplaceCounts("counts", 4, once, UNDECIDED)
    [found] = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).events
    return found


def laplace_game(
    name: str,
    event: LaplaceCounts,
    source: Entropy,
    *,
    honest: LaplaceCounts | None = None,
    halved: bool = False,
) -> Game:
    """Make a game: does a unit of four rows show in counts with Laplace noise?

    The attacker tells by the likelihood ratio of all cells that she moves.
    """
    cells = np.arange(4) if event.once else np.zeros(4, np.int64)
    unit = Contributions(np.zeros(4, np.int64), cells[:, None])
    nobody = Contributions(np.zeros(0, np.int64), np.zeros((0, 1), np.int64))
    moved = np.bincount(cells, minlength=4)
    entropy: Any = Blocks(source, halved=halved)

    def scores(member: bool, runs: int) -> Floats:
        rows = unit if member else nobody
        seen = np.array([laplace_counts(rows, 4, event, entropy)[0] for _ in range(runs)])
        return np.asarray((np.abs(seen) - np.abs(seen - moved)).sum(axis=1), dtype=np.float64)

    loss = (honest or event).loss
    curve = ChoiceCurve(loss.parameter, loss.times)
    epsilon = curve.epsilon(1.0, CLAIM.delta)
    return Game(name, scores, curve, epsilon, CLAIM.delta, cut=0.5)


def worst_unit(event: RowSums) -> Contributions:
    """Return the rows of a unit that moves the sums furthest."""
    rows = event.rows_per_unit
    cells = np.zeros((rows, event.parts), np.int64)
    if event.once:
        cells[:, 0] = np.arange(rows)
    most = event.largest // rows if event.shared else event.largest
    values = np.full((rows, event.parts), most) if event.largest > 1 else None
    return Contributions(np.zeros(rows, np.int64), cells, values)


NOBODY = Contributions(np.zeros(0, np.int64), np.zeros((0, 1), np.int64))


def sums_game(name: str, event: RowSums, source: Entropy, *, halved: bool = False) -> Game:
    """Make a game: does the unit's presence show in the sums that it moves?"""
    unit = worst_unit(event)
    size = max(SIZE, event.rows_per_unit)
    sizes = [size] * event.parts
    nobody = replace(NOBODY, cells=np.zeros((0, event.parts), np.int64))
    moved = int(unit.cells.max()) + 1
    entropy: Any = Blocks(source, halved=halved)

    def scores(member: bool, runs: int) -> Floats:
        rows = unit if member else nobody
        return np.array(
            [
                float(sum(part[:moved].sum() for part in row_sums(rows, sizes, event, entropy)))
                for _ in range(runs)
            ]
        )

    rows = 1 if event.shared else event.rows_per_unit
    shift = rows * event.largest * event.parts
    curve = GaussianCurve(event.mu())
    return Game(name, scores, curve, CLAIM.epsilon, CLAIM.delta, cut=shift / 2)


def stays_game(name: str, event: StaySums, source: Entropy, *, halved: bool = False) -> Game:
    """Make a game: does the unit's presence show in the direction in which it moves the series?"""
    zero, nobody = np.zeros(1, np.int64), Stays(*np.zeros((4, 0), np.int64))
    bare = replace(event, sigma=3.0)
    units = [Stays(zero, zero, zero, zero + last) for last in range(event.longest)]
    shifts = [stay_sums(unit, 1, bare, Silence(0))[0].astype(float) for unit in units]
    shift, unit = max(zip(shifts, units, strict=True), key=lambda pair: np.linalg.norm(pair[0]))
    size = float(np.linalg.norm(shift))
    entropy: Any = Blocks(source, halved=halved)

    def scores(member: bool, runs: int) -> Floats:
        stays = unit if member else nobody
        seen = [stay_sums(stays, 1, event, entropy)[0] for _ in range(runs)]
        return np.array([float(one @ shift) / size for one in seen])

    return Game(name, scores, GaussianCurve(event.mu()), CLAIM.epsilon, CLAIM.delta, cut=size / 2)


def choice_game(
    name: str, event: TopChoice, source: Entropy, change: tuple[int, int] = (1, 0)
) -> Game:
    """Make a game: does it show in the choice that one score has risen, and another fallen?"""
    scores_of = np.zeros(event.candidates, np.int64)
    changed = scores_of.copy()
    changed[:2] += change

    def scores(member: bool, runs: int) -> Floats:
        seen = changed if member else scores_of
        return np.array([float(top_choice(seen, event, source)[0] == 0) for _ in range(runs)])

    curve = ChoiceCurve(event.epsilon_each, event.chosen)
    epsilon = curve.epsilon(1.0, CLAIM.delta)
    return Game(name, scores, curve, epsilon, CLAIM.delta, cut=0.5, tight=False)


LAPLACE = {"Laplace counts of patients": True, "Laplace counts of rows": False}
STAYS = StaySums("stays", 24, longest=12, stays_per_unit=1, sigma=UNDECIDED)
CHOICE = TopChoice("choice", 1, 2, sensitivity=1, monotone=True, scale=UNDECIDED)


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanisms as they are."""
    games = [sums_game(f"answers: {name}", paid(event), source) for name, event in EVENTS.items()]
    for words, once in LAPLACE.items():
        games.append(laplace_game(f"answers: {words}", paid_laplace(once=once), source))
    games.append(stays_game("answers: a stay of twelve days", paid(STAYS), source))
    return [*games, choice_game("answers: the commonest of two", paid(CHOICE), source)]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins."""
    twins = {
        "counts of four rows": paid(EVENTS["counts"]).sigma,
        "sums in a tree": paid(replace(EVENTS["sums in a tree"], parts=1)).sigma,
    }
    games = []
    for name, event in EVENTS.items():
        games.append(
            sums_game(f"answers: {name}: half the noise", paid(event), source, halved=True)
        )
    for name, sigma in twins.items():
        honest = paid(EVENTS[name])
        cheap = replace(honest, sigma=max(sigma, 3.0))
        game = sums_game(f"answers: {name}: paid as less", cheap, source)
        games.append(replace(game, curve=GaussianCurve(honest.mu())))
    for words, once in LAPLACE.items():
        own = paid_laplace(once=once)
        cheap = replace(own, scale=own.scale / 4)
        games.append(laplace_game(f"answers: {words}: half the noise", own, source, halved=True))
        games.append(laplace_game(f"answers: {words}: paid as one row", cheap, source, honest=own))
    honest_stays = paid(STAYS)
    name = "answers: a stay of twelve days"
    games.append(stays_game(f"{name}: half the noise", honest_stays, source, halved=True))
    day = replace(honest_stays, sigma=honest_stays.sigma * WHOLE / honest_stays.sensitivity)
    game = stays_game(f"{name}: paid as one", day, source)
    games.append(replace(game, curve=GaussianCurve(honest_stays.mu())))
    general = paid(replace(CHOICE, monotone=False))
    cheap_choice = replace(general, scale=general.scale / 2)
    game = choice_game(
        "answers: scores that fall, charged as monotone", cheap_choice, source, (1, -1)
    )
    curve = ChoiceCurve(general.epsilon_each, 1)
    games.append(replace(game, curve=curve, epsilon=curve.epsilon(1.0, CLAIM.delta)))
    return games
