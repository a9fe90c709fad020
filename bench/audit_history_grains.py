"""Games on the grains of linked tables: how the numbers of a patient's rows are written.

The neighbour is one more patient whose numbers, her own and those of as many rows of every test and
table as count, all have the grain that nobody else's have. Rows are weighed and counted by the code
of the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
from audit_histories import CLAIM, Office, Patients, game
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.models import Feature
from dpsynth.models.histories import HistoryDomain, HistoryTable, Series, row_grains
from dpsynth.models.histories.row_grains import count_grains, counted_of, with_row_grains
from dpsynth.privacy import mechanisms
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED, JointHistograms
from dpsynth.privacy.plan import PrivacyPlan, Share

ROWS, TESTS, OTHERS, CODES = 6, 16, 4, 60
WHOLE = tuple((int(code % 10 == 0), int(code % 10 > 0)) for code in range(CODES))

Ints = npt.NDArray[np.int64]


def number(name: str) -> Feature:
    """Return a number with tenths."""
    return Feature(name, CODES, CODES, (1,) * CODES, grains=WHOLE)


@cache
def domain() -> HistoryDomain:
    """Return two numbers of patients, and two tables: one of rows, one of tests."""
    visits = (Series("visits", (number("a"), number("b")), ROWS),)
    labs = tuple(Series(f"labs {test}", (number("value"),), ROWS) for test in range(TESTS))
    tables = (
        HistoryTable("visits", visits, False, 1, (True, True)),
        HistoryTable("labs", labs, False, 1, (True,)),
    )
    return HistoryDomain((number("height"), number("weight")), (), tables, 0, 0, OTHERS)


def patients(*, tests: int) -> Patients:
    """Return a few patients of whole numbers, and the same with one more, who has so many tests."""

    def rows(columns: int, own: int) -> SeriesRows:
        who = np.repeat(np.arange(OTHERS + 1), [2] * OTHERS + [own])
        codes = np.where(who == OTHERS, 7, 20)[:, None] * np.ones((1, columns), dtype=int)
        return SeriesRows(who, np.zeros(len(who), np.int64), codes.astype(np.uint16))

    labs = tuple(rows(1, ROWS if test < tests else 0) for test in range(TESTS))
    baseline = np.array([[20, 20]] * OTHERS + [[7, 7]], dtype=np.uint16)
    empty, ends = np.empty((OTHERS + 1, 0), dtype=np.int64), np.zeros(OTHERS + 1, np.int64)
    within = Histories(baseline, ends, empty, ((rows(2, ROWS),), labs))
    return within.take(np.arange(OTHERS)), within


def office(*, apart: bool = False, tight: bool = True) -> Office:
    """Release the grains of all tables, as a fit does.

    Args:
        apart: the broken twin: the events of each table are paid as if she were in no other.
        tight: whether all rows of the patient in a table fall into one cell.
    """
    shares = with_row_grains((Share(JointHistograms("rest", 1, 1, UNDECIDED), 1.0),), domain())
    own = shares[: len(counted_of(domain()))]
    whole = sum(share.fraction for share in own)
    paid = PrivacyPlan.calibrate(CLAIM, [Share(one.event, one.fraction / whole) for one in own])
    alone = PrivacyPlan.calibrate(CLAIM, [Share(own[0].event, 1.0)])
    used = paid
    if apart:
        events = [PrivacyPlan.calibrate(CLAIM, [Share(one.event, 1.0)]).events[0] for one in own]
        used = mock.Mock(spec=alone, has=paid.has)
        used.event = {event.name: event for event in events}.__getitem__

    def release(histories: Histories, entropy: Entropy) -> list[npt.NDArray[Any]]:
        found = count_grains(histories, domain(), used, entropy)
        return [
            counts
            for of_table in found.values()
            for one in of_table
            for counts in one.counts
            if len(counts)
        ]

    noise = [cast(JointHistograms, used.event(one.event.name)).sigma for one in own]
    spread = [noise[0]] * 2 + [noise[1]] * 2 + [noise[2]] * TESTS
    mu = float(np.hypot.reduce([event.mu() for event in paid.events]))
    return Office(release, lambda _: spread, GaussianCurve(mu), CLAIM.epsilon, tight)


def each_test(owners: Any, patients: int, mass: int) -> Ints:
    """Weigh the rows of a test as if the patient had no other test: a broken twin."""
    return np.concatenate([mass // np.bincount(own, minlength=patients)[own] for own in owners])


def each_row(owners: Any, patients: int, mass: int) -> Ints:
    """Weigh each row as a patient: a broken twin."""
    return np.full(sum(map(len, owners)), mass)


@contextmanager
def weighing(weights: Callable[..., Ints]) -> Iterator[None]:
    """Weigh so, with a mechanism that does not check it."""
    with (
        mock.patch.object(row_grains, "weights_of_rows", weights),
        mock.patch.object(mechanisms, "_check_weighted", lambda *_: None),
    ):
        yield


NAME = "grains of linked tables"


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanism as it is."""
    return [
        game(f"{NAME}, one test", office(), patients(tests=1), source),
        game(f"{NAME}, all tests", office(tight=False), patients(tests=TESTS), source),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on its broken twins."""
    one, many = patients(tests=1), patients(tests=TESTS)

    def by(weights: Callable[..., Ints]) -> Callable[[], AbstractContextManager[Any]]:
        return lambda: weighing(weights)

    def twin(words: str, who: Patients, made: Office, broken: Any = nullcontext) -> Game:
        return game(f"{NAME}: {words}", made, who, source, broken=broken)

    return [
        game(f"{NAME}: half the noise", office(), one, source, halved=True),
        twin("each row a patient", one, office(), by(each_row)),
        twin("in full in each test", many, office(), by(each_test)),
        twin("each table paid alone", one, office(apart=True)),
    ]
