"""Singling out: copied people are isolated by a table's own rows, non-members only by chance."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, fisher_exact

from dpsynth.eval.attack_stats import Attack, People
from dpsynth.eval.attacks.singling_out import (
    Index,
    PredicateTerm,
    by_one_column,
    by_several_columns,
    singling_out,
)
from dpsynth.eval.core import Tables

from ...support.evaluation_tables import number, tables, words


@pytest.fixture(autouse=True)
def few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack small tables, in which everything can be counted by hand."""
    monkeypatch.setattr("dpsynth.eval.attack_stats.people.MIN_UNITS", 25)


FIELDS = [
    number("age", 0, 99),
    number("weight", 0, 999),
    number("dose", 0, 999),
    words("sex", "F", "M"),
    words("ward", *"abcdefgh"),
    words("sort", *"uvwxyz"),
]
UNITS = [{"name": "id", "type": "string", "dpsynth": {"role": "unit"}}, *FIELDS]


def drawn(rows: int, seed: int) -> pd.DataFrame:
    """Draw people of one population, with correlated columns and missing cells."""
    rng = np.random.default_rng(seed)
    health = rng.normal(size=rows)
    weight = np.clip(np.rint(500 + 90 * health + 60 * rng.normal(size=rows)), 0, 999)
    frame = pd.DataFrame(
        {
            "age": np.clip(np.rint(50 + 15 * health + 5 * rng.normal(size=rows)), 0, 99),
            "weight": np.where(rng.random(rows) < 0.05, np.nan, weight),
            "dose": np.rint(rng.gamma(2, 60, size=rows)).clip(0, 999),
            "sex": rng.choice(["F", "M"], size=rows),
            "ward": rng.choice(list("abcdefgh"), size=rows, p=np.arange(8, 0, -1) / 36),
            "sort": rng.choice(list("uvwxyz"), size=rows),
        }
    )
    return frame


def attacked(cohort: Tables, seed: int = 0) -> Attack:
    rng = np.random.default_rng(seed)
    return singling_out(cohort, People.of(cohort, rng), rng)


def success(attack: Attack, kind: str) -> dict[str, Any]:
    [one] = [one for one in attack.part.details["kinds"] if one["kind"] == kind]
    return dict(one["success"])


@pytest.mark.long
def test_progress_is_reported_often_and_changes_no_figure() -> None:
    cohort = tables(FIELDS, drawn(400, 1), drawn(300, 2), drawn(400, 3))
    parts: list[float] = []
    rng = np.random.default_rng(0)
    shown = singling_out(cohort, People.of(cohort, rng), rng, parts.append)
    assert len(parts) > 10 and parts == sorted(parts) and 0 <= parts[0] and parts[-1] <= 1
    assert shown.part.details == attacked(cohort).part.details


def test_copied_people_are_found_by_several_columns() -> None:
    source = drawn(900, 1)
    synthetic = pd.concat([source[:300], drawn(700, 2)])
    attack = attacked(tables(FIELDS, source, synthetic, drawn(900, 3)))
    finding = attack.finding("singling_out:many")
    assert finding is not None and finding.found
    rates = success(attack, "many")
    assert rates["members"]["hits"] > 3 * rates["controls"]["hits"]


def test_a_lone_extreme_of_a_person_is_found_by_one_column() -> None:
    fields = [number(f"n{k}", 0, 10**6) for k in range(4)]
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({f"n{k}": rng.integers(10**6, size=rows) for k in range(4)})
        for rows in (400, 400)
    ]
    attack = attacked(tables(fields, frames[0], frames[0], frames[1]))
    finding = attack.finding("singling_out:one")
    assert finding is not None and finding.found


@pytest.mark.parametrize("samples", [10, pytest.param(30, marks=pytest.mark.long)])
def test_a_fresh_sample_of_the_population_is_not_found(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.eval.attacks.singling_out.ATTEMPTS", 500)
    for seed in range(samples):
        cohort = tables(FIELDS, drawn(300, seed), drawn(400, 100 + seed), drawn(300, 200 + seed))
        attack = attacked(cohort, seed)
        assert [finding.found for finding in attack.findings] == [False, False]


@pytest.mark.long
def test_the_test_holds_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 tables that leak nothing, about one in twenty or less has p < 0.05."""
    monkeypatch.setattr("dpsynth.eval.attacks.singling_out.ATTEMPTS", 100)
    alarms = 0
    for seed in range(200):
        frames = [drawn(rows, 3 * seed + k) for k, rows in enumerate((120, 80, 150))]
        rates = success(attacked(tables(FIELDS, *frames), seed), "many")
        members, controls = rates["members"]["hits"], rates["controls"]["hits"]
        alarms += _fisher(members, controls, rates["members"]["runs"]) < 0.05
    assert 0 < alarms <= binom.ppf(0.999, 200, 0.05)


def test_many_descriptions_of_one_person_are_one_hit() -> None:
    """One person far out in the source, and a row of the table less far: hundreds of descriptions.

    As independent trials they would accuse a table that may have met that person by chance.
    """
    fields = [number(f"n{k}", 0, 999) for k in range(10)]
    plain = pd.DataFrame({f"n{k}": [10] * 200 for k in range(10)})
    source, synthetic = plain[:140].copy(), plain[:60].copy()
    source.iloc[7], synthetic.iloc[50] = 900, 800
    attack = attacked(tables(fields, source, synthetic, plain))
    [one, many] = attack.part.details["kinds"]
    assert many["isolating"]["source"] > 15 and many["isolating"]["holdout"] == 0
    for kind in (one, many):
        assert kind["success"]["members"]["hits"] == 1
    assert not any(finding.found for finding in attack.findings)


def _fisher(members: int, controls: int, runs: int) -> float:
    table = [[members, controls], [runs - members, runs - controls]]
    return float(fisher_exact(table, alternative="greater").pvalue)


def test_descriptions_fit_one_synthetic_row_by_an_independent_count() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(200, 2), drawn(200, 3))
    index = Index.of(cohort.synthetic, cohort.codec)
    rng = np.random.default_rng(0)
    single = by_one_column(index, cohort.codec, rng)
    many = by_several_columns(index, cohort.codec, rng)
    assert len(single) > 20 and len(many) > 500
    cells = np.stack(index.places, axis=1)
    for predicate in [*single, *many]:
        fits = np.ones(len(cells), dtype=bool)
        for term in predicate:
            fits &= (cells[:, term.column] >= term.low) & (cells[:, term.column] <= term.high)
        assert fits.sum() == 1
        assert index.rows(predicate).tolist() == np.flatnonzero(fits).tolist()
    assert {len(predicate) for predicate in single} == {1}
    assert min(len(predicate) for predicate in many) >= 3


def test_ends_of_numbers_and_lone_gaps_are_described() -> None:
    fields = [number("age", 10, 99), words("sex", "F", "M")]
    synthetic = pd.DataFrame({"age": [12, 40, 40, 90, None], "sex": ["F"] * 4 + ["M"]})
    cohort = tables(fields, drawn(200, 1), synthetic, drawn(200, 2))
    index = Index.of(cohort.synthetic, cohort.codec)
    found = {one[0] for one in by_one_column(index, cohort.codec, np.random.default_rng(0))}
    top = np.iinfo(np.int64).max
    ages = {
        PredicateTerm(0, 2, 2),
        PredicateTerm(0, 80, 80),
        PredicateTerm(0, -1, -1),
        PredicateTerm(0, 0, 2),
        PredicateTerm(0, 80, top),
    }
    assert found == ages | {PredicateTerm(1, 1, 1)}


def test_a_person_counts_once_with_all_rows() -> None:
    """Rows of one patient that fit together isolate that patient; the counts are patients."""
    fields = [*UNITS]
    source = drawn(200, 1)
    twice = pd.concat([source.assign(id=[f"a{k}" for k in range(200)])] * 3)
    holdout = drawn(200, 2)
    holdout = pd.concat([holdout.assign(id=[f"b{k}" for k in range(200)])] * 2)
    more = {"max_rows": {"value": 3, "basis": "made for this test"}}
    attack = attacked(tables(fields, twice, source, holdout, **more))
    rates = success(attack, "many")
    others = rates["controls"]["runs"]
    assert rates["members"]["runs"] == others and 120 < others < 200
    assert rates["members"]["hits"] > 0.8 * others
    finding = attack.finding("singling_out:many")
    assert finding is not None and finding.found


@pytest.mark.long
def test_the_same_seed_gives_the_same_attack() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(300, 2), drawn(200, 3))
    assert attacked(cohort, 5) == attacked(cohort, 5)
    assert attacked(cohort, 5) != attacked(cohort, 6)


def test_fresh_people_are_never_looked_at() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(300, 2), drawn(200, 3))
    rng = np.random.default_rng(0)
    people = People.of(cohort, rng)
    object.__setattr__(people, "fresh", None)
    assert singling_out(cohort, people, rng).findings


def test_no_cell_of_a_person_is_in_the_texts() -> None:
    canary = 777_777
    fields = [number("code", 0, 10**6), *FIELDS]
    source = drawn(200, 1).assign(code=np.arange(200))
    source.loc[7, "code"] = canary
    holdout = drawn(200, 3).assign(code=np.arange(500, 700))
    attack = attacked(tables(fields, source, source, holdout))
    parts = [one.to_dict() for one in (*attack.findings, *attack.powers, *attack.part.measures)]
    text = json.dumps([parts, attack.part.details, attack.part.notes], allow_nan=False)
    assert str(canary) not in text


POOR = {
    "one row": drawn(1, 5),
    "constant columns": pd.concat([drawn(1, 5)] * 50),
    "a column of gaps": drawn(50, 5).assign(weight=None),
}


@pytest.mark.parametrize("synthetic", POOR.values(), ids=POOR.keys())
def test_poor_tables_are_attacked_or_left_out_in_words(synthetic: pd.DataFrame) -> None:
    source = drawn(200, 1).assign(weight=None)
    holdout = drawn(200, 3).assign(weight=None)
    attack = attacked(tables(FIELDS, source, synthetic, holdout))
    json.dumps(attack.part.details, allow_nan=False)
    assert len(attack.findings) + len(attack.part.notes) == 2
    assert [one.key for one in attack.findings] == [power.key for power in attack.powers]
    assert not any(finding.found for finding in attack.findings)


def test_one_column_is_left_out_with_a_note() -> None:
    fields = [number("age", 0, 99)]
    attack = attacked(tables(fields, drawn(200, 1), drawn(9, 2), drawn(200, 3)))
    assert not attack.findings and "two modelled columns" in attack.part.notes[0]
