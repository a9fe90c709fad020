"""From a parsed document to a `LinkedSchema`: every mistake is noted before any is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, TypeVar

from dpsynth._util.field_reader import TODO, FieldFindings, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError, Problem, SchemaError
from dpsynth.schema.coded import part_name
from dpsynth.schema.column import PrivacyUnit
from dpsynth.schema.declarations import read_calendar
from dpsynth.schema.linked.declared import (
    CHILD_KEYS,
    check_children,
    check_implied,
    check_kind,
    read_cumulative,
    read_exactly,
    read_implied,
    read_inside,
    read_schedule,
    refuse_cumulative,
    rule_contradiction,
)
from dpsynth.schema.linked.facts import (
    TIME_UNITS,
    ChildTable,
    Inside,
    Link,
    LinkedFacts,
    LongSeries,
    Schedule,
    Window,
)
from dpsynth.schema.linked.resources import (
    NOT_DISCOVERED,
    ROWS_WHERE,
    Resource,
    Tested,
    base_time,
    read_series,
)
from dpsynth.schema.linked.temporal import TemporalRule, temporal_problems
from dpsynth.schema.schema import Schema
from dpsynth.schema.types import DAY

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
    *("rules", "implies", "last_day"),
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
        _check_end(end, schema, children, extra, window)
    ended_by = extra.text("ended_by")
    _check_ended_by(ended_by, end, children, extra)
    last_day = extra.flag("last_day", False)
    if last_day and end is None and not extra.has("end"):
        extra.mistake("last_day", "needs 'end', the column with the last day of follow-up")
    check_children(children, by_name, end, "" if patients is None else patients.name)
    implies = read_implied(extra)
    of_rows = {name: table for name, table in by_name.items() if table is not patients}
    check_implied(implies, children, of_rows, extra)
    rules = _read_rules(extra)
    whole = schema is not None and key is not None and len(children) == len(tables) - 1
    if whole and schema is not None:
        sound = LinkedFacts(
            "",
            replace(schema, unit=replace(unit, column=key)),
            tuple(children),
            window,
            end,
            implies=tuple(implies.values()),
        )
        for place, rule in rules.items():
            problems = temporal_problems(rule, sound)
            if not problems and (found := rule_contradiction(rule, sound)) is not None:
                problems = [found]
            for problem in problems:
                extra.mistake(place, problem)
    mistakes = findings.mistakes if draft else findings.everything
    if mistakes or schema is None or general is None:
        raise SchemaError(source, _once(mistakes))
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
        implies=tuple(implies.values()),
        last_day=last_day,
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
    table.own.refuse_unknown(("dialect", "rules", "repeated", ROWS_WHERE))
    where = table.read_rows_where({"the primaryKey": key})
    schema = table.read_schema(
        unit=key, plain=(), tests=None, draft=draft, capped=False, rows_where=where
    )
    refuse_cumulative(table, "a patient has one row in this table; remove it")
    return schema


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
    part.refuse_unknown(("first", "last", "basis", "unit"))
    unit = part.choice("unit", TIME_UNITS, TIME_UNITS[0])
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
    return Window(bounds["first"], bounds["last"], part.text("basis") or TODO, unit)


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
    origins = sorted({str(child.origin) for child in children if child.origin is not None})
    if len(origins) > 1:
        extra.mistake(
            "window", f"all dates count from one origin of a patient, not from {listed(origins)}"
        )


def _check_end(
    end: str | None,
    schema: Schema | None,
    children: list[ChildTable],
    extra: FieldReader,
    window: Window | None,
) -> None:
    """Check that the last day of follow-up is a number of days since the origin."""
    if end is None or schema is None:
        return
    column = schema.column(end)
    if column.floor is not None or column.present_if is not None:
        extra.mistake("end", f"{shown(end)} has an order or a condition; a follow-up has neither")
    origin = next((child.origin for child in children if child.origin is not None), None)
    unit = TIME_UNITS[0] if window is None else window.unit
    if not column.is_read or column.is_categorical or column.kind.is_text:
        extra.mistake("end", f"{shown(end)} is a modelled column of days, or a date")
    elif column.kind.is_time and isinstance(origin, date):
        if column.interval is not None or column.kind.seconds != DAY or unit != TIME_UNITS[0]:
            extra.mistake(
                "end",
                f"days count from {origin} for all patients, so {shown(end)} is of type date with "
                "minimum and maximum, and not after another date; where the window counts hours "
                "or minutes, of type integer",
            )
    elif column.kind.is_time:
        gap = column.interval
        if gap is None or gap.before or gap.unit != unit or (origin and gap.base != origin):
            extra.mistake(
                "end",
                f"{shown(end)} is a date, so it is declared as the days after the origin: write "
                f"dpsynth: {{after: {origin or '...'}, longest: ..., unit: {unit}}} in its field",
            )
    elif not (column.kind.is_plain and column.kind.whole and column.kind.is_quantity):
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


OWN_KEYS = (
    *("time", "origin", "order", "once", "series", "max_rows", "keep", "longest_gap"),
    *("dialect", "rules", ROWS_WHERE, *CHILD_KEYS),
)
ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MAX_EVENTS = 100  # of a list of codes in a table of events
DAYS, DATES = ("integer",), ("date", "datetime")


@dataclass(frozen=True)
class Package:
    """What the package says and a child needs; None where it has a mistake.

    Attributes:
        patients: the resource of patients.
        schema: of its columns.
        unit: how keys are compared, and who is counted.
        window: the days that are kept.
        draft: whether gaps may be left.
    """

    patients: Resource | None
    schema: Schema | None
    unit: PrivacyUnit
    window: Window | None
    draft: bool


def read_child(
    table: Resource, key: str | None, links: Sequence[Link], package: Package
) -> ChildTable | None:
    """Read a child table; None if it has a mistake, which is noted."""
    own, before = table.own, len(table.findings.mistakes)
    own.refuse_unknown(OWN_KEYS)
    time, order, once = table.column("time"), table.column("order"), table.column("once")
    tests = read_series(table) if own.has("series") else None
    origin = _read_origin(table, time, package)
    parts = _parts(table, key, time, order, once, tests)
    where = table.read_rows_where(parts)
    if own.has("once"):
        for name in ("max_rows", "keep", "longest_gap", "series"):
            if own.has(name):
                own.mistake(name, "a patient has each event of this table once; remove it")
        if not own.has("time"):
            own.mistake("time", "is missing: the column of the day on which the event happened")
    elif not own.has("time") and not own.has("order"):
        own.gap(
            "time",
            "is missing: write time: and the column of the day, or order: and a column by which "
            "the rows of a patient are ordered",
        )
    keep = own.choice("keep", ("random", "window"), "random")
    inside, schedule = read_inside(own), read_schedule(own, package.window)
    exactly = read_exactly(own)
    longest = _read_longest_gap(table, package.window)
    value = None if tests is None else tests.value
    plain = tuple(name for name in (time, order, value) if name is not None)
    tested = None
    if tests is not None:
        names = tuple(own.part("series").part("tests").values) or ("test",)
        tested = Tested(tests.column, names, tests.on_unknown)
    capped = key is not None and not own.has("once")
    schema = table.read_schema(
        unit=key,
        plain=plain,
        tests=tested,
        draft=package.draft,
        capped=capped,
        base=base_time(table.fields, time, origin, package.schema, package.window),
        exactly=exactly,
        rows_where=where,
    )
    wide = not own.has("once") and not own.has("series")
    check_kind(table, once=own.has("once"), timed=own.has("time"), wide=wide)
    cumulative: tuple[str, ...] = ()
    if schema is not None:
        if wide:
            cumulative = read_cumulative(table, schema)
        _check_columns(table, schema, key, once, tests, links, plain)
        if time is not None:
            schema = _with_calendar(table, schema, time, inside, schedule, package.window)
    if schema is None or key is None or len(table.findings.mistakes) > before:
        return None
    unit = replace(
        package.unit,
        column=key,
        max_rows=(exactly or schema.unit.max_rows) if capped else 1,
        max_rows_basis=schema.unit.max_rows_basis if capped else "each event once",
        keep=keep,
    )
    mine = tuple(link for link in links if package.patients and link.table != package.patients.name)
    schema = replace(schema, unit=unit)
    return ChildTable(
        schema,
        time,
        origin,
        order,
        tests,
        once,
        longest,
        mine,
        inside=inside,
        schedule=schedule,
        exactly=exactly,
        cumulative=cumulative,
    )


def _read_origin(table: Resource, time: str | None, package: Package) -> str | date | None:
    """Read the origin of dates, a column of patients or a date, and check the types of both."""
    own = table.own
    origin = _date_of(own.values.get("origin"), package.patients) or own.text("origin")
    if time is None:
        if origin is not None and not own.has("time"):
            own.mistake("origin", "the table has no time; remove it")
        return None
    kind = _type(table, time)
    if kind not in (*DAYS, *DATES):
        if kind is not None:  # else its absence is noted
            own.mistake(
                "time",
                f"{shown(time)} is of type {shown(kind)}; a time is an integer, in days since the "
                "patient's origin, or a date or datetime",
            )
        return None
    if kind in DAYS:
        if origin is not None:
            own.mistake("origin", f"{shown(time)} is in days since the origin already; remove it")
        return None
    if kind == "date" and package.window is not None and package.window.unit != TIME_UNITS[0]:
        own.mistake(
            "time",
            f"{shown(time)} is a date, and window.unit is {package.window.unit}: a date has no "
            f"{package.window.noun}; set type: datetime if the cells have a time of day",
        )
        return None
    if not own.has("origin"):
        own.gap("origin", f"is missing: the date of the patients' table from which {time} counts")
    if isinstance(origin, date):
        return origin
    if origin is None or package.patients is None:
        return None
    if package.patients.known(origin, own, "origin") is None:
        return None
    kind = _type(package.patients, origin)
    declared = None if package.schema is None else package.schema.column(origin)
    if kind in DATES and declared is not None and declared.is_computed:
        own.mistake("origin", f"{shown(origin)} is computed, and not read; name another date")
    elif declared is not None and (declared.floor or declared.present_if):
        own.mistake("origin", f"{shown(origin)} has an order or a condition; name another date")
    if kind not in DATES:
        own.mistake("origin", f"{shown(origin)} is a date or datetime of patients, not {kind}")
    return origin


def _date_of(value: object, patients: Resource | None) -> date | None:
    """Return the one date from which all patients count; None if a column or nothing is named."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str) or (patients is not None and value in patients.columns):
        return None
    try:
        return date.fromisoformat(value) if ISO_DATE.fullmatch(value) else None
    except ValueError:
        return None


def _type(table: Resource, column: str) -> str | None:
    """Return the type of a column as the document has it."""
    for field in table.fields:
        if isinstance(field, Mapping) and field.get("name") == column:
            kind = field.get("type")
            return kind if isinstance(kind, str) else None
    return None


def _parts(
    table: Resource,
    key: str | None,
    time: str | None,
    order: str | None,
    once: str | None,
    tests: LongSeries | None,
) -> dict[str, str | None]:
    """Return the columns with a part to play; note one that has two."""
    parts = {"the patient's key": key, "time": time, "order": order, "once": once}
    if tests is not None:
        parts |= {"series.column": tests.column, "series.value": tests.value}
    first: dict[str, str] = {}
    for part, column in parts.items():
        if column is not None and first.setdefault(column, part) != part:
            table.own.mistake(
                part, f"{shown(column)} is {first[column]} already; name another column"
            )
    return parts


def _with_calendar(
    table: Resource,
    schema: Schema,
    time: str,
    inside: Inside | None,
    schedule: Schedule | None,
    window: Window | None,
) -> Schema:
    """Return the schema with the parts of the calendar that the time keeps; note what it cannot."""
    field = next(one for one in table.fields if one.get("name") == time)
    place = f"{table.places[time]}.dpsynth"
    extra = FieldReader(field.get("dpsynth", {}), place, table.findings)
    column = read_calendar(extra, schema.column(time))
    if not column.calendar:
        return schema
    if window is not None and window.unit != TIME_UNITS[0]:
        extra.mistake(
            "calendar",
            f"rows count {window.noun}s, so the calendar follows from the origin: declare it there",
        )
    if table.own.has("once"):
        extra.mistake("calendar", "an event of a table with once has its day alone; remove it")
    for part in column.calendar:
        if part_name(time, part) in table.columns:
            text = f"'{part_name(time, part)}' is the name of a column; rename that one"
            extra.mistake("calendar", text)
    moving = [part for part in column.calendar if part != "hour"]
    due = schedule is not None and schedule.within is not None
    if moving and (inside is not None or due):
        where = "on due days" if inside is None else f"within rows of {inside.table}"
        extra.mistake(
            "calendar",
            f"rows lie {where}, so they cannot move to their {listed(moving)}; declare the "
            "calendar of the origin instead",
        )
    columns = tuple(column if one.name == time else one for one in schema.columns)
    return replace(schema, columns=columns)


def _read_longest_gap(table: Resource, window: Window | None) -> int | None:
    own = table.own
    if own.has("longest_gap") and not own.has("time") and not own.has("once"):
        own.mistake("longest_gap", "rows without a time have no gaps; remove it")
        return None
    longest = own.whole("longest_gap", minimum=1)
    if longest is not None and window is not None and longest > window.days:
        own.mistake(
            "longest_gap", f"is {longest}; the window is {window.days} days long: remove it"
        )
    return longest


def _check_columns(
    table: Resource,
    schema: Schema,
    key: str | None,
    once: str | None,
    tests: LongSeries | None,
    links: Sequence[Link],
    plain: tuple[str, ...],
) -> None:
    """Check what modelled columns a table of its kind may have."""
    if once is not None:
        event = schema.column(once)
        if not event.modelled or not event.is_categorical or event.kind.is_truth:
            note = table.findings.gap if event.modelled else table.findings.mistake
            note(
                table.own.at("once"),
                f"{shown(once)} lists the events: in constraints.enum, or by dpsynth.codes",
            )
        if event.discovers:
            place = f"{table.places[once]}.dpsynth.codes.discover"
            table.findings.mistake(place, NOT_DISCOVERED)
        tree = None if event.codes is None else event.codes.tree
        if tree is not None and len(event.levels) > MAX_EVENTS:
            table.findings.mistake(
                f"{table.places[once]}.dpsynth.codes",
                f"lists {len(event.levels):,} codes, and each event is modelled by itself; "
                f"at most {MAX_EVENTS}: emit a level above, or declare the table without once",
            )
        others = [column.name for column in schema.modelled if column.name != once]
        if others:
            table.own.mistake(
                "once",
                f"an event has a day and no value; give {listed(others)} role drop, or declare "
                "the table without once",
            )
    for column in schema.modelled if once is not None or tests is not None else ():
        if column.floor is not None or column.present_if is not None:
            table.own.mistake(
                "rules" if column.floor is not None else None,
                f"{shown(column.name)} has an order or a condition, which tables of tests and of "
                "events cannot keep; write a rule as text",
            )
    for link in links:
        for name in link.columns:
            if name not in (key, *plain) and schema.column(name).modelled:
                table.findings.mistake(
                    f"{table.places[name]}.dpsynth.role", "a key is not modelled: write role: drop"
                )
    for column in () if tests is None else tests.columns:
        if any(column.name == other.name for other in schema.modelled):
            table.own.mistake(
                "series", f"{shown(column.name)} is the name of a test and of a column; rename one"
            )
        kind = column.kind
        if kind.is_spelled and not (kind.gaps or kind.is_clock):
            table.own.mistake(
                "series",
                f"{shown(column.name)} is of type {column.type}, which a test cannot have; declare "
                "a table with a column for it",
            )


EXAMPLE = "write foreignKeys: [{fields: [id], reference: {resource: patients, fields: [id]}}]"


def read_primary_key(patients: Resource) -> str | None:
    """Read the key of the table of patients: one column."""
    part = patients.schema
    if part.has("foreignKeys"):
        part.mistake("foreignKeys", "the table of patients points to no other table; remove it")
    if not part.has("primaryKey"):
        part.mistake("primaryKey", "is missing: the column of the patient's key")
        return None
    names = _names(part, "primaryKey")
    if len(names) > 1:
        part.mistake("primaryKey", f"a patient's key is one column, not {len(names)}; join them")
        return None
    return patients.known(names[0], part, "primaryKey") if names else None


def read_links(table: Resource, tables: Mapping[str, Resource]) -> tuple[Link, ...]:
    """Read the foreign keys of a child table."""
    part, links = table.schema, []
    values = part.values.get("foreignKeys") if part.has("foreignKeys") else []
    if not isinstance(values, list | tuple):
        part.mistake("foreignKeys", f"a list of keys is expected, not {shown(values)}; {EXAMPLE}")
        return ()
    for index, value in enumerate(values):
        link = FieldReader(value, part.at(f"foreignKeys[{index}]"), table.findings)
        link.refuse_unknown(("fields", "reference"))
        reference = link.part("reference")
        reference.refuse_unknown(("resource", "fields"))
        for owner, key in ((link, "fields"), (reference, "resource"), (reference, "fields")):
            if not owner.has(key):
                owner.mistake(key, f"is missing; {EXAMPLE}")
        columns, name = _names(link, "fields"), reference.text("resource")
        target = _names(reference, "fields")
        columns = tuple(c for c in columns if table.known(c, link, "fields"))
        if name is None or not columns or not target:
            continue
        other = tables.get(name)
        if other is None:
            meant = did_you_mean(name, tables)
            reference.mistake("resource", f"there is no table {shown(name)}{meant}")
            continue
        if len(columns) != len(target):
            reference.mistake("fields", "as many columns as in 'fields' are expected")
        elif all(other.known(column, reference, "fields") for column in target):
            links.append(Link(columns, name, target))
    return tuple(links)


def key_of(table: Resource, links: Sequence[Link], patients: Resource, key: str) -> str | None:
    """Return the column of a child that points to the patient's key; note it if none does."""
    own = [link for link in links if link.table == patients.name]
    if not own:
        if not table.schema.has("foreignKeys"):
            table.schema.mistake("foreignKeys", f"is missing: the key of the patient; {EXAMPLE}")
        elif isinstance(table.schema.values["foreignKeys"], list | tuple):
            table.schema.mistake(
                "foreignKeys",
                f"no key of {table.name} points to the table of patients, {patients.name}; "
                f"{EXAMPLE}",
            )
        return None
    if len(own) > 1:
        table.schema.mistake("foreignKeys", f"one key points to {patients.name}, not {len(own)}")
        return None
    if own[0].target != (key,):
        table.schema.mistake(
            "foreignKeys", f"the patient's key is {shown(key)}, not {listed(own[0].target)}"
        )
        return None
    return own[0].columns[0]


def check_circles(links: Mapping[str, Sequence[Link]], top: FieldReader) -> None:
    """Note each circle of keys once."""
    done: set[str] = set()
    for start in links:
        way: list[str] = []
        _walk(start, links, way, done, top)


def _walk(
    table: str,
    links: Mapping[str, Sequence[Link]],
    way: list[str],
    done: set[str],
    top: FieldReader,
) -> None:
    if table in way:
        circle = [*way[way.index(table) :], table]
        top.mistake(
            "resources",
            f"keys go in a circle: {' -> '.join(circle)}; remove one of these foreignKeys",
        )
    elif table not in done:
        way.append(table)
        for link in links.get(table, ()):
            _walk(link.table, links, way, done, top)
        way.pop()
    done.add(table)


def _names(part: FieldReader, key: str) -> tuple[str, ...]:
    """Read a column's name, or a list of them."""
    if isinstance(part.values.get(key), str):
        name = part.text(key)
        return () if name is None else (name,)
    return tuple(name for name in part.texts(key) or () if name)
