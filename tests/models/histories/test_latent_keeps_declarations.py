"""`latent` keeps what is declared of histories by construction, whatever it learned.

A fit on few patients of made-up tables, or on rows that break every declaration, is mostly noise.
What it draws is judged by the counts of the product and by the checks of a bundle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.checks import Findings, check_cohort
from dpsynth.encoding import (
    NEVER,
    Histories,
    HistoryCodec,
    SeriesRows,
    decode_histories,
    with_keys,
)
from dpsynth.models.histories import HistoryDomain, Series
from dpsynth.models.histories.latent import generator as latent
from dpsynth.models.histories.latent.generator import LatentHistories
from dpsynth.models.histories.linked_domain import domain_of
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.schema.linked import PatientRows, declared_counts
from dpsynth.tables import write_linked

from ...support.declared_tables import declared, from_admission, vitals, with_dates_of_death

PATIENTS, DRAWN = 300, 600
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
Document = dict[str, Any]


def with_own_days() -> Document:
    """Due days before the origin, nearer to each other than rows are to them; a longest gap."""
    document = declared()
    visits = document["resources"][5]["dpsynth"]
    visits |= {"schedule": [-50, 0, 25], "schedule_within": 30}
    document["resources"][1]["dpsynth"]["longest_gap"] = 90
    labs = document["resources"][3]["dpsynth"]
    del labs["inside"], labs["max_rows"]
    labs |= {"schedule": {"from": 0, "every": 200, "times": 5}, "rows": {"exactly": 5}}
    return document


def with_fatal_events() -> Document:
    """Events that imply the one that ends follow-up, and some that imply one on their own day."""
    document = declared()
    words = ["chd", "mi", "death", "fatal mi", "x", "y"]
    document["resources"][4]["schema"]["fields"][2]["constraints"]["enum"] = words
    pairs = [("fatal mi", "death", True), ("fatal mi", "mi", True), ("mi", "chd", False)]
    pairs += [("x", "y", True), ("chd", "y", True)]
    document["dpsynth"]["implies"] = [
        {"table": "events", "event": event, "implies": other, "same_day": same}
        for event, other, same in pairs
    ]
    return document


def with_hours() -> Document:
    """Stays that end at a time of day, some hours after they began."""
    return from_admission("h", "datetime")


DOCUMENTS = {
    "each once": declared,
    "dates of discharge": from_admission,
    "times of discharge": with_hours,
    "days of their own": with_own_days,
    "fatal events": with_fatal_events,
    "a grid": vitals,
}


def of_population(document: Document) -> LinkedSchema:
    document["dpsynth"]["population"]["value"] = PATIENTS
    return LinkedSchema.from_dict(document)


def odd(domain: HistoryDomain, patients: int, seed: int) -> Histories:
    """Patients whose rows keep nothing of what is declared, but for the window and the caps."""
    rng = np.random.default_rng(seed)
    sizes = [feature.size for feature in domain.baseline]
    baseline = rng.integers(0, sizes, (patients, len(sizes))).astype(np.uint16)
    ends = np.full(patients, domain.last)
    if domain.end is not None:
        ordered = domain.baseline[domain.end.column].cells
        baseline[:, domain.end.column] = rng.integers(0, ordered, patients)
        ends = np.asarray(domain.end.days_of(baseline[:, domain.end.column].astype(np.int64)))
    shape = (patients, len(domain.events))
    onsets = np.where(
        rng.random(shape) < 0.5, rng.integers(domain.first, ends[:, None] + 1, shape), NEVER
    )
    if domain.end is not None and domain.end.event is not None:
        onsets[:, domain.end.event] = np.where(rng.random(patients) < 0.5, ends, NEVER)

    def rows(series: Series, timed: bool) -> SeriesRows:
        who = np.repeat(np.arange(patients), rng.integers(0, series.max_rows + 1, patients))
        days = rng.integers(domain.first, ends[who] + 1) if timed else np.zeros_like(who)
        own = [value.size for value in series.values]
        values = rng.integers(0, own, (len(who), len(own))).astype(np.uint16)
        return SeriesRows(who, days[np.lexsort((days, who))], values)

    return Histories(
        baseline,
        ends,
        onsets,
        tuple(tuple(rows(one, table.timed) for one in table.series) for table in domain.tables),
    )


@functools.cache
def fitted(name: str) -> tuple[LinkedSchema, LatentHistories]:
    """Fit once for each document."""
    schema = of_population(DOCUMENTS[name]())
    domain = domain_of(HistoryCodec(schema))
    generator = LatentHistories(domain)
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latent, "LEAST_DRAWN", 400)
        patch.setattr(latent, "DRAWN", 400)
        generator.fit(odd(domain, PATIENTS, 1), plan, SeededEntropy(1))
    return schema, generator


def drawn(generator: LatentHistories, seed: int) -> Histories:
    return generator.sample(DRAWN, np.random.default_rng(seed), even=False)


def tables_of(histories: Histories, schema: LinkedSchema) -> dict[str, pd.DataFrame]:
    frames = decode_histories(histories, HistoryCodec(schema), np.random.default_rng(1))
    return with_keys(frames, schema, np.arange(1, len(histories) + 1))


def broken(histories: Histories, schema: LinkedSchema) -> dict[str, int]:
    counts = declared_counts(PatientRows(tables_of(histories, schema), schema), schema)
    return {f"{one.place}:{one.kind}": one.broken for one in counts if one.broken}


def test_what_the_fits_saw_keeps_nothing() -> None:
    schema, generator = fitted("each once")
    kinds = broken(odd(generator.domain, PATIENTS, 1), schema)
    assert len(kinds) == 8, "each declaration"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_drawn_keeps_each(name: str, seed: int) -> None:
    schema, generator = fitted(name)
    assert broken(drawn(generator, seed), schema) == {}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_lies_outside_follow_up(name: str) -> None:
    _, generator = fitted(name)
    histories, domain = drawn(generator, 4), generator.domain
    has = histories.onsets != NEVER
    assert (np.where(has, histories.onsets, domain.first) >= domain.first).all()
    assert (np.where(has, histories.onsets, domain.first) <= histories.ends[:, None]).all()
    if domain.end is not None:
        assert domain.end.event is not None
        death = histories.onsets[:, domain.end.event]
        assert set(np.flatnonzero(death != NEVER)) == set(np.flatnonzero(death == histories.ends))
        code = histories.baseline[:, domain.end.column].astype(np.int64)
        assert (domain.end.days_of(code) == histories.ends).all()
    for table, series in zip(domain.tables, histories.rows, strict=True):
        for one, rows in zip(table.series, series, strict=True):
            assert (rows.days <= histories.ends[rows.patients]).all()
            assert (rows.days >= domain.first).all() and len(rows.days) > 0
            assert rows.counts(DRAWN).max() <= one.max_rows
            same = np.diff(rows.patients) == 0
            assert (np.diff(rows.patients) >= 0).all() and (np.diff(rows.days)[same] >= 0).all()
            assert (np.diff(rows.days)[same] <= table.longest).all()
            assert (rows.values < [value.size for value in one.values]).all()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_checks_of_a_bundle_pass(name: str, tmp_path: Path) -> None:
    schema, generator = fitted(name)
    made = tables_of(drawn(generator, 5), schema)
    write_linked([made], tmp_path / "data", published_tables(schema), kind=".parquet")
    findings = Findings()
    check_cohort(tmp_path, schema, findings)
    assert [(one.place, one.message) for one in findings.problems] == []


def test_who_has_no_date_of_death_lives() -> None:
    """An end that is not stated is one of its own: not everybody dies."""
    schema = LinkedSchema.from_dict(with_dates_of_death())
    domain = domain_of(HistoryCodec(schema))
    seen = odd(domain, PATIENTS, 1)
    rng = np.random.default_rng(2)
    lives = rng.random(PATIENTS) < 0.8
    assert domain.end is not None
    column, missing = domain.end.column, domain.baseline[domain.end.column].cells
    seen.baseline[lives, column] = missing
    seen = replace(seen, ends=np.where(lives, domain.last, seen.ends))
    generator = LatentHistories(domain)
    plan = PrivacyPlan.calibrate(PrivacyBudget(20.0, 1e-6), generator.shares(BUDGET))
    generator.fit(seen, plan, SeededEntropy(1))
    made = drawn(generator, 1)
    unstated = made.baseline[:, column] == missing
    assert unstated.mean() == pytest.approx(lives.mean(), abs=0.07)
    assert (made.ends[unstated] == domain.last).all()
    frame = tables_of(made, schema)["patients"]
    assert (frame["died"].isna().to_numpy() == unstated).all()


def arrays_of(histories: Histories) -> list[Any]:
    found = [histories.baseline, histories.ends, histories.onsets]
    found += [
        part
        for table in histories.rows
        for one in table
        for part in (one.patients, one.days, one.values)
    ]
    return [array.tolist() for array in found]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_restored_generator_draws_the_same(name: str) -> None:
    _, generator = fitted(name)
    again = LatentHistories.restore(generator.domain, generator.config(), generator.arrays())
    for even in (True, False):
        one, other = (
            arrays_of(each.sample(200, np.random.default_rng(6), even=even))
            for each in (generator, again)
        )
        assert one == other
    other = arrays_of(generator.sample(200, np.random.default_rng(7)))
    assert other != arrays_of(again.sample(200, np.random.default_rng(6)))


# Broken twins: each is seen -------------------------------------------------------------------

Twin = Callable[[pytest.MonkeyPatch], None]


def not_inside(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: a stay is two weeks longer for its rows than it is."""
    real = latent.parent_spans
    patch.setattr(latent, "parent_spans", lambda *them: (*real(*them)[:2], real(*them)[2] + 14))


def not_due(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: all rows are due, also after the end."""
    patch.setattr(
        latent, "rows_due", lambda table, ends: np.full(len(ends), max(len(table.due) - 1, 1))
    )


def not_implied(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: events come by themselves."""
    real = LatentHistories._onsets

    def alone(self: LatentHistories, *rest: Any) -> Any:
        domain = self.domain
        self.domain = replace(domain, implies=())
        found = real(self, *rest)
        self.domain = domain
        return found

    patch.setattr(LatentHistories, "_onsets", alone)


def falling(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: values fall."""
    patch.setattr(latent, "_rising", lambda patients, codes, ranks: codes)


@pytest.mark.parametrize(
    ("twin", "kinds"),
    [
        (not_inside, {"drugs.day:outside", "labs.date:outside"}),
        (not_due, {"visits:not-exactly"}),
        (not_implied, {"events:not-implied"}),
        (falling, {"visits.stage:falls", "visits.smoked:falls", "visits.children:falls"}),
    ],
)
def test_what_is_not_kept_is_counted(
    twin: Twin, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, generator = fitted("each once")
    twin(monkeypatch)
    assert set(broken(drawn(generator, 0), schema)) == kinds


def test_a_length_inside_which_rows_lie_is_drawn_as_it_is() -> None:
    """Rounded to a week, say, a stay would end before rows that lie on its days."""
    document = declared()
    codec = HistoryCodec(LinkedSchema.from_dict(document))
    inside = {
        (one.child.inside.table, one.child.inside.length)
        for one in codec.children
        if one.child.inside is not None
    }
    lengths = [
        value
        for table in codec.tables
        for series in table.series
        for value in series.values
        if (table.name, value.name) in inside
    ]
    assert lengths
    assert all(not value.grains and value.raised is None for value in lengths)
    for table in document["resources"]:
        table.get("dpsynth", {}).pop("inside", None)
    plain = HistoryCodec(LinkedSchema.from_dict(document))
    found = {
        (table.name, value.name): value.grains
        for table in plain.tables
        for series in table.series
        for value in series.values
    }
    assert all(found[one] for one in inside), "else it tests nothing"
