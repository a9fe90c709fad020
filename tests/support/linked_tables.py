"""A schema of linked tables of every kind, as a document."""

from __future__ import annotations

from typing import Any


def key(table: str = "patients") -> dict[str, Any]:
    """The foreign key to the patients."""
    return {"fields": ["id"], "reference": {"resource": table, "fields": ["id"]}}


def field(name: str, type_: str, own: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    """One field; what is not a key of Table Schema is a constraint."""
    return {"name": name, "type": type_, "constraints": rest, "dpsynth": own or {}}


def number(name: str, low: int, high: int, **rest: Any) -> dict[str, Any]:
    """A whole number between bounds."""
    return field(name, "integer", {"bounds_basis": "form"}, minimum=low, maximum=high, **rest)


def choice(name: str, *words: str, **rest: Any) -> dict[str, Any]:
    """A list of words."""
    return field(name, "string", {"bounds_basis": "form"}, enum=list(words), **rest)


def plain(name: str, type_: str = "string", **own: Any) -> dict[str, Any]:
    """A column of keys, times or orders."""
    return {"name": name, "type": type_, **({"dpsynth": own} if own else {})}


def resource(name: str, fields: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
    """A child table."""
    return {"name": name, "schema": {"foreignKeys": [key()], "fields": fields}, "dpsynth": own}


MAX_ROWS = {"value": 8, "basis": "policy"}


def package() -> dict[str, Any]:
    """Patients; long laboratory values, events, wide visits by date, wide orders without time."""
    index = field("index", "date", {"bounds_basis": "period of the study"}, required=True)
    index["constraints"] |= {"minimum": "2000-01-01", "maximum": "2010-12-31"}
    patients = [
        plain("id"),
        choice("sex", "F", "M", required=True),
        number("end", 0, 3650, required=True),
        index,
    ]
    tests = {
        "hdl": {"minimum": 5, "maximum": 200, "step": 1, "ucum": "mg/dL", "bounds_basis": "range"},
        "smoke": {"enum": [0, 1], "required": True, "bounds_basis": "questionnaire"},
    }
    labs = [
        plain("id"),
        plain("days", "integer"),
        plain("test"),
        plain("value", "number"),
        choice("fasting", "no", "yes"),
    ]
    events = [
        plain("id"),
        plain("days", "integer"),
        choice("event", "stroke", "mi"),
        plain("severity", role="drop"),
    ]
    visits = [
        plain("id"),
        plain("date", "date"),
        plain("visit", role="drop"),
        number("sbp", 40, 300),
        choice("ward", "a", "b", "c"),
    ]
    orders = [
        plain("id"),
        plain("number", "integer"),
        plain("visit", role="drop"),
        choice("drug", "x", "y", required=True),
    ]
    series = {"column": "test", "value": "value", "tests": tests}
    return {
        "name": "ward",
        "resources": [
            {"name": "patients", "schema": {"primaryKey": "id", "fields": patients}},
            resource("labs", labs, time="days", series=series, max_rows=dict(MAX_ROWS)),
            resource("events", events, time="days", once="event"),
            resource("visits", visits, time="date", origin="index", max_rows=dict(MAX_ROWS)),
            resource("orders", orders, order="number", max_rows=dict(MAX_ROWS)),
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": {"value": 900, "basis": "report"},
            "window": {"first": -3650, "last": 3650, "basis": "protocol"},
            "end": "end",
        },
    }


def stays() -> dict[str, Any]:
    """The same package, whose visits end on a date up to 60 days after they begin."""
    document = package()
    own = {"after": "date", "longest": 60, "unit": "d", "bounds_basis": "protocol"}
    document["resources"][3]["schema"]["fields"].append(plain("left", "date", **own))
    return document
