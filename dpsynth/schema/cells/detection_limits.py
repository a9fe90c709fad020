"""The limits of detection of a column: what ``<5`` and ``>2000`` may mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpsynth._util.field_reader import FieldReader, is_finite
from dpsynth._util.messages import shown
from dpsynth.errors import InputError
from dpsynth.schema.column import HIGH, LOW, Column
from dpsynth.schema.lattice import lattice_of

NUMERAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
LIMIT = re.compile(rf"([<>]=?|[≤≥])\s*({NUMERAL})")


def read_limits(
    extra: FieldReader, column: Column, decimal: str = "."
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Read the limits of detection; texts are written as in the source, with its decimal sign."""
    if not extra.has("censored"):
        return (), ()
    if not column.kind.is_number or column.is_categorical:
        extra.mistake("censored", "only a column of numbers with bounds has limits of detection")
        return (), ()
    if not isinstance(extra.values["censored"], Mapping):
        extra.mistake("censored", "declare the limits: {low: 5, high: 2000}; one of them suffices")
        return (), ()
    part = extra.part("censored")
    part.refuse_unknown((LOW, HIGH))
    low, high = (_limits(part, side, column, decimal) for side in (LOW, HIGH))
    if not (part.has(LOW) or part.has(HIGH)):
        part.mistake(None, "declare a limit: {low: 5, high: 2000}; one of them suffices")
    return low, high


def _limits(part: FieldReader, side: str, column: Column, decimal: str) -> tuple[float, ...]:
    """Read the limits of one side: numbers, or texts such as ``<5``."""
    if not part.has(side):
        return ()
    values = part.values[side]
    limits = set()
    for value in values if isinstance(values, list | tuple) else [values]:
        limit: Any = value
        text = value.strip() if isinstance(value, str) else ""
        text = text.replace(",", ".") if decimal == "," else text
        if match := LIMIT.fullmatch(text):
            signs = "<≤" if side == LOW else ">≥"
            limit = float(match[2]) if match[1][0] in signs else None
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not is_finite(limit):
            sign = "<" if side == LOW else ">"
            hint = "; the decimal sign is a point here" if "," in text else ""
            part.mistake(side, f"{shown(value)} is not a limit, such as 5 or '{sign}5'{hint}")
        elif not within_bounds(limit, column):
            part.mistake(
                side,
                f"{shown(limit)} is not within the bounds; the synthetic table holds the limit, so "
                "widen minimum or maximum",
            )
        elif not _on_lattice(limit, column):
            part.mistake(side, f"{shown(limit)} lies between two steps; choose another step")
        else:
            limits.add(float(limit))
    return tuple(sorted(limits))


def within_bounds(value: float, column: Column) -> bool:
    """Tell whether a number is within the bounds, as far as these are declared."""
    low: Any = column.minimum
    high: Any = column.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def _on_lattice(value: float, column: Column) -> bool:
    """Tell whether a column can hold a number; what its bounds lack is noted elsewhere."""
    if column.minimum is None or column.maximum is None:
        return True
    try:
        return bool(lattice_of(column).on_lattice(np.array([float(value)]))[0])
    except InputError:
        return True
