"""Rules about a fact of patients and one of their histories: kept, and facts stay as frequent."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import NEVER, Histories, HistoryCodec, SeriesRows
from dpsynth.models.histories import Excluded
from dpsynth.models.histories.latent import generator as latent
from dpsynth.models.histories.latent.generator import LatentHistories
from dpsynth.models.histories.latent.vector import PatientVector
from dpsynth.models.histories.linked_domain import domain_of
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy
from dpsynth.schema import LinkedSchema

from ...support.linked_tables import choice, number, plain, resource

PATIENTS, DRAWN = 1_000, 2_000
BUDGET = PrivacyBudget(epsilon=8.0, delta=1e-6)
CODES = ("O80", "I10", "C61", "E11")
BIRTHS = "each(visits).dx == 'O80' implies patients.sex == 'F'"
EVENT = "count(events, pregnant) == 0 or patients.sex != 'M'"


def schema(*rules: str) -> LinkedSchema:
    patients = [plain("id"), choice("sex", "F", "M", required=True), number("age", 0, 100)]
    patients.append({"name": "woman", "type": "boolean"})
    visits = [plain("id"), plain("day", "integer"), choice("dx", *CODES, required=True)]
    events = [plain("id"), plain("day", "integer"), choice("event", "pregnant", "stroke")]
    return LinkedSchema.from_dict(
        {
            "name": "ward",
            "resources": [
                {"name": "patients", "schema": {"primaryKey": "id", "fields": patients}},
                resource("visits", visits, time="day", max_rows={"value": 6, "basis": "x"}),
                resource("events", events, time="day", once="event"),
            ],
            "dpsynth": {
                "version": 1,
                "patients": "patients",
                "population": {"value": PATIENTS, "basis": "x"},
                "window": {"first": 0, "last": 1000, "basis": "x"},
                "rules": list(rules),
            },
        }
    )


def seen(codec: HistoryCodec) -> Histories:
    """Facts that both sexes have alike."""
    rng = np.random.default_rng(1)
    baseline = np.zeros((PATIENTS, 3), dtype=np.uint16)
    baseline[:, 0] = rng.integers(0, 2, PATIENTS)
    baseline[:, 1] = rng.integers(0, 50, PATIENTS)
    onsets = np.full((PATIENTS, 2), NEVER)
    has = rng.random((PATIENTS, 2)) < 0.25
    onsets[has] = rng.integers(0, 1000, has.sum())
    who = np.repeat(np.arange(PATIENTS), rng.integers(1, 5, PATIENTS))
    days = rng.integers(0, 1000, len(who))
    order = np.lexsort((days, who))
    values = rng.choice(4, (len(who), 1), p=[0.1, 0.4, 0.1, 0.4]).astype(np.uint16)
    rows = SeriesRows(who, days[order], values)
    return Histories(baseline, np.full(PATIENTS, codec.last), onsets, ((rows,),))


@cache
def fitted(*rules: str) -> LatentHistories:
    codec = HistoryCodec(schema(*rules))
    generator = LatentHistories(domain_of(codec))
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latent, "LEAST_DRAWN", 400)
        patch.setattr(latent, "DRAWN", 400)
        generator.fit(seen(codec), plan, SeededEntropy(1))
    return generator


def kept_to(*rules: str) -> LatentHistories:
    """The generator that was fitted without rules, with rules that were added afterwards."""
    free = fitted()
    domain = domain_of(HistoryCodec(schema(*rules)))
    return LatentHistories.restore(domain, free.config(), free.arrays())


def facts(generator: LatentHistories, seed: int = 1) -> dict[str, Any]:
    """Who is a man, who has the event, and who has the code."""
    drawn = generator.sample(DRAWN, np.random.default_rng(seed))
    [[rows]] = drawn.rows
    births = np.isin(np.arange(DRAWN), rows.patients[rows.values[:, 0] == 0])
    return {
        "man": drawn.baseline[:, 0] == 1,
        "event": drawn.onsets[:, 0] != NEVER,
        "stroke": drawn.onsets[:, 1] != NEVER,
        "code": births,
    }


def test_rules_of_these_two_forms_are_read() -> None:
    domain = domain_of(HistoryCodec(schema(BIRTHS, EVENT)))
    assert domain.excluded == (
        Excluded(0, (1, 2), table=0, value=0, code=0),  # M, and what is not declared
        Excluded(0, (1,), event=0),
    )
    one = "count(events, pregnant) > 0 or count(events, stroke) > 0 implies patients.sex == 'F'"
    both = domain_of(HistoryCodec(schema(one))).excluded
    assert [(each.event, each.codes) for each in both] == [(0, (1, 2)), (1, (1, 2))]
    yes = "each(visits).dx == 'O80' implies patients.woman == true"
    assert domain_of(HistoryCodec(schema(yes))).excluded == (
        Excluded(2, (0,), table=0, value=0, code=0),
    )
    for other in (
        "first(visits).dx == 'O80' implies patients.sex == 'F'",
        "each(visits).dx == 'O80' implies patients.age >= 12",
        "each(visits).dx == 'O80' implies each(visits).day > 3",
        "count(visits) > 2 implies patients.sex == 'F'",
        "patients.sex == 'F' or patients.age > 3",
    ):
        assert domain_of(HistoryCodec(schema(other))).excluded == ()


@pytest.mark.parametrize("when", ["declared", "added"])
def test_men_never_have_it_and_it_stays_as_frequent(when: str) -> None:
    free = facts(fitted())
    kept = facts((fitted if when == "declared" else kept_to)(BIRTHS, EVENT))
    for name in ("event", "code"):
        assert (free["man"] & free[name]).mean() > 0.02, "both sexes had it alike"
        assert not (kept["man"] & kept[name]).any()
        # who has few rows has room for few codes; a fit knows of it, an added rule does not
        assert kept[name].mean() == pytest.approx(free[name].mean(), abs=0.06)
    assert kept["man"].mean() == pytest.approx(free["man"].mean(), abs=0.03)
    assert (kept["man"] & kept["stroke"]).mean() > 0.05, "what no rule is about stays"


def test_a_twin_that_gives_it_to_nobody_loses_half(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PatientVector.kept_apart

    def alone(self: PatientVector, z: Any, codes: Any, rng: Any) -> Any:
        before = z.copy()
        found = whole(self, z, codes, rng)
        women = found[:, 0] == 0
        z[women], found[women] = before[women], codes[women]
        return found

    free = facts(kept_to(EVENT))
    monkeypatch.setattr(PatientVector, "kept_apart", alone)
    twin = facts(kept_to(EVENT))
    assert not (twin["man"] & twin["event"]).any()
    assert twin["event"].mean() < 0.7 * free["event"].mean()
