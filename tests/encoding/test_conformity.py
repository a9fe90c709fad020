"""The check of a synthetic table finds every cell that its schema does not allow."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec

from ..support.coded_columns import (
    ARM,
    BORN,
    DOSE,
    SEEN,
    SEX,
    SMOKER,
    STAY,
    TEMPERATURE,
    YEAR,
    field,
    schema_of,
)


def departures(column: dict[str, Any], cells: Any) -> list[str]:
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    frame = pd.DataFrame({"c0": series})
    problems = Codec(schema_of(column)).conforms(frame)
    assert all(problem.place == "column 'c0'" for problem in problems)
    return [problem.message for problem in problems]


REQUIRED = "the column is required, but cells are missing"


@pytest.mark.parametrize(
    ("column", "cells", "messages"),
    [
        (STAY, ["1", "14", "", None, "+3"], []),
        (STAY, ["0", "15", "16"],
         ["below the minimum, 1: 1 cell", "above the maximum, 14: 2 cells"]),
        (STAY, ["3.0", " 3", "?", "x", "1e1"], ["not of type integer: 5 cells"]),
        (STAY, pd.Series([1, 3], dtype="Int64"), []),
        (STAY, pd.Series([1.0, np.nan]), []),
        (STAY, pd.Series([1.5, np.inf]), ["not of type integer: 2 cells"]),
        (STAY, pd.Series([True, False]), ["not of type integer: 2 cells"]),
        (STAY, pd.Series(pd.to_datetime(["2000-01-01"])), ["not of type integer: 1 cell"]),
        (field("integer", minimum=0, maximum=100, step=5), ["5", "7"],
         ["between two steps of the resolution, 5: 1 cell"]),
        (field("integer", required=True, minimum=0, maximum=9), ["", "3", None],
         [f"{REQUIRED}: 2 cells"]),
        (field("integer", required=True, minimum=0, maximum=9), pd.Series([1.0, np.nan]),
         [f"{REQUIRED}: 1 cell"]),
        (TEMPERATURE, ["36.6", "36.60", "35"], []),
        (TEMPERATURE, ["36.65", "34.9"],
         ["below the minimum, 35.0: 1 cell", "between two steps of the resolution, 0.1: 1 cell"]),
        (TEMPERATURE, ["36,6", "nan", "1_0", "inf"], ["not of type number: 4 cells"]),
        (TEMPERATURE, pd.Series([36.6, 0.1 + 0.2 + 36]), []),
        (TEMPERATURE, pd.Series([36.65]), ["between two steps of the resolution, 0.1: 1 cell"]),
        (SEX, ["F", "other"], []),
        (SEX, ["f", "", " F", "F"], [f"{REQUIRED}: 1 cell", "none of the 3 categories: 2 cells"]),
        (SEX, pd.Series([1, 2]), ["not of type string: 2 cells"]),
        (SEX, pd.Series(["F", "X"], dtype="category"), ["none of the 3 categories: 1 cell"]),
        (ARM, ["2", "1", ""], []),
        (ARM, ["3", "x", "1.0"],
         ["not of type integer: 2 cells", "none of the 2 categories: 1 cell"]),
        (ARM, pd.Series([1, 7]), ["none of the 2 categories: 1 cell"]),
        (SMOKER, ["true", "false", "", "1"], []),
        (SMOKER, ["yes", "1.0"], ["not of type boolean: 2 cells"]),
        (SMOKER, pd.Series([True, None], dtype="boolean"), []),
        (SMOKER, pd.Series([True, None], dtype=object), []),
        (SMOKER, pd.Series([1, 0]), ["not of type boolean: 2 cells"]),
        (field("boolean", trueValues=["yes"]), ["true", "false"], []),
        (field("boolean", required=True), pd.Series([True, None], dtype=object),
         [f"{REQUIRED}: 1 cell"]),
        (DOSE, ["0.5", "2.5", "3"], ["none of the 3 categories: 1 cell"]),
        (BORN, ["2000-01-31", ""], []),
        (BORN, ["2000-02-01", "1999-12-31"],
         ["below the minimum, 2000-01-01: 1 cell", "above the maximum, 2000-01-31: 1 cell"]),
        (BORN, ["20000101", "2000-01-01T00:00:00", "2000-02-30"], ["not of type date: 3 cells"]),
        (BORN, pd.Series([pd.Timestamp("2000-01-01"), pd.Timestamp("2000-01-01 10:00")]),
         ["not of type date: 1 cell"]),
        (BORN, [date(2000, 1, 2)], []),
        (BORN, pd.Series([3]), ["not of type date: 1 cell"]),
        (SEEN, ["2000-01-01T00:01:00"], []),
        (SEEN, ["2000-01-01T00:01:30", "2000-01-01 00:01:00"],
         ["not of type datetime: 1 cell", "between two steps of the resolution, 60: 1 cell"]),
        (YEAR, ["1999", "2009", "99"],
         ["not of type year: 1 cell", "above the maximum, 2008: 1 cell"]),
        (YEAR, pd.Series(pd.to_datetime(["2001-01-01"])), ["not of type year: 1 cell"]),
        (field("date", minimum="01.01.2000", maximum="31.01.2000", format="%d.%m.%Y"),
         ["2000-01-02", "02.01.2000"], ["not of type date: 1 cell"]),
    ],
)  # fmt: skip
def test_conformity(column: dict[str, Any], cells: Any, messages: list[str]) -> None:
    assert departures(column, cells) == messages


def test_conformity_of_columns() -> None:
    codec = Codec(schema_of(STAY, SEX))
    good = pd.DataFrame({"c0": ["1"], "c1": ["F"]})
    assert codec.conforms(good) == []
    assert [str(p) for p in codec.conforms(good[["c0"]])] == [
        "column 'c1': is missing; it must occur once"
    ]
    assert [str(p) for p in codec.conforms(good.assign(canary=1))] == [
        "table: 1 columns are not in the schema"
    ]
    assert [str(p) for p in codec.conforms(good[["c1", "c0"]])] == [
        "table: the columns are not in the schema's order"
    ]
    twice = pd.concat([good, good[["c1"]]], axis=1)
    assert "column 'c1': occurs 2 times; it must occur once" in map(str, codec.conforms(twice))
