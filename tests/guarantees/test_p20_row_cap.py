"""P20: at most max_rows rows of one patient are in the cohort, however many the table has.

The check: a table, and the same table with one patient's rows repeated 40 times, under spellings
of the key that the schema declares to be equal. The check counts what can be that patient's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, Cohort, read_cohort
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..support.schema_fields import schema_field

NUMBER = {"value": 90, "basis": "made for this test"}
MARK = 77  # a value that only the heavy patient has
HEAVY = (" 0012", "12", "12 ", "00012")


def schema_of(most: int, keep: str) -> Schema:
    facts = {
        "version": 1,
        "population": NUMBER,
        "rows": NUMBER,
        "max_rows": {"value": most, "basis": "made for this test"},
        "keep": keep,
        "key": {"leading_zeros": False},
    }
    limits = {"minimum": 0, "maximum": 99, "required": True}
    fields = [
        {"name": "visit", "type": "integer", "dpsynth": {"role": "order"}},
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
        schema_field("value", "integer", "made for this test", **limits),
    ]
    return Schema.from_dict({"fields": fields, "dpsynth": facts})


def table(copies: int) -> pd.DataFrame:
    others = pd.DataFrame({"patient": [str(i % 30 + 100) for i in range(60)], "value": 5})
    heavy = pd.DataFrame({"patient": np.resize(HEAVY, copies), "value": MARK})
    frame = pd.concat([others, heavy], ignore_index=True)
    return frame.assign(visit=np.arange(len(frame)))


def marked(cohort: Cohort) -> int:
    """Rows of the heavy patient, in whichever unit they are."""
    return int(((cohort.codes[..., 0] == MARK) & cohort.mask).sum())


def real(frame: pd.DataFrame, schema: Schema) -> Cohort:
    return read_cohort(open_table(frame, schema), Codec(schema), schema, SeededEntropy(5))


def uncapped(frame: pd.DataFrame, schema: Schema) -> Cohort:
    """Broken twin: as wide as the longest patient, who counts with every row."""
    longest = int(frame.groupby(frame["patient"].str.strip().str.lstrip("0")).size().max())
    return real(frame, replace(schema, unit=replace(schema.unit, max_rows=longest)))


def by_spelling(frame: pd.DataFrame, schema: Schema) -> Cohort:
    """Broken twin: keys are compared as they are spelled, so one patient is several units."""
    return real(frame, replace(schema, unit=replace(schema.unit, leading_zeros=True, trim=False)))


def by_row(frame: pd.DataFrame, schema: Schema) -> Cohort:
    """Broken twin: each row is a unit (the row epsilon)."""
    return real(frame, replace(schema, unit=replace(schema.unit, column=None, max_rows=1)))


def cap_holds(read: Callable[[pd.DataFrame, Schema], Cohort], most: int, keep: str) -> bool:
    schema = schema_of(most, keep)
    few, many = read(table(2), schema), read(table(40), schema)
    assert marked(few) >= 1
    return marked(many) <= most and many.codes.shape == few.codes.shape


@pytest.mark.parametrize("most", [1, 3, 5])
@pytest.mark.parametrize("keep", ["random", "window"])
def test_forty_rows_of_a_patient_count_as_max_rows(most: int, keep: str) -> None:
    assert cap_holds(real, most, keep)
    cohort = real(table(40), schema_of(most, keep))
    assert marked(cohort) == most
    heavy = ((cohort.codes[..., 0] == MARK) & cohort.mask).any(axis=1)
    assert heavy.sum() == 1, "all spellings of the key are one unit"


@pytest.mark.parametrize("broken", [uncapped, by_spelling, by_row])
def test_the_check_catches(broken: Callable[[pd.DataFrame, Schema], Cohort]) -> None:
    assert not cap_holds(broken, 3, "random")


def test_the_other_units_are_as_they_were() -> None:
    """One patient's rows move nothing but that patient's seat."""
    schema = schema_of(3, "random")
    few, many = (real(table(copies), schema) for copies in (2, 40))
    for cohort in (few, many):
        assert len(cohort.mask) == 31
        others = (cohort.codes[..., 0] == 5) & cohort.mask
        assert sorted(others.sum(axis=1).tolist()) == [0] + [2] * 30
