"""One row that sums up each patient's history: a single table, which attacks on tables can read.

An attack that looks for a patient has to look at her whole history, over all tables and in time. A
row of the summary has her baseline, the day of each event, and of every series how many rows she
has, when they begin and end, and the first, last and mean of their values. It is a function of her
own rows and of the schema; bounds are those of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import Coder, coder_of
from dpsynth.encoding.histories import NEVER, Histories, SeriesRows
from dpsynth.encoding.history_codec import ChildCodec, HistoryCodec
from dpsynth.schema import Column, Declared, PrivacyUnit, Schema, lattice_of
from dpsynth.tables import typed_series, typed_values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FIRST, LAST, MEAN = "first", "last", "mean"


@dataclass(frozen=True)
class Value:
    """A value of a row, and what codes it."""

    column: Column
    coder: Coder

    @property
    def is_number(self) -> bool:
        """Whether a mean tells something."""
        return self.column.kind.is_number and not self.column.is_categorical

    def part(self, part: str, series: str) -> Column:
        """Return the column of its first or last cell, or of the mean; either may be missing."""
        plain = replace(
            _typed(self.column),
            name=f"{part} {self.column.name} of {series}",
            roles=frozenset(),
            required=False,
            interval=None,
            derived=None,
            calendar=(),
        )
        return replace(plain, type="number", step=None) if part == MEAN else plain


def summary_schema(codec: HistoryCodec) -> Schema:
    """Return the schema of the summaries: a row a patient; from public facts alone.

    >>> from dpsynth.schema import LinkedSchema
    >>> schema = summary_schema(HistoryCodec(LinkedSchema.load("clinic")))
    >>> [column.name for column in schema.columns if "weight" in column.name]
    ['first weight of visits', 'last weight of visits', 'mean weight of visits']
    """
    linked = codec.schema
    columns = list(map(_typed, linked.patients.modelled))
    columns += [_day(f"day of {event}", codec) for event in codec.events]
    for child, values in _repeated(codec):
        for place, series in enumerate(child.series):
            timed = child.child.time is not None
            columns += _columns(series.name, series.max_rows, timed, values[place], codec)
    return Schema(
        name=f"{linked.name}-histories",
        columns=tuple(columns),
        unit=PrivacyUnit(column=None, max_rows=1, max_rows_basis=None),
        population=linked.population,
        rows=Declared(linked.population.value, linked.population.basis),
        title=linked.title or linked.name,
    )


def summaries(histories: Histories, codec: HistoryCodec, *, seed: int = 0) -> pd.DataFrame:
    """Return a row for each patient, with the columns of `summary_schema`.

    Args:
        histories: real or drawn.
        codec: of their schema.
        seed: of values that are drawn among those of a wide code.
    """
    rng, patients = np.random.default_rng(seed), len(histories)
    columns: list[pd.Series[Any]] = []
    frame = codec.patients.decode(histories.baseline, rng)
    columns += [frame[column.name] for column in codec.schema.patients.modelled]
    columns += [
        _whole(days.astype(np.float64), days == NEVER, codec) for days in histories.onsets.T
    ]
    for (child, values), of_table in zip(_repeated(codec), histories.rows, strict=True):
        for place, rows in enumerate(of_table):
            timed = child.child.time is not None
            columns += _cells(rows, patients, timed, values[place], codec, rng)
    names = [column.name for column in summary_schema(codec).columns]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def _typed(column: Column) -> Column:
    """Return a column of typed cells: the summaries hold no texts of the source any more."""
    plain = Column(column.name, column.type)
    return replace(
        column,
        format=None,
        missing_values=plain.missing_values,
        true_values=plain.true_values,
        false_values=plain.false_values,
        forms=plain.forms,
        status_of=None,
    )


def _repeated(codec: HistoryCodec) -> Iterator[tuple[ChildCodec, list[list[Value]]]]:
    """Yield the tables of repeated rows, with the values of a row in each series."""
    for child in codec.children:
        if child.child.once is not None:
            continue
        decimal = child.child.schema.dialect.decimal
        modelled = child.codec.schema.modelled
        others = [
            Value(modelled[place], coder_of(modelled[place], decimal)) for place in child.others
        ]
        tests = child.child.series
        if tests is None:
            yield child, [others]
            continue
        named = [replace(column, name=tests.value) for column in tests.columns]
        yield child, [[Value(*pair), *others] for pair in zip(named, child.tests, strict=True)]


def _columns(
    name: str, most: int, timed: bool, values: list[Value], codec: HistoryCodec
) -> Iterator[Column]:
    """Return the columns of one series."""
    yield Column(f"rows of {name}", "integer", minimum=0, maximum=most, required=True)
    if timed:
        yield _day(f"{FIRST} day of {name}", codec)
        yield _day(f"{LAST} day of {name}", codec)
    for value in values:
        yield from (value.part(part, name) for part in (FIRST, LAST))
        if value.is_number:
            yield value.part(MEAN, name)


def _cells(
    rows: SeriesRows,
    patients: int,
    timed: bool,
    values: list[Value],
    codec: HistoryCodec,
    rng: np.random.Generator,
) -> Iterator[pd.Series[Any]]:
    """Return the cells of one series, in the order of `_columns`."""
    counts, starts = rows.counts(patients), rows.starts(patients)
    none = counts == 0
    yield pd.Series(counts)
    first, last = starts, starts + np.maximum(counts, 1) - 1
    first, last = (np.minimum(at, max(len(rows.days) - 1, 0)) for at in (first, last))
    if timed:
        for at in (first, last):
            days = rows.days[at] if len(rows.days) else np.zeros(patients)
            yield _whole(days.astype(np.float64), none, codec)
    for place, value in enumerate(values):
        codes = rows.values[:, place]
        for at in (first, last):
            ends = codes[at] if len(codes) else np.zeros(patients, dtype=np.uint16)
            cells = value.coder.decode(ends, rng)
            yield cells.astype(_nullable(cells)).mask(pd.Series(none))
        if value.is_number:
            numbers = typed_values(value.coder.decode(codes, rng), value.column.kind)
            yield _means(numbers, rows.patients, patients, value.part(MEAN, ""))


def _means(values: Floats, of: Ints, patients: int, column: Column) -> pd.Series[Any]:
    """Return the mean of each patient's values, at the resolution of its column."""
    known = np.isfinite(values)
    number = np.bincount(of[known], minlength=patients)
    sums = np.bincount(of[known], values[known], minlength=patients)
    lattice, none = lattice_of(column), number == 0
    means = lattice.values(lattice.positions(sums / np.maximum(number, 1)))
    return typed_series(means, none, column)


def _nullable(cells: pd.Series[Any]) -> Any:
    """Return a type of the same cells in which one may be missing."""
    kinds = {"i": "Int64", "b": "boolean"}
    return kinds.get(cells.dtype.kind, cells.dtype)


def _day(name: str, codec: HistoryCodec) -> Column:
    return Column(name, "integer", minimum=codec.first, maximum=codec.last)


def _whole(values: Floats, missing: npt.NDArray[np.bool_], codec: HistoryCodec) -> pd.Series[Any]:
    return typed_series(np.where(missing, 0.0, values), missing, _day("day", codec))
