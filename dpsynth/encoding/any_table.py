"""A synthetic table of a schema, whoever wrote it: its cells restated as dpsynth writes them.

Two conventions are tried: that of the source, as the schema declares it (separator, encoding,
decimal sign, formats of dates, words for true and false, codes that are rolled up), and that of
dpsynth (RFC 4180, UTF-8, ISO 8601, ``true`` and ``false``). Each column has the convention that
reads all of its cells. Where both do and differ, the declared one counts, and a note says so. Where
neither reads all of them, each cell is read by the declared one if that can, else by the other.

The table is public, or the office's own: nothing here looks at a private row.

The cells of a synthetic table as numbers, and of their declared types, text and typed alike.

A category is its place among the categories, a date its days, a missing cell NaN. In a table of
linked ones, the number of a patient is a whole number, whether it is written as text or not, and
the value of a test is read by the test that its row names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.code_sets import SetCoder, set_values
from dpsynth.encoding.codec import Codec
from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.errors import InputError, NoRowsError, TableError
from dpsynth.schema import (
    Column,
    Dialect,
    LinkedSchema,
    Schema,
    SyntheticTable,
    as_number,
    synthetic_tables,
    text_keys,
)
from dpsynth.schema.lattice import MAX_WHOLE
from dpsynth.tables import (
    Reference,
    as_written,
    is_typed,
    open_columns,
    open_synthetic,
    read_cells,
    texts_of,
    trimmed,
    typed_series,
    typed_values,
    units_beside,
    written_cells,
)
from dpsynth.tables.frames import NamedSource, Source, as_source, as_sources
from dpsynth.tables.table import column_as_written

AUTO, AS_SOURCE, ISO = "auto", "source", "iso"
FORMS = (AUTO, AS_SOURCE, ISO)
_PLAIN = Column("", "boolean")  # holds the usual words for true and false
_READ = {Kind.VALID, Kind.MISSING}


@dataclass(frozen=True, repr=False)
class RestatedTable:
    """A synthetic table in the form that dpsynth writes.

    Attributes:
        cells: its modelled columns, as text or typed; ``encoding.Codec(as_written(schema))`` reads
            them. What no convention reads stands there as it was.
        notes: columns that can be read in two ways, and how they were read.
    """

    cells: pd.DataFrame
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show no cell: the table may hold copies of real rows."""
        return short_repr(self, f"{len(self.cells.columns)} columns")


def read_any_table(source: Source, schema: Schema, form: str = AUTO) -> RestatedTable:
    """Read a synthetic table of a schema in the source's convention or in that of dpsynth.

    Columns that follow from others of their row (derived ones, groups of codes, statuses) may be
    left out, as a source leaves them out; they are then computed.

    Args:
        source: a CSV or Parquet file, or a DataFrame.
        schema: the public facts.
        form: one of `FORMS`: ``source`` or ``iso`` for one convention alone, or ``auto`` for both.

    Raises:
        TableError: the table is damaged, empty, or lacks columns in every convention.
        InputError: no such form.
    """
    if form not in FORMS:
        raise InputError(f"a table is written as one of {', '.join(FORMS)}, not {form!r}")
    source = as_source(source)
    if form == ISO:
        return RestatedTable(pd.concat(open_synthetic(source, schema).chunks(), ignore_index=True))
    return _restated(_frame(source, schema, form), schema, form)


def read_any_tables(
    sources: Mapping[str, Source], schema: LinkedSchema, form: str = AUTO
) -> tuple[dict[str, NamedSource], tuple[str, ...]]:
    """Read the tables of a synthetic cohort as `read_any_table` reads one.

    Args:
        sources: of each table, by its name.
        schema: of the linked tables.
        form: one of `FORMS`.

    Returns:
        The tables, as text or typed, and what is not certain of how they were read.

    Raises:
        TableError, InputError: as `read_any_table`.
    """
    sources = as_sources(sources)
    if form == ISO or set(sources) != set(schema.table_names):  # opening them names what is absent
        return dict(sources), ()
    tables: dict[str, NamedSource] = {}
    notes: list[str] = []
    for name, table in synthetic_tables(schema).items():
        try:
            frame = _frame(sources[name], table.schema, form)
        except NoRowsError:
            tables[name] = sources[name]
            continue
        read = _restated(frame, table.schema, form, table)
        tables[name] = read.cells
        notes += [f"{name}: {note}" for note in read.notes]
    return tables, tuple(notes)


def check_any_table(source: Source, schema: Schema, form: str = AUTO) -> None:
    """Refuse a table whose header no convention reads, before hours are spent on another.

    Raises:
        TableError: as `read_any_table`.
    """
    source = as_source(source)
    if form == ISO:
        open_synthetic(source, schema)
    else:
        _headed(source, schema, form)


def _headed(source: NamedSource, schema: Schema, form: str) -> list[tuple[Dialect, Sequence[str]]]:
    """Return the dialects in which the header of a table has the columns, with this header."""
    declared, plain = replace(schema.dialect, header_row=1), Dialect()
    utf8 = replace(declared, encoding=plain.encoding)
    tried = [utf8, declared, plain, replace(plain, encoding=declared.encoding)]
    if form == AS_SOURCE:
        tried = [declared]
    elif isinstance(source, pd.DataFrame) or Reference.of(source).format.typed:
        tried = [plain]
    headed: list[tuple[Dialect, Sequence[str]]] = []
    errors: list[tuple[int, str]] = []  # how many columns are absent, and the words
    for dialect in dict.fromkeys(tried):
        table, absent = replace(schema, dialect=dialect), len(schema.columns)
        try:
            header = open_columns(source, table, (), private=False).header
            absent = len({*_required(schema)} - {*header})
            open_columns(source, table, _required(schema), private=False)
        except TableError as error:
            errors.append((absent, str(error)))
        else:
            headed.append((dialect, header))
    if headed:
        return headed
    nearest = min(errors, key=lambda error: error[0])[1]  # in the dialect that reads most names
    raise TableError(nearest if len(tried) == 1 else _unreadable(nearest, declared))


def _unreadable(error: str, declared: Dialect) -> str:
    """Say that no convention reads a table; the remedy is about the table, not about the schema."""
    one = error.partition(" (its header")[0]
    return (
        f"{one}. It was read as the schema declares the source (separator {declared.delimiter!r}) "
        "and as dpsynth writes tables (separator ',', UTF-8): write the synthetic table in one of "
        "both; leave the schema's dialect, which describes the source, as it is"
    )


def _required(schema: Schema) -> tuple[str, ...]:
    """Return the modelled columns that do not follow from others of their row."""
    return tuple(c.name for c in schema.modelled if c.is_read and c.status_of is None)


def _frame(source: NamedSource, schema: Schema, form: str) -> pd.DataFrame:
    """Read the modelled columns that a table has, and those that name units, as they stand."""
    units = {c.forms.unit.column for c in schema.modelled if c.forms.unit is not None}
    wanted = [*(c.name for c in schema.modelled), *units]
    errors = []
    for dialect, header in _headed(source, schema, form):
        names = tuple(dict.fromkeys(name for name in wanted if name in header))
        table = open_columns(source, replace(schema, dialect=dialect), names, private=False)
        try:
            return pd.concat(table.chunks(), ignore_index=True)
        except TableError as error:
            errors.append(error)
    if len(errors) > 1:
        raise TableError(_unreadable(str(errors[0]), schema.dialect)) from None
    raise errors[0]


def _restated(
    frame: pd.DataFrame, schema: Schema, form: str, table: SyntheticTable | None = None
) -> RestatedTable:
    """Restate each column, and compute those that the table leaves out."""
    written, cells, notes = as_written(schema), dict[str, Any](), []
    decimal = schema.dialect.decimal
    for column in schema.modelled:
        if column.name not in frame:
            continue
        if table is not None and (table.is_number(column) or table.is_measured(column)):
            found, twofold = frame[column.name].reset_index(drop=True), 0
        else:
            found, twofold = restated(frame, column, decimal, form)
        cells[column.name] = found
        if twofold:
            notes.append(
                f"column '{column.name}': {counted(twofold, 'cell')} can be read as the source "
                "writes them and as dpsynth does, with different values; they were read as the "
                f"schema declares the source (--written {ISO} reads them the other way)"
            )
    if table is not None and table.series is not None:
        cells[table.series.value] = _of_tests(pd.DataFrame(cells), table, decimal, form)
    statuses = [c for c in schema.modelled if c.name not in cells and c.status_of is not None]
    coders = Codec(schema).statuses if statuses else {}
    for column in statuses:
        own = schema.column(str(column.status_of))
        units = units_beside(frame, own)
        cells[column.name] = coders[column.name].read(frame[own.name], units)[1]
    computed = [c.name for c in schema.modelled if c.name not in cells]
    if computed:
        bounded = Codec(written).bounded(pd.DataFrame(cells))
        cells |= {name: bounded[name] for name in computed}
    return RestatedTable(pd.DataFrame({c.name: cells[c.name] for c in schema.modelled}), (*notes,))


def _of_tests(
    frame: pd.DataFrame, table: SyntheticTable, decimal: str, form: str
) -> pd.Series[Any]:
    """Restate the values of a long table, each by the test that its row names."""
    assert table.series is not None
    values = frame[table.series.value].to_numpy(dtype=object, copy=True)
    for test, rows in rows_of_tests(frame, table):
        own = pd.DataFrame({test.name: frame[table.series.value].iloc[rows]})
        values[rows] = restated(own, test, decimal, form)[0].to_numpy(dtype=object)
    return pd.Series(values, dtype=object)


def restated(
    frame: pd.DataFrame, column: Column, decimal: str, form: str = AUTO
) -> tuple[pd.Series[Any], int]:
    """Restate one column of a table as dpsynth writes it.

    Args:
        frame: the table as it stands, with the column that names its units if there is one.
        column: its declaration.
        decimal: the decimal sign of the source.
        form: one of `FORMS`.

    Returns:
        The cells, and how many can be read in two ways with different values.
    """
    cells, units = frame[column.name].reset_index(drop=True), units_beside(frame, column)
    column = replace(column, required=False)  # a missing cell stays missing, and is judged later
    if is_typed(cells) and form != AS_SOURCE:  # typed cells have no decimal sign and no format
        return _said(cells, _usual(column), ".", units)[0], 0
    readings = [_said(cells, column, decimal, units)]
    if form != AS_SOURCE:
        readings.append(_said(cells, _usual(column), ".", units))
    (declared, of_declared), (other, of_other) = readings[0], readings[-1]
    differ = (declared != other).to_numpy()
    for good in (_READ, {*_READ, Kind.CLIPPED}):
        fits = [bool(np.isin(kinds, list(good)).all()) for _, kinds in readings]
        if fits[0]:
            return declared, int(differ.sum()) if fits[-1] else 0
        if fits[-1]:
            return other, 0
    read = [np.isin(kinds, [*_READ, Kind.CLIPPED]) for kinds in (of_declared, of_other)]
    return declared.where(read[0] | ~read[1], other), int((differ & read[0] & read[1]).sum())


def _usual(column: Column) -> Column:
    """Return a column as dpsynth writes it, with the usual words for true and false."""
    column = column_as_written(column)
    if not column.kind.is_truth:
        return column
    taken = {*column.true_values, *column.false_values, *column.missing_values}
    true, false = (
        (*own, *(word for word in usual if word not in taken))
        for own, usual in (
            (column.true_values, _PLAIN.true_values),
            (column.false_values, _PLAIN.false_values),
        )
    )
    return replace(column, true_values=true, false_values=false)


def _said(
    cells: pd.Series[Any], column: Column, decimal: str, units: pd.Series[Any] | None
) -> tuple[pd.Series[Any], npt.NDArray[np.uint8]]:
    """Return cells as dpsynth writes what a convention reads, and how it reads each.

    A cell that it does not read keeps its own text; a missing one is empty.
    """
    texts = trimmed(texts_of(cells, boolean=True)).to_pandas().astype(object)
    texts = texts.where(texts.notna(), "").reset_index(drop=True)
    coder: SetCoder | Any
    if column.several is not None:
        coder = SetCoder(column, decimal)
        kinds, read = coder.kinds(cells), coder.bounded
    else:
        coder = coder_of(column, decimal)
        kinds = coder.kinds(cells, units)
        made_by = _levels(column, coder) if column.is_categorical else _values(column, decimal)
        read = partial(made_by, units=units)
    good = kinds == Kind.VALID
    if not column.is_categorical:
        good |= kinds == Kind.CLIPPED
    said = texts_of(read(cells), boolean=True).to_pandas().astype(object)
    said = said.where(said.notna(), "").reset_index(drop=True)
    good &= (said != "").to_numpy()
    return texts.where(~good, said).mask(kinds == Kind.MISSING, ""), kinds


def _levels(column: Column, coder: Any) -> Callable[..., pd.Series[Any]]:
    """Return what gives the category of each cell, None without one."""
    levels = np.array([*column.levels, None], dtype=object)

    def read(cells: pd.Series[Any], units: pd.Series[Any] | None) -> pd.Series[Any]:
        codes = np.asarray(coder.encode(cells, units))
        return pd.Series(levels[np.where(codes < 0, len(levels) - 1, codes)], dtype=object)

    return read


def _values(column: Column, decimal: str) -> Callable[..., pd.Series[Any]]:
    """Return what gives the value of each cell, not bounded; None without one."""

    def read(cells: pd.Series[Any], units: pd.Series[Any] | None) -> pd.Series[Any]:
        values, missing = read_cells(cells, column, decimal, units)
        gone = missing | ~np.isfinite(values)
        if column.kind.whole:
            gone |= np.abs(values) > MAX_WHOLE
        typed = typed_series(np.where(gone, 0.0, values), gone, replace(column, required=False))
        return written_cells(typed, column) if column.kind.is_spelled else typed

    return read


Floats = npt.NDArray[np.float64]


def cell_values(cells: pd.Series[Any], column: Column) -> Floats:
    """Read the cells of a synthetic column, text or typed, as numbers; NaN where missing.

    Numbers and times in the unit of their type; false and true as 0 and 1; strings as the place of
    the category. A cell of several codes has a number by its text.
    """
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return typed_values(cells, column.kind)
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    of_text, texts = pd.factorize(cells.to_numpy(dtype=object))
    if column.several is not None:
        words = [str(text) for text in texts]
        numbers = np.where([word == "" for word in words], np.nan, set_values(words))
        return np.append(numbers, np.nan)[of_text]
    levels = {text: float(place) for place, text in enumerate(column.levels)}
    values = [_value(str(text), column, levels) for text in texts]
    return np.array([*values, np.nan])[of_text]


def values_of(frame: pd.DataFrame, column: Column, table: SyntheticTable) -> Floats:
    """Read a column of a frame of a table as numbers, as `cell_values` does."""
    if table.is_number(column):
        return cell_values(table.numbers(frame, column), as_number(column))
    cells = frame[column.name]
    if not table.is_measured(column):
        return cell_values(cells, column)
    values = np.full(len(frame), np.nan)
    for test, rows in rows_of_tests(frame, table):
        values[rows] = cell_values(cells.iloc[rows], test)
    return values


def rows_of_tests(
    frame: pd.DataFrame, table: SyntheticTable
) -> list[tuple[Column, npt.NDArray[np.int64]]]:
    """Return the places of each test's rows in a frame of a long table."""
    assert table.series is not None
    names = frame[table.series.column].to_numpy(dtype=object)
    return [(test, np.flatnonzero(names == test.name)) for test in table.series.columns]


def typed_frame(
    frame: pd.DataFrame, table: SyntheticTable, names: Container[str] | None = None
) -> pd.DataFrame:
    """Give each column of a conforming frame, or those of these names, its declared type."""
    columns = {}
    for column in table.schema.modelled:
        if names is not None and column.name not in names:
            continue
        cells = frame[column.name]
        if not column.kind.is_text or column.is_categorical:
            columns[column.name] = typed_cells(cells, column)
        elif table.is_measured(column):
            columns[column.name] = _texts_of_tests(frame, table, column)
        else:
            numbers = values_of(frame, column, table).astype(np.int64)
            texts = text_keys(numbers) if column.name == table.key else numbers.astype(str)
            columns[column.name] = pd.Series(texts, dtype=object)
    return pd.DataFrame(columns)


def _texts_of_tests(frame: pd.DataFrame, table: SyntheticTable, column: Column) -> pd.Series[Any]:
    """Write the value of each row as its test does."""
    texts = np.full(len(frame), None, dtype=object)
    for test, rows in rows_of_tests(frame, table):
        cells = typed_cells(frame[column.name].iloc[rows], test)
        texts[rows] = texts_of(cells, boolean=True)
    return pd.Series(texts)


def _value(text: str, column: Column, levels: Mapping[str, float]) -> float:
    """Read one text as `write_table` writes it; NaN if it is missing or no value of the column."""
    if text == "" or text in column.missing_values:
        return math.nan
    kind = column.kind
    if kind.is_text:
        return levels.get(text, math.nan)
    if kind.is_truth:
        return float(text in column.true_values or text == "true")
    if kind.is_spelled and kind.read is not None:
        return kind.read(text, None)
    try:
        return float(text)
    except ValueError:
        return math.nan


def typed_cells(cells: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Give a conforming column its declared type."""
    values = cell_values(cells, column)
    missing = np.isnan(values)
    if column.several is not None:
        texts = cells.to_numpy(dtype=object).copy()
        texts[missing] = None
        return pd.Series(texts)
    known = np.where(missing, 0.0, values)
    if column.kind.is_text:
        levels = np.array([*column.levels, None], dtype=object)
        return pd.Series(levels[np.where(missing, len(column.levels), known.astype(np.int64))])
    if column.kind.is_truth:
        return pd.Series(pd.arrays.BooleanArray(known != 0, missing))
    return typed_series(known, missing, replace(column, required=False))


def canonical(values: Floats) -> bytes:
    """Give bytes that are equal for equal values: one NaN, one zero."""
    return np.where(np.isnan(values), np.nan, values + 0.0).tobytes()
