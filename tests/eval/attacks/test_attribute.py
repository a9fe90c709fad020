"""Attribute inference: copied secrets are a leak, predictable ones are knowledge of people."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.attack_stats import Attack, People
from dpsynth.eval.attacks.attribute_inference import Secret, attribute
from dpsynth.eval.core import Tables

from ...support.evaluation_tables import BASIS, looks_at_players_only, number, tables, words
from ...support.schema_fields import schema_field


@pytest.fixture(autouse=True)
def few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack small tables, in which everything can be counted by hand."""
    monkeypatch.setattr("dpsynth.eval.attack_stats.people.MIN_UNITS", 25)


LEVELS = list("abcdef")
WARDS = list("uvwxyz")


def role(field: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**field, "dpsynth": {"bounds_basis": BASIS, "role": list(names)}}


KNOWN = [
    number("age", 0, 99),
    number("weight", 0, 999),
    role(words("ward", *WARDS), "quasi_identifier"),
    role(words("sex", "F", "M"), "quasi_identifier"),
    role(words("month", *map(str, range(12))), "quasi_identifier"),
]
ILLNESS = words("illness", *LEVELS)
DOSE = number("dose", 0, 1000)
FIELDS = [*KNOWN, role(ILLNESS, "sensitive"), role(DOSE, "sensitive")]
UNITS = [{"name": "id", "type": "string", "dpsynth": {"role": "unit"}}, *FIELDS]


def drawn(rows: int, seed: int, *, told: bool = False) -> pd.DataFrame:
    """Draw people of one population; the secrets are told by age and weight, or by nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(100, size=rows)
    weight = rng.integers(1000, size=rows)
    frame = pd.DataFrame(
        {
            "age": age,
            "weight": np.where(rng.random(rows) < 0.03, np.nan, weight),
            "ward": rng.choice(WARDS, size=rows),
            "sex": rng.choice(["F", "M"], size=rows),
            "month": rng.integers(12, size=rows).astype(str),
            "illness": rng.choice(LEVELS, size=rows),
            "dose": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(1001, size=rows)),
        }
    )
    if told:
        frame["illness"] = np.array(LEVELS)[age * 6 // 100]
        frame["dose"] = age * 10
    return frame


def attacked(cohort: Tables, seed: int = 0) -> Attack:
    rng = np.random.default_rng(seed)
    return attribute(cohort, People.of(cohort, rng), rng)


def rates(attack: Attack, column: str, kind: str, known: int) -> tuple[float, float]:
    """Return the success among members and non-members of one attack."""
    [one] = [
        one["success"]
        for one in attack.part.details["columns"]
        if (one["column"], one["attack"], len(one["known"])) == (column, kind, known)
    ]
    return one["members"]["value"], one["controls"]["value"]


def test_copied_secrets_are_found_though_nothing_else_tells_them() -> None:
    source = drawn(400, 1)
    synthetic = pd.concat([source[:200], drawn(300, 2)])
    attack = attacked(tables(FIELDS, source, synthetic, drawn(400, 3)))
    for column, others in (("illness", 1 / 6), ("dose", 0.11)):
        finding = attack.finding(f"attribute:{column}")
        assert finding is not None and finding.found
        inside, outside = rates(attack, column, "nearest", 6)
        assert inside > 0.5 and abs(outside - others) < 0.08
    [first, second] = attack.part.measures
    assert first.key == "attribute:illness" and second.key == "attribute:dose"
    assert first.estimate.low is not None and first.estimate.low > 0.15


def test_quasi_identifiers_alone_give_copies_away() -> None:
    """Six wards, two sexes and twelve months tell 100 people apart for the most part."""
    source = drawn(100, 1)
    attack = attacked(tables(FIELDS, source, source, drawn(250, 3)))
    inside, outside = rates(attack, "illness", "nearest", 3)
    assert inside > 0.6 and outside < 0.4


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 30), marks=pytest.mark.long)])
def test_a_fresh_sample_of_the_population_is_not_found(seeds: range) -> None:
    for seed in seeds:
        frames = [drawn(300, 3 * seed + k, told=seed % 2 == 0) for k in range(3)]
        attack = attacked(tables(FIELDS, *frames), seed)
        assert [finding.found for finding in attack.findings] == [False, False]


def test_what_is_true_of_the_population_is_guessed_of_everybody_and_no_leak() -> None:
    frames = [drawn(rows, seed, told=True) for rows, seed in ((400, 1), (2000, 2), (400, 3))]
    attack = attacked(tables(FIELDS, *frames))
    for column in ("illness", "dose"):
        inside, outside = rates(attack, column, "model", 6)
        assert inside > 0.9 and outside > 0.9
        finding = attack.finding(f"attribute:{column}")
        assert finding is not None and not finding.found


def test_guesses_are_right_within_a_twentieth_of_the_range_and_for_gaps() -> None:
    cohort = tables(FIELDS, drawn(60, 1), drawn(60, 2), drawn(60, 3))
    dose, illness = Secret("dose", 6, cohort.codec), Secret("illness", 5, cohort.codec)
    truth = np.array([0.5, 0.5, 0.5, np.nan, np.nan, 0.5])
    guess = np.array([0.55, 0.45, 0.551, np.nan, 0.5, np.nan])
    assert dose.guessed(guess, truth).tolist() == [True, True, False, True, False, False]
    assert illness.guessed(np.array([1.0, 2.0]), np.array([1.0, 3.0])).tolist() == [True, False]


def test_the_middle_of_a_cell_is_right_for_all_of_it() -> None:
    cohort = tables(FIELDS, drawn(60, 1), drawn(60, 2), drawn(60, 3))
    dose = Secret("dose", 6, cohort.codec)
    values = np.append(np.linspace(0, 1, 1001), np.nan)
    assert dose.guessed(dose.guesses(dose.classes(values)), values).all()
    illness = Secret("illness", 5, cohort.codec)
    codes = np.arange(7.0)
    assert illness.guesses(illness.classes(codes)).tolist() == codes.tolist()


def test_values_are_shares_of_the_declared_range() -> None:
    cells = drawn(60, 1).assign(dose=[None, 0, 250, 1000] * 15)
    cohort = tables(FIELDS, drawn(60, 1), cells, drawn(60, 3))
    values = Secret("dose", 6, cohort.codec).values(cohort.synthetic)
    assert np.isnan(values[0]) and values[1:4].tolist() == [0.0, 0.25, 1.0]


def test_dates_are_guessed_by_days() -> None:
    day = schema_field(
        "dose",
        "date",
        {"bounds_basis": BASIS, "role": "sensitive"},
        minimum="2020-01-01",
        maximum="2020-04-10",
    )
    dates = [
        drawn(200, seed).assign(
            dose=lambda frame: (
                pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["age"], unit="D")
            ).dt.strftime("%Y-%m-%d")
        )
        for seed in (1, 2, 3)
    ]
    attack = attacked(tables([*KNOWN, day], dates[0], dates[1], dates[2]))
    inside, outside = rates(attack, "dose", "model", 5)
    assert inside > 0.8 and outside > 0.8


def test_the_baseline_is_the_success_of_the_commonest_value() -> None:
    def ill(rows: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        return drawn(rows, seed).assign(illness=rng.choice(["a", "b"], size=rows, p=[0.8, 0.2]))

    attack = attacked(tables(FIELDS, ill(400, 1), ill(400, 2), ill(400, 3)))
    for column in attack.part.details["columns"]:
        if column["column"] == "illness":
            assert 0.7 < column["baseline"]["value"] < 0.9
            runs = column["success"]["members"]["runs"] + column["success"]["controls"]["runs"]
            assert column["baseline"]["runs"] == runs


def test_each_attacker_knows_what_is_said() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(200, 2), drawn(200, 3))
    columns = attacked(cohort).part.details["columns"]
    illness = [column for column in columns if column["column"] == "illness"]
    assert [(one["attack"], len(one["known"])) for one in illness] == [
        ("nearest", 3),
        ("model", 3),
        ("nearest", 6),
        ("model", 6),
    ]
    assert all("illness" not in one["known"] for one in illness)


@pytest.mark.parametrize(
    ("fields", "note", "guessed"),
    [
        ([*KNOWN, role(ILLNESS, "target"), DOSE], "target columns", 4),
        ([*KNOWN, ILLNESS, DOSE], "nor a target", 0),
        ([role(ILLNESS, "sensitive")], "another one", 0),
        ([role(ILLNESS, "sensitive"), DOSE], "", 2),
    ],
)
def test_without_declared_columns_a_note_says_what_was_done(
    fields: list[dict[str, Any]], note: str, guessed: int
) -> None:
    attack = attacked(tables(fields, drawn(200, 1), drawn(200, 2), drawn(200, 3)))
    assert note in " ".join(attack.part.notes)
    assert len(attack.part.details.get("columns", [])) == guessed
    assert len(attack.findings) == len(attack.powers) == bool(guessed)


def test_people_are_counted_and_not_their_rows() -> None:
    def visits(rows: int, seed: int, mark: str) -> pd.DataFrame:
        return drawn(rows, seed).assign(id=[f"{mark}{k // 3}" for k in range(rows)])

    more = {"max_rows": {"value": 9, "basis": BASIS}}
    source, holdout = visits(900, 1, "a"), visits(900, 2, "b")
    cohort = tables(UNITS, source, drawn(500, 3), holdout, **more)
    people = People.of(cohort, np.random.default_rng(0))
    attack = attribute(cohort, people, np.random.default_rng(0))
    for column in attack.part.details["columns"]:
        members, controls = column["success"]["members"], column["success"]["controls"]
        assert members["runs"] == len(np.unique(people.members.units)) < people.members.rows / 2
        assert controls["runs"] == len(np.unique(people.non_members.units))


def test_the_same_seed_gives_the_same_attack() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(300, 2), drawn(200, 3))
    assert attacked(cohort, 5) == attacked(cohort, 5)


def test_only_members_non_members_and_the_synthetic_table_are_looked_at() -> None:
    cohort = tables(FIELDS, drawn(200, 1), drawn(300, 2), drawn(200, 3))
    assert looks_at_players_only(attribute, cohort)


def test_no_cell_of_a_person_is_in_the_texts() -> None:
    fields = [*FIELDS, role(number("code", 0, 10**6), "sensitive")]
    source = drawn(200, 1).assign(code=777_777)
    attack = attacked(tables(fields, source, source, drawn(200, 3).assign(code=5)))
    parts = [one.to_dict() for one in (*attack.findings, *attack.powers, *attack.part.measures)]
    text = json.dumps([parts, attack.part.details, attack.part.notes], allow_nan=False)
    assert len(attack.findings) == 3 and "777777" not in text


POOR = {
    "one row": drawn(1, 5),
    "constant columns": pd.concat([drawn(1, 5)] * 50),
    "a known column of gaps": drawn(50, 5).assign(weight=None),
    "a secret of gaps": drawn(50, 5).assign(dose=None),
}


@pytest.mark.parametrize("synthetic", POOR.values(), ids=POOR.keys())
def test_poor_tables_are_attacked(synthetic: pd.DataFrame) -> None:
    attack = attacked(tables(FIELDS, drawn(200, 1), synthetic, drawn(200, 3)))
    json.dumps(attack.part.details, allow_nan=False)
    assert [finding.found for finding in attack.findings] == [False, False]


def test_a_secret_that_is_missing_for_all_is_guessed_and_no_leak() -> None:
    frames = [drawn(200, seed).assign(dose=None) for seed in (1, 2, 3)]
    attack = attacked(tables(FIELDS, *frames))
    finding = attack.finding("attribute:dose")
    assert finding is not None and not finding.found
    assert rates(attack, "dose", "nearest", 6) == (1.0, 1.0)
    assert [power.least for power in attack.powers if power.key == "attribute:dose"] == [None]
