"""The tests of a long table, each with the bounds of its values.

A test declares in one flat mapping what a field of a Table Schema declares in three, because it
says nothing but its values::

    tests:
      hdl: {minimum: 5, maximum: 200, ucum: mg/dL, bounds_basis: "range of the analyser"}
      smoke: {enum: [0, 1], bounds_basis: "questionnaire, item 7"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth._util.field_reader import FieldFindings, FieldReader
from dpsynth.schema.column import Column, Dialect
from dpsynth.schema.columns import TableFacts, read_column
from dpsynth.schema.linked.facts import DROP, LongSeries
from dpsynth.schema.linked.resources import NOT_DISCOVERED, Resource
from dpsynth.schema.writer import field_document

FIELD = (
    *("type", "title", "description", "format", "missingValues", "trueValues", "falseValues"),
    "categories",
)
CONSTRAINTS = ("minimum", "maximum", "enum", "required")
OWN = ("step", "ucum", "bounds_basis", "on_bad", "on_unknown", "codes")
KEYS = (*CONSTRAINTS, *OWN, *FIELD)
_REMEDIES = {
    "censored": "let the source write a number for such results, such as the limit",
    "unit_from": "convert values in the source, or name a test for each unit there",
    "values": "let the source write the declared categories",
    "case": "let the source write the declared categories",
    "missing": 'write missingValues: ["", "WORD"]',
    "after": "a test has a value and no date; declare a wide table",
    "derived": "leave the test out, and compute it afterwards",
    "present_if": "a test has rows only where it was measured; remove it",
    "role": "a test has no role; leave out a test that is not needed",
}
POLICIES = (DROP, "refuse")


def read_series(table: Resource) -> LongSeries | None:
    """Read ``dpsynth.series``; None if it lacks a column or a test, which is noted."""
    part = table.own.part("series")
    part.refuse_unknown(("column", "value", "tests", "on_unknown"))
    names = {"column": "that names the test", "value": "that holds its value"}
    columns = {}
    for key, what in names.items():
        if not part.has(key):
            part.mistake(key, f"is missing: the column {what}")
        name = part.text(key)
        columns[key] = None if name is None else table.known(name, part, key)
    on_unknown = part.choice("on_unknown", POLICIES, DROP)
    tests = part.part("tests")
    if not tests.values:
        part.gap("tests", "is missing: each test, with the bounds of its value")
    column, value = columns["column"], columns["value"]
    if column is not None and column == value:
        part.mistake("value", "the test and its value are two columns")
        return None
    if column is None or value is None:
        return None
    field = next(f for f in table.fields if isinstance(f, Mapping) and f.get("name") == value)
    read = [_read_test(name, tests, field, table) for name in tests.values]
    return LongSeries(column, value, tuple(one for one in read if one is not None), on_unknown)


def _read_test(
    name: str, tests: FieldReader, value: Mapping[str, Any], table: Resource
) -> Column | None:
    """Read one test as a column of its own name."""
    if not tests.has(name):
        tests.mistake(name, "is missing: the bounds of its value, or its categories")
        return None
    part = tests.part(name)
    for key in part.values:
        if key in _REMEDIES:
            part.mistake(key, f"a test of a long table cannot declare it: {_REMEDIES[key]}")
    part.refuse_unknown((*KEYS, *_REMEDIES))
    type_ = part.values.get("type", value.get("type"))
    if "type" in part.values and value.get("type") not in ("string", type_):
        part.mistake("type", "a test of a type of its own needs a value column of type string")
    field: dict[str, Any] = {"name": name, "type": type_}
    missing = value.get("missingValues", table.schema.values.get("missingValues"))
    if isinstance(missing, list | tuple):
        field["missingValues"] = missing
    field |= {key: part.values[key] for key in FIELD if key in part.values}
    field["constraints"] = {k: part.values[k] for k in CONSTRAINTS if k in part.values}
    field["dpsynth"] = {key: part.values[key] for key in OWN if key in part.values}
    found = FieldFindings()
    column = read_column(FieldReader(field, "", found), TableFacts(("",), _decimal(table)))
    for problem in found.everything:
        place = problem.place.removeprefix("constraints.").removeprefix("dpsynth.")
        if place == "type" and not isinstance(type_, str):
            continue  # the column of values has none, which is noted there
        note = table.findings.gap
        if problem in found.mistakes:
            note = table.findings.mistake
        note(part.at(place), problem.message)
    if column is not None and column.discovers:
        part.mistake("codes", NOT_DISCOVERED)
    return column


def _decimal(table: Resource) -> str:
    dialect = table.own.values.get("dialect")
    decimal = dialect.get("decimal") if isinstance(dialect, Mapping) else None
    return decimal if decimal in (".", ",") else "."


def series_document(tests: LongSeries, value: Column, dialect: Dialect) -> dict[str, Any]:
    """Write ``dpsynth.series``."""
    written: dict[str, Any] = {"column": tests.column, "value": tests.value}
    if tests.on_unknown != DROP:
        written["on_unknown"] = tests.on_unknown
    written["tests"] = {}
    for column in tests.columns:
        field = field_document(column, value.missing_values, dialect)
        flat = field.pop("constraints", {}) | field.pop("dpsynth", {})
        field.pop("name")
        field.pop("decimalChar", None)
        if field["type"] == value.type:
            field.pop("type")
        written["tests"][column.name] = field | flat
    return written
