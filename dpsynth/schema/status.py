"""The status of a column, beside it: whether its cell is censored, or why it is missing.

A number column cannot hold ``<5`` or "refused" in Parquet, and statisticians keep the number and
the censoring apart (Helsel, Statistics for Censored Environmental Data, 2012, section 1.3). So the
synthetic table has a column ``<name>_status`` after such a column:

- ``value``: the cell has a value;
- ``low`` or ``high``: the value is below or above a limit of detection, and the cell holds it;
- a declared reason: the cell is missing, for that reason;
- ``missing``: the cell is missing without a reason.

A column of type string needs none: the reasons are categories of its own.
"""

from __future__ import annotations

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.messages import plain, shown
from dpsynth.schema.column import HIGH, LOW, MISSING, VALUE, Column

INHERITED = frozenset({"sensitive", "quasi_identifier"})  # roles that say who may know a column


def has_status(column: Column) -> bool:
    """Tell whether a status column follows a column."""
    forms = column.forms
    return column.modelled and bool(
        forms.is_censored or (forms.reasons and not column.kind.is_text)
    )


def status_column(column: Column) -> Column:
    """Return the status column of a column."""
    forms = column.forms
    labels = {VALUE: "the cell has a value"}
    if forms.low:
        labels[LOW] = f"below the limit of detection, which {column.name} holds"
    if forms.high:
        labels[HIGH] = f"above the upper limit, which {column.name} holds"
    labels |= {reason: f"missing: {reason}" for reason, _ in forms.reasons}
    if column.nullable:
        labels[MISSING] = "missing, no reason given"
    return Column(
        name=forms.status or f"{column.name}_status",
        type="string",
        roles=column.roles & INHERITED,
        categories=tuple(labels),
        labels=labels,
        required=True,
        missing_values=("",),
        on_bad=VALUE,
        on_unknown=VALUE,
        bounds_basis=f"how the schema says that {column.name} is written",
        title=None if column.title is None else f"{column.title}: status",
        status_of=column.name,
    )


def read_status(columns: tuple[Column, ...], top: FieldReader) -> tuple[Column, ...]:
    """Add the status columns, each after its column, and check what columns say of one another."""
    names = {column.name for column in columns}
    every: list[Column] = []
    for column in columns:
        every.append(column)
        if has_status(column) and (column.interval or column.derived):
            top.mistake(
                "fields",
                f"{plain(column.name)} follows from other columns, so it has no status: remove "
                "the limits of detection and the reasons from its dpsynth object",
            )
        elif has_status(column):
            status = status_column(column)
            if status.name in names:
                top.mistake(
                    "fields",
                    f"{shown(status.name)} is the name of the status column of "
                    f"{plain(column.name)}; give it another: dpsynth: {{status: ...}}",
                )
            names.add(status.name)
            every.append(status)
    for column in columns:
        if column.forms.unit is not None:
            _check_unit(column, columns, top)
    return tuple(every)


def _check_unit(column: Column, columns: tuple[Column, ...], top: FieldReader) -> None:
    """Note a unit column that is not there, or would be in the synthetic table."""
    assert column.forms.unit is not None
    name = column.forms.unit.column
    unit_column = next((one for one in columns if one.name == name), None)
    place = f"fields {shown(column.name)}.dpsynth.unit_from.column"
    if unit_column is None:
        top.mistake(place, f"there is no column {shown(name)}; declare it with role drop")
    elif "drop" not in unit_column.roles or not unit_column.kind.is_text:
        top.mistake(
            place,
            f"declare {shown(name)} as type string with role drop: the synthetic table holds "
            f"{shown(column.name)} in one unit, and dpsynth reads the unit only to convert it",
        )
