"""Where cells go that a column does not declare: `on_bad` and `on_unknown`, with their defaults."""

from __future__ import annotations

from dataclasses import replace

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.schema.bounds import category_text
from dpsynth.schema.column import MISSING, OTHER, REFUSE, Column


def default_on_unknown(column: Column) -> str:
    """Where an undeclared category goes unless the schema says otherwise.

    Missing where the column is nullable, else a category called other, else an added ``other``;
    types that cannot hold that word take their first category. A column without categories has
    no unknown ones: its `on_bad` is repeated.
    """
    if column.discovers and column.codes is not None and not column.codes.system:
        return OTHER  # of codes that are not found
    if column.nullable or not column.modelled:
        return MISSING
    if column.categories is None and not column.kind.is_text:
        return "minimum"
    if not column.kind.is_text:
        assert column.categories is not None
        return column.categories[0]
    return _other_of(column) or OTHER


def default_on_bad(column: Column, on_unknown: str) -> str:
    """Where unparsable text and unexpected missing values go unless the schema says otherwise."""
    if column.nullable or not column.modelled:
        return MISSING
    return on_unknown


def read_policies(extra: FieldReader, column: Column) -> Column:
    """Read and resolve both policies of a modelled column."""
    numeric = column.categories is None and not column.kind.is_text
    unknown = _read(extra, "on_unknown", column)
    if numeric and extra.has("on_unknown"):
        extra.mistake("on_unknown", "the column has no categories; use on_bad")
    on_unknown = default_on_unknown(column) if unknown is None or numeric else unknown
    bad = _read(extra, "on_bad", column)
    on_bad = default_on_bad(column, on_unknown) if bad is None else bad
    if on_unknown == REFUSE and column.discovers and not column.categories:
        extra.mistake("on_unknown", "a code that is not found must go somewhere: other or missing")
    return replace(column, on_bad=on_bad, on_unknown=on_bad if numeric else on_unknown)


def _read(extra: FieldReader, key: str, column: Column) -> str | None:
    """Read one policy as its resolved word, or None for the default."""
    if not extra.has(key):
        return None
    word = extra.values[key]
    if word == MISSING:
        if column.required:
            extra.mistake(
                key, "the column is required, so no cell is missing; choose another policy"
            )
        return MISSING
    if word == REFUSE:
        return REFUSE
    if column.categories is None and column.kind.is_text:
        return str(word)  # a draft: whether it is a category shows when the list is written
    if column.categories is None:
        if word in ("minimum", "maximum") and not column.kind.is_text:
            return str(word)
        extra.mistake(key, f"{shown(word)} is not one of missing, minimum, maximum, refuse")
        return None
    if word == OTHER and column.kind.is_text:
        return _other_of(column) or OTHER
    try:
        text = _boolean(word) if column.kind.is_truth else category_text(column.type, word)
    except ValueError:
        text = str(word) if isinstance(word, str) else ""
    if text in column.categories:
        return text
    options = [MISSING, *([OTHER] if column.kind.is_text else []), REFUSE, *column.categories]
    meant = did_you_mean(text, options)
    extra.mistake(
        key, f"{shown(word)} is not a policy or a category{meant}; known: {listed(options)}"
    )
    return None


def _boolean(word: object) -> str:
    return shown(word) if isinstance(word, bool) else str(word)


def _other_of(column: Column) -> str | None:
    """Return the declared category that means other, if there is one."""
    return next((text for text in column.categories or () if text.lower() == OTHER), None)
