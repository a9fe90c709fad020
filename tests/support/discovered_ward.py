"""A ward whose diagnoses and devices are discovered, and tables of its patients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dpsynth.schema import Schema

ICD = {"system": "ICD-9-CM", "rollup": "chapter", "discover": True}
DEVICE = {"discover": True, "pattern": "[A-Z][0-9]{3}"}
RARE = "Q777"  # a device of one patient


def discovered_ward(rows: int = 2, **fields: Mapping[str, Any] | None) -> Schema:
    """Patients with at most so many rows; ``fields`` replace ``codes`` of a column, or drop it."""
    codes = {"diagnosis": ICD, "device": DEVICE} | fields
    listed: list[dict[str, Any]] = [
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}}
    ]
    listed += [
        {"name": name, "type": "string", "dpsynth": {"codes": dict(own)}}
        for name, own in codes.items()
        if own is not None
    ]
    listed.append(
        {
            "name": "sex",
            "type": "string",
            "constraints": {"enum": ["F", "M"], "required": True},
            "dpsynth": {"bounds_basis": "form"},
        }
    )
    number = {"value": 3000, "basis": "report"}
    own = {
        "version": 1,
        "max_rows": {"value": rows, "basis": "policy"},
        "population": number,
        "rows": number,
    }
    return Schema.from_dict({"name": "ward", "fields": listed, "dpsynth": own})


def patients(codes: Sequence[tuple[str, str, str]]) -> pd.DataFrame:
    """Rows of patient, diagnosis and device."""
    frame = pd.DataFrame(codes, columns=["patient", "diagnosis", "device"])
    return frame.assign(sex="F")


def ward(common: int = 300) -> pd.DataFrame:
    """Three diagnoses and two devices of many patients, and one patient with rare ones."""
    rows = []
    for number in range(3 * common):
        diagnosis = ("428.0", "250.01", "401")[number % 3]
        rows.append((f"p{number}", diagnosis, ("A001", "B002")[number % 2]))
    return patients([*rows, ("rare", "733.1", RARE)])
