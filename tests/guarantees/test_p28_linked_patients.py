"""P28 and linked tables: one patient's rows change no other one's history, nor does a file's order.

The check is metamorphic: tables of twenty patients are read, and read again beside a patient with
hostile rows, somewhere in the files: cells of every wrong kind, thousands of rows, the earliest and
the latest days, keys of nobody, an own row that occurs twice. Every other history must be what it
was. Then the rows of the files are shuffled, which must change nothing at all. The broken versions
count days from the first day of the table, and order the rows of a day as they stand in the file,
where another patient's rows decide how a writer sorts and splits them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding import history_reading
from dpsynth.encoding.history_reading import ChildRows

from ..support.linked_rows import COLUMNS, Tables, by_patient, frames, patient_rows, read, together

PATIENTS = 20
ODD = (
    *("", " ", "NA", "nan", "x", "0x10", "1e400", "-1e300", "99999999", "-99999", "12.5", "1e3"),
    *(
        "0001-01-01",
        "9999-12-31",
        "31.12.2005",
        "hdl",
        "HDL",
        "smoke",
        "stroke",
        "F",
        "a",
        "1",
        "0",
    ),
    *("\u0661", "true", "008", "x" * 200, "2005-06-01"),
)


def others() -> list[dict[str, list[list[str]]]]:
    rng = np.random.default_rng(11)
    return [patient_rows(f"p{place}", rng) for place in range(PATIENTS)]


OTHERS = others()


def histories_of(tables: Tables) -> dict[str, Any]:
    """The history of each patient but the hostile one, by key."""
    counts = tables["patients"]["id"].value_counts()
    keys = [key for key in tables["patients"]["id"] if key and counts[key] == 1]
    found = by_patient(read(tables, refused="drop"))
    assert len(found) == len(keys)
    return {key: one for key, one in zip(keys, found, strict=True) if key in KEYS}


KEYS = {f"p{place}" for place in range(PATIENTS)}
ALONE = histories_of(frames(together(OTHERS)))


@st.composite
def hostile(draw: st.DrawFn) -> dict[str, list[list[str]]]:
    """Rows of one patient, or of nobody."""
    cells = st.sampled_from(ODD)
    rows = {}
    for name, columns in COLUMNS.items():
        width = len(columns) - 1
        row = st.lists(cells, min_size=width, max_size=width)
        table = draw(st.lists(row, max_size=6))
        times = draw(st.sampled_from([1, 1, 200])) if name != "patients" else 1
        rows[name] = [["q", *row] for row in table] * times
    rows["patients"] = rows["patients"][:2]
    return rows


def beside(rows: dict[str, list[list[str]]], seed: int) -> Tables:
    """Insert rows at random places among those of the others, whose order stays."""
    rng, whole = np.random.default_rng(seed), frames(together(OTHERS))
    tables = {}
    for name, frame in frames(rows).items():
        places = np.sort(rng.integers(0, len(whole[name]) + 1, len(frame)))
        order = np.concatenate([np.arange(len(whole[name])), places - 0.5])
        both = pd.concat([whole[name], frame], ignore_index=True)
        tables[name] = both.iloc[np.argsort(order, kind="stable")]
    return tables


@settings(max_examples=60, deadline=None)
@given(rows=hostile(), seed=st.integers(0, 99))
def test_no_patient_changes_the_history_of_another(
    rows: dict[str, list[list[str]]], seed: int
) -> None:
    assert histories_of(beside(rows, seed)) == ALONE


def shuffled(tables: Tables, seed: int) -> Tables:
    """Every file in another order."""
    rng = np.random.default_rng(seed)
    return {name: frame.iloc[rng.permutation(len(frame))] for name, frame in tables.items()}


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_a_file_does_not_matter(seed: int) -> None:
    assert histories_of(shuffled(frames(together(OTHERS)), seed)) == ALONE


EARLY = {"labs": [["p0", "-99999", "hdl", "60", "no"]], "visits": [["q", "0001-01-01", "", "", ""]]}


def moved(seed: int = 3) -> bool:
    """Whether a neighbour or another order of the files changes a history."""
    extreme = {name: [["q", *row[1:]] for row in rows] for name, rows in EARLY.items()}
    extreme["patients"] = [["q", "F", "1", "2001-01-01"]]
    alone = histories_of(frames(together(OTHERS)))
    neighbour = histories_of(beside(extreme, seed))
    return neighbour != alone or histories_of(shuffled(frames(together(OTHERS)), seed)) != alone


def test_the_real_reading_moves_nothing() -> None:
    assert not moved()


ORIGINAL_DAYS = history_reading._days
ORIGINAL_ROWS = history_reading.read_rows


def since_the_first(*known: Any) -> np.ndarray:
    """A broken version: days since the first one of the table."""
    days = ORIGINAL_DAYS(*known)
    return np.asarray(days - np.nanmin(days))


def as_in_the_file(*known: Any) -> ChildRows:
    """A broken version: the rows of a day stay as they stand in the file."""
    rows = ORIGINAL_ROWS(*known)
    return replace(rows, ranks=np.arange(len(rows.units)))


@pytest.mark.parametrize(
    ("module", "name", "broken"),
    [(history_reading, "_days", since_the_first), (history_reading, "read_rows", as_in_the_file)],
)
def test_the_check_finds_histories_that_look_at_others(
    module: Any, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, broken)
    assert moved()
