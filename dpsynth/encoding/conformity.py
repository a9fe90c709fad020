"""Does a synthetic table hold only what its schema allows: types, bounds, resolution, categories.

Text is read as strictly as the synthetic table's Table Schema says: no padding, no other spelling,
the empty text for a missing cell. A problem names the column, the rule and how many cells break it,
never a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.code_sets import set_faults
from dpsynth.encoding.column_codecs import level_values
from dpsynth.errors import Problem
from dpsynth.schema import Column, Lattice, in_units
from dpsynth.schema.relations import converted
from dpsynth.schema.types import TYPES
from dpsynth.tables import array_of, distinct, is_typed, read_texts, texts_of, typed_values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ABSENT = "the column is required, but cells are missing"
_PLAIN = Column("", "boolean")  # holds the truth words of Table Schema


def departures(
    frame: pd.DataFrame, columns: Sequence[Column], lattices: Mapping[str, Lattice | None]
) -> list[Problem]:
    """List every rule that the frame breaks, by column in the schema's order.

    Args:
        frame: the synthetic table, of typed cells or of the text of a CSV file.
        columns: what it must consist of.
        lattices: lattice of each numeric column, None for a categorical one.
    """
    frame_columns = list(frame.columns)
    problems = []
    for column in columns:
        place = f"column '{column.name}'"
        times = frame_columns.count(column.name)
        if times != 1:
            fault = "is missing" if times == 0 else f"occurs {times} times"
            problems.append(Problem(place, f"{fault}; it must occur once"))
            continue
        for rule, count in _faults(frame[column.name], column, lattices[column.name]):
            if count:
                cells = "1 cell" if count == 1 else f"{count} cells"
                problems.append(Problem(place, f"{rule}: {cells}"))
    names = [column.name for column in columns]
    if extra := len(set(frame_columns) - set(names)):
        problems.append(Problem("table", f"{extra} columns are not in the schema"))
    if not problems and frame_columns != names:
        problems.append(Problem("table", "the columns are not in the schema's order"))
    return problems


def _faults(
    cells: pd.Series[Any], column: Column, lattice: Lattice | None
) -> Iterator[tuple[str, int]]:
    """Yield every rule of one column and how many cells break it."""
    if column.several is not None:
        yield from _faults_of_sets(cells, column)
        return
    values, missing, counts = _read(cells, column)
    if column.required:
        yield ABSENT, int(counts[missing].sum())
    bad = np.isnan(values) & ~missing
    yield f"not of type {column.type}", int(counts[bad].sum())
    values, counts = values[~(bad | missing)], counts[~(bad | missing)]
    if lattice is None:
        levels = np.arange(len(column.levels)) if column.kind.is_text else level_values(column)
        strange = ~np.isin(values, levels)
        yield f"none of the {len(column.levels)} categories", int(counts[strange].sum())
        return
    assert column.minimum is not None and column.maximum is not None
    below = values < float(in_units(column.minimum, column.kind))
    above = values > float(in_units(column.maximum, column.kind))
    between = ~(below | above | lattice.on_lattice(values))
    yield f"below the minimum, {_shown(column.minimum, column)}", int(counts[below].sum())
    yield f"above the maximum, {_shown(column.maximum, column)}", int(counts[above].sum())
    step = lattice.stride / 10**lattice.decimals
    yield f"between two steps of the resolution, {step:g}", int(counts[between].sum())


def _faults_of_sets(cells: pd.Series[Any], column: Column) -> Iterator[tuple[str, int]]:
    """Yield every rule of a column whose cells hold several codes."""
    if is_typed(cells):
        yield f"not of type {column.type}", int(cells.notna().sum())
        return
    of_text, texts = distinct(texts_of(cells))
    missing = of_text < 0
    if "" in texts:
        missing = missing | (of_text == texts.index(""))
    if column.required:
        yield ABSENT, int(missing.sum())
    counts = np.bincount(of_text[~missing], minlength=len(texts))
    for rule, broken in set_faults(texts, column).items():
        yield rule, int(counts[broken].sum())


def _shown(bound: Any, column: Column) -> str:
    kind = column.kind
    return str(bound) if kind.write is None else kind.write(kind.value(bound))


def _read(cells: pd.Series[Any], column: Column) -> tuple[Floats, Bools, Ints]:
    """Read a column into distinct values, NaN for bad ones: value, whether missing, how often.

    A string is read as the index of its category, or the number of categories if it is none.
    """
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if is_typed(cells) or kind == "boolean":
        missing = cells.isna().to_numpy(dtype=bool)
        values = _typed(cells, column, kind)
        return values, missing, np.ones(len(cells), dtype=np.int64)
    of_text, texts = distinct(texts_of(cells, boolean=True))
    texts.append("")  # the text of None
    counts = np.bincount(of_text % len(texts), minlength=len(texts))
    missing = np.array([text == "" for text in texts])
    return _strict(texts, column), missing, counts


def _typed(cells: pd.Series[Any], column: Column, kind: str) -> Floats:
    """Read typed cells; a dtype that is not the column's has bad cells only."""
    nothing = np.full(len(cells), np.nan)
    if column.kind.is_text or column.kind.is_truth != (kind == "boolean"):
        return nothing
    if column.kind.is_truth:
        truth = cells.astype("boolean").to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(truth, dtype=np.float64)
    values = typed_values(cells, column.kind)
    if cells.dtype.kind == "M" and column.kind.is_time:
        seconds = TYPES["datetime"]  # a time that is not midnight is no date
        exact = converted(values, column.kind, seconds) == typed_values(cells, seconds)
        values = np.where(exact, values, np.nan)
    if column.kind.whole:
        values = np.where(values == np.rint(values), values, np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def _strict(texts: Sequence[str], column: Column) -> Floats:
    """Read texts in the spelling that dpsynth writes; NaN for any other."""
    if column.kind.is_text:
        place = {text: float(index) for index, text in enumerate(column.levels)}
        return np.array([place.get(text, len(place)) for text in texts], dtype=np.float64)
    if column.kind.is_truth:
        truth = dict.fromkeys(_PLAIN.false_values, 0.0) | dict.fromkeys(_PLAIN.true_values, 1.0)
        return np.array([truth.get(text, np.nan) for text in texts], dtype=np.float64)
    spelling = re.compile(column.kind.spelling)
    spelled = [text if spelling.fullmatch(text) else "x" for text in texts]
    values = read_texts(array_of(spelled), replace(column, format=None), ".")
    values = np.where(np.isfinite(values), values, np.nan)
    if (write := column.kind.write) is not None:  # one value has one text
        own = [v == v and write(v) == text for v, text in zip(values.tolist(), texts, strict=True)]
        values = np.where(own, values, np.nan)
    return values
