"""P25: people in the data who are also the attacker's reference.

The check: no two of members, non-members, reference and fresh people share a unit, however many
rows it has; and of a table that leaks nothing, the interval of an attack's AUC contains 0.5 in at
least 90 of 100 repeats. Both are held against a twin whose reference is drawn from everybody.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import ExposureGroup, OneRun, People
from dpsynth.eval.attacks import membership as module
from dpsynth.eval.attacks.membership import column_sets, membership
from dpsynth.eval.core import Tables, TableView

from ..support.evaluation_tables import number, tables, words

UNIT: dict[str, Any] = {"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}
FIELDS = [UNIT, *(number(name, 0, 1000) for name in "abc"), words("p", "x", "y", "z")]
ROWS = {"max_rows": {"value": 3, "basis": "made for this test"}}
ATTACKS = ("distance", "density", "queries", "ensemble")
REPEATS = 100
UNITS = 300  # of a cohort: a third each in source, holdout, and the table that is released


def visits(units: int) -> pd.DataFrame:
    """One to three rows of each unit."""
    rng = np.random.default_rng(1)
    rows = np.repeat(np.arange(units), 1 + np.arange(units) % 3)
    cells: dict[str, Any] = {"unit": [f"u{unit}" for unit in rows]}
    for name in "abc":
        cells[name] = np.clip(500 + 150 * rng.normal(size=len(rows)), 0, 1000).astype(int)
    cells["p"] = rng.choice(list("xyz"), len(rows))
    return pd.DataFrame(cells)


def read(units: int) -> Tables:
    frame = visits(units)
    inside = frame["unit"].str[1:].astype(int) < units // 2
    drawn = frame.drop(columns="unit").head(3)
    return tables(FIELDS, frame[inside], drawn, frame[~inside], **ROWS)


LARGE = read(3000)
ALL = TableView(
    pd.concat([LARGE.source.frame, LARGE.holdout.frame], ignore_index=True),  # type: ignore[union-attr]
    np.concatenate([LARGE.source.codes, LARGE.holdout.codes]),  # type: ignore[union-attr]
    np.concatenate([LARGE.source.units, LARGE.holdout.units]),  # type: ignore[union-attr]
)


def cohort(seed: int) -> Tables:
    """Other units for each repeat: a source, a holdout, and a released table of third people."""
    rng = np.random.default_rng(seed)
    units = rng.permutation(np.unique(ALL.units))[: 3 * UNITS]
    source, holdout, released = (
        ALL.take(np.flatnonzero(np.isin(ALL.units, some))) for some in np.split(units, 3)
    )
    return replace(LARGE, source=source, holdout=holdout, synthetic=released)


class Unchecked(People):
    """Broken twin: people of whom nobody asked whether sets overlap."""

    def __post_init__(self) -> None:
        """Ask nothing."""


def overlapping(frames: Tables, people: People) -> People:
    """Draw a reference from everybody known, people in the data among them."""
    some = [people.members.units, people.reference.units]
    everybody = ALL.take(np.flatnonzero(np.isin(ALL.units, np.concatenate(some))))
    views = {field.name: getattr(people, field.name) for field in fields(people)}
    return Unchecked(**views | {"reference": everybody})


def shared(people: People) -> set[int]:
    """Units that are in two of the sets."""
    names = ("members", "non_members", "reference", "fresh")
    units = np.concatenate([np.unique(getattr(people, name).units) for name in names])
    values, counts = np.unique(units, return_counts=True)
    return set(values[counts > 1].tolist())


@pytest.mark.parametrize("seed", range(5))
def test_no_unit_is_in_two_sets(seed: int) -> None:
    table = cohort(seed)
    people = People.of(table, np.random.default_rng(seed))
    assert people.members.rows > len(np.unique(people.members.units))
    assert shared(people) == set()
    assert shared(overlapping(table, people)) == set(people.members.units.tolist())


def test_rows_dealt_out_instead_of_units_would_be_seen() -> None:
    """Broken twin: a holdout of rows, so that patients with several rows are on both sides."""
    frame = visits(1000)
    inside = np.random.default_rng(1).random(len(frame)) < 0.5
    drawn = frame.drop(columns="unit").head(3)
    with pytest.raises(InputError, match="source and holdout share units"):
        tables(FIELDS, frame[inside], drawn, frame[~inside], **ROWS)


def test_overlapping_sets_are_refused() -> None:
    table = cohort(1)
    people = People.of(table, np.random.default_rng(1))
    views = {field.name: getattr(people, field.name) for field in fields(people)}
    twin = overlapping(table, people)
    with pytest.raises(InputError, match="share a unit"):
        People(**views | {"reference": twin.reference})
    one = people.members.take(np.array([0]))
    for name in ("non_members", "reference", "fresh"):
        with pytest.raises(InputError, match="share a unit"):
            People(**views | {name: one})


def everyone(players: TableView, *_: object) -> list[ExposureGroup]:
    return [
        ExposureGroup("everyone", "everyone", np.ones(len(np.unique(players.units)), dtype=bool))
    ]


def covered(monkeypatch: pytest.MonkeyPatch, twin: bool) -> dict[str, int]:
    """In how many repeats of a negative control each attack's interval contains 0.5."""
    monkeypatch.setattr(module, "groups_of", everyone)
    nothing = OneRun(6, 6, 0, 0.0, 6, 0, 0.0)
    monkeypatch.setattr(module, "audited", lambda *_: nothing)  # takes long, and is not asked
    monkeypatch.setattr(
        "dpsynth.eval.attacks.membership.column_sets",
        lambda columns, rng: column_sets(columns, rng, 20),
    )
    found = dict.fromkeys(ATTACKS, 0)
    for seed in range(REPEATS):
        table = cohort(seed)
        people = People.of(table, np.random.default_rng(seed))
        used = overlapping(table, people) if twin else people
        attack = membership(table, used, np.random.default_rng(seed))
        for measure in attack.part.measures:
            kind, _, name = measure.key.partition(":")
            if kind == "auc" and name in found:
                low, high = measure.estimate.low, measure.estimate.high
                found[name] += low is not None and high is not None and low <= 0.5 <= high
    return found


def test_a_negative_control_is_at_one_half_in_ninety_of_a_hundred_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = covered(monkeypatch, twin=False)
    assert min(found.values()) >= 90


def test_members_in_the_reference_take_the_negative_control_away_from_one_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = covered(monkeypatch, twin=True)
    assert found["density"] < 50 and found["ensemble"] < 90
    assert found["distance"] >= 90  # which uses no reference
