"""Internal gates: limits with reasons, read strictly, judged on what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.eval import Gate
from dpsynth.eval.core import PairedTables
from dpsynth.eval.evaluation import evaluation
from dpsynth.eval.fidelity.columns import missingness, undeclared_levels
from dpsynth.eval.fidelity.relations import pair_facts
from dpsynth.eval.gates import gates, judged
from dpsynth.eval.utility.effects import effects
from dpsynth.eval.utility.learners import tasks

from ..support.evaluation_tables import number, tables, words


def measure(value: float, **more: Any) -> dict[str, Any]:
    return {
        "title": "A figure",
        "value": value,
        "reference": None,
        "chance": None,
        "best": 0,
        **more,
    }


def passed(gate: Gate, **measures: dict[str, Any]) -> list[bool | None]:
    return [verdict["passed"] for verdict in judged(measures, [gate])]


def test_limits_of_the_figure_itself() -> None:
    assert passed(Gate("a", "at_most", 0.1, "r"), a=measure(0.1)) == [True]
    assert passed(Gate("a", "at_most", 0.1, "r"), a=measure(0.11)) == [False]
    assert passed(Gate("a", "at_least", 0.1, "r"), a=measure(0.09)) == [False]


def test_a_limit_grows_with_the_noise_that_the_plan_announces() -> None:
    """Three times a count's noise of .01 is .03; less noise leaves the limit, or no known run."""
    gate = Gate("a", "at_most", 0.02, "r", or_noise=3.0)
    measures = {"a": measure(0.028)}
    verdicts = [judged(measures, [gate], noise)[0] for noise in (0.01, 0.009, 0.001, 0.0)]
    assert [verdict["passed"] for verdict in verdicts] == [True, False, False, False]
    assert [one["limit"] for one in verdicts][1:3] == ["at most 0.027", "at most 0.02"]


def test_beyond_reference_is_held_against_the_holdout_then_chance() -> None:
    gate = Gate("a", "beyond_reference", 0.05, "r")
    assert passed(gate, a=measure(0.3, reference=0.26, chance=0.0)) == [True]
    assert passed(gate, a=measure(0.3, reference=0.24, chance=0.3)) == [False]
    assert passed(gate, a=measure(0.3, chance=0.24)) == [False]
    assert passed(gate, a=measure(0.3)) == [None]
    # where more is better, less than the reference is worse
    assert passed(gate, a=measure(0.7, best=1, reference=0.8)) == [False]
    assert passed(gate, a=measure(0.9, best=1, reference=0.8)) == [True]


def test_a_figure_that_is_best_at_1_may_be_too_large_too() -> None:
    gate = Gate("a", "beyond_reference", 0.5, "r")
    assert passed(gate, a=measure(2.4, best=1, reference=1.14)) == [False]
    assert passed(gate, a=measure(0.2, best=1, reference=1.14)) == [False]
    assert passed(gate, a=measure(1.5, best=1, reference=1.14)) == [True]
    assert passed(gate, a=measure(0.6, best=1, reference=1.14)) == [True]


FACTS = ("never", "never_rows", "seldom", "strongest", "levels", "patterns_unseen")


def stays(seed: int, rows: int = 6_000) -> pd.DataFrame:
    """Stays in four wards: two of them for one sex, one for children; forms by ward."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["birth", "heart", "child", "urology"], rows, p=[0.2, 0.4, 0.2, 0.2])
    sex = np.where(rng.random(rows) < 0.5, "f", "m")
    sex = np.select([ward == "birth", ward == "urology"], ["f", "m"], sex)
    slip = rng.random(rows) < 0.004  # rare and real
    sex = np.where(slip & (ward == "urology"), "f", sex)
    age = np.where(ward == "child", rng.integers(0, 18, rows), rng.integers(18, 99, rows))
    old = (age > 60) & (ward == "heart")
    died = np.where(rng.random(rows) < 0.05 + 0.25 * old, "yes", "no")
    height = np.where(ward == "child", np.nan, rng.integers(150, 200, rows))
    weight = np.where(ward == "child", np.nan, rng.integers(50, 120, rows))
    columns = {"ward": ward, "sex": sex, "age": age, "died": died}
    return pd.DataFrame({**columns, "height": height, "weight": weight})


FIELDS = [
    words("ward", "birth", "heart", "child", "urology"),
    words("sex", "f", "m"),
    number("age", 0, 99),
    words("died", "no", "yes"),
    number("height", 100, 250),
    number("weight", 0, 200),
]
FIELDS[3]["dpsynth"] |= {"role": "target"}


def facts_of(
    synthetic: pd.DataFrame, holdout: pd.DataFrame | None = None
) -> dict[str, bool | None]:
    compared = tables(FIELDS, stays(0), synthetic, holdout)
    sides = PairedTables.of(compared, np.random.default_rng(0))
    parts = [pair_facts(sides), undeclared_levels(sides), missingness(sides)]
    measures = [measure for part in parts for measure in part.measures]
    measures += effects(sides, tasks(compared)[0][0])[0]
    verdicts = judged({one.key: one.to_dict() for one in measures}, gates())
    return {one["key"]: one["passed"] for one in verdicts}


@pytest.mark.parametrize("holdout", [stays(2), None], ids=["holdout", "bootstrap"])
def test_real_rows_of_other_people_pass_the_gates_of_facts(holdout: pd.DataFrame | None) -> None:
    verdicts = facts_of(stays(1), holdout)
    facts = {key: verdicts[key] for key in (*FACTS, "effects:died")}
    assert False not in facts.values()
    assert facts["never"] and facts["never_rows"] and facts["strongest"] and facts["effects:died"]


def test_columns_that_are_shuffled_in_part_fail_them() -> None:
    rng = np.random.default_rng(3)
    mixed = stays(1)
    for name in mixed:
        some = rng.permutation(len(mixed))[: len(mixed) // 4]
        mixed.loc[some, name] = mixed.loc[rng.permutation(some), name].to_numpy()
    verdicts = facts_of(mixed, stays(2))
    for key in ("never", "never_rows", "strongest", "patterns_unseen", "effects:died"):
        assert verdicts[key] is False, key


def test_a_gate_of_histories_is_held_against_a_bootstrap_and_the_interval() -> None:
    gate = Gate("values", "times_chance", 3.0, "r", or_at_most=0.1)
    assert gate.of_histories and not Gate("tvd1", "at_most", 1.0, "r").of_histories
    assert passed(gate, values=measure(0.6, chance=0.2, reference=0.01)) == [True]
    assert passed(gate, values=measure(0.61, chance=0.2, reference=9.0)) == [False]
    assert passed(gate, values=measure(0.61, chance=0.2, low=0.2)) == [True]
    assert passed(gate, values=measure(0.61, chance=0.2, low=0.21)) == [False]
    assert passed(gate, values=measure(0.09, chance=0.0)) == [True]
    assert passed(gate, values=measure(0.11, chance=0.0)) == [False]
    assert passed(gate, values=measure(0.01, reference=0.01)) == [None]  # no bootstrap
    [verdict] = judged({"values": measure(0.7, chance=0.2)}, [gate])
    assert verdict["limit"] == "at most 3 times a bootstrap (0.2) or 0.1"


def test_an_evaluation_of_one_table_judges_no_gate_of_histories() -> None:
    fields = [words("ward", "a", "b"), number("age", 0, 9)]
    frame = pd.DataFrame({"ward": ["a", "b"] * 60, "age": pd.array([1, 2] * 60, dtype="Int64")})
    document = evaluation(tables(fields, frame, frame), limits=gates())
    keys = {one["key"] for one in document["gates"]}
    assert "tvd1" in keys and not {"values", "links", "event_curves"} & keys


def test_a_gate_for_all_of_a_kind_judges_each() -> None:
    gate = Gate("gap:*", "at_most", 0.1, "r")
    verdicts = judged({"gap:a": measure(0.0), "gap:b": measure(0.2), "gaps": measure(9)}, [gate])
    assert [(v["key"], v["passed"]) for v in verdicts] == [("gap:a", True), ("gap:b", False)]


def test_a_gate_for_a_kind_of_which_nothing_was_measured_is_listed() -> None:
    [verdict] = judged({}, [Gate("gap:*", "at_most", 0.1, "r")])
    assert verdict["key"] == "gap:*" and verdict["passed"] is None


def test_what_was_not_measured_has_no_verdict() -> None:
    [verdict] = judged({}, [Gate("a", "at_most", 0.1, "r")])
    assert verdict["passed"] is None and verdict["value"] is None


def test_the_gates_that_ship_have_reasons_and_a_place_for_each_limit() -> None:
    shipped = gates()
    assert {"rules", "tvd2", "c2st"} <= {gate.key for gate in shipped}
    assert all(len(gate.reason.split()) > 5 for gate in shipped)


def test_a_file_replaces_adds_and_switches_off(tmp_path: Path) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(
        "version: 1\ngates:\n"
        "  - {key: c2st, at_most: 0.6, reason: ours}\n"
        "  - {key: tvd3, at_most: 0.2, reason: more}\n"
        "  - {key: rules, skip: true}\n"
    )
    gates_read = {gate.key: gate for gate in gates(path)}
    assert gates_read["c2st"] == Gate("c2st", "at_most", 0.6, "ours")
    assert gates_read["tvd3"].limit == 0.2 and "rules" not in gates_read and "tvd2" in gates_read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not YAML"),
        ("gates: []", "version and gates"),
        ("version: 2\ngates: []", "version is 1"),
        ("version: 1\ngates: [{at_most: 1, reason: r}]", "has a key"),
        ("version: 1\ngates: [{key: c2ts, at_most: 1, reason: r}]", "did you mean 'c2st'"),
        ("version: 1\ngates: [{key: 'tstr_gpa:x', at_most: 1, reason: r}]", "no measure"),
        ("version: 1\ngates: [{key: tvd1, at_mots: 1, reason: r}]", "at_most"),
        ("version: 1\ngates: [{key: tvd1, at_most: 1, at_least: 0, reason: r}]", "one of"),
        ("version: 1\ngates: [{key: tvd1, at_most: x, reason: r}]", "is a number"),
        ("version: 1\ngates: [{key: tvd1, at_most: .nan, reason: r}]", "is a number"),
        ("version: 1\ngates: [{key: tvd1, at_most: 1}]", "has a reason"),
        ("version: 1\ngates: [{key: tvd1, at_most: 1, or_noise: -1, reason: r}]", "how many times"),
        (
            "version: 1\ngates: [{key: tvd1, at_least: 1, or_noise: 1, reason: r}]",
            "goes with at_most or beyond",
        ),
        (
            "version: 1\ngates: [{key: tvd1, at_most: 1, or_at_most: 1, reason: r}]",
            "goes with times_chance",
        ),
        (
            "version: 1\ngates: [{key: values, times_chance: 3, or_at_most: x, reason: r}]",
            "is a number from 0",
        ),
        ("version: 1\ngates: [{key: valeus, at_most: 1, reason: r}]", "did you mean 'values'"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as refused:
        gates(path)
    assert str(path) in str(refused.value)


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        gates(tmp_path / "none.yaml")
