"""The categories of a column: a declared list with labels, or a code list with its roll-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpsynth._util.field_reader import NO_BASIS, TODO, FieldReader
from dpsynth._util.messages import did_you_mean, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import category_text
from dpsynth.schema.column import Codes, Column

MAX_CODES = 4096


def read_categories(
    field: FieldReader, constraints: FieldReader, extra: FieldReader, column: Column
) -> Column:
    """Read the categories from enum or from a code list, and the labels."""
    if column.kind.is_truth:
        values = constraints.values.get("enum")
        if values is not None and values not in ([True, False], [False, True]):
            constraints.mistake("enum", "a boolean has both values; remove enum, or declare text")
        return replace(column, categories=("false", "true"))
    if extra.has("codes"):
        return _read_codes(constraints, extra.part("codes"), column)
    if not constraints.has("enum"):
        if column.kind.is_text and not ({"minimum", "maximum"} & set(constraints.values)):
            constraints.gap("enum", "is missing; list the categories, or name dpsynth.codes")
        if field.has("categories"):
            field.mistake("categories", "repeat the values in constraints.enum: that is enforced")
        return column
    if column.kind.is_time or column.kind.is_clock:
        constraints.mistake("enum", f"type {column.type} has bounds; or declare type string")
        return column
    categories = _read_enum(constraints, column)
    if not categories:
        return column
    if column.bounds_basis is None:
        extra.gap("bounds_basis", f"is missing for the list of categories; {NO_BASIS}")
    return replace(column, categories=categories, labels=_labels(field, column, categories))


def _read_enum(constraints: FieldReader, column: Column) -> tuple[str, ...]:
    values = constraints.values["enum"]
    if not isinstance(values, list | tuple) or not values:
        constraints.mistake("enum", f"a list of categories is expected, not {shown(values)}")
        return ()
    if len(values) > MAX_CODES - 2:  # two more codes may be needed: other and missing
        maximum = MAX_CODES - 2
        constraints.mistake("enum", f"{len(values)} categories; at most {maximum}: roll them up")
        return ()
    places: dict[str, int] = {}
    if TODO in values:
        constraints.gap("enum", "is still TODO; list every category")
        return ()
    tokens = {_token(column.type, token) for token in column.missing_values}
    for index, value in enumerate(values):
        place = f"enum[{index}]"
        try:
            text = category_text(column.type, value)
        except ValueError as error:
            constraints.mistake(place, str(error))
            continue
        if text in tokens:
            constraints.mistake(place, f"{shown(text)} is a missing value too; keep one")
        if text in places:
            constraints.mistake(place, f"{shown(text)} repeats enum[{places[text]}]; remove one")
        places.setdefault(text, index)
    return tuple(places)


def _token(type_: str, token: str) -> str:
    """Write a missing-value token like a category, where it is one."""
    try:
        return category_text(type_, token)
    except ValueError:
        return token


def _labels(field: FieldReader, column: Column, categories: tuple[str, ...]) -> dict[str, str]:
    """Read ``categories``: values, or values with labels."""
    entries = field.values.get("categories")
    labels: dict[str, str] = {}
    if not isinstance(entries, list | tuple):
        if field.has("categories"):
            field.mistake("categories", f"a list is expected, not {shown(entries)}")
        return labels
    for index, entry in enumerate(entries):
        place = f"categories[{index}]"
        value: Any = entry.get("value") if isinstance(entry, Mapping) else entry
        try:
            text = category_text(column.type, value)
        except ValueError as error:
            field.mistake(place, str(error))
            continue
        if text not in categories:
            meant = did_you_mean(text, categories)
            field.mistake(place, f"{shown(text)} is not in constraints.enum{meant}")
        elif text in labels:
            field.mistake(place, f"{shown(text)} has a label already; remove one")
        elif isinstance(entry, Mapping) and entry.get("label") is not None:
            label = field.check_text(f"{place}.label", entry["label"])
            labels.update({} if label is None else {text: label})
    return labels


def _read_codes(constraints: FieldReader, codes: FieldReader, column: Column) -> Column:
    """Take categories and labels from a published code list and its declared roll-up."""
    from dpsynth.schema.code_systems import code_list

    if not column.kind.is_text:
        codes.mistake(None, f"codes are text: declare type string, not {column.type}")
    if constraints.has("enum"):
        constraints.mistake("enum", "the categories come from dpsynth.codes; remove one of the two")
    if codes.has("discover"):
        codes.mistake(
            "discover",
            "finding codes in the data is not available yet; declare system and rollup, or enum",
        )
        return column
    codes.refuse_unknown(("system", "rollup", "groups"))
    system, rollup = codes.text("system"), codes.text("rollup")
    groups = codes.texts("groups") or ()
    if system is None or rollup is None:
        codes.mistake(None, "name a system and a rollup, like {system: ICD-9-CM, rollup: chapter}")
        return column
    try:
        known = code_list(system, rollup, groups)
    except InputError as error:
        codes.mistake(None, str(error))
        return column
    return replace(
        column,
        codes=Codes(system, rollup, groups),
        categories=tuple(known.categories),
        labels=dict(known.labels),
    )
