"""From a parsed document to a `Schema`: every mistake is noted before any is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from dpsynth._util.field_reader import TODO, FieldFindings, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import SchemaError
from dpsynth.schema.column import Column, Declared, Dialect, Facts, PrivacyUnit
from dpsynth.schema.columns import TableFacts, read_column
from dpsynth.schema.declarations import settled
from dpsynth.schema.orders import read_rules
from dpsynth.schema.status import read_status

VERSION = 1
AnyFacts = TypeVar("AnyFacts", bound=Facts)
TOP_KEYS = (
    *("$schema", "name", "title", "description", "fields", "missingValues", "dpsynth"),
    *("primaryKey", "uniqueKeys", "foreignKeys", "fieldsMatch"),
)
TABLE_KEYS = (
    *("version", "max_rows", "keep", "key", "missing_key", "person", "population", "rows"),
    *("dialect", "rules", "draft", "source"),
)
MAX_COLUMNS = 4096
MAX_UNIT_ROWS = 4096
PERSON = re.compile(r"[a-z][a-z -]{0,30}[a-z]")
# A DOI, a URL, or the year of a publication.
_CITATION = re.compile(r"10\.\d{4,9}/\S|https?://\S|\b(?:1[89]|20)\d\d\b")


def read_schema(
    kind: type[AnyFacts], document: object, source: str, default_name: str = "table"
) -> AnyFacts:
    """Read what YAML or JSON gave; ``source`` is what error messages call it.

    Raises:
        SchemaError: with every mistake, in the order of reading. A draft may have gaps.
    """
    findings = FieldFindings()
    top = FieldReader(document, "", findings)
    extra = top.part("dpsynth")
    for key in top.values:
        if key in TOP_KEYS:
            continue
        if key in TABLE_KEYS:
            top.mistake(key, f"belongs inside 'dpsynth' at the end of the document: dpsynth.{key}")
        elif meant := did_you_mean(key, TOP_KEYS):
            top.mistake(key, f"there is no such key here{meant}")
    _check_version(top, extra)
    draft = extra.flag("draft", False)
    dialect = _read_dialect(extra.part("dialect"))
    missing = top.texts("missingValues")
    facts = TableFacts(("",) if missing is None else missing, dialect.decimal)
    columns = _read_columns(top, facts)
    complete = len(columns) == _length(top.values.get("fields"))
    columns = read_status(columns, top)
    name, unit = _read_name(top, default_name), _read_unit(extra, columns)
    population = _read_declared(extra, "population", "the number of privacy units", True)
    rows = _read_declared(extra, "rows", "the number of rows", True)
    rules, columns = read_rules(extra, columns, complete)
    schema = kind(
        name=name,
        columns=columns,
        unit=unit,
        population=population,
        rows=rows,
        dialect=dialect,
        rules=rules,
        title=top.text("title"),
        description=top.text("description"),
        source=extra.text("source"),
        draft=draft,
        gaps=tuple(findings.everything) if draft else (),
    )
    problems = findings.mistakes if draft else findings.everything
    if problems:
        raise SchemaError(source, problems)
    return schema


def _check_version(top: FieldReader, extra: FieldReader) -> None:
    if not isinstance(top.values.get("dpsynth"), Mapping):
        if "dpsynth" not in top.values:
            top.mistake("dpsynth", "is missing; every schema has one, with version: 1")
        return
    extra.refuse_unknown(TABLE_KEYS)
    if "version" not in extra.values:
        extra.mistake("version", f"is missing; write version: {VERSION}")
    elif extra.values["version"] is True or extra.values["version"] != VERSION:
        version = shown(extra.values["version"])
        extra.mistake("version", f"this dpsynth reads version {VERSION}, not {version}")


def _read_name(top: FieldReader, default: str) -> str:
    name = top.text("name")
    if name is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        top.mistake("name", "a schema's name has letters, digits, '.', '_' and '-' only")
    return default if name is None else name


def _read_columns(top: FieldReader, facts: TableFacts) -> tuple[Column, ...]:
    fields = top.values.get("fields")
    if not isinstance(fields, list | tuple) or not fields:
        instead = "" if fields is None else f", not {shown(fields)}"
        if "resources" in top.values:
            instead = "; this is a Data Package: give the schema of one of its resources"
        top.mistake("fields", f"a list of the table's columns is expected{instead}")
        return ()
    if len(fields) > MAX_COLUMNS:
        top.mistake("fields", f"{len(fields)} columns; at most {MAX_COLUMNS} are read")
        return ()
    columns: list[Column] = []
    first: dict[str, int] = {}
    places: dict[str, str] = {}
    for index, value in enumerate(fields):
        place = f"fields[{index}]"
        name = value.get("name") if isinstance(value, Mapping) else None
        if isinstance(name, str):
            place += f" {shown(name)}"
            if name in first:
                top.mistake(place, f"repeats the name of fields[{first[name]}]; remove one")
            first.setdefault(name, index)
        field = FieldReader(value, place, top.findings)
        column = read_column(field, facts) if isinstance(value, Mapping) else None
        if column is not None:
            columns.append(column)
            places[column.name] = place
    for role in ("unit", "order"):
        named = [column.name for column in columns if role in column.roles]
        if len(named) > 1:
            top.mistake("fields", f"one column has role {role}, not {len(named)}: {listed(named)}")
    if len(columns) == len(fields) and not any(column.modelled for column in columns):
        top.mistake("fields", "no column is left to model: all have role unit, order or drop")
    if len(columns) < len(fields) or len(places) < len(fields):
        return tuple(columns)  # the mistakes are noted
    return settled(columns, places, top.findings)


def _read_dialect(part: FieldReader) -> Dialect:
    """Read how the source is written."""
    part.refuse_unknown(tuple(vars(Dialect())))
    plain = Dialect()
    signs = {key: getattr(plain, key) for key in ("delimiter", "quote")}
    for key in signs:
        value = part.values.get(key)
        if value is None:
            continue
        if key == "quote" and value == "":  # no cell is quoted
            signs[key] = ""
        elif not isinstance(value, str) or len(value) != 1 or value in "\r\n\0":
            part.mistake(key, f'one character is expected, like ";" or "\\t", not {shown(value)}')
        else:
            signs[key] = value
    encoding = part.text("encoding") or plain.encoding
    try:
        "a".encode(encoding)
    except (LookupError, UnicodeError, ValueError):
        part.mistake("encoding", f"{shown(encoding)} is not a text encoding; try utf-8 or latin-1")
    decimal = part.choice("decimal", (".", ","), plain.decimal)
    if signs["quote"] in (signs["delimiter"], decimal):
        part.mistake(None, "quote is another character than delimiter and decimal")
    if signs["delimiter"] == decimal and not signs["quote"]:
        part.mistake(None, "delimiter and decimal are different characters where no cell is quoted")
    labels = part.flag("labels", False)
    row = part.whole("header_row", minimum=1) or plain.header_row
    return Dialect(signs["delimiter"], encoding, decimal, signs["quote"], labels, row)


def _read_unit(extra: FieldReader, columns: tuple[Column, ...]) -> PrivacyUnit:
    """Read the privacy unit, how its keys are compared, and how many of its rows count."""
    unit = next((column for column in columns if "unit" in column.roles), None)
    ordered = any("order" in column.roles for column in columns)
    key = extra.part("key")
    key.refuse_unknown(("trim", "case", "leading_zeros"))
    if unit is None:
        for name in ("keep", "key", "missing_key"):
            if extra.has(name):
                extra.mistake(name, "no column has role unit, so each row is a unit; remove it")
        limit = _read_declared(extra, "max_rows", "1", False) if extra.has("max_rows") else None
        if limit is not None and limit.value > 1:
            extra.mistake("max_rows", "no column has role unit, so each row is a unit; remove it")
        person = _read_person(extra, several="rows")
        return PrivacyUnit(None, 1, limit.basis if limit else None, **person)
    limit = _read_declared(extra, "max_rows", "how many rows of a unit count at most", False)
    if limit.value > MAX_UNIT_ROWS:
        extra.mistake("max_rows", f"is {limit.value}; at most {MAX_UNIT_ROWS} rows of a unit")
    keep = extra.choice("keep", ("random", "window"), "random")
    if keep == "window" and not ordered:
        extra.mistake("keep", "a window needs an order: give one column role order, or keep random")
    missing_key = extra.choice("missing_key", ("drop", "own"), "drop")
    return PrivacyUnit(
        column=unit.name,
        max_rows=limit.value,
        max_rows_basis=limit.basis,
        keep=keep,
        trim=key.flag("trim", True),
        case=key.flag("case", False),
        leading_zeros=key.flag("leading_zeros", True),
        missing_key=missing_key,
        **_read_person(extra, several="rows without a key" if missing_key == "own" else None),
    )


def _read_person(extra: FieldReader, *, several: str | None) -> dict[str, Any]:
    """Read whom the ledger counts, and how many units of the table one has at most.

    Args:
        extra: the table's facts.
        several: of what one may have several, so that the number has to be declared.
    """
    if "person" not in extra.values:
        return {}
    part = extra.part("person")
    part.refuse_unknown(("name", "same_as", "max_units"))
    name, same_as = part.text("name"), part.texts("same_as") or ()
    if not part.has("name"):
        part.gap("name", "is missing: who is counted, such as name: patient")
    elif name is not None and not PERSON.fullmatch(name):
        part.mistake("name", "one noun in lower case is expected, like patient")
    for column in same_as:
        if not column or not column.isprintable():
            part.mistake("same_as", "names of key columns of other extracts are expected")
    person = {"person": name or TODO, "same_as": same_as}
    if not part.has("max_units") and several is None:
        return person
    meaning = f"how many units (such as {several or 'keys'}) of the table one has at most"
    maximum = _read_declared(part, "max_units", meaning, False)
    if maximum.value > MAX_UNIT_ROWS:
        part.mistake("max_units", f"is {maximum.value}; at most {MAX_UNIT_ROWS} units of one")
    if not maximum.basis.isprintable():
        part.mistake("max_units.basis", "write one line: it appears in ledger and certificate")
    return person | {"max_units": maximum.value, "max_units_basis": maximum.basis}


def _read_declared(owner: FieldReader, key: str, noun: str, rounded: bool) -> Declared:
    """Read a public number with its basis; two digits suffice unless a publication is cited."""
    example = f"write {key}: {{value: ..., basis: ...}}"
    if not owner.has(key):
        owner.gap(key, f"is missing: {noun}, public; {example}")
        return Declared(0, TODO)
    if not isinstance(owner.values[key], Mapping):
        owner.mistake(key, f"a value and its basis are expected; {example}")
        return Declared(0, TODO)
    part = owner.part(key)
    part.refuse_unknown(("value", "basis"))
    value, basis = part.whole("value", minimum=1), part.text("basis")
    if not part.has("value"):
        part.gap("value", f"is missing: {noun}; a public number, it is never taken from the data")
    if not part.has("basis"):
        part.gap("basis", "is missing: say where the number comes from; never from the data")
    if rounded and value is not None and not _CITATION.search(basis or ""):
        digits = len(str(value).rstrip("0"))
        if digits > 2:
            near = round(value, 2 - len(str(value)))
            part.mistake(
                "value",
                f"{value} has {digits} significant digits, which looks counted; write {near}, or "
                "cite a publication in the basis (its year, DOI or URL)",
            )
    return Declared(value or 0, basis or TODO)


def _length(fields: object) -> int:
    return len(fields) if isinstance(fields, list | tuple) else 0
