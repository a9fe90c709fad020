"""One field of a schema document becomes one `Column`; what is wrong with it is noted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpsynth._util.clock import WHOLE_DAY, is_clock_format, the_day
from dpsynth._util.field_reader import MAX_WHOLE, NO_BASIS, PROPOSAL, TODO, FieldReader, is_proposal
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.schema.bounds import read_bound
from dpsynth.schema.categories import read_categories
from dpsynth.schema.cells.form_reader import (
    FORM_KEYS,
    is_date_format,
    read_formats,
    read_forms,
    read_thousands,
)
from dpsynth.schema.column import ROLES, UNMODELLED, Column
from dpsynth.schema.invalid_cells import read_policies
from dpsynth.schema.row.declarations import RELATION_KEYS, read_relation
from dpsynth.schema.row.following import is_grouping, read_grouping, read_presence
from dpsynth.schema.types import TYPES, type_of

FIELD_KEYS = (
    *("name", "type", "title", "description", "format", "constraints", "missingValues"),
    *("trueValues", "falseValues", "decimalChar", "groupChar", "bareNumber", "categories"),
    *("categoriesOrdered", "example", "examples", "rdfType", "dpsynth"),
)
OWN_KEYS = (
    *("role", "bounds_basis", "ucum", "step", "on_bad", "on_unknown", "codes"),
    "present_if",
    *RELATION_KEYS,
    *FORM_KEYS,
)
CONSTRAINT_KEYS = ("required", "minimum", "maximum", "enum")
OTHER_TYPES = ("any", "array", "duration", "geojson", "geopoint", "list", "object")
_UNSUPPORTED = (
    *("pattern", "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum"),
    "jsonSchema",
)


@dataclass(frozen=True)
class TableFacts:
    """What the table as a whole declares and its columns inherit."""

    missing_values: tuple[str, ...]
    decimal: str


def read_column(field: FieldReader, table: TableFacts) -> Column | None:
    """Read one field; None if it has no usable name or type, which is noted."""
    extra = field.part("dpsynth")
    constraints = field.part("constraints")
    name, type_ = field.text("name"), field.text("type")
    _check_keys(field, extra)
    if not field.has("name"):
        field.mistake("name", "the name of the column is missing")
    elif name is not None and not name.isprintable():
        field.mistake("name", "a column name has printable characters only")
    elif name is not None and name != name.strip():
        field.mistake(
            "name", "a column name has no blanks at its ends: headers are read without them"
        )
    roles = _read_roles(extra)
    if not _check_type(field, type_, roles) or name is None or type_ is None:
        return None
    missing = field.texts("missingValues")
    column = Column(
        name=name,
        type=type_,
        roles=roles,
        required=constraints.flag("required", False),
        missing_values=table.missing_values if missing is None else missing,
        ucum=extra.text("ucum"),
        title=field.text("title"),
        description=field.text("description"),
        format=_read_format(field, type_, modelled=not roles & UNMODELLED),
    )
    column = _read_booleans(field, column)
    column = read_formats(extra, column, declared=field.has("format"))
    if not column.modelled:
        for key in ("on_bad", "on_unknown", *(key for key in FORM_KEYS if key != "formats")):
            if extra.has(key):
                extra.mistake(
                    key, f"a column with role {listed(sorted(roles))} has none; remove it"
                )
        return column
    if extra.values.get("role") == TODO:
        return column  # a gap already: what else is missing depends on the role
    _check_writing(field, constraints, column, table)
    column = replace(column, bounds_basis=extra.text("bounds_basis"))
    if is_proposal(column.bounds_basis):
        extra.gap(
            "bounds_basis",
            f"is a proposal: check the field, then write your own source instead of {PROPOSAL!r}, "
            "or 'confirmed by' and a name",
        )
    column = read_presence(extra, column)
    if is_grouping(extra):
        return read_grouping(constraints, extra, column)
    column = read_categories(field, constraints, extra, column)
    if column.categories is None and (constraints.has("enum") or extra.has("codes")):
        return column  # the mistake in its categories is noted; what follows needs them
    column = read_relation(constraints, extra, column)
    column = _read_bounds(constraints, extra, column)
    column = read_thousands(field, read_policies(extra, column), table.decimal)
    return read_forms(extra, column, table.decimal)


def _check_keys(field: FieldReader, extra: FieldReader) -> None:
    """Note keys of dpsynth that stand elsewhere, and likely misspellings of Table Schema's keys."""
    extra.refuse_unknown(OWN_KEYS)
    for key in field.values:
        if key in FIELD_KEYS:
            continue
        if key in OWN_KEYS:
            field.mistake(key, f"belongs inside 'dpsynth': write dpsynth: {{{key}: ...}}")
        elif key in CONSTRAINT_KEYS:
            field.mistake(key, f"belongs inside 'constraints': write constraints: {{{key}: ...}}")
        elif meant := did_you_mean(key, FIELD_KEYS):
            field.mistake(key, f"there is no such key here{meant}")


def _read_roles(extra: FieldReader) -> frozenset[str]:
    """Read a role, or a list of them."""
    if isinstance(extra.values.get("role"), list | tuple):
        words = extra.texts("role") or ()
    else:
        word = extra.text("role")
        words = () if word is None else (word,)
    for word in words:
        if word not in ROLES:
            meant = did_you_mean(word, ROLES)
            extra.mistake("role", f"{shown(word)} is not a role{meant}; roles: {listed(ROLES)}")
    roles = frozenset(words) & frozenset(ROLES)
    if roles & UNMODELLED and len(roles) > 1:
        extra.mistake(
            "role", f"{listed(sorted(roles & UNMODELLED))} stands alone; remove the others"
        )
    return roles


def _check_type(field: FieldReader, type_: str | None, roles: frozenset[str]) -> bool:
    """Tell whether the type is known, and note one that is not, or does not suit the role."""
    if type_ is None:
        if not field.has("type"):
            note = field.gap if field.values.get("type") == TODO else field.mistake
            note("type", f"the type is missing; types: {listed(TYPES)}")
        return False
    if "unit" in roles and type_ in TYPES and not TYPES[type_].is_key:
        field.mistake("type", f"the key of a unit is of type string or integer, not {type_}")
    if "order" in roles and type_of(type_).is_truth:
        field.mistake("type", "true and false order nothing; declare a date, a number or text")
    if type_ in TYPES or (type_ in OTHER_TYPES and "drop" in roles):
        return True
    hint = "; give the column role drop" if type_ in OTHER_TYPES else did_you_mean(type_, TYPES)
    field.mistake("type", f"{shown(type_)} is not supported{hint}; types: {listed(TYPES)}")
    return False


def _read_format(field: FieldReader, type_: str, *, modelled: bool) -> str | None:
    """Read the format; for dates and times it is ``default`` (ISO 8601) or a strptime pattern."""
    pattern, kind = field.text("format"), type_of(type_)
    if pattern in (None, "default") or not (kind.is_time or kind.is_clock):
        return None if pattern == "default" else pattern
    if kind.is_clock:
        if not modelled or is_clock_format(pattern):
            return pattern
        field.mistake("format", f"{shown(pattern)} is not a format of times, such as '%H:%M'")
        return None
    assert pattern is not None
    if "%z" in pattern.lower():
        field.mistake(
            "format",
            "has a time zone, and times have none here: leave format out if cells are written as "
            "2015-12-31T08:30:00+01:00, whose zone is dropped; else write local time in the source",
        )
        return None
    if not is_date_format(pattern):
        field.mistake(
            "format",
            f"{shown(pattern)} is not a date format; write it with %d, %m and %Y, each directive "
            "once: '%d.%m.%Y' reads 31.12.2015",
        )
        return None
    return pattern


def _read_booleans(field: FieldReader, column: Column) -> Column:
    """Read trueValues and falseValues."""
    words = {key: field.texts(key) for key in ("trueValues", "falseValues")}
    if not column.kind.is_truth:
        for key in words:
            if field.has(key):
                field.mistake(key, f"only a boolean column has it, and the type is {column.type}")
        return column
    true, false = words["trueValues"], words["falseValues"]
    column = replace(
        column,
        true_values=column.true_values if true is None else true,
        false_values=column.false_values if false is None else false,
    )
    for key, accepted, others in (
        ("trueValues", column.true_values, column.false_values),
        ("falseValues", column.false_values, ("", *column.missing_values)),
        ("trueValues", column.true_values, ("", *column.missing_values)),
    ):
        if not accepted:
            field.mistake(key, "the list is empty; name at least one text")
        if both := set(accepted) & set(others):
            field.mistake(key, f"{listed(map(shown, sorted(both)))} has two meanings; keep one")
    return column


def _check_writing(
    field: FieldReader, constraints: FieldReader, column: Column, table: TableFacts
) -> None:
    """Note ways of writing numbers that are not read, and constraints that are not kept."""
    decimal = field.text("decimalChar")
    if column.kind.has_decimals and decimal is not None and decimal != table.decimal:
        field.mistake(
            "decimalChar",
            f"{shown(decimal)} is not the {table.decimal!r} of dpsynth.dialect.decimal; "
            "a table has one decimal sign",
        )
    if field.values.get("bareNumber") is False:
        field.mistake("bareNumber", "units within cells are not read; remove it, and them")
    for key, value in constraints.values.items():
        if key == "unique":
            if value is not False:
                constraints.mistake(key, "a column without repeats names rows; give it role drop")
        elif key in _UNSUPPORTED:
            constraints.mistake(key, "is not kept by a generator; use minimum, maximum or enum")
        elif key not in CONSTRAINT_KEYS:
            meant = did_you_mean(key, CONSTRAINT_KEYS)
            constraints.mistake(key, f"there is no such constraint{meant}")


def _read_bounds(constraints: FieldReader, extra: FieldReader, column: Column) -> Column:
    """Read minimum, maximum and step."""
    if not column.kind.is_numeric or column.is_categorical:
        why = "has categories" if column.is_categorical else f"is of type {column.type}"
        for part, key in ((constraints, "minimum"), (constraints, "maximum"), (extra, "step")):
            if part.has(key):
                part.mistake(key, f"the column {why}, and so no {key}; remove it")
        return column
    if column.interval is not None:  # its bounds follow from those of another column
        if column.bounds_basis is None:
            extra.gap("bounds_basis", f"is missing for the longest gap; {NO_BASIS}")
        return column
    bounds: dict[str, Any] = {"minimum": None, "maximum": None}
    if column.kind.is_clock:
        bounds = the_day(column.format)
        if not set(bounds) & set(constraints.values):
            column = replace(column, bounds_basis=column.bounds_basis or WHOLE_DAY)
    for key, usual in bounds.items():
        if usual is not None and key not in constraints.values:
            continue
        if not constraints.has(key):
            constraints.gap(key, "is missing; declare it, it is never taken from the data")
            continue
        try:
            bounds[key] = read_bound(column.type, constraints.values[key], column.format)
        except ValueError as error:
            constraints.mistake(key, str(error))
    low, high = bounds["minimum"], bounds["maximum"]
    if low is not None and high is not None and low > high:
        constraints.mistake("maximum", "maximum is below minimum; swap or correct them")
    if column.bounds_basis is None:
        extra.gap("bounds_basis", f"is missing for the bounds; {NO_BASIS}")
    return replace(column, step=_read_step(extra, column, low, high), **bounds)


def _read_step(extra: FieldReader, column: Column, low: Any, high: Any) -> float | int | None:
    if column.kind.step is not None:
        return extra.whole("step", minimum=1)
    step = extra.number("step")
    if step is None:
        return None
    if step <= 0:
        extra.mistake("step", "the step is positive, like 1 or 0.5")
        return None
    if low is not None and high is not None and (high - low) / step > MAX_WHOLE:
        extra.mistake("step", "more than 2^53 steps between the bounds; take a larger step")
        return None
    return float(step)
