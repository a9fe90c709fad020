"""Internal gates: limits with reasons, read strictly, judged on what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.eval import Gate
from dpsynth.eval.gates import gates, judged


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
