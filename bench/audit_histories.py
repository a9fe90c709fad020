"""Games on histories: steps of one patient in several series and tables, gaps, and the cap.

The neighbour is a patient with as many rows as count, all alike, so that all of her weight falls
into one cell of each histogram: the most that she can move. Steps are coded, weighed and counted by
the code of the fit. In the game of the cap she is in both worlds, and one of her rows differs: it
is hidden by the noise, and by the chance that decides which rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
from audit_counts import Blocks, Silence
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve, StepsCurve, TradeoffCurve

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.encoding.cohort import select
from dpsynth.models import Feature
from dpsynth.models.histories import HistoryTable, Series
from dpsynth.models.histories.steps import rows as table_rows
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.models.histories.steps.table import MASS, Steps
from dpsynth.privacy import mechanisms
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED, JointHistograms
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan, Share

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Counts = list[npt.NDArray[Any]]
Patients = tuple[Histories, Histories]

CLAIM = PrivacyBudget(epsilon=3.0, delta=1e-5)
ROWS, TESTS, TABLES, LAST = 10, 4, 4, 400
STEPS = TESTS * (ROWS - 1)  # of a patient in a table, in all of its tests
MANY = 20  # other patients, whose gaps end where the last follow-up does
CAP, OWNED = 2, 8  # rows that count in the game of the cap, and rows that the patient has
RATE = CAP / OWNED


@dataclass(frozen=True)
class Office:
    """What is released of histories, and what it claims.

    Attributes:
        release: maps patients to arrays.
        spread: standard deviation of the noise of each value of them.
        curve: the trade-off that the noise claims.
        epsilon: the same in one number.
        tight: whether the neighbour moves as much as one may.
    """

    release: Callable[[Histories, Entropy], Counts]
    spread: Callable[[Counts], list[float]]
    curve: TradeoffCurve
    epsilon: float
    tight: bool = True


def table_of(name: str, *, timed: bool = False) -> HistoryTable:
    """Return a long table of four tests with two values."""
    tests = (Series(f"{name} {place}", (Feature("value", 2, 0),), ROWS) for place in range(TESTS))
    return HistoryTable(name, tuple(tests), timed, LAST, (False,))


def patients_of(tables: int, tests: int, others: int = 4, own: int = ROWS) -> Patients:
    """Return a few patients, and the same with one more, whose rows are all alike."""
    rng = np.random.default_rng(3)
    rows = [
        tuple(_rows(rng, others, own if test < tests else 0) for test in range(TESTS))
        for _ in range(tables)
    ]
    ends = np.append(rng.integers(190, 211, others), LAST)
    codes = np.zeros((others + 1, 1), dtype=np.uint16)
    codes[-1] = 2
    nothing = np.empty((others + 1, 0), dtype=np.int64)
    within = Histories(codes, ends, nothing, tuple(rows))
    return within.take(np.arange(others)), within


def _rows(rng: np.random.Generator, others: int, own: int) -> SeriesRows:
    counts = np.append(rng.integers(2, 5, others), own)
    who = np.repeat(np.arange(others + 1), counts)
    days = np.concatenate([np.sort(rng.integers(0, 190, count)) for count in counts])
    values = rng.integers(0, 2, len(who)).astype(np.uint16)
    values[who == others] = 1
    return SeriesRows(who, days, values[:, None])


def by_root(steps: list[Steps], patients: int) -> list[Ints]:
    """Weigh by one over the root of the number of steps: a broken twin."""
    return [(MASS / np.sqrt(part.counts - 1)).astype(np.int64) for part in steps]


def in_each_series(steps: list[Steps], patients: int) -> list[Ints]:
    """Let a patient's steps weigh as much in each series as in one alone: a broken twin."""
    return [MASS // (part.counts - 1) for part in steps]


@contextmanager
def weighing(weights: Callable[..., Any]) -> Iterator[None]:
    """Weigh so, with a mechanism that does not check it."""
    with (
        mock.patch.object(table_rows, "weights_of", weights),
        mock.patch.object(mechanisms, "_check_weighted", lambda *_: None),
    ):
        yield


def steps_office(tables: int = 1, *, apart: bool = False, tight: bool = True) -> Office:
    """Release the values of all steps of so many tables, in one plan.

    Args:
        tables: in which the patient is.
        apart: the broken twin: each table is paid as if she were in no other.
        tight: whether all of her steps in a table fall into one cell.
    """
    events = tuple(
        JointHistograms(f"values {place}", 1, STEPS, UNDECIDED, MASS) for place in range(tables)
    )
    plan = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0 / tables) for event in events])
    paid = plan.events
    if apart:
        paid = tuple(PrivacyPlan.calibrate(CLAIM, [Share(one, 1.0)]).events[0] for one in events)
    table = table_of("labs")

    def release(patients: Histories, entropy: Entropy) -> Counts:
        released = []
        for rows, event in zip(patients.rows, paid, strict=True):
            assert isinstance(event, JointHistograms)
            part = TableRows.of(table, rows, patients.baseline, patients.ends)
            codes = [
                one.values[steps.place].astype(np.int64)
                for one, steps in zip(rows, part.steps, strict=True)
            ]
            (by_series,) = part.stack(codes).histograms(2, event, entropy)
            released.append(np.concatenate(by_series))
        return released

    mu = float(np.hypot.reduce([event.mu() for event in plan.events]))
    spread = [cast(JointHistograms, event).sigma for event in paid]
    return Office(release, lambda _: spread, GaussianCurve(mu), CLAIM.epsilon, tight)


def gaps_office(*, cut: bool = False, total: bool = False) -> Office:
    """Release how far apart rows are, in bins of a few weeks.

    Args:
        cut: the broken twin: bins end where the last follow-up of all patients does.
        total: the broken twin: the sum of all gaps is released as it is.
    """
    table = table_of("labs", timed=True)
    event = JointHistograms("gaps", 1, STEPS, UNDECIDED, MASS)
    plan = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)])
    (event,) = cast("tuple[JointHistograms]", plan.events)

    def release(patients: Histories, entropy: Entropy) -> Counts:
        part = TableRows.of(table, patients.rows[0], patients.baseline, patients.ends)
        end = int(patients.ends.max()) if cut else LAST
        codes = [np.minimum(10 * steps.gaps // end, 9)[:, None] for steps in part.steps]
        (by_series,) = part.stack(codes).histograms(10, event, entropy)
        exact = np.array([sum(int(steps.gaps.sum()) for steps in part.steps)])
        return [np.concatenate(by_series), *([exact] if total else [])]

    def spread(released: Counts) -> list[float]:
        return [event.sigma, 1e-3][: len(released)]

    return Office(release, spread, GaussianCurve(event.mu()), CLAIM.epsilon, tight=False)


def cap_office(source: Entropy, *, first: bool = False) -> Office:
    """Count the rows of a rare value among those of a patient that are kept.

    One row of a patient is hidden by the noise and by the chance that it is not kept, as a unit is
    by the sampling of a private step: the claim is that of one step.

    Args:
        source: of the chance.
        first: the broken twin: the first rows are kept.
    """
    noise = 1.0
    curve = StepsCurve(noise, RATE, 1)

    def release(patients: Histories, entropy: Entropy) -> Counts:
        rows = patients.rows[0][0]
        kept = np.arange(CAP) if first else select(rows.patients, CAP, source)[0]
        rare = np.array([int(rows.values[kept, 0].sum())])
        return [MASS * rare + entropy.discrete_gaussian(noise * MASS, 1)]

    epsilon = curve.epsilon(1.0, CLAIM.delta)
    return Office(release, lambda _: [noise * MASS], curve, epsilon, tight=False)


def capped() -> Patients:
    """Return a patient with more rows than count, and the same with one rare value, the first."""
    within = np.zeros((OWNED, 1), dtype=np.uint16)
    within[0] = 1
    who, nothing = np.zeros(OWNED, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
    both = [
        Histories(
            np.zeros((1, 1), dtype=np.uint16),
            np.array([LAST]),
            nothing,
            ((SeriesRows(who, np.arange(OWNED), values),),),
        )
        for values in (0 * within, within)
    ]
    return both[0], both[1]


def game(
    name: str,
    office: Office,
    patients: Patients,
    source: Entropy,
    *,
    halved: bool = False,
    broken: Callable[[], AbstractContextManager[Any]] = nullcontext,
    known: Office | None = None,
) -> Game:
    """Make the game of an office: does the patient's presence show in what it releases?

    Args:
        name: of the game.
        office: that releases.
        patients: without her, and with her.
        source: of noise.
        halved: the broken twin: half the noise.
        broken: in which the office works: a broken twin of its code.
        known: what the attacker computes with; the office itself if None.
    """
    entropy = cast(Entropy, Blocks(source, halved=halved))
    with broken():
        bare = [(known or office).release(each, Silence(0)) for each in patients]
    spread = np.repeat(office.spread(bare[0]), [part.size for part in bare[0]])
    without, within = (np.concatenate(each).astype(np.float64) for each in bare)

    def scores(member: bool, runs: int) -> Floats:
        with broken():
            seen = [np.concatenate(office.release(patients[member], entropy)) for _ in range(runs)]
        return np.asarray(
            (np.array(seen) - (without + within) / 2) @ ((within - without) / spread**2)
        )

    claim = (office.curve, office.epsilon, CLAIM.delta)
    return Game(name, scores, *claim, cut=0.0, tight=office.tight)


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanisms as they are."""
    all_tests, many = patients_of(1, TESTS), patients_of(TABLES, 1)
    return [
        game("steps of a history, one series", steps_office(), patients_of(1, 1), source),
        game("steps of a history, four series", steps_office(tight=False), all_tests, source),
        game("steps of a history, four tables", steps_office(TABLES), many, source),
        game("gaps of a history", gaps_office(), patients_of(1, 1, MANY), source),
        game(
            "rows of a history, one beyond the cap",
            cap_office(source),
            capped(),
            source,
            known=cap_office(source, first=True),
        ),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on their broken twins."""
    one, all_tests, many = patients_of(1, 1), patients_of(1, TESTS), patients_of(TABLES, 1)
    root, each = (partial(weighing, one) for one in (by_root, in_each_series))
    name = "steps of a history"
    return [
        game(f"{name}: half the noise", steps_office(), one, source, halved=True),
        game(f"{name}: weights by the root of k", steps_office(), one, source, broken=root),
        game(f"{name}: in full in each series", steps_office(), all_tests, source, broken=each),
        game(f"{name}: each table paid alone", steps_office(TABLES, apart=True), many, source),
        game(
            "gaps of a history: cut by the last follow-up of all",
            gaps_office(cut=True),
            patients_of(1, 1, MANY),
            source,
        ),
        game("gaps of a history: their total as it is", gaps_office(total=True), one, source),
        game(
            "rows of a history: the first kept, claimed random",
            cap_office(source, first=True),
            capped(),
            source,
        ),
    ]
