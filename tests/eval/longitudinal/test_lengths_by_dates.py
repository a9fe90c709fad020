"""Rows lie within stays that end on a date: as they are declared, and as an evaluation counts."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.encoding import NEVER, Histories, HistoryCodec, SeriesRows
from dpsynth.eval.longitudinal.cohort import Compared
from dpsynth.eval.longitudinal.facts_of_rows import row_facts
from dpsynth.schema import LinkedSchema

from ...support.declared_tables import from_admission

PATIENTS = 400


def cohort(codec: HistoryCodec, gap: int, seed: int = 0) -> Histories:
    """A stay each, of so many units, and a test on its last day."""
    rng = np.random.default_rng(seed)
    baseline = np.zeros((PATIENTS, len(codec.baseline)), dtype=np.uint16)
    who, days = np.arange(PATIENTS), rng.integers(0, 300, PATIENTS)
    onsets = np.full((PATIENTS, len(codec.events)), NEVER)
    rows = []
    for table in codec.tables:
        own = []
        for series in table.series:
            values = np.zeros((PATIENTS, len(series.values)), dtype=np.uint16)
            at = days
            if table.name == "stays":
                values[:, 0] = gap
            elif table.name in ("labs", "drugs"):
                at = days + (2 if table.name == "labs" else 30)
            own.append(SeriesRows(who, at, values))
        rows.append(tuple(own))
    return Histories(baseline, np.full(PATIENTS, codec.last), onsets, tuple(rows))


@pytest.mark.parametrize(("unit", "kind", "gap"), [("d", "date", 2), ("h", "datetime", 30)])
def test_rows_within_a_stay_are_counted(unit: str, kind: str, gap: int) -> None:
    """A stay of 30 hours may end on the day after the next."""
    codec = HistoryCodec(LinkedSchema.from_dict(from_admission(unit, kind)))
    train, drawn = cohort(codec, gap), cohort(codec, gap, 1)
    compared = Compared.of(codec, drawn, train, None, np.random.default_rng(5))
    entries = {
        one["name"]: one for part in row_facts(compared) for one in part.details.get("largest", ())
    }
    within = entries["rows of labs on a day of a row of stays"]
    assert within["source"] == [1.0] and within["declared"]
