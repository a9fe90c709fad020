"""A schema whose columns declare how their cells are written, and cells of each."""

from __future__ import annotations

from typing import Any

from dpsynth.schema import Schema

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 90, "basis": "made for this test"}
DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}


def field(type_: str, limits: dict[str, Any] | None = None, **own: Any) -> dict[str, Any]:
    """Return a field without a name, with what it declares in ``dpsynth``."""
    return {"type": type_, "constraints": limits or {}, "dpsynth": BASIS | own}


def schema_of(decimal: str = ".", **fields: dict[str, Any]) -> Schema:
    """Return a schema of these columns, each row a unit."""
    facts: dict[str, Any] = {"version": 1, "population": NUMBER, "rows": NUMBER}
    if decimal != ".":
        facts["dialect"] = {"decimal": decimal, "delimiter": ";"}
    document = [{"name": name} | content for name, content in fields.items()]
    return Schema.from_dict({"fields": document, "dpsynth": facts})


SMOKER = field(
    "string",
    {"enum": ["ja", "nein"]},
    values={"J": "ja", "k.A.": "missing", "w.n.": "refused"},
    case=False,
    missing={"refused": ["-8"]},
)
CRP = field(
    "number",
    {"minimum": 0, "maximum": 2000},
    step=0.5,
    censored={"low": [2, 5], "high": 1000},
    values={"n.n.": "<5", "neg": 0},
    missing={"refused": ["-8"], "unknown": ["-9", "unbekannt"]},
)
HBA1C = field(
    "number",
    {"minimum": 3, "maximum": 20},
    step=0.1,
    censored={"low": 4},
    unit_from={"column": "unit", "%": 1, "mmol/mol": {"times": 0.0915, "plus": 2.15}},
)
UNIT = {"type": "string", "dpsynth": {"role": "drop"}}
SEEN = field("date", DAYS, formats=["%d.%m.%Y", "default"], missing={"unknown": ["1900-01-01"]})
MOVED = field("boolean", values={"j": True, "n": False}, case=False, missing={"refused": ["9"]})
GRADE = field("integer", {"enum": [1, 2, 3]}, missing={"refused": ["-8"]})
WARD = field("string", codes={"system": "ICD-9-CM", "rollup": "chapter"}, values={"Herz": "428.0"})
LEUKOCYTES = {"groupChar": ","} | field(
    "number", {"minimum": 0, "maximum": 2_000_000}, step=0.5, censored={"low": 1000}
)
ALL = {
    "smoker": SMOKER,
    "crp": CRP,
    "hba1c": HBA1C,
    "unit": UNIT,
    "seen": SEEN,
    "moved": MOVED,
    "grade": GRADE,
}
