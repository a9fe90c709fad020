"""What of a schema cannot be said in SQL exactly, by the names of its columns.

Only the schema and the types that the warehouse declares are looked at, so this comes before any
charge. There is no approximation: a column that SQL would code otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.encoding.warehouse.values import tokens_of
from dpsynth.errors import TableError
from dpsynth.schema import Column, Schema
from dpsynth.schema.relations import YEAR
from dpsynth.tables import WarehouseTable
from dpsynth.tables.warehouse import Stored, suits

_REMEDY = "leave out --in-warehouse, and dpsynth reads the rows"


def require_expressible(schema: Schema, table: WarehouseTable) -> None:
    """Refuse a table of which a column cannot be coded in its warehouse.

    Args:
        schema: of the table.
        table: in its warehouse.

    Raises:
        TableError: it names every such column, why, and what to do.

    Example:
        A column of numbers that is stored as text::

            column 'weight' is stored as text and its type is number, ...
    """
    reasons = [*_of_unit(schema, table)]
    for column in schema.modelled:
        reason = refusal_of(column, schema, table)
        if reason is not None:
            reasons.append(f"column '{column.name}' {reason}")
    if reasons:
        raise TableError(
            f"{table.place}: the rows cannot stay in the warehouse: {'; '.join(reasons)}; {_REMEDY}"
        )


def require_keys(schema: Schema, table: WarehouseTable) -> None:
    """Refuse a table whose keys SQL compares otherwise than dpsynth does.

    Raises:
        TableError: with the reason, and what to do.
    """
    for reason in _of_unit(schema, table):
        raise TableError(f"{table.place} cannot be checked in the warehouse: {reason}; {_REMEDY}")


def refusal_of(column: Column, schema: Schema, table: WarehouseTable) -> str | None:
    """Say why a modelled column cannot be coded in SQL; None if it can."""
    if column.is_computed:
        return None  # from drawn rows
    if column.status_of is not None:
        return "is the status of another column, which only dpsynth reads"
    reason = _declared(column)
    if reason is not None:
        return reason
    stored = table.stored.get(column.name)
    if stored is None:
        return "is stored with a type that dpsynth does not read in SQL; cast it in a view"
    if not suits(column, stored):
        return (
            f"is stored as {stored} and its type is {column.type}, so SQL could read other values "
            "from its texts; cast it in a view"
        )
    if column.is_categorical and (column.kind.is_time or column.kind.is_clock):
        return "has dates or times as categories"
    return _of_tokens(column, schema)


def _declared(column: Column) -> str | None:
    """Say which declaration of a column only dpsynth reads."""
    forms = column.forms
    found = {
        "holds several codes in a cell": column.several is not None,
        "declares discover, which needs the codes of each row": column.discovery is not None,
        "rolls codes up": column.codes is not None,
        "is a gap above other columns": column.floor is not None,
        "declares present_if": column.present_if is not None,
        "counts completed years": column.interval is not None and column.interval.unit == YEAR,
        "ignores case, and SQL folds letters otherwise": not forms.case,
        "declares a value map": bool(forms.values) and not column.kind.is_text,
        "has limits of detection": forms.is_censored,
        "declares reasons of missing cells": bool(forms.reasons) and not column.kind.is_text,
        "takes its unit from another column": forms.unit is not None,
        "declares a groupChar": bool(forms.thousands),
        "declares a format": column.format is not None or bool(forms.formats),
    }
    return next((reason for reason, holds in found.items() if holds), None)


def _of_tokens(column: Column, schema: Schema) -> str | None:
    if not (column.kind.is_number or column.kind.is_truth) or column.kind.has_decimals:
        return None
    for token in tokens_of(column, schema.dialect.decimal):
        if token != int(token) or abs(token) >= 2**50:
            return "has a missing value that is no whole number, or a very large one"
    return None


def _of_unit(schema: Schema, table: WarehouseTable) -> Iterator[str]:
    unit = schema.unit
    if unit.keep != "random":
        yield "the unit keeps a window of rows in time, and not random ones"
    if unit.column is None:
        return
    if unit.case:
        yield f"keys in column '{unit.column}' ignore case, and SQL folds letters otherwise"
    if table.stored.get(unit.column) not in (Stored.TEXT, Stored.WHOLE):  # both have one text
        yield f"the key of the unit, column '{unit.column}', is not stored as text or whole numbers"
