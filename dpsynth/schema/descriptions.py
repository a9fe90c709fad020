"""A column in words: what kind it is, its unit, the labels of its categories."""

from __future__ import annotations

from dpsynth.schema.column import Column

_UNITS = {  # of the Unified Code for Units of Measure, as people write them
    "a": "years",
    "mo": "months",
    "wk": "weeks",
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "mm[Hg]": "mmHg",
    "kg/m2": "kg/m²",
    "Cel": "°C",
    "{visits}": "visits",
    "1": "",
}
_MAX_LABELS = 8  # in one line


def kind_of(column: Column) -> str:
    """Name the type of a column; categories of whole numbers are called so."""
    kind = column.kind
    of_numbers = column.is_categorical and kind.is_numeric
    return f"category ({kind.noun})" if of_numbers else kind.noun


def unit_of(column: Column) -> str:
    """Name the unit of a column as people write it; empty if it has none."""
    return "" if column.ucum is None else _UNITS.get(column.ucum, column.ucum)


def relation_of(column: Column) -> str:
    """Say how a column follows from others of its row; empty if it stands on its own.

    >>> from dpsynth.schema.relations import Interval
    >>> relation_of(Column("discharged", "date", interval=Interval("admitted", "d", 90)))
    '0 to 90 days after admitted'
    """
    words = []
    if column.interval is not None:
        words.append(column.interval.words(column.interval.base))
    if column.floor is not None:
        words.append(column.floor.words)
    if column.derived is not None:
        words.append(f"computed as {column.derived.text}")
    if column.grouping is not None:
        words.append(f"computed as the {column.grouping.words}")
    if column.present_if is not None:
        words.append(f"only where {column.present_if.text}")
    return "; ".join(words)


def labels_of(column: Column) -> str:
    """Say what the codes of a column mean, as far as that is declared; empty if it is not."""
    if column.several is not None:
        return column.several.words
    colon = ":" if column.kind.is_text else ""
    labels = [
        f"{value}{colon} {label}"
        for value in column.levels
        if (label := column.labels.get(value, value)) != value
    ]
    more = len(labels) - _MAX_LABELS
    rest = [f"and {more} more: see datapackage.json"] if more > 0 else []
    comma = ";" if any("," in one for one in labels) else ","
    return f"{comma} ".join(labels[:_MAX_LABELS] + rest)
