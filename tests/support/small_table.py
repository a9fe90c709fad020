"""A small schema of visits, and tables for it as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth.schema import Schema
from dpsynth.tables import open_table

from .schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}
FIELDS = [
    {"name": "visit", "type": "integer", "dpsynth": {"role": "order"}},
    {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
    {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
    schema_field("age", "integer", BASIS, minimum=0, maximum=120),
    {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": BASIS},
]


def small_schema(keep: str = "random", **own: Any) -> Schema:
    number = {"value": 90, "basis": "made for this test"}
    table = {"version": 1, "max_rows": number, "population": number, "rows": number, "keep": keep}
    return Schema.from_dict({"fields": FIELDS, "dpsynth": table | own})


SCHEMA = small_schema()
HEADER = "visit,patient,note,age,sex\n"
SMALL = HEADER + "1,p1,hello,33,F\n2,p1,bye,,M\n"


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(source: Any, schema: Schema = SCHEMA) -> list[list[Any]]:
    frames = list(open_table(source, schema).chunks())
    return [row for frame in frames for row in frame.to_numpy(dtype=object).tolist()]
