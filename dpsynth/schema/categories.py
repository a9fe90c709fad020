"""The categories of a column: a declared list with labels, or a code list with its roll-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpsynth._util.field_reader import NO_BASIS, TODO, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import category_text
from dpsynth.schema.code_systems import CODE, Codes, CodeTree, read_several, rollups_of
from dpsynth.schema.column import Column
from dpsynth.schema.discovered import read_discovered

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
    """Take categories and labels from a code system, and what is declared of it."""
    if not column.kind.is_text:
        codes.mistake(None, f"codes are text: declare type string, not {column.type}")
    if constraints.has("enum"):
        constraints.mistake("enum", "the categories come from dpsynth.codes; remove one of the two")
    if codes.flag("discover", False):
        return read_discovered(codes, column)
    if any(key in codes.values for key in ("list", "omop")):
        return _read_list(codes, column)
    codes.refuse_unknown(("system", "rollup", "groups", "several", "discover"))
    system, rollup = codes.text("system"), codes.text("rollup")
    groups = codes.texts("groups") or ()
    if system is None or rollup is None:
        codes.mistake(None, "name a system and a rollup, like {system: ICD-9-CM, rollup: chapter}")
        return column
    return _with_codes(column, Codes(system, rollup, groups), codes)


def _with_codes(column: Column, codes: Codes, part: FieldReader) -> Column:
    """Take categories and labels from codes, or note why they cannot be."""
    try:
        categories, labels = codes.categories, dict(codes.labels)
    except InputError as error:
        part.mistake(None, str(error))
        return column
    if part.has("several"):
        codes = replace(codes, several=read_several(part, categories))
    return replace(column, codes=codes, categories=categories, labels=labels)


def _read_list(codes: FieldReader, column: Column) -> Column:
    """Take the categories from the office's own list: the codes at the level to emit."""
    codes.refuse_unknown(("system", "list", "omop", "displays", "model", "emit", "several"))
    for key in ("list", "omop"):
        if isinstance(codes.values.get(key), str):
            codes.mistake(key, "a path is read only from a schema file, next to which it lies")
            return column
    system, part = codes.text("system"), codes.part("list")
    part.refuse_unknown(("codes", "parents", "displays"))
    lists = {key: part.values.get(key, []) for key in ("codes", "parents", "displays")}
    for key, values in lists.items():
        if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
            part.mistake(key, "a list of texts is expected: write codes in quotes")
            return column
    try:
        tree = CodeTree.of(**lists)
    except ValueError as error:
        codes.mistake("list", str(error))
        return column
    if system is None:
        codes.mistake("system", "is missing: the name of the code system, such as ICD-9-CM")
        return column
    model, emit = _level(codes, "model", tree, 1), _level(codes, "emit", tree, CODE)
    if model is None or emit is None:
        return column
    if not model.isdigit() and model not in rollups_of(system):
        words = f"{listed(rollups_of(system))}, or " if rollups_of(system) else ""
        codes.mistake("model", f"{shown(model)} is not {words}a level of the list such as 1")
        return column
    if model.isdigit() and emit.isdigit() and int(model) > int(emit):
        codes.mistake("model", f"level {model} is below the level to emit, {emit}; model it above")
    return _with_codes(column, Codes(system, model, tree=tree, emit=emit), codes)


def _level(codes: FieldReader, key: str, tree: CodeTree, default: int | str) -> str | None:
    """Read a level of a list: a number from the top, or a word."""
    value = codes.values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | str):
        codes.mistake(key, f"a level such as 1 is expected, not {shown(value)}")
        return None
    if isinstance(value, int) and not 1 <= value <= tree.depth:
        codes.mistake(key, f"the list has levels 1 to {tree.depth}, not {value}")
        return None
    if key == "emit" and isinstance(value, str) and value != CODE:
        codes.mistake(key, f"a level such as 2, or {CODE}, is expected, not {shown(value)}")
        return None
    return str(value)
