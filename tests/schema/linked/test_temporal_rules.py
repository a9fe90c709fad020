"""Temporal rules hold where a slow reading of each patient by herself says so."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.schema import Comparison, Joined, LinkedSchema, Literal, TemporalRule, Tree

from ...support.linked_tables import package

SCHEMA = LinkedSchema.from_dict(package())
DAY = date(2003, 1, 1)
TIMES = {"labs": ("days",), "events": ("days",), "visits": ("date",), "orders": ("number",)}
NAMING = {"labs": "test", "events": "event"}
NUMBERS = [
    *("patients.end", "first(labs).days", "last(labs, hdl).value", "first(labs, smoke).value"),
    *(
        "count(visits)",
        "count(labs, hdl)",
        "count(events, mi)",
        "event(mi)",
        "event(events, stroke)",
    ),
    *("first(visits).sbp", "last(visits).sbp", "last(orders).number", "900", "3", "0"),
]
RANGED = {"visits": (("sbp",), ("date",)), "labs": (("days",), ()), "orders": (("number",), ())}
DATES = ["patients.index", "first(visits).date", "last(visits).date", "'2003-06-01'"]
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A rule of one to three comparisons, of one table's rows where it goes through rows."""
    table = draw(st.sampled_from(sorted(RANGED)))
    numbers, dates = (
        [*plain, *(f"{way}({table}).{name}" for name in names for way in ("each", "next"))]
        for plain, names in zip((NUMBERS, DATES), RANGED[table], strict=True)
    )
    links = []
    for _ in range(draw(st.integers(1, 3))):
        side = st.sampled_from(draw(st.sampled_from([numbers, dates])))
        left, right = draw(side), draw(side)
        if left[0] in "0123456789'":
            left = "patients.end" if left[0] != "'" else "patients.index"
        links.append(f"{left} {draw(SIGNS)} {right}")
    links += draw(st.lists(st.sampled_from(["patients.sex == 'F'", "first(visits).ward != 'a'"])))
    text = links[0]
    for link in links[1:]:
        text += f" {draw(st.sampled_from(['and', 'or', 'implies']))} {link}"
    return f"not ({text})" if draw(st.booleans()) else text


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pd.DataFrame]:
    """Decoded tables of a few patients; cells may be missing, rows in any order."""
    keys = [f"P{number}" for number in range(draw(st.integers(1, 5)))]
    numbers = st.integers(0, 4) | st.none()
    days = st.integers(0, 400).map(lambda day: DAY + timedelta(day)) | st.none()
    patients = [
        (key, draw(st.sampled_from(["F", "M", None])), draw(numbers), draw(days)) for key in keys
    ]
    own = {
        "labs": (numbers, st.sampled_from(["hdl", "smoke"]), st.integers(0, 3), st.none()),
        "events": (numbers, st.sampled_from(["stroke", "mi"])),
        "visits": (days, numbers, st.sampled_from(["a", "b", None])),
        "orders": (st.integers(0, 3), st.just("x")),
    }
    columns = {
        "labs": ["id", "days", "test", "value", "fasting"],
        "events": ["id", "days", "event"],
        "visits": ["id", "date", "sbp", "ward"],
        "orders": ["id", "number", "drug"],
    }
    frames = {"patients": _frame(patients, ["id", "sex", "end", "index"])}
    for name, cells in own.items():
        rows = draw(st.lists(st.tuples(st.sampled_from([*keys, "P99"]), *cells), max_size=12))
        frames[name] = _frame(rows, columns[name])
    return frames


def _frame(rows: list[Any], columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=columns, dtype=object)
    for name in ("index", "date"):
        if name in columns:
            frame[name] = pd.to_datetime(frame[name]).astype("datetime64[s]")
    for name in ("days", "end", "sbp", "number", "value"):
        if name in columns:
            frame[name] = pd.array(frame[name].tolist(), dtype="Int64")
    return frame


def slowly(rule: TemporalRule, frames: dict[str, pd.DataFrame]) -> list[bool]:
    """Tell for each patient whether a rule holds, one patient and one row at a time."""
    held = []
    for _, patient in frames["patients"].iterrows():
        mine = {}
        for name, times in TIMES.items():
            frame = frames[name]
            rows = [row for _, row in frame[frame["id"] == patient["id"]].iterrows()]
            if name != "orders":
                rows = [row for row in rows if not pd.isna(row[times[0]])]
            mine[name] = sorted(rows, key=lambda row, time=times[0]: row[time])
        ranged = next((term for term in rule.terms.values() if term.ranges), None)
        cases = range(len(mine[str(ranged.table)])) if ranged is not None else [0]
        held.append(all(truth(rule.rule.tree, rule, patient, mine, case) != 0 for case in cases))
    return held


def truth(tree: Tree, rule: TemporalRule, patient: Any, mine: Any, case: int) -> float:
    """Return 1 for true, 0 for false and 0.5 for undecided, as Kleene has them."""
    if isinstance(tree, Comparison):
        left, right = (value(side, rule, patient, mine, case) for side in (tree.left, tree.right))
        if left is None or right is None:
            return 0.5
        if isinstance(left, pd.Timestamp) or isinstance(right, pd.Timestamp):
            left, right = pd.Timestamp(left), pd.Timestamp(right)
        signs = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
        return float((signs | {"==": left == right, "!=": left != right})[tree.sign])
    assert isinstance(tree, Joined)
    parts = [truth(part, rule, patient, mine, case) for part in tree.parts]
    if tree.word == "not":
        return 1 - parts[0]
    if tree.word == "implies":
        return max(1 - parts[0], parts[1])
    return min(parts) if tree.word == "and" else max(parts)


def value(side: Any, rule: TemporalRule, patient: Any, mine: Any, case: int) -> Any:
    """Return the value of one operand, None where it is missing."""
    if isinstance(side, Literal):
        return side.value
    term = rule.terms[side.text]
    if term.function == "patient":
        return _known(patient[term.column])
    table = term.table or "events"
    rows = [row for row in mine[table] if term.named in (None, row.get(NAMING.get(table)))]
    if term.function == "count":
        return len(rows)
    column = TIMES["events"][0] if term.function == "event" else term.column
    place = {"first": 0, "event": 0, "last": len(rows) - 1, "each": case, "next": case + 1}
    number = place[term.function]
    return _known(rows[number][column]) if 0 <= number < len(rows) else None


def _known(cell: Any) -> Any:
    return None if pd.isna(cell) or (isinstance(cell, float) and math.isnan(cell)) else cell


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules(), tables())
def test_a_rule_holds_where_a_slow_reading_says_so(
    text: str, frames: dict[str, pd.DataFrame]
) -> None:
    rule = TemporalRule.parse(text)
    assert rule.holds(frames, SCHEMA).tolist() == slowly(rule, frames)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules(), tables(), st.randoms(use_true_random=False))
def test_a_patient_is_judged_by_her_own_rows(
    text: str, frames: dict[str, pd.DataFrame], chance: Any
) -> None:
    rule = TemporalRule.parse(text)
    held = rule.holds(frames, SCHEMA)
    one = chance.randrange(len(held))
    key = frames["patients"]["id"][one]
    alone = {name: frame[frame["id"] == key] for name, frame in frames.items()}
    assert rule.holds(alone, SCHEMA).tolist() == [held[one]]


def test_the_answer_for_undecided_patients() -> None:
    frames = {
        "patients": _frame(
            [("a", "F", None, None), ("b", "F", 3, None)], ["id", "sex", "end", "index"]
        )
    }
    rule = TemporalRule.parse("patients.end >= 3")
    assert rule.holds(frames, SCHEMA).tolist() == [True, True]
    assert rule.holds(frames, SCHEMA, missing=False).tolist() == [False, True]


def test_the_row_after_a_patients_last_one_is_missing() -> None:
    rows = [("a", "F", 9, None), ("b", "F", 9, None)]
    patients = _frame(rows, ["id", "sex", "end", "index"])
    visits = [("a", DAY, 5, "a"), ("b", DAY, 4, "a"), ("a", DAY + timedelta(1), 6, "a")]
    visits.append(("b", DAY + timedelta(1), 3, "a"))
    frames = {"patients": patients, "visits": _frame(visits, ["id", "date", "sbp", "ward"])}
    rule = TemporalRule.parse("next(visits).sbp > each(visits).sbp")
    assert rule.holds(frames, SCHEMA).tolist() == [True, False]
    assert rule.holds(frames, SCHEMA, missing=False).tolist() == [False, False]
    up = TemporalRule.parse("next(visits).sbp < each(visits).sbp")
    assert up.holds(frames, SCHEMA).tolist() == [False, True]


def test_keys_that_are_numbers_here_and_texts_there() -> None:
    patients = _frame([(1, "F", 5, None), (2, "F", 5, None)], ["id", "sex", "end", "index"])
    patients["id"] = patients["id"].astype("int64")
    visits = _frame([("2", DAY, 9, "a")], ["id", "date", "sbp", "ward"])
    rule = TemporalRule.parse("each(visits).sbp <= patients.end")
    frames = {"patients": patients, "visits": visits}
    assert rule.holds(frames, SCHEMA).tolist() == [True, False]


def test_a_test_of_its_own_type_in_a_column_of_text() -> None:
    document = package()
    labs = document["resources"][1]
    labs["schema"]["fields"][3]["type"] = "string"
    tests = labs["dpsynth"]["series"]["tests"]
    tests["hdl"]["type"] = tests["smoke"]["type"] = "integer"
    tests["ecg"] = {"type": "boolean", "bounds_basis": "form"}
    rule = "last(labs, hdl).value >= 100 and last(labs, ecg).value == true"
    document["dpsynth"]["rules"] = [rule]
    schema = LinkedSchema.from_dict(document)
    rows = [("a", 1, "hdl", "99"), ("a", 1, "ecg", "true"), ("b", 1, "hdl", "100")]
    rows += [("b", 1, "ecg", "true"), ("c", 1, "ecg", "false")]
    labs_frame = pd.DataFrame(rows, columns=["id", "days", "test", "value"])
    patients = pd.DataFrame({"id": ["a", "b", "c"]})
    frames = {"patients": patients, "labs": labs_frame}
    assert schema.rules[0].holds(frames, schema).tolist() == [False, True, False]


def test_what_a_frame_must_have() -> None:
    rule = TemporalRule.parse("first(visits).sbp > 3")
    patients = pd.DataFrame({"id": ["a", "a"]})
    with pytest.raises(InputError, match="two rows of table patients have one key"):
        rule.holds({"patients": patients}, SCHEMA)
    with pytest.raises(InputError, match="needs table visits, which is absent"):
        rule.holds({"patients": patients[:1]}, SCHEMA)
    visits = pd.DataFrame({"id": ["a"], "date": [np.datetime64("2001-01-01", "s")]})
    with pytest.raises(InputError, match="columns of table visits that are absent: sbp"):
        rule.holds({"patients": patients[:1], "visits": visits}, SCHEMA)
    assert (
        rule.holds({"patients": patients[:0], "visits": visits[:0].assign(sbp=1)}, SCHEMA).tolist()
        == []
    )
