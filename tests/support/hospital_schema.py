"""The schema of a hospital with every kind of fact, as a document."""

from __future__ import annotations

from typing import Any

BASIS = {"bounds_basis": "form 7"}


def document(*fields: dict[str, Any], **own: Any) -> dict[str, Any]:
    """A small valid document around the given fields."""
    table = {
        "version": 1,
        "population": {"value": 900, "basis": "annual report"},
        "rows": {"value": 1200, "basis": "annual report"},
    }
    return {"fields": list(fields), "dpsynth": table | own}


def coded(name: str = "sex", enum: Any = ("F", "M"), **more: Any) -> dict[str, Any]:
    own = BASIS | more.pop("dpsynth", {})
    constraints = {"enum": list(enum)} | more.pop("constraints", {})
    return {"name": name, "type": "string", "constraints": constraints, "dpsynth": own} | more


def measured(name: str, type_: str, low: Any, high: Any, **more: Any) -> dict[str, Any]:
    own = BASIS | more.pop("dpsynth", {})
    constraints = {"minimum": low, "maximum": high} | more.pop("constraints", {})
    return {"name": name, "type": type_, "constraints": constraints, "dpsynth": own} | more


def hospital() -> dict[str, Any]:
    """One of everything."""
    unit = {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}}
    order = {"name": "visit", "type": "datetime", "dpsynth": {"role": "order"}}
    los = measured("los", "integer", 1, 14, constraints={"required": True}, dpsynth={"ucum": "d"})
    labels = [{"value": "F", "label": "Female"}, {"value": "M", "label": "Male"}]
    diagnosis = {"system": "ICD-9-CM", "rollup": "chapter"}
    document_ = document(
        unit,
        order,
        los,
        coded(categories=labels, dpsynth={"role": ["quasi_identifier", "group"]}),
        measured("weight", "number", 20, 300.5, dpsynth={"step": 0.5}, missingValues=["-9"]),
        measured("born", "date", "31/12/1900", "31/12/2020", format="%d/%m/%Y"),
        measured("seen", "datetime", "2000-01-01T00:00:00", "2001-01-01T00:00:00"),
        measured("year", "year", 1990, 2020),
        {"name": "smoker", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
        {"name": "diagnosis", "type": "string", "dpsynth": {"codes": diagnosis}},
        {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
        max_rows={"value": 5, "basis": "office policy"},
        keep="window",
        key={"trim": False, "case": True, "leading_zeros": False},
        missing_key="own",
        dialect={"delimiter": ";", "encoding": "latin-1", "decimal": ",", "quote": "'"},
        rules=["born <= seen", "smoker == true implies los >= 2"],
        source="https://example.org/table",
    )
    return {"name": "ward", "title": "Ward", "missingValues": ["", "?"]} | document_
