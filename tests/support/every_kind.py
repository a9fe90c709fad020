"""A schema with a column of each kind of cells."""

from __future__ import annotations

from typing import Any

from dpsynth.schema import Schema

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 90, "basis": "made for this test"}
DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}
TIMES = {"minimum": "2000-01-01T00:00:00", "maximum": "2020-12-31T00:00:00"}


def field(kind: str, limits: Any = None, **top: Any) -> dict[str, Any]:
    return {"type": kind, "constraints": limits or {}, "dpsynth": BASIS} | top


COLUMNS = {
    "sex": field("string", {"enum": ["F", "M"]}),
    "word": field("string", {"enum": ["NA", "x"]}),
    "age": field("integer", {"minimum": 0, "maximum": 120}),
    "weight": field("number", {"minimum": 0, "maximum": 300}),
    "born": field("year", {"minimum": 1900, "maximum": 2020}),
    "smoker": field("boolean"),
    "ill": field("boolean", trueValues=["1", "yes"], falseValues=["0", "no"]),
    "rare": field("boolean", trueValues=["2"], falseValues=["1"]),
    "seen": field("date", DAYS),
    "left": field("date", {"minimum": "01/01/2000", "maximum": "31/12/2020"}, format="%d/%m/%Y"),
    "hour": field("datetime", TIMES),
}


def schema_of(*names: str, key: str = "string", **own: Any) -> Schema:
    fields = [{"name": name} | COLUMNS[name] for name in names or COLUMNS]
    unit = {"name": "key", "type": key, "dpsynth": {"role": "unit"}}
    table = {"version": 1, "population": NUMBER, "rows": NUMBER, "max_rows": NUMBER}
    return Schema.from_dict({"fields": [unit, *fields], "dpsynth": table | own})
