"""Requests: what is read, and one clear sentence for each mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import KeyCounts
from dpsynth.schema import Schema
from dpsynth.stats import StatisticsRequest, replaced_epsilon, what_if
from dpsynth.stats.entries import KINDS

from ..support.discovered_ward import discovered_ward

SURVIVAL = {
    "survival": {"time": "length_of_stay", "event": "readmitted_30d", "of": ["True"]},
    "cuts": [4, 8, 15],
}
COMPARE = {"name": "c", "compare": "sbp", "between": {"sex": ["male", "female"]}}
COUNT = {"name": "by sex", "count": "patients", "by": ["sex"]}


def asked(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"schema": "demo", "statistics": list(entries), **more}


def test_every_kind_is_read() -> None:
    request = StatisticsRequest.from_dict(
        asked(
            COUNT,
            {"name": "a", "count": "rows", "by": ["sex", {"age": [40, 65]}], "weight": 2},
            {"name": "b", "mean": "sbp", "by": ["sex"], "clip": [90, 200]},
            {"name": "v", "variance": "sbp", "by": ["sex"], "per": "patient"},
            {"name": "c", "proportion": {"diabetes": ["True"]}},
            {"name": "d", "quantiles": "age", "shares": [0.5]},
            {"name": "e", "top": "sex", "most": 1},
            {"name": "f", **SURVIVAL, "by": ["sex"]},
            {"name": "g", "compare": "sbp", "between": {"sex": ["male", "female"]}},
            {"name": "h", "independence": ["smoker", {"age": [40, 65]}]},
            {"name": "i", "occupancy": {"from": "visit_date", "for": "length_of_stay"}},
        )
    )
    kinds = {kind for entry in request.document["statistics"] for kind in KINDS if kind in entry}
    assert kinds == set(KINDS)
    assert [one.size for one in request.statistics[:2]] == [2, 6]
    assert StatisticsRequest.from_dict(request.document).document == request.document


def test_few_counts_alone_get_laplace_noise() -> None:
    """Which noise follows from public facts, and a certificate may have no other than these two."""
    more = {"name": "m", "mean": "sbp"}
    by_ward = [COUNT | {"name": f"n{place}", "by": ["ward"]} for place in range(4)]
    kinds = {}
    for words, entries in {"few": [COUNT], "mean": [COUNT, more], "many": by_ward}.items():
        request = StatisticsRequest.from_dict(asked(*entries))
        plan = request.plan(epsilon=0.5, delta=1e-7)
        kinds[words] = {event.kind for event in plan.events}
    assert kinds == {"few": {"laplace_counts"}, "mean": {"row_sums"}, "many": {"row_sums"}}
    (few,) = what_if(
        StatisticsRequest.from_dict(asked(COUNT)), delta=1e-7, epsilons=(0.5,)
    ).values()
    assert (
        "within 24 units with 95 % confidence (Laplace" in few.values["statistics"][0]["precision"]
    )  # 35 with Gaussian noise


def test_a_plan_says_what_will_be_listed_and_missed() -> None:
    entries = {"name": "devices", "count": "patients", "by": ["device", "sex"]}
    request = StatisticsRequest.from_dict(asked(entries, schema=discovered_ward().to_dict()))
    plan = request.plan(epsilon=1.0, delta=1e-6)
    ((words,), (event,)) = (
        [one["precision"] for one in request.expected(plan).values["statistics"]],
        plan.events,
    )
    assert "false keys: 0" in words and "missed" in words and "50 %" in words
    assert isinstance(event, KeyCounts) and event.delta == 0.1 * 1e-6
    assert replaced_epsilon(plan) > 1.3 * plan.epsilon


def test_keys_with_little_noise_have_a_cost_of_substitution_too() -> None:
    event = KeyCounts("devices", 1, once=False, delta=1e-7, sigma=0.7)
    found = event.substituted()
    assert found.loss.times == 2 and found.sums.unit_steps
    assert found.sums.sensitivity == pytest.approx(event.replacement * event.sums.sensitivity)


MANY = ["sex", "diabetes", "smoker", "medication", "ward", "diagnosis", "readmitted_30d", "age"]
MANY = [*({"age": [40]} if name == "age" else name for name in MANY), {"bmi": [30]}]
VAST: list[Any] = [{"visit_date": "day"}, {"bmi": [n / 10 for n in range(110, 790)]}]
VAST += [{name: list(range(61, 159))} for name in ("sbp", "dbp")]
VAST += [{"hba1c": [n / 10 for n in range(41, 140)]}, {"ldl": [n / 10 for n in range(6, 99)]}]
VAST += ["length_of_stay", "diagnosis"]
CUTS = [{"bmi": list(range(11, 79))}, {"sbp": list(range(61, 239))}]

WRONG = {
    "no statistics": ({"schema": "demo"}, "has no 'statistics'"),
    "empty": (asked(), "a list of 1 to"),
    "unknown key": (asked(COUNT, level=3), "no key 'level'"),
    "confidence": (asked(COUNT, confidence=1 - 2**-53), "at most 0.999999"),
    "no object": (asked("count"), "statistic 1 must be an object"),
    "no name": (asked({"count": "rows"}), "needs a name"),
    "colon": (asked(COUNT | {"name": "a: b"}), "has a colon"),
    "twice": (asked(COUNT, COUNT), "two statistics are called 'by sex'"),
    "two kinds": (asked(COUNT | {"mean": "age"}), "exactly one of"),
    "no kind": (asked({"name": "x"}), "exactly one of"),
    "weight": (asked(COUNT | {"weight": 0}), "weight of statistic 'by sex' must be"),
    "vast weight": (asked(COUNT | {"weight": 10**400}), "up to a million"),
    "clip of words": (asked({"name": "m", "mean": "age", "clip": ["a", "b"]}), "two numbers"),
    "many shares": (asked({"name": "q", "quantiles": "age", "shares": [0.5] * 100}), "list of 1"),
    "another table": (asked(COUNT | {"table": "visit"}, schema="clinic"), "visits"),
    "a table of tests": (asked(COUNT | {"table": "labs"}, schema="clinic"), "a test in each row"),
    "a table of events": (asked(COUNT | {"table": "events"}, schema="clinic"), "happen once"),
    "a table of one": (asked(COUNT | {"table": "demo"}), "no key 'table'"),
    "time of a table": (
        asked(COUNT | {"table": "visits", "by": [{"date": "month"}]}, schema="clinic"),
        "no column 'date'",
    ),
    "many axes": (asked(COUNT | {"by": MANY}), "more than 8 columns"),
    "many numbers": (asked({"name": "q", "quantiles": "age", "by": CUTS}), "noisy numbers"),
    "more cells than 64 bits can count": (asked(COUNT | {"by": VAST}), "noisy numbers"),
    "count": (asked(COUNT | {"count": "people"}), "either patients or rows"),
    "column": (asked(COUNT | {"by": ["sexx"]}), "no column 'sexx'"),
    "column twice": (asked(COUNT | {"by": ["sex", "sex"]}), "names a column twice"),
    "no list": (asked(COUNT | {"by": "sex"}), "must be a list"),
    "too many values": (asked(COUNT | {"by": ["bmi"]}), "too many for a cell each"),
    "cut within a step": (asked(COUNT | {"by": [{"age": [40.5]}]}), "cannot be cut at 40.5"),
    "falling cuts": (asked(COUNT | {"by": [{"age": [65, 40]}]}), "numbers that rise"),
    "cuts outside": (asked(COUNT | {"by": [{"age": [400]}]}), "within its bounds"),
    "cuts of words": (asked(COUNT | {"by": [{"sex": [1]}]}), "no numbers to cut"),
    "period of a number": (asked(COUNT | {"by": [{"age": "month"}]}), "dates and times"),
    "mean of words": (asked({"name": "m", "mean": "sex"}), "has no numbers"),
    "mean of nothing": (asked({"name": "m", "mean": "wight"}), "must name a column"),
    "clip": (asked({"name": "m", "mean": "age", "clip": [0, 1000]}), "within the bounds"),
    "proportion": (asked({"name": "p", "proportion": {"sex": ["x"]}}), "must list values"),
    "quantiles of words": (asked({"name": "q", "quantiles": "sex"}), "has no order"),
    "shares": (asked({"name": "q", "quantiles": "age", "shares": [2]}), "between 0 and 1"),
    "per": (asked({"name": "m", "mean": "age", "per": "visit"}), "either patient or row"),
    "most": (asked({"name": "t", "top": "sex", "most": 5}), "from 1 to 2"),
    "survival of what": (asked({"name": "s", "survival": "age"}), "'survival' is {time"),
    "no cuts": (asked({"name": "s", "survival": SURVIVAL["survival"]}), "'cuts' must list"),
    "time by words": (
        asked({"name": "s", "cuts": [1], "survival": SURVIVAL["survival"] | {"time": "sex"}}),
        "no numbers to cut",
    ),
    "all have the event": (
        asked(
            SURVIVAL | {"name": "s", "survival": SURVIVAL["survival"] | {"of": ["True", "False"]}}
        ),
        "must leave a value",
    ),
    "survival by its event": (asked({"name": "s", **SURVIVAL, "by": ["readmitted_30d"]}), "itself"),
    "too many intervals": (
        asked({"name": "s", **SURVIVAL, "by": ["diagnosis", "ward", "smoker", "medication"]}),
        "more than 400 intervals",
    ),
    "between": (asked(COMPARE | {"between": "sex"}), "'between' is"),
    "between one": (asked(COMPARE | {"between": {"sex": ["male"]}}), "must name two values"),
    "between unknown": (asked(COMPARE | {"between": {"sex": ["male", "x"]}}), "must list values"),
    "compare by": (asked(COMPARE | {"by": ["ward"]}), "remove 'by'"),
    "independence of one": (asked({"name": "i", "independence": ["sex"]}), "list two columns"),
    "independence of itself": (asked({"name": "i", "independence": ["sex", "sex"]}), "twice"),
    "independence by": (
        asked({"name": "i", "independence": ["sex", "ward"], "by": ["ward"]}),
        "remove 'by'",
    ),
    "top of undeclared codes": (
        asked({"name": "t", "top": "device", "most": 1}, schema=discovered_ward().to_dict()),
        "nobody declared the codes",
    ),
    "undeclared codes twice": (
        asked(COUNT | {"by": ["device", "device"]}, schema=discovered_ward().to_dict()),
        "names a column twice",
    ),
    "too many undeclared keys": (
        asked(COUNT | {"by": ["device", "diagnosis"]}, schema=discovered_ward().to_dict()),
        "lower codes.most",
    ),
    "top by": (asked({"name": "t", "top": "sex", "most": 1, "by": ["sex"]}), "remove 'by'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_clear_sentence(case: str) -> None:
    document, words = WRONG[case]
    with pytest.raises(InputError, match=words):
        StatisticsRequest.from_dict(document)


@pytest.mark.parametrize("name", ["count", "value", "share", "rank", "lower", "number"])
def test_a_column_of_the_result_hides_none_of_the_table(name: str) -> None:
    document = json.loads(json.dumps(Schema.load("demo").to_dict()).replace('"sex"', f'"{name}"'))
    document["dpsynth"].pop("rules", None)
    with pytest.raises(InputError, match=f"'{name}' is called as a column of the result"):
        StatisticsRequest.from_dict(asked(COUNT | {"by": [name]}) | {"schema": document})


def test_all_statistics_together_fit_in_memory() -> None:
    cuts = [{"bmi": list(range(11, 79))}, {"sbp": list(range(61, 239))}, {"age": [40, 60, 70]}]
    entries = [{"name": f"c{n}", "count": "rows", "by": cuts} for n in range(120)]
    with pytest.raises(InputError, match="noisy numbers together"):
        StatisticsRequest.from_dict(asked(*entries)).plan(epsilon=1, delta=1e-6)


def test_a_plan_that_would_not_verify_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever verifies composes the events without the planner's guess; near 1000, this differs."""
    request = StatisticsRequest.from_dict(asked(COUNT))
    monkeypatch.setattr("dpsynth.privacy.plan._MARGIN", 0.9)
    with pytest.raises(InputError, match="states less than its events cost"):
        request.plan(epsilon=1, delta=1e-6)
