"""Parquet files: flat columns of any type that a schema can mean, as typed frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import check_layout
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows

# Integers with missing cells stay integers: as float64, long keys would fall together.
NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}

DAMAGED = (pa.ArrowException, OSError, UnicodeDecodeError)  # the last: a name that is no text


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose columns have been checked."""

    path: Path
    columns: tuple[str, ...]
    header: tuple[str, ...]
    groups: tuple[int, ...] | None = None  # the row groups that are read; None: all of them

    @classmethod
    def open(cls, path: Path, needed: tuple[str, ...], schema: Schema | None) -> ParquetTable:
        """Read the file's footer and check names and types.

        Args:
            path: the file.
            needed: the columns to read.
            schema: of a private table, whose types have to be those that it allows; None for a
                synthetic one.

        Raises:
            TableError: not a Parquet file, or columns are missing or of a type that is not allowed.
        """
        with _file(path) as file:
            layout, rows = file.schema_arrow, file.metadata.num_rows
        check_names(layout.names, needed, str(path))
        for name in needed:
            kind = layout.field(name).type
            synthetic_duration = schema is None and pa.types.is_duration(kind)
            if not _is_readable(kind) and not synthetic_duration:
                raise TableError(
                    f"{path}: column '{name}' is {_family(kind)}; a cell must hold one number, "
                    "text, truth value, date, time of day, or date and time"
                )
        if schema is not None and rows:  # without rows a writer guesses the types
            check_layout(layout, needed, schema, str(path))
        return cls(path, needed, tuple(layout.names))

    def parts(self, count: int) -> list[ParquetTable]:
        """Cut the file into about so many parts, of whole row groups."""
        with _file(self.path) as file:
            sizes = np.array(group_sizes(file))
        part_of = (np.cumsum(sizes) - sizes) * count // max(1, int(sizes.sum()))
        groups = [np.flatnonzero(part_of == part) for part in np.unique(part_of)]
        named = [tuple(group.tolist()) for group in groups]
        return [replace(self, groups=group) for group in named] if len(named) > 1 else []

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield typed frames; integers and truth values are nullable dtypes, dates datetime64."""
        with _file(self.path) as file:
            rows = sum(group_sizes(file, self.groups))
            if rows == 0:
                raise no_rows(str(self.path))
            done = 0
            step = chunk_rows(len(self.columns))
            # threads cost a small table more than they save
            batches = file.iter_batches(
                step,
                row_groups=None if self.groups is None else list(self.groups),
                columns=list(self.columns),
                use_threads=rows > step and self.groups is None,
            )
            while True:
                try:
                    batch = next(batches, None)
                    if batch is None:
                        return
                    cells = {name: cells_of(batch.column(name)) for name in self.columns}
                except DAMAGED:  # their messages may quote cells
                    raise TableError(f"{self.path}, after row {done}: damaged") from None
                yield pd.DataFrame(cells)
                done += batch.num_rows
                if progress is not None:
                    progress(done / rows)


def group_sizes(file: Any, groups: Sequence[int] | None = None) -> list[int]:
    """Return how many rows each row group has; of all groups, if none are named."""
    named = range(file.metadata.num_row_groups) if groups is None else groups
    return [file.metadata.row_group(group).num_rows for group in named]


def _file(path: Path) -> Any:
    """Open a Parquet file."""
    try:
        return pq.ParquetFile(path)
    except DAMAGED:
        raise TableError(f"{path} is not a Parquet file, or it is damaged") from None


def _is_readable(kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _is_readable(kind.value_type)
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
        or types.is_null(kind)
    )


def _family(kind: Any) -> str:
    """Name the family of a type; the whole type would quote the names of a struct's fields."""
    return "nested" if pa.types.is_nested(kind) else f"of Parquet type {kind}"


def cells_of(cells: Any) -> pd.Series[Any]:
    """Return one column of a batch as a series that the codec reads."""
    types = pa.types
    kind = cells.type
    if types.is_dictionary(kind):
        return cells_of(cells.dictionary_decode())
    if types.is_decimal(kind):
        cells = cells.cast(pa.string())  # exact
    elif types.is_date(kind):
        cells = cells.cast(pa.date32()).cast(pa.timestamp("s"))
    elif types.is_timestamp(kind):
        local = pc.local_timestamp(cells) if kind.tz is not None else cells
        if kind.unit == "ns":  # a cast would round what lies before 1970 up
            local = pc.floor_temporal(local, unit="microsecond")
        cells = local.cast(pa.timestamp("us"), safe=False)
    elif types.is_time(kind):
        return _clock_texts(cells)
    elif types.is_duration(kind):
        cells = cells.cast(pa.duration("s"), safe=False).cast(pa.int64())
    if types.is_timestamp(cells.type):
        return pd.Series(cells.to_numpy(zero_copy_only=False))
    series: pd.Series[Any] = cells.to_pandas(types_mapper=NULLABLE.get)
    return series


def _clock_texts(cells: Any) -> pd.Series[Any]:
    """Return times of day as text; those that no clock shows, such as 24:00, as well."""
    ticks = cells.cast(pa.time64("us"), safe=False).cast(pa.int64()).dictionary_encode()
    texts = []
    for tick in ticks.dictionary.to_pylist():
        (minutes, seconds), micro = divmod(tick // 1_000_000, 60), tick % 1_000_000
        fraction = f".{micro:06}" if micro else ""
        texts.append(f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{fraction}")
    objects = np.array([*texts, None], dtype=object)
    return pd.Series(objects[ticks.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
