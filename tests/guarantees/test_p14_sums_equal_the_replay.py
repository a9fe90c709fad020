"""P14: the sums that a ledger keeps say what its records say, for every history and moment.

The check: for random histories (several datasets of one group and not, tiers in any case, voids,
fits that may still spend and end later, fits of other numbers of rows, events that nobody knows) a
policy's verdicts by the kept sums are those by all spendings, at
moments on, before and after the second in which a fit leaves the window of 365 days.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dpsynth.ledger import MemoryNodes, Spending, Tally, orders_of
from dpsynth.ledger import tally as ledger_tally
from dpsynth.ledger.sum_tree import Sums
from dpsynth.policy import Past, Policy, Request, judge
from dpsynth.policy.rules import YEAR
from dpsynth.privacy import JointHistograms, PoissonSgd, Spend
from dpsynth.privacy.unit import EACH_ROW

from ..support.some_cases import some_of

START = datetime(2024, 2, 28, 23, 59, 30, tzinfo=UTC)
MICROSECOND, SECOND, DAY = timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=1)
PATIENTS = tuple(replace(EACH_ROW, name="patient_id", max_rows=rows) for rows in (1, 5))
EVENTS: tuple[tuple[Any, ...], ...] = (
    (),
    (JointHistograms("histograms", 3, 1, 9.0),),
    (JointHistograms("histograms", 2, 2, 40.0), PoissonSgd("steps", 0.02, 300, 1.2)),
)


def basis(epsilon: float) -> dict[str, Any]:
    return {"epsilon": epsilon, "basis": "test"}


def policy(dice: random.Random) -> Policy:
    caps = {"year": basis(dice.choice((0.9, 3.0))), "total": basis(dice.choice((2.0, 7.0)))}
    own = {"caps": {"year": basis(0.5), "total": basis(1.5)}}
    document = {
        "dpsynth_policy": 1,
        "name": "test",
        "delta": 1e-4,
        "caps": caps,
        "tiers": {"Board": own, "press": {}},
        "datasets": {"hospital": ["ward", "icu"]},
    }
    return Policy.from_dict(document, "test")


def history(dice: random.Random, fits: int) -> list[Spending]:
    found, at = [], START
    for number in range(fits):
        at += dice.choice((timedelta(0), SECOND, DAY / 3, 9 * DAY, 40 * DAY))
        tier = dice.choice((None, "board", "Board", "press"))
        epsilon, delta = dice.choice((0.1, 0.05, 0.3)), dice.choice((1e-6, 3e-5))
        name = dice.choice(("ward", "WARD", "icu", "other"))
        spend = Spend(epsilon, delta, dice.choice(EVENTS))
        unit = EACH_ROW if name == "other" else dice.choice(PATIENTS)
        found.append((f"{number:032x}", 0, Past(at, name, tier, spend, unit)))
    return found


def opened(spending: Spending) -> Spending:
    """The same while it may still spend."""
    entry, part, past = spending
    return entry, part, replace(past, at=None)


def moments(dice: random.Random, spendings: Sequence[Spending]) -> list[datetime]:
    """Now, and around the seconds at which a fit leaves the window."""
    times = [past.at for _, _, past in spendings if past.at is not None]
    last = times[-1]
    leaves = [at + YEAR for at in times if at + YEAR >= last]
    some = dice.sample(leaves, min(3, len(leaves)))
    around = [moment + by for moment in some for by in (-SECOND, -MICROSECOND, 0 * DAY, SECOND)]
    return [last, *(moment for moment in around if moment >= last)]


def difference(seed: int) -> str | None:
    """Go through one history, voids included, and name the first verdict that differs."""
    dice = random.Random(seed)
    asked, spendings = policy(dice), history(dice, dice.choice((3, 20, 60)))
    tally = Tally(MemoryNodes(), orders_of(asked))
    counted: list[Spending] = []
    for spending in spendings:
        tally = tally.changed([], [opened(spending)])
        if dice.random() < 0.8:  # it ends, and can spend nothing more
            tally = tally.changed([opened(spending)], [spending])
        else:
            spending = opened(spending)
        counted.append(spending)
        if dice.random() < 0.3:
            gone = counted.pop(dice.randrange(len(counted)))
            tally = tally.changed([gone], [])
    if tally.accounts != Tally.of(MemoryNodes(), counted, tally.orders, None).accounts:
        return "the tree depends on the order of its changes"
    past = [one for _, _, one in counted]
    for now in moments(dice, spendings):
        for dataset, tier in (("Ward", "board"), ("icu", "press"), ("other", "BOARD")):
            spend = Spend(dice.choice((0.05, 0.2, 0.6)), 1e-6, dice.choice(EVENTS))
            unit = EACH_ROW if dataset == "other" else PATIENTS[0]
            request = Request(dataset, tier, "mixture", 9000, False, spend, unit)
            names = asked.members(dataset)
            if set(tally.units(names)) != {p.unit for p in past if p.dataset.lower() in names}:
                return f"{now}: units of {dataset}"
            wanted = judge(asked, past, request, now)
            days = judge(asked, tally.past_by_days(names, now), request, now)
            if days != wanted:
                return f"{now}: {dataset}, {tier}, by days"
            quick = judge(asked, tally.past(names, now), request, now)
            if [replace(one, remedy="") for one in quick] != [
                replace(one, remedy="") for one in wanted
            ]:
                return f"{now}: {dataset}, {tier}"
    return None


@pytest.mark.parametrize("seed", some_of(range(25), every=3))
def test_the_sums_say_what_the_records_say(seed: int) -> None:
    assert difference(seed) is None


def forget_voids(patch: pytest.MonkeyPatch) -> None:
    changed = Tally.changed
    patch.setattr(Tally, "changed", lambda self, before, after: changed(self, [], after))


def forget_tiers(patch: pytest.MonkeyPatch) -> None:
    label = ledger_tally._label
    patch.setattr(ledger_tally, "_label", lambda past: label(replace(past, tier=None)))


def forget_spellings(patch: pytest.MonkeyPatch) -> None:
    label = ledger_tally._label
    patch.setattr(ledger_tally, "_label", lambda past: (past.dataset, *label(past)[1:]))


def forget_units(patch: pytest.MonkeyPatch) -> None:
    label = ledger_tally._label
    patch.setattr(ledger_tally, "_label", lambda past: label(replace(past, unit=EACH_ROW)))


def ended_when_reserved(patch: pytest.MonkeyPatch) -> None:
    """What may still spend counts from a moment long ago."""
    moment: Callable[[datetime | None], str] = ledger_tally._moment
    patch.setattr(ledger_tally, "_moment", lambda at: moment(START if at is None else at))


def whole_days(patch: pytest.MonkeyPatch) -> None:
    """The window begins with the day that a fit is in."""
    moment: Callable[[datetime | None], str] = ledger_tally._moment

    def coarse(at: datetime | None) -> str:
        return moment(at and at.replace(hour=0, minute=0, second=0, microsecond=0))

    patch.setattr(ledger_tally, "_moment", coarse)


def unknown_events_are_free(patch: pytest.MonkeyPatch) -> None:
    of = Sums.of.__func__  # type: ignore[attr-defined]

    def free(cls: type[Sums], spend: Spend, orders: tuple[int, ...], *, fits: int) -> Sums:
        known = spend if spend.events else replace(spend, events=EVENTS[1])
        return of(cls, known, orders, fits=fits)

    patch.setattr(Sums, "of", classmethod(free))


TWINS = [
    *(forget_voids, forget_tiers, forget_spellings, forget_units),
    *(whole_days, ended_when_reserved, unknown_events_are_free),
]


@pytest.mark.parametrize("twin", TWINS)
def test_a_tally_that_forgets_is_noticed(
    twin: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        twin(patch)
        assert any(difference(seed) for seed in range(25))
