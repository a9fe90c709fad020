"""One child table of a document, read: its key, its time, its series or events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsynth._util.messages import listed, shown
from dpsynth.schema.column import PrivacyUnit
from dpsynth.schema.linked.base_time import base_time
from dpsynth.schema.linked.facts import ChildTable, Link, LongSeries, Window
from dpsynth.schema.linked.resources import NOT_DISCOVERED, Resource, Tested
from dpsynth.schema.linked.series import read_series
from dpsynth.schema.schema import Schema

OWN_KEYS = (
    *("time", "origin", "order", "once", "series", "max_rows", "keep", "longest_gap"),
    *("dialect", "rules"),
)
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
    _check_parts(table, key, time, order, once, tests)
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
    )
    if schema is not None:
        _check_columns(table, schema, key, once, tests, links, plain)
    if schema is None or key is None or len(table.findings.mistakes) > before:
        return None
    unit = replace(
        package.unit,
        column=key,
        max_rows=schema.unit.max_rows if capped else 1,
        max_rows_basis=schema.unit.max_rows_basis if capped else "each event once",
        keep=keep,
    )
    mine = tuple(link for link in links if package.patients and link.table != package.patients.name)
    schema = replace(schema, unit=unit)
    return ChildTable(schema, time, origin, order, tests, once, longest, mine)


def _read_origin(table: Resource, time: str | None, package: Package) -> str | None:
    """Read the origin of dates, and check the types of both."""
    own, origin = table.own, table.own.text("origin")
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
    if not own.has("origin"):
        own.gap("origin", f"is missing: the date of the patients' table from which {time} counts")
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


def _type(table: Resource, column: str) -> str | None:
    """Return the type of a column as the document has it."""
    for field in table.fields:
        if isinstance(field, Mapping) and field.get("name") == column:
            kind = field.get("type")
            return kind if isinstance(kind, str) else None
    return None


def _check_parts(
    table: Resource,
    key: str | None,
    time: str | None,
    order: str | None,
    once: str | None,
    tests: LongSeries | None,
) -> None:
    """Note a column that has two parts to play."""
    parts = {"the patient's key": key, "time": time, "order": order, "once": once}
    if tests is not None:
        parts |= {"series.column": tests.column, "series.value": tests.value}
    first: dict[str, str] = {}
    for part, column in parts.items():
        if column is not None and first.setdefault(column, part) != part:
            table.own.mistake(
                part, f"{shown(column)} is {first[column]} already; name another column"
            )


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
            note(table.own.at("once"), f"{shown(once)} lists the events in constraints.enum")
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
