"""P12: PATE's teachers share a patient, or the epsilon that is published depends on their votes.

Noise is left out, so that what one unit moves is seen bare. The draws of the others are the same
with and without her, as in the proof (`privacy.answers.votes_event`). Broken twins: units shuffled
and cut into equal parts, a patient at two teachers, a vote that is paid for as one count, and the
papers' bound that shrinks where teachers agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.privacy import TeacherVotes, dealt, noisy_votes
from dpsynth.privacy.answers import ABSTAINS
from dpsynth.stats import LabelsRequest, labelling
from dpsynth.stats.labelling import votes_of_teachers
from dpsynth.stats.labels import WAYS, Features
from dpsynth.tables import simulate

from ..support.bare_counts import Silence

QUERIES = 4
EVENT = TeacherVotes("votes", teachers=3, queries=QUERIES, classes=2, sigma=9.0)
Deal = Callable[[np.ndarray], np.ndarray]
"""The teachers of units, ``[units, teachers of each]``, from the draws of each."""


def honest(draws: np.ndarray) -> np.ndarray:
    return (draws * EVENT.teachers).astype(int)[:, None]


def equal_parts(draws: np.ndarray) -> np.ndarray:
    ranks = draws.argsort().argsort()
    return (ranks * EVENT.teachers // len(draws))[:, None]


def two_teachers(draws: np.ndarray) -> np.ndarray:
    first = honest(draws)
    return np.hstack([first, (first + 1) % EVENT.teachers])


def counts(labels: np.ndarray, draws: np.ndarray, deal: Deal) -> np.ndarray:
    """Votes of teachers who name the commonest label of their units; they have no other rows."""
    votes = np.full((EVENT.teachers, QUERIES), ABSTAINS)
    of = deal(draws)
    for teacher in range(EVENT.teachers):
        own = labels[(of == teacher).any(axis=1)]
        if len(own):
            votes[teacher] = int(own.mean() > 0.5)
    return noisy_votes(votes, EVENT, Silence())


def farthest(deal: Deal) -> float:
    """How far the removal of one unit moves the counts, over small tables: L2."""
    moves = []
    draws = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.2])
    for labels in product((0, 1), repeat=6):
        every = counts(np.array(labels), draws, deal)
        for left in range(6):
            kept = np.arange(6) != left
            fewer = counts(np.array(labels)[kept], draws[kept], deal)
            moves.append(np.linalg.norm(every - fewer))
    return float(max(moves))


def test_one_unit_moves_one_vote_in_each_query() -> None:
    assert farthest(honest) == pytest.approx(EVENT.sensitivity)
    assert EVENT.sensitivity == pytest.approx(math.sqrt(2 * QUERIES))


def test_whoever_takes_the_place_of_another_moves_the_votes_of_two_teachers() -> None:
    """One who is the only unit of her teacher turns it, and so does who comes instead."""
    moves = []
    draws = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.2])
    for labels in product((0, 1), repeat=6):
        before = counts(np.array(labels), draws, honest)
        for place, label, draw in product(range(6), (0, 1), (0.15, 0.45, 0.95)):
            other, drawn = np.array(labels), draws.copy()
            other[place], drawn[place] = label, draw
            moves.append(np.linalg.norm(before - counts(other, drawn, honest)))
    assert EVENT.sensitivity < max(moves) <= EVENT.replacement * EVENT.sensitivity * (1 + 1e-12)


@pytest.mark.parametrize("deal", [equal_parts, two_teachers])
def test_teachers_who_share_units_or_pass_them_on_are_caught(deal: Deal) -> None:
    assert farthest(deal) > EVENT.sensitivity * 1.2


def test_a_vote_paid_as_one_count_is_caught() -> None:
    assert farthest(honest) > math.sqrt(QUERIES) * 1.2


class Draws(Silence):
    """Draws of each unit in turn, the same whoever comes after."""

    def integers(self, low: int, high: int, size: Any) -> np.ndarray:
        return np.array([self._rng.integers(low, high) for _ in range(size)], np.int64)


def test_a_unit_is_dealt_by_a_draw_of_its_own() -> None:
    """No other unit's teacher is another one where units are fewer."""
    all_of_them = dealt(50, EVENT, Draws(1))
    for fewer in range(50):
        assert (dealt(fewer, EVENT, Draws(1)) == all_of_them[:fewer]).all()


def test_all_rows_of_a_unit_go_to_one_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    task = LabelsRequest.of(simulate(20, seed=1), "demo", "diabetes", asked=2, teachers=5)
    rng = np.random.default_rng(1)
    mask = rng.random((40, 3)) < 0.7
    codes = np.zeros((40, 3, len(task.codec.names)), np.uint16)
    codes[..., 0] = np.arange(40)[:, None]  # whose row it is
    tables = [np.zeros((size, 0), np.uint8) for size in task.codec.sizes]
    tables[0] = np.eye(max(40, task.codec.sizes[0]), dtype=np.uint8)[:, :40]
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def spy(rows: np.ndarray, _: Any, teachers: np.ndarray, *__: Any, **___: Any) -> np.ndarray:
        seen.append((rows.argmax(axis=1), teachers))
        return np.zeros((5, 2), np.int16)

    monkeypatch.setattr(labelling, "votes_of_teachers", spy)
    event = TeacherVotes("votes", 5, 2, 2, 9.0)
    features = Features(tuple(tables))
    public = np.zeros((2, 40), np.uint8)
    labelling.asked_of_teachers(task, Cohort(codes, mask), features, public, event, Silence(3))
    ((units, teachers),) = seen
    assert len(units) == mask.sum() and len(set(teachers.tolist())) == 5
    pairs = set(zip(units.tolist(), teachers.tolist(), strict=True))
    assert len(pairs) == len(set(units.tolist()))


class Fixed(Silence):
    """The deal of each unit as it was, whoever is missing, and the coins of each teacher."""

    def __init__(self, deal: np.ndarray) -> None:
        super().__init__(5)
        self.deal = deal

    def integers(self, low: int, high: int, size: Any) -> np.ndarray:
        assert size == len(self.deal)
        return self.deal


@pytest.mark.parametrize("way", WAYS)
def test_whoever_leaves_moves_one_vote_in_each_row(way: str) -> None:
    """Real teachers, patients of several rows, and everybody missing in turn."""
    task = LabelsRequest.of(
        simulate(20, seed=1), "demo", "diabetes", asked=QUERIES * 5, teachers=4, vote=way
    )
    rng = np.random.default_rng(4)
    sizes = np.array(task.codec.sizes)
    codes = (rng.random((30, 3, len(sizes))) * sizes).astype(np.uint16)
    mask = rng.random((30, 3)) < 0.8
    public = (rng.random((task.voted, len(sizes))) * sizes).astype(np.uint16)
    features = Features.cut(task.codec, public, task.axis.place)
    event = TeacherVotes("votes", 4, task.voted, 2, 9.0)
    deal = rng.integers(0, 4, 30)

    def seen(kept: np.ndarray) -> np.ndarray:
        cohort = Cohort(codes[kept], mask[kept])
        bits = features.of(public)
        return labelling.asked_of_teachers(task, cohort, features, bits, event, Fixed(deal[kept]))

    every = seen(np.arange(30))
    moves = [every - seen(np.delete(np.arange(30), gone)) for gone in range(30)]
    assert max(np.linalg.norm(move) for move in moves) <= event.sensitivity * (1 + 1e-12)
    assert max(np.abs(move).sum() for move in moves) > 0
    assert all(np.abs(move).max() <= 1 for move in moves)


@pytest.mark.parametrize("way", WAYS)
def test_a_teacher_votes_the_same_whatever_others_have(way: str) -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 2, (90, 5)).astype(np.uint8)
    classes, teachers = rows[:, 0].astype(np.int64), rng.integers(0, 4, 90)
    queries = rng.integers(0, 2, (60, 5)).astype(np.uint8)

    def votes(kept: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return votes_of_teachers(
            *(rows[kept], labels[kept], teachers[kept], queries),
            **{"number": 4, "labels": 2, "way": way, "entropy": Silence(1)},
        )

    every = votes(np.ones(90, bool), classes)
    for changed in range(4):
        others = np.arange(4) != changed
        gone = votes(teachers != changed, classes)
        assert (gone[changed] == ABSTAINS).all()
        assert (gone[others] == every[others]).all()
        turned = votes(np.ones(90, bool), np.where(teachers == changed, 1 - classes, classes))
        assert (turned[others] == every[others]).all()
        assert (turned[changed] != every[changed]).any()


def bound_by_agreement(votes: np.ndarray, sigma: float, order: float = 16) -> float:
    """Renyi cost of a query by Proposition 7 of the GNMax paper: it falls where teachers agree."""
    lead = np.abs(votes[:, 0] - votes[:, 1])
    wrong = np.array([math.erfc(gap / (2 * sigma)) / 2 for gap in lead])
    plain = order / sigma**2
    return float(np.minimum(plain, wrong * math.exp(2 * plain) + 1e-3 * plain).sum())


def test_what_is_stated_does_not_depend_on_votes() -> None:
    """The event is public facts; the twin's bound tells agreement from disagreement."""
    assert {field.name for field in fields(TeacherVotes)} == {
        *("name", "teachers", "queries", "classes", "sigma")
    }
    event = replace(EVENT, teachers=200)
    agreed = np.zeros((200, QUERIES), int)
    split = agreed.copy()
    split[100:] = 1
    exact = [noisy_votes(votes, event, Silence()) for votes in (agreed, split)]
    silences = [Silence(), Silence()]
    for votes, silence in zip((agreed, split), silences, strict=True):
        noisy_votes(votes, event, silence)
    assert silences[0].asked == silences[1].asked  # the same noise, whatever they vote
    twins = [bound_by_agreement(counts, event.sigma) for counts in exact]
    assert twins[0] < 0.1 * twins[1]
