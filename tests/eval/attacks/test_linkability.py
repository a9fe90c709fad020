"""Linkability: copied records are a key between two holders, fresh ones are not; and its power."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.attack_stats import (
    Attack,
    AttackSuccess,
    CombinedAttacks,
    People,
    Success,
    Targets,
)
from dpsynth.eval.attack_stats.people import one_row_each
from dpsynth.eval.attack_stats.result import ALARM
from dpsynth.eval.attacks.linkability import linkability
from dpsynth.eval.core import Rate, Tables

from ...support.evaluation_tables import BASIS, looks_at_players_only, number, tables, words

NUMBERS = [f"n{k}" for k in range(6)]
WORDS = [f"c{k}" for k in range(4)]
LEVELS = list("abcdef")


def role(field: dict[str, Any], name: str) -> dict[str, Any]:
    return {**field, "dpsynth": {"bounds_basis": BASIS, "role": name}}


FIELDS = [
    *(number(name, 0, 999) for name in NUMBERS),
    *(role(words(name, *LEVELS), "quasi_identifier") for name in WORDS),
]
UNITS = [{"name": "id", "type": "string", "dpsynth": {"role": "unit"}}, *FIELDS]
ROWS = {"max_rows": {"value": 9, "basis": BASIS}}


def drawn(rows: int, seed: int) -> pd.DataFrame:
    """Draw people of one population; columns depend on each other."""
    rng = np.random.default_rng(seed)
    health = rng.normal(size=rows)
    cells: dict[str, Any] = {}
    for name in NUMBERS:
        values = np.rint(500 + 100 * health + 100 * rng.normal(size=rows)).clip(0, 999)
        cells[name] = np.where(rng.random(rows) < 0.03, np.nan, values)
    for name in WORDS:
        cells[name] = rng.choice(LEVELS, size=rows, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    return pd.DataFrame(cells)


def attacked(cohort: Tables, seed: int = 0) -> Attack:
    rng = np.random.default_rng(seed)
    return linkability(cohort, People.of(cohort, rng), rng)


def test_copied_records_are_linked() -> None:
    source = drawn(400, 1)
    synthetic = pd.concat([source[:200], drawn(300, 2)])
    attack = attacked(tables(FIELDS, source, synthetic, drawn(400, 3)))
    finding, power = attack.finding("linkability"), attack.powers[0]
    assert finding is not None and finding.found
    [measure] = attack.part.measures
    assert 0.3 < measure.estimate.value < 0.6
    assert power.least is not None and power.least < measure.estimate.value


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 30), marks=pytest.mark.long)])
def test_a_fresh_sample_of_the_population_is_not_found(seeds: range) -> None:
    for seed in seeds:
        cohort = tables(FIELDS, drawn(300, seed), drawn(400, 100 + seed), drawn(300, 200 + seed))
        finding = attacked(cohort, seed).finding("linkability")
        assert finding is not None and not finding.found


def test_records_that_everybody_shares_are_linked_for_both_and_no_leak() -> None:
    """Three kinds of people, all in the table: each half leads to the kind, for whomever."""
    kinds = drawn(3, 1).fillna(500)
    frames = [kinds.iloc[np.random.default_rng(k).integers(3, size=300)] for k in range(3)]
    attack = attacked(tables(FIELDS, *frames))
    assert not attack.findings[0].found
    for split in attack.part.details["splits"]:
        assert split["success"]["members"]["value"] > 0.99
        assert split["success"]["controls"]["value"] > 0.99


def test_halves_are_disjoint_and_share_the_quasi_identifiers_out() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(200, 2), drawn(200, 3))
    splits = attacked(cohort).part.details["splits"]
    assert [split["neighbours"] for split in splits] == [1, 10] * 3
    for split in splits:
        first, second = set(split["first"]), set(split["second"])
        assert not first & second and first | second == {*NUMBERS, *WORDS}
        assert len(first & set(WORDS)) == len(second & set(WORDS)) == 2
    assert len({frozenset([*map(frozenset, (s["first"], s["second"]))]) for s in splits}) == 3


def test_two_columns_can_be_halved_in_one_way_only() -> None:
    fields = [number("n0", 0, 999), number("n1", 0, 999)]
    attack = attacked(tables(fields, drawn(200, 1), drawn(200, 2), drawn(200, 3)))
    assert len(attack.part.details["splits"]) == 2


def test_ten_rows_link_whoever_one_row_links() -> None:
    source = drawn(300, 1)
    splits = attacked(tables(FIELDS, source, source, drawn(300, 2))).part.details["splits"]
    for one, ten in zip(splits[::2], splits[1::2], strict=True):
        assert one["success"]["members"]["hits"] <= ten["success"]["members"]["hits"]


def test_people_are_counted_and_not_their_rows() -> None:
    def visits(rows: int, seed: int, mark: str) -> pd.DataFrame:
        frame = drawn(rows, seed)
        return frame.assign(id=[f"{mark}{k // 3}" for k in range(rows)])

    source, holdout = visits(900, 1, "a"), visits(900, 2, "b")
    cohort = tables(UNITS, source, drawn(500, 3), holdout, **ROWS)
    people = People.of(cohort, np.random.default_rng(0))
    attack = linkability(cohort, people, np.random.default_rng(0))
    success = attack.part.details["splits"][0]["success"]
    assert success["members"]["runs"] == len(np.unique(people.members.units))
    assert success["controls"]["runs"] == len(np.unique(people.non_members.units))
    assert people.members.rows > 2 * success["members"]["runs"]


def test_targets_are_one_row_of_each_person_members_first() -> None:
    def visits(rows: int, seed: int, mark: str) -> pd.DataFrame:
        return drawn(rows, seed).assign(id=[f"{mark}{k // 3}" for k in range(rows)])

    cohort = tables(UNITS, visits(900, 1, "a"), drawn(9, 3), visits(900, 2, "b"), **ROWS)
    people = People.of(cohort, np.random.default_rng(0))
    targets = Targets.of(people, 40, np.random.default_rng(0))
    units = targets.view.units
    assert targets.members == 40 and len(units) == 80 == len(set(units.tolist()))
    assert np.isin(units[:40], people.members.units).all()
    assert np.isin(units[40:], people.non_members.units).all()
    hits = np.arange(80) < 50
    assert targets.success(hits) == Success(Rate(40, 40), Rate(10, 40))
    again = [one_row_each(people.members, 40, np.random.default_rng(k)) for k in (0, 0, 1)]
    assert again[0].frame.equals(again[1].frame) and not again[0].frame.equals(again[2].frame)


def test_the_same_seed_gives_the_same_attack() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(300, 2), drawn(200, 3))
    assert attacked(cohort, 5) == attacked(cohort, 5)


def test_only_members_non_members_and_the_synthetic_table_are_looked_at() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(300, 2), drawn(200, 3))
    assert looks_at_players_only(linkability, cohort)


def test_no_cell_of_a_person_is_in_the_texts() -> None:
    fields = [number("code", 0, 10**6), *FIELDS]
    source = drawn(200, 1).assign(code=777_777)
    attack = attacked(tables(fields, source, source, drawn(200, 3).assign(code=5)))
    parts = [one.to_dict() for one in (*attack.findings, *attack.powers, *attack.part.measures)]
    text = json.dumps([parts, attack.part.details, attack.part.notes], allow_nan=False)
    assert "777777" not in text and "777_777" not in text


POOR = {
    "one row": drawn(1, 5),
    "constant columns": pd.concat([drawn(1, 5)] * 50),
    "a column of gaps": drawn(50, 5).assign(n0=None),
}


@pytest.mark.parametrize("synthetic", POOR.values(), ids=POOR.keys())
def test_poor_tables_are_attacked(synthetic: pd.DataFrame) -> None:
    source, holdout = (drawn(200, seed).assign(n0=None) for seed in (1, 3))
    attack = attacked(tables(FIELDS, source, synthetic, holdout))
    json.dumps(attack.part.details, allow_nan=False)
    assert [finding.found for finding in attack.findings] == [False]


def test_one_column_is_left_out_with_a_note() -> None:
    attack = attacked(tables(FIELDS[:1], drawn(200, 1), drawn(9, 2), drawn(200, 3)))
    assert not attack.findings and "two modelled columns" in attack.part.notes[0]


def test_the_interval_of_one_attack_is_that_of_its_success() -> None:
    success = Success(Rate(70, 200), Rate(40, 180))
    assert CombinedAttacks((AttackSuccess("a", success),)).excess == success.excess
    assert success.beyond(0.001).low < success.excess.low  # type: ignore[operator]


def test_several_attacks_are_judged_more_strictly_than_one() -> None:
    """p = 0.00098 of ten hits of ten: enough for one attack, not for the best of two."""
    best = AttackSuccess("best", Success(Rate(10, 1000), Rate(0, 1010)))
    assert ALARM / 2 < best.success.chance < ALARM
    idle = AttackSuccess("idle", Success(Rate(5, 1000), Rate(5, 1010)))
    assert CombinedAttacks((best,)).finding("k", "t", "it was seen").found
    both = CombinedAttacks((idle, best))
    assert both.strongest is best and not both.finding("k", "t", "it was seen").found


@pytest.mark.parametrize(("people", "hits"), [(200, 0), (200, 20), (300, 150)])
def test_the_least_leak_is_seen_nine_times_of_ten(people: int, hits: int) -> None:
    controls = Rate(hits, people)
    least = Success(Rate(0, people), controls).least_seen(ALARM)
    assert least is not None
    rng = np.random.default_rng(0)
    rate, runs = max(hits, 1) / people, 1500
    inside = rng.binomial(people, rate + least * (1 - rate), size=runs)
    outside = rng.binomial(people, rate, size=runs)
    alarms = [
        Success(Rate(m, people), Rate(c, people)).chance < ALARM
        for m, c in zip(inside.tolist(), outside.tolist(), strict=True)
    ]
    assert 0.87 < np.mean(alarms) < 0.94


def test_where_others_are_always_hit_no_leak_can_be_seen() -> None:
    assert Success(Rate(0, 100), Rate(100, 100)).least_seen(ALARM) is None
    always = AttackSuccess("always", Success(Rate(100, 100), Rate(100, 100)))
    assert CombinedAttacks((always,)).power("k").least is None
