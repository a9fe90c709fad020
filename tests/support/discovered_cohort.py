"""Linked tables whose codes are discovered: patients with a device, and tables of their codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dpsynth.schema import LinkedSchema

CODE = {"discover": True, "pattern": "[A-Z]{2}[0-9]{3}", "most": 20_000, "expected": 20}
ICD = {"system": "ICD-9-CM", "rollup": "chapter", "discover": True, "expected": 20}
ROWS = 3  # of a patient in a table


def discovered_cohort(
    tables: Sequence[str] = ("stays",), codes: Mapping[str, Any] = CODE, patients: int = 400
) -> LinkedSchema:
    """Patients with a device, and such tables with a code in each row."""
    key = {"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}
    sex = {"enum": ["F", "M"], "required": True}
    own = [
        {"name": "id", "type": "string"},
        {"name": "sex", "type": "string", "constraints": sex, "dpsynth": {"bounds_basis": "form"}},
        {"name": "device", "type": "string", "dpsynth": {"codes": dict(CODE)}},
    ]
    resources: list[dict[str, Any]] = [
        {"name": "patients", "schema": {"primaryKey": "id", "fields": own}}
    ]
    for name in tables:
        fields = [
            {"name": "id", "type": "string"},
            {"name": "number", "type": "integer"},
            {"name": "code", "type": "string", "dpsynth": {"codes": dict(codes)}},
        ]
        most = {"value": ROWS, "basis": "policy"}
        resources.append(
            {
                "name": name,
                "schema": {"foreignKeys": [key], "fields": fields},
                "dpsynth": {"order": "number", "max_rows": most},
            }
        )
    own_facts = {
        "version": 1,
        "patients": "patients",
        "population": {"value": patients, "basis": "report"},
    }
    return LinkedSchema.from_dict({"name": "ward", "resources": resources, "dpsynth": own_facts})


def cohort_of(
    devices: Sequence[str], rows: Mapping[str, Sequence[Sequence[str]]]
) -> dict[str, pd.DataFrame]:
    """Return the tables: of each patient a device, and by table her codes in order."""
    ids = [f"p{number}" for number in range(len(devices))]
    sexes = ["FM"[number % 2] for number in range(len(devices))]
    tables = {"patients": pd.DataFrame({"id": ids, "sex": sexes, "device": list(devices)})}
    for name, of_patients in rows.items():
        listed = [
            (ids[number], str(place), code)
            for number, codes in enumerate(of_patients)
            for place, code in enumerate(codes)
        ]
        tables[name] = pd.DataFrame(listed, columns=["id", "number", "code"])
    return tables
