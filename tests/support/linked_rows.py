"""Rows of made-up patients in the tables of `linked_tables.package`, and their histories."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.encoding import NEVER, Histories, HistoryCodec, Tally, read_histories
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked

from .linked_tables import package

COLUMNS = {
    "patients": ["id", "sex", "end", "index"],
    "labs": ["id", "days", "test", "value", "fasting"],
    "events": ["id", "days", "event", "severity"],
    "visits": ["id", "date", "visit", "sbp", "ward"],
    "orders": ["id", "number", "visit", "drug"],
}
Tables = dict[str, pd.DataFrame]
Patient = tuple[Any, ...]


class InOrder(SeededEntropy):
    """Patients stay in the order of their table, so that a test can tell who is who."""

    def permutation(self, count: int) -> np.ndarray:
        """Return places as they are."""
        return np.arange(count)


def frames(rows: Mapping[str, list[list[str]]]) -> Tables:
    """Make tables of text from rows."""
    return {
        name: pd.DataFrame(rows.get(name, []), columns=columns, dtype=object)
        for name, columns in COLUMNS.items()
    }


def patient_rows(key: str, rng: np.random.Generator) -> dict[str, list[list[str]]]:
    """Draw the rows of one patient, fewer than any cap."""
    origin = np.datetime64("2003-01-01") + int(rng.integers(2000))
    days = [str(day) for day in rng.integers(-4000, 4000, 6)]
    dates = [str(origin + int(day)) for day in rng.integers(-900, 900, 4)]
    tests = rng.choice(["hdl", "smoke", "other"], 6)
    values = [str(rng.integers(2)) if t == "smoke" else str(rng.integers(1, 230)) for t in tests]
    return {
        "patients": [[key, rng.choice(["F", "M"]), str(rng.integers(0, 3700)), str(origin)]],
        "labs": [
            [key, day, test, value, rng.choice(["no", "yes", ""])]
            for day, test, value in zip([*days[:3], *days[:3]], tests, values, strict=True)
        ],
        "events": [[key, day, rng.choice(["stroke", "mi"]), "x"] for day in days[3:]],
        "visits": [
            [key, d, "1", str(rng.integers(20, 320)), rng.choice(["a", "b"])] for d in dates
        ],
        "orders": [[key, str(n), "1", rng.choice(["x", "y"])] for n in rng.integers(0, 3, 5)],
    }


def together(patients: list[dict[str, list[list[str]]]]) -> dict[str, list[list[str]]]:
    """Put the rows of several patients into one file a table."""
    return {name: [row for one in patients for row in one.get(name, [])] for name in COLUMNS}


def read(
    tables: Tables, *, document: dict[str, Any] | None = None, seed: int | None = None, **how: Any
) -> Histories:
    """Read tables; patients stay in order unless a seed is given."""
    schema, codec = _declared(json.dumps(document or package()))
    entropy = InOrder(1) if seed is None else SeededEntropy(seed)
    return read_histories(open_linked(tables, schema), codec, entropy, **how)


@functools.lru_cache(maxsize=16)
def _declared(document: str) -> tuple[LinkedSchema, HistoryCodec]:
    """Read a schema once for many readings."""
    schema = LinkedSchema.from_dict(json.loads(document))
    return schema, HistoryCodec(schema)


def tallied(tables: Tables, **how: Any) -> dict[tuple[str, str], int]:
    """Read tables and return what was left out or moved."""
    tally = Tally()
    read(tables, tally=tally, **how)
    return {place: count for place, count in tally.rows.items() if count}


def by_patient(histories: Histories) -> list[Patient]:
    """All that is coded of each patient."""
    found = []
    for number in range(len(histories)):
        series = []
        for rows in (one for table in histories.rows for one in table):
            mine = rows.patients == number
            series.append((rows.days[mine].tolist(), rows.values[mine].tolist()))
        onsets = [None if day == NEVER else int(day) for day in histories.onsets[number]]
        codes = histories.baseline[number].tolist()
        found.append((codes, int(histories.ends[number]), onsets, series))
    return found
