"""From a parsed document to a `LinkedSchema`: every mistake is noted before any is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dpsynth._util.field_reader import TODO, FieldFindings, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError, Problem, SchemaError
from dpsynth.schema.column import PrivacyUnit
from dpsynth.schema.linked.children import Package, read_child
from dpsynth.schema.linked.facts import ChildTable, LinkedFacts, Window
from dpsynth.schema.linked.keys import check_circles, key_of, read_links, read_primary_key
from dpsynth.schema.linked.resources import Resource
from dpsynth.schema.linked.temporal import TemporalRule, temporal_problems
from dpsynth.schema.schema import Schema

AnyLinked = TypeVar("AnyLinked", bound=LinkedFacts)
TOP_KEYS = (
    *("$schema", "name", "title", "description", "resources", "dpsynth", "profile", "id"),
    *("version", "created", "licenses", "contributors", "sources", "keywords", "homepage", "image"),
)
PACKAGE_KEYS = (
    *(
        "version",
        "patients",
        "population",
        "window",
        "end",
        "ended_by",
        "key",
        "person",
        "draft",
        "source",
    ),
    "rules",
)
GENERAL = ("version", "population", "key", "person", "draft", "source")
MAX_TABLES = 64
MAX_DAYS = 100_000
_ONE: Mapping[str, Any] = {"value": 1, "basis": "each row is a patient"}
_PATIENT = {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}}


def read_package(
    kind: type[AnyLinked], document: object, source: str, default_name: str = "tables"
) -> AnyLinked:
    """Read what YAML or JSON gave; ``source`` is what error messages call it.

    Raises:
        SchemaError: with every mistake, in the order of reading. A draft may have gaps.
    """
    findings = FieldFindings()
    top = FieldReader(document, "", findings)
    _check_keys(top)
    extra = top.part("dpsynth")
    general = _read_general(top, extra, default_name)
    draft = extra.flag("draft", False)
    tables = _read_resources(top)
    by_name = {table.name: table for table in reversed(tables)}
    patients = _find_patients(extra, by_name)
    window = _read_window(extra, extra.has("end") or any(t.own.has("time") for t in tables))
    key = None if patients is None else read_primary_key(patients)
    schema = None if patients is None else _read_patients(patients, key, draft)
    repeated = patients is not None and patients.own.flag("repeated", False)
    unit = PrivacyUnit(None, 1, None) if general is None else general.unit
    package = Package(patients, schema, unit, window, draft)
    links = {table.name: read_links(table, by_name) for table in tables}
    check_circles(links, top)
    children: list[ChildTable] = []
    for table in tables:
        if table is patients:
            continue
        own = links[table.name]
        guess = own[0].columns[0] if own else key if key in table.columns else None
        if patients is not None and key is not None:
            guess = key_of(table, own, patients, key) or guess
        child = read_child(table, guess, own, package)
        if child is not None:
            children.append(child)
    _check_origins(children, extra)
    end = extra.text("end")
    if end is not None and patients is not None:
        end = patients.known(end, extra, "end")
        _check_end(end, schema, children, extra)
    ended_by = extra.text("ended_by")
    _check_ended_by(ended_by, end, children, extra)
    rules = _read_rules(extra)
    whole = schema is not None and key is not None and len(children) == len(tables) - 1
    if whole and schema is not None:
        sound = LinkedFacts("", replace(schema, unit=replace(unit, column=key)), tuple(children))
        for place, rule in rules.items():
            for problem in temporal_problems(rule, sound):
                extra.mistake(place, problem)
    problems = findings.mistakes if draft else findings.everything
    if problems or schema is None or general is None:
        raise SchemaError(source, _once(problems))
    population = general.population
    children = [
        replace(child, schema=replace(child.schema, population=population, rows=population))
        for child in children
    ]
    return kind(
        name=general.name,
        patients=replace(
            schema, unit=replace(unit, column=key), population=population, rows=population
        ),
        children=tuple(children),
        window=window,
        end=end,
        ended_by=ended_by,
        repeated=repeated,
        title=general.title,
        description=general.description,
        source=general.source,
        draft=draft,
        rules=tuple(rules.values()),
        gaps=tuple(_once(findings.everything)) if draft else (),
    )


def _once(problems: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))


def _check_keys(top: FieldReader) -> None:
    for key in top.values:
        if key in TOP_KEYS:
            continue
        if key in PACKAGE_KEYS:
            top.mistake(key, f"belongs inside 'dpsynth' at the end of the document: dpsynth.{key}")
        elif key == "fields":
            top.mistake(
                key, "this is the schema of one table; a package lists its tables in resources"
            )
        elif meant := did_you_mean(key, TOP_KEYS):
            top.mistake(key, f"there is no such key here{meant}")


def _read_general(top: FieldReader, extra: FieldReader, default_name: str) -> Schema | None:
    """Read what a package says as a single table does: its name, unit, population and version."""
    if not isinstance(top.values.get("dpsynth"), Mapping):
        if "dpsynth" not in top.values:
            top.mistake("dpsynth", "is missing; write version: 1 and patients: there")
        return None
    extra.refuse_unknown(PACKAGE_KEYS)
    own = {key: extra.values[key] for key in GENERAL if key in extra.values}
    own |= {"rows": _ONE, "max_rows": _ONE}
    fields = [_PATIENT, {"name": "alive", "type": "boolean"}]
    document = {"name": default_name, "fields": fields, "dpsynth": own}
    names = ("name", "title", "description")
    document |= {key: top.values[key] for key in names if key in top.values}
    try:
        general = Schema.from_dict(document)
    except SchemaError as error:
        for problem in error.problems:
            top.findings.mistake(problem.place, problem.message)
        return None
    for gap in general.gaps:
        top.findings.gap(gap.place, gap.message)
    return general


def _read_resources(top: FieldReader) -> list[Resource]:
    values = top.values.get("resources")
    if not isinstance(values, list | tuple) or not values:
        instead = "" if values is None else f", not {shown(values)}"
        top.mistake("resources", f"a list of tables is expected{instead}")
        return []
    if len(values) > MAX_TABLES:
        top.mistake("resources", f"{len(values)} tables; at most {MAX_TABLES} are read")
        return []
    tables = [Resource.read(value, index, top.findings) for index, value in enumerate(values)]
    first: dict[str, int] = {}
    for index, table in enumerate(tables):
        if first.setdefault(table.name, index) != index:
            table.part.mistake("name", f"repeats the name of resources[{first[table.name]}]")
    return tables


def _find_patients(extra: FieldReader, tables: Mapping[str, Resource]) -> Resource | None:
    """Find the table of patients."""
    if isinstance(extra.values.get("patients"), list | tuple):
        extra.mistake("patients", "one table has one row a patient; name that one")
        return None
    if not extra.has("patients"):
        extra.mistake("patients", "is missing: the name of the table with one row a patient")
        return None
    name = extra.text("patients")
    if name is not None and name not in tables:
        meant = did_you_mean(name, tables)
        extra.mistake("patients", f"there is no table {shown(name)}{meant}")
    return None if name is None else tables.get(name)


def _read_patients(table: Resource, key: str | None, draft: bool) -> Schema | None:
    table.own.refuse_unknown(("dialect", "rules", "repeated"))
    return table.read_schema(unit=key, plain=(), tests=None, draft=draft, capped=False)


def _read_window(extra: FieldReader, timed: bool) -> Window | None:
    if not extra.has("window"):
        if timed:
            extra.gap(
                "window",
                "is missing: the days that are kept, relative to each patient's origin; write "
                "window: {first: -3650, last: 3650, basis: ...}",
            )
        return None
    part = extra.part("window")
    part.refuse_unknown(("first", "last", "basis"))
    bounds = {}
    for key, low, high in (("first", -MAX_DAYS, 0), ("last", 0, MAX_DAYS)):
        if not part.has(key):
            part.gap(key, "is missing: a day relative to the origin, never taken from the data")
        value = part.number(key)
        if value is not None and not (low <= value <= high and value == int(value)):
            part.mistake(key, f"a whole number from {low} to {high} is expected")
            value = None
        bounds[key] = int(value or 0)
    if not part.has("basis"):
        part.gap("basis", "is missing: say where both days come from; never from the data")
    return Window(bounds["first"], bounds["last"], part.text("basis") or TODO)


def _read_rules(extra: FieldReader) -> dict[str, TemporalRule]:
    """Read the temporal rules, each by its place; what they name is checked later."""
    rules: dict[str, TemporalRule] = {}
    texts: Any = extra.values.get("rules") or ()
    if not isinstance(texts, list | tuple):
        extra.mistake("rules", f"a list of rules is expected, not {shown(texts)}")
        texts = ()
    for index, value in enumerate(texts):
        text = extra.check_text(f"rules[{index}]", value)
        try:
            if text is not None:
                rules[f"rules[{index}]"] = TemporalRule.parse(text)
        except InputError as error:
            extra.mistake(f"rules[{index}]", str(error))
    return rules


def _check_origins(children: list[ChildTable], extra: FieldReader) -> None:
    origins = sorted({child.origin for child in children if child.origin is not None})
    if len(origins) > 1:
        extra.mistake(
            "window", f"all dates count from one origin of a patient, not from {listed(origins)}"
        )


def _check_end(
    end: str | None, schema: Schema | None, children: list[ChildTable], extra: FieldReader
) -> None:
    """Check that the last day of follow-up is a number of days since the origin."""
    if end is None or schema is None:
        return
    column = schema.column(end)
    if column.floor is not None or column.present_if is not None:
        extra.mistake("end", f"{shown(end)} has an order or a condition; a follow-up has neither")
    origin = next((child.origin for child in children if child.origin is not None), None)
    if not column.is_read or column.is_categorical or column.kind.is_text:
        extra.mistake("end", f"{shown(end)} is a modelled column of days, or a date")
    elif column.kind.is_time:
        gap = column.interval
        if gap is None or gap.before or gap.unit != "d" or (origin and gap.base != origin):
            extra.mistake(
                "end",
                f"{shown(end)} is a date, so it is declared as the days after the origin: write "
                f"dpsynth: {{after: {origin or '...'}, longest: ..., unit: d}} in its field",
            )
    elif not (column.kind.is_number and column.kind.whole and column.kind.is_quantity):
        extra.mistake("end", f"{shown(end)} is of type {column.type}; declare an integer, in days")


def _check_ended_by(
    event: str | None, end: str | None, children: list[ChildTable], extra: FieldReader
) -> None:
    """Check that one table lists the event that ends follow-up, and that there is an end."""
    if event is None:
        return
    if end is None:
        extra.mistake("ended_by", "needs 'end', the column with the last day of follow-up")
    tables = [
        child.name
        for child in children
        if child.once is not None and event in child.schema.column(child.once).levels
    ]
    if not tables:
        extra.mistake("ended_by", f"no table with 'once' lists the event {shown(event)}")
    elif len(tables) > 1:
        extra.mistake("ended_by", f"tables {listed(tables)} list {shown(event)}; one table may")
