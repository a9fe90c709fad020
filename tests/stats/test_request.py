"""Requests: what is read, and one clear sentence for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.stats.entries import KINDS
from dpsynth.stats.request import Request

SURVIVAL = {
    "survival": {"time": "length_of_stay", "event": "readmitted_30d", "of": ["True"]},
    "cuts": [4, 8, 15],
}
COMPARE = {"name": "c", "compare": "sbp", "between": {"sex": ["male", "female"]}}
COUNT = {"name": "by sex", "count": "patients", "by": ["sex"]}


def asked(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"schema": "demo", "statistics": list(entries), **more}


def test_every_kind_is_read() -> None:
    request = Request.from_dict(
        asked(
            COUNT,
            {"name": "a", "count": "rows", "by": ["sex", {"age": [40, 65]}], "weight": 2},
            {"name": "b", "mean": "sbp", "by": ["sex"], "clip": [90, 200]},
            {"name": "c", "proportion": {"diabetes": ["True"]}},
            {"name": "d", "quantiles": "age", "shares": [0.5]},
            {"name": "e", "top": "sex", "most": 1},
            {"name": "f", **SURVIVAL, "by": ["sex"]},
            {"name": "g", "compare": "sbp", "between": {"sex": ["male", "female"]}},
            {"name": "h", "independence": ["smoker", {"age": [40, 65]}]},
        )
    )
    kinds = {kind for entry in request.document["statistics"] for kind in KINDS if kind in entry}
    assert kinds == set(KINDS)
    assert [one.size for one in request.statistics[:2]] == [2, 6]
    assert Request.from_dict(request.document).document == request.document


WRONG = {
    "no statistics": ({"schema": "demo"}, "has no 'statistics'"),
    "empty": (asked(), "a list of 1 to"),
    "unknown key": (asked(COUNT, level=3), "no key 'level'"),
    "confidence": (asked(COUNT, confidence=1), "below 1"),
    "no object": (asked("count"), "statistic 1 must be an object"),
    "no name": (asked({"count": "rows"}), "needs a name"),
    "colon": (asked(COUNT | {"name": "a: b"}), "has a colon"),
    "twice": (asked(COUNT, COUNT), "two statistics are called 'by sex'"),
    "two kinds": (asked(COUNT | {"mean": "age"}), "exactly one of"),
    "no kind": (asked({"name": "x"}), "exactly one of"),
    "weight": (asked(COUNT | {"weight": 0}), "weight of statistic 'by sex' must be"),
    "count": (asked(COUNT | {"count": "people"}), "either patients or rows"),
    "column": (asked(COUNT | {"by": ["sexx"]}), "no column 'sexx'"),
    "column twice": (asked(COUNT | {"by": ["sex", "sex"]}), "names a column twice"),
    "no list": (asked(COUNT | {"by": "sex"}), "must be a list"),
    "too many values": (asked(COUNT | {"by": ["bmi"]}), "too many for a cell each"),
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
    "top by": (asked({"name": "t", "top": "sex", "most": 1, "by": ["sex"]}), "remove 'by'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_clear_sentence(case: str) -> None:
    document, words = WRONG[case]
    with pytest.raises(InputError, match=words):
        Request.from_dict(document)
