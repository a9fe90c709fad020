"""P28 in linked tables: gaps above other columns and empty cells follow from a patient's own row.

The check: the visits of each patient are read alone, and beside a patient with odd blood pressures.
Each history must be what it is alone. The broken version takes gaps as parts of the largest one of
the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import relations

from ..support.linked_rows import by_patient, frames, patient_rows, read, together
from ..support.linked_tables import package

PATIENTS = 12
ODD = ("", "x", "nan", "1e300", "-5", "40", "300", "999")
GAPS = relations.gaps_above


def ordered() -> dict[str, Any]:
    """The package with visits of two pressures, the lower of which is at most the upper."""
    document = package()
    visits = next(one for one in document["resources"] if one["name"] == "visits")
    fields = {field["name"]: field for field in visits["schema"]["fields"]}
    visits["schema"]["fields"].append({**fields["sbp"], "name": "dbp"})
    fields["ward"]["dpsynth"]["present_if"] = "sbp > 100 or dbp < 50"
    visits.setdefault("dpsynth", {}).setdefault("rules", []).append({"order": "dbp <= sbp"})
    return document


def histories(*patients: dict[str, list[list[str]]]) -> list[Any]:
    tables = frames(together(list(patients)) | {"visits": []})
    columns = [*tables["visits"].columns, "dbp"]
    rows = [row for one in patients for row in one["visits"]]
    tables["visits"] = pd.DataFrame(rows, columns=columns, dtype=object)
    return by_patient(read(tables, document=ordered(), refused="drop"))


def others() -> list[dict[str, list[list[str]]]]:
    rng = np.random.default_rng(5)
    found = [patient_rows(f"p{place}", rng) for place in range(PATIENTS)]
    for one in found:
        for row in one["visits"]:
            row.append(str(rng.integers(20, 320)))
    return found


def odd(cell: str) -> dict[str, list[list[str]]]:
    """One patient whose visits have such a pressure, above and below ordinary ones."""
    pairs = [(cell, cell), (cell, "40"), ("300", cell), ("300", "40")]
    visits = [["q", "2003-05-06", "1", upper, cell, lower] for upper, lower in pairs]
    return {"patients": [["q", "F", "100", "2003-05-05"]], "visits": visits}


def moved() -> bool:
    """Whether the history of somebody else is another one beside an odd patient."""
    crowd = others()
    alone = [histories(one)[0] for one in crowd]
    return any(histories(odd(cell), *crowd)[1:] != alone for cell in ODD)


def test_each_patient_has_the_gaps_that_she_has_alone() -> None:
    assert not moved()


def test_the_check_finds_gaps_that_look_at_other_patients(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_largest(cells: Any, column: Any, columns: Any) -> pd.Series:
        gaps = GAPS(cells, column, columns)
        return (100 * gaps / max(1.0, float(gaps.max(skipna=True)))).round()

    monkeypatch.setattr(relations, "gaps_above", of_the_largest)
    assert moved()
