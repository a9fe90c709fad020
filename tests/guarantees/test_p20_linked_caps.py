"""P20 and linked tables: a patient has at most ``max_rows`` rows of a series, chosen by chance.

The check: a patient with 40 rows of a test, whose day says which row it is, is read many times. No
reading has more than eight rows; over the readings each row is kept about as often as any other
(or, of a window, each start), and a key under several spellings is one patient. The broken versions
keep the first rows, count every row, or choose once and for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import history_reading

from ..support.linked_rows import frames, read
from ..support.linked_tables import MAX_ROWS, package

ROWS, READINGS, FEW, CAP = 40, 150, 40, MAX_ROWS["value"]
KEYS = ("ann", " ann", "ann ", "ANN")


def kept(keep: str, readings: int) -> np.ndarray:
    """Which of the patient's rows each reading keeps, ``[readings, rows]``."""
    document = package()
    document["resources"][1]["dpsynth"]["keep"] = keep
    document["dpsynth"]["key"] = {"case": True}
    labs = [[KEYS[day % 4], str(day), "hdl", "60", ""] for day in range(ROWS)]
    patients = [["ann", "F", "1000", "2005-06-01"], ["bob", "M", "1000", "2005-06-01"]]
    tables = frames({"patients": patients, "labs": labs})
    found = np.zeros((readings, ROWS), dtype=bool)
    for seed in range(readings):
        rows = read(tables, document=document, seed=seed).rows[0][0]
        assert len(set(rows.patients.tolist())) == 1
        found[seed, rows.days] = True
    return found


def faults(keep: str, readings: int = READINGS) -> set[str]:
    """Say what is wrong with the rows that are kept."""
    found, wrong = kept(keep, readings), set()
    if (found.sum(axis=1) > CAP).any():
        wrong.add("too many")
    if keep == "random":
        often, chance = found.mean(axis=0), CAP / ROWS
    else:
        starts = np.bincount(found.argmax(axis=1), minlength=ROWS - CAP + 1)
        often, chance = starts / readings, 1 / (ROWS - CAP + 1)
        if (np.diff(found.astype(int), axis=1) == 1).sum(axis=1).max() > 1:
            wrong.add("not consecutive")
    spread = 5 * np.sqrt(chance * (1 - chance) / readings)
    return wrong | ({"not by chance"} if (np.abs(often - chance) > spread).any() else set())


@pytest.mark.parametrize("keep", ["random", "window"])
def test_rows_beyond_the_cap_are_left_out_by_chance(keep: str) -> None:
    assert faults(keep) == set()


ORIGINAL = history_reading.select


def first_rows(units: Any, maximum: int, entropy: Any, *, order: Any = None) -> Any:
    """A broken version: the first rows, which are those that tell when a history began."""
    rows = np.arange(len(units))
    places = rows - np.searchsorted(units, units)
    return rows[places < maximum], places[places < maximum]


def all_rows(units: Any, maximum: int, entropy: Any, *, order: Any = None) -> Any:
    """A broken version: a patient counts with all rows."""
    return ORIGINAL(units, len(units), entropy, order=order)


def the_same_rows(units: Any, maximum: int, entropy: Any, *, order: Any = None) -> Any:
    """A broken version: chosen once and for all."""
    return ORIGINAL(units, maximum, type(entropy)(7), order=order)


@pytest.mark.parametrize("keep", ["random", "window"])
@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (first_rows, "not by chance"),
        (all_rows, "too many"),
        (the_same_rows, "not by chance"),
    ],
)
def test_the_check_finds_rows_that_are_not_capped_by_chance(
    keep: str, broken: Callable[..., Any], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reading, "select", broken)
    assert fault in faults(keep, FEW)
