"""A table of every type for the kinds of sources: schema, rows, and the text of each cell."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from dpsynth.schema import Schema

NUMBER = {"value": 90, "basis": "made for this test"}
BASIS = {"bounds_basis": "made for this test"}
DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}
TIMES = {"minimum": "2000-01-01T00:00:00", "maximum": "2020-12-31T00:00:00"}
FIELDS: list[dict[str, Any]] = [
    {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
    {"name": "sex", "type": "string", "constraints": {"enum": ["Female", "Male"]}},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
    {"name": "weight", "type": "number", "constraints": {"minimum": 0, "maximum": 300}},
    {"name": "admitted", "type": "date", "constraints": DAYS},
    {"name": "seen", "type": "datetime", "constraints": TIMES},
    {"name": "smoker", "type": "boolean"},
    {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
]
HEADER = [field["name"] for field in FIELDS]
ROWS: list[tuple[Any, ...]] = [
    ("007", "Male", 34, 70.5, date(2001, 2, 3), datetime(2001, 2, 3, 10, 30), True, "SECRET-NOTE"),
    ("007", "Female", None, 0.1, None, None, False, None),
    ("A8", None, 50, None, date(2010, 12, 31), datetime(2010, 12, 31), None, None),
    ("A9", "Male", 120, 300.0, date(2020, 12, 31), datetime(2020, 1, 1, 23, 59), True, None),
]
TEXTS = {
    "patient": ["007", "007", "A8", "A9"],
    "sex": ["Male", "Female", None, "Male"],
    "age": ["34", None, "50", "120"],
    "weight": ["70.5", "0.1", None, "300"],
    "admitted": ["2001-02-03", None, "2010-12-31", "2020-12-31"],
}


def schema_of(**own: Any) -> Schema:
    fields = [field | {"dpsynth": BASIS | field.get("dpsynth", {})} for field in FIELDS]
    table = {"version": 1, "population": NUMBER, "rows": NUMBER, "max_rows": NUMBER}
    return Schema.from_dict({"fields": fields, "dpsynth": table | own})
