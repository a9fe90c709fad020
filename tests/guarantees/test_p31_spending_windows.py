"""P31: what is spent late is counted early, so that a window of 365 days spends more than its cap.

A fit spends when it reads, and once more when its share for quality figures is measured, which may
be years after its reservation. Histories of an office are played; what is *really* spent in each
window is summed up by brute force, without the code that judges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth.ledger import Head, past_of
from dpsynth.ledger.chain import linked
from dpsynth.ledger.entry import (
    CHARGED,
    FAILED,
    FIGURES,
    FORFEITED,
    MEASURED,
    READING,
    RESERVED,
    VOIDED,
    replayed,
)
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Past, Policy, Request, judge, room
from dpsynth.privacy import Spend
from dpsynth.privacy.unit import EACH_ROW

START = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
SECOND = timedelta(seconds=1)
CAP = 1.0
POLICY = Policy.from_dict(
    {
        "dpsynth_policy": 1,
        "name": "t",
        "delta": 1e-3,
        "caps": {"year": {"epsilon": CAP, "basis": "test"}},
    },
    "test",
)
FIT, QUALITY = 0.5, 0.5  # parts of a fit's epsilon: while it reads, when figures are measured
NEXT = {
    RESERVED: (READING, VOIDED, FAILED),
    READING: (CHARGED, FAILED),
    CHARGED: (MEASURED, FORFEITED),
    MEASURED: (FIGURES, FORFEITED),
}


@dataclass
class Fit:
    """A fit, its records, and the moments when it really spends."""

    epsilon: float
    share: bool
    records: list[tuple[datetime, str]]
    spent: list[tuple[datetime, float]] = field(default_factory=list)

    @property
    def state(self) -> str:
        return self.records[-1][1]

    def go(self, kind: str, now: datetime) -> None:
        """Go on: what a fit spends, it spends at the end of reading or measuring, the latest."""
        if self.state == READING:
            self.spent.append((now, self.epsilon * (FIT if self.share else 1.0)))
        if self.state == MEASURED:
            self.spent.append((now, self.epsilon * QUALITY))
        self.records.append((now, kind))

    def entry(self) -> Entry:
        return entry_of(self.epsilon, self.share, tuple(self.records))


@cache
def entry_of(epsilon: float, share: bool, records: tuple[tuple[datetime, str], ...]) -> Entry:
    """Read a fit as a ledger would."""
    head, chain = Head(0, "0" * 64), []
    events = [{"name": "quality"}] if share else []
    bodies: dict[str, dict[str, Any]] = {
        RESERVED: {
            "dataset": "ward", "purpose": "", "tier": None, "model": "m", "version": "1",
            "schema_hash": "", "epsilon": epsilon, "delta": 1e-9, "host": "h",
            "plan": {"events": events}, "unit": EACH_ROW.to_dict(), "allow_refuse": False,
            "population": 9, "policy": None, "sign_off": 0, "gates": [], "process": 1,
        },
        MEASURED: {"table": "t"}, FIGURES: {"sha256": "s"}, FORFEITED: {"note": ""},
    }  # fmt: skip
    for at, kind in records:
        body = bodies.get(kind, {"note": ""})
        chain.append(linked(head, kind=kind, entry="e", at=at.isoformat(), who="w", body=body))
        head = chain[-1].head
    [entry] = replayed(chain)
    return entry


Moves = list[tuple[float, int, float, bool]]
Judged = Callable[[Fit], Past]


def by_the_rule(fit: Fit) -> Past:
    return past_of(fit.entry())


def by_reservation(fit: Fit) -> Past:
    """The broken version: a fit counts at the time when it was reserved."""
    return replace(by_the_rule(fit), at=fit.records[0][0])


def by_its_end(fit: Fit) -> Past:
    """Another one: at the end of the fit, whatever its share does."""
    ended = [at for at, kind in fit.records if kind in (CHARGED, FAILED)]
    return replace(by_the_rule(fit), at=ended[0] if ended else None)


def by_measurement(fit: Fit) -> Past:
    """Another one: when the measurement began, though it may take its time."""
    measured = [at for at, kind in fit.records if kind == MEASURED]
    windows = by_the_rule(fit)
    return replace(windows, at=measured[0] if measured else windows.at)


def played(moves: Moves, judged: Judged) -> list[Fit]:
    """Let an office act: reserve what is admitted, go on with one of its fits, and so forth."""
    fits: list[Fit] = []
    now = START
    for days, choice, epsilon, share in moves:
        now += timedelta(days=days)
        going = [fit for fit in fits if NEXT.get(fit.state, ()) and moves_of(fit)]
        if going and choice % 3:
            fit = going[choice // 3 % len(going)]
            kinds = moves_of(fit)
            fit.go(kinds[0 if choice < 36 else choice % len(kinds)], now)
            continue
        past = [judged(fit) for fit in fits if fit.entry().counts]
        spend = Spend(epsilon, 1e-9, ())
        request = Request("ward", None, "m", 9, False, spend, EACH_ROW)
        if all(verdict.allowed for verdict in judge(POLICY, past, request, now)):
            fits.append(Fit(epsilon, share, [(now, RESERVED)]))
    return fits


def moves_of(fit: Fit) -> tuple[str, ...]:
    return () if fit.state == CHARGED and not fit.share else NEXT.get(fit.state, ())


def fullest(fits: list[Fit]) -> float:
    """Most that is really spent in any window (a, a + 365 days]."""
    spendings = [one for fit in fits for one in fit.spent]
    return max(
        (sum(e for at, e in spendings if last - YEAR < at <= last) for last, _ in spendings),
        default=0.0,
    )


moves = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 30.0, 180.0, 364.0, 366.0, 400.0]),
        st.integers(0, 47),
        st.sampled_from([0.3, 0.5, 1.0]),
        st.booleans(),
    ),
    max_size=40,
)
LATE: Moves = [  # charged; a year later another; then both are measured in one week
    (0, 0, 1.0, True), (1, 1, 1.0, True), (1, 1, 1.0, True),
    (400, 0, 1.0, True), (1, 4, 1.0, True), (1, 4, 1.0, True),
    (1, 1, 1.0, True), (1, 1, 1.0, True), (1, 1, 1.0, True), (1, 1, 1.0, True),
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(moves)
@example(LATE)
@example([*LATE, *LATE])
def test_no_window_of_365_days_spends_more_than_the_cap(history: Moves) -> None:
    assert fullest(played(history, by_the_rule)) <= CAP + 1e-9


def broken(judged: Judged) -> float:
    """The worst that chance finds in 200 histories of an office."""
    import numpy as np

    rng = np.random.default_rng(7)
    worst = 0.0
    for _ in range(200):
        history = [
            (float(rng.choice([0, 1, 180, 364, 400])), int(rng.integers(48)),
             float(rng.choice([0.5, 1.0])), bool(rng.integers(2)))
            for _ in range(30)
        ]  # fmt: skip
        worst = max(worst, fullest(played(history, judged)))
        if worst > CAP + 1e-9:
            break
    return worst


@pytest.mark.parametrize("judged", [by_reservation, by_its_end, by_measurement])
def test_earlier_moments_are_found_out(judged: Judged) -> None:
    assert broken(judged) > CAP + 1e-9


def test_quality_of_two_years_in_one_week_is_such_a_history() -> None:
    assert fullest(played(LATE, by_reservation)) == 1.5  # 0.5 and 0.5, and the second fit's 0.5
    assert fullest(played(LATE, by_the_rule)) <= CAP


def test_the_same_search_finds_nothing_against_the_rule() -> None:
    assert broken(by_the_rule) <= CAP + 1e-9


def test_what_may_still_be_spent_counts_as_of_now() -> None:
    fit = Fit(1.0, True, [(START, RESERVED)])
    day = START
    for kind in (READING, CHARGED, MEASURED):
        assert by_the_rule(fit).at is None  # reserved, reading, charged with a share
        day += timedelta(days=500)
        fit.go(kind, day)
    assert by_the_rule(fit).at is None  # measuring
    fit.go(FIGURES, day + timedelta(days=2))
    assert by_the_rule(fit).at == day + timedelta(days=2) + SECOND
    for kinds, ended in (
        ((READING, CHARGED, FORFEITED), True),
        ((READING, CHARGED, MEASURED, FORFEITED), True),
        ((READING, FAILED), True),
        ((FAILED,), True),
        ((READING,), False),
    ):
        fit = Fit(1.0, True, [(START, RESERVED)])
        for number, kind in enumerate(kinds, start=1):
            fit.go(kind, START + timedelta(days=number))
        assert (by_the_rule(fit).at == START + timedelta(days=len(kinds)) + SECOND) is ended
    plain = Fit(1.0, False, [(START, RESERVED), (START, READING), (START, CHARGED)])
    assert by_the_rule(plain).at == START + SECOND


def test_a_spending_within_the_second_of_its_record_is_in_the_window() -> None:
    """Records hold whole seconds, rounded down: a fit may have spent later than its record says."""
    ended, asked = START + 0.9 * SECOND, START + YEAR + 0.5 * SECOND

    def recorded(at: datetime) -> datetime:
        return at.replace(microsecond=0)

    fit = Fit(1.0, False, [(START, RESERVED), (START, READING), (recorded(ended), CHARGED)])
    fit.spent.append((ended, 1.0))
    next_ = Fit(1.0, False, [(recorded(asked), RESERVED)], [(asked + 0.1 * SECOND, 1.0)])
    assert fullest([fit, next_]) == 2.0
    request = Request("ward", None, "m", 9, False, Spend(1.0, 1e-9, ()), EACH_ROW)

    def admitted(at: datetime | None) -> bool:
        past = replace(by_the_rule(fit), at=at)
        return all(one.allowed for one in judge(POLICY, [past], request, recorded(asked)))

    assert admitted(recorded(ended))  # the broken version: as if it had spent by then
    assert not admitted(by_the_rule(fit).at)


def test_room_and_remedy_say_the_same() -> None:
    now = START + timedelta(days=1000)
    open_, shut = (Past(at, "ward", None, Spend(0.7, 1e-9, ()), EACH_ROW) for at in (None, now))
    request = Request("ward", None, "m", 9, False, Spend(0.5, 1e-9, ()), EACH_ROW)
    [meter] = room(POLICY, [open_], "ward", None, now)
    assert meter.used == 0.7
    [verdict] = [v for v in judge(POLICY, [open_], request, now) if not v.allowed]
    assert "end what 1 fit can still spend" in verdict.remedy
    assert "ask again after" not in verdict.remedy
    [verdict] = [v for v in judge(POLICY, [shut], request, now) if not v.allowed]
    assert f"ask again after {(now + YEAR).date()}" in verdict.remedy
    assert all(v.allowed for v in judge(POLICY, [shut], request, now + YEAR))
    assert not all(v.allowed for v in judge(POLICY, [open_], request, now + 9 * YEAR))
