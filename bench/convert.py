"""Turn the scorer's schema.json into a dpsynth schema, so that both mean the same table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpsynth.schema.schema import Schema

BASIS = "bounds of the scorer's schema, from the published documentation"
POPULATION = {"cardio": 56_000, "brfss2015": 200_000, "diabetes130": 57_000}
ROWS = {"cardio": 56_000, "brfss2015": 200_000, "diabetes130": 81_000}
STEPS = {("cardio", "weight"): 1}  # bathroom scales show whole kilograms


def convert(path: Path, *, rows_as_units: bool = False, max_rows: int = 5) -> Schema:
    """Read schema.json; the unit is its ``unit`` column, or the row."""
    source = json.loads(path.read_text())
    name, unit = source["name"], None if rows_as_units else source["unit"]
    fields: list[dict[str, Any]] = []
    if source["unit"]:
        role = "unit" if unit else "drop"
        fields.append({"name": source["unit"], "type": "string", "dpsynth": {"role": role}})
    for column, facts in source["columns"].items():
        constraints: dict[str, Any] = {"required": not facts["nullable"]}
        extra: dict[str, Any] = {"bounds_basis": BASIS}
        if facts["kind"] == "numeric":
            constraints |= {"minimum": facts["min"], "maximum": facts["max"]}
            kind = "integer" if facts["dtype"] == "int" else "number"
            if (name, column) in STEPS:
                extra["step"] = STEPS[name, column]
        else:
            kind = "string"
            constraints["enum"] = facts["categories"]
            if not facts["nullable"]:
                extra["on_unknown"] = facts["categories"][0]
        if column == source["target"]:
            extra["role"] = "target"
        fields.append({"name": column, "type": kind, "constraints": constraints, "dpsynth": extra})
    units = POPULATION[name] if unit or not source["unit"] else ROWS[name]
    table: dict[str, Any] = {
        "version": 1,
        "population": {"value": units, "basis": "size of the training split, rounded"},
        "rows": {"value": ROWS[name], "basis": "size of the training split, rounded"},
    }
    if unit:
        table["max_rows"] = {"value": max_rows, "basis": "benchmark policy"}
    return Schema.from_dict(
        {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "name": name,
            "missingValues": [""],
            "fields": fields,
            "dpsynth": table,
        }
    )
