"""Parquet files: flat columns of any type that a schema can mean, as typed frames.

A table may lie in one file, or in a folder of parts, as Spark, DuckDB and others write it: the
rows of the parts in the order of their names. All parts with rows have the same types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import check_layout
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.formats import files_of
from dpsynth.tables.reference import Reference

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
    """A Parquet file, or a folder of parts, whose columns have been checked."""

    path: Path
    columns: tuple[str, ...]
    header: tuple[str, ...]
    groups: tuple[int, ...] | None = None  # of all files in order, those that are read; None: all

    @classmethod
    def open(
        cls, reference: Reference, needed: tuple[str, ...], schema: Schema | None
    ) -> ParquetTable:
        """Read the footers and check names and types.

        Args:
            reference: the file, or the folder.
            needed: the columns to read.
            schema: of a private table, whose types have to be those that it allows; None for a
                synthetic one.

        Raises:
            TableError: not a Parquet file; or columns are missing, of a type that is not allowed,
                or of another type in another part.
        """
        path = cast(Path, reference.path)
        first: Any = None
        header: tuple[str, ...] = ()
        for part in files_of(path):
            with _file(part) as file:
                layout, rows = file.schema_arrow, file.metadata.num_rows
            check_names(layout.names, needed, str(part))
            for name in needed:
                kind = layout.field(name).type
                synthetic_duration = schema is None and pa.types.is_duration(kind)
                if not _is_readable(kind) and not synthetic_duration:
                    raise TableError(
                        f"{part}: column '{name}' is {_family(kind)}; a cell must hold one number, "
                        "text, truth value, date, time of day, or date and time"
                    )
            header = header or tuple(layout.names)
            if not rows:  # without rows a writer guesses the types
                continue
            first = layout if first is None else first
            for name in needed:
                if layout.field(name).type != first.field(name).type:
                    raise TableError(
                        f"{part}: column '{name}' has another type than in other parts of the "
                        "table; write all parts with the same types"
                    )
        if schema is not None and first is not None:
            check_layout(first, needed, schema, str(path), reference.format.remedy)
        return cls(path, needed, header)

    def parts(self, count: int) -> list[ParquetTable]:
        """Cut the table into about so many parts, of whole row groups."""
        sizes = np.array([rows for _, groups in self._groups() for _, rows in groups])
        part_of = (np.cumsum(sizes) - sizes) * count // max(1, int(sizes.sum()))
        part_of[sizes == 0] = -1
        groups = [np.flatnonzero(part_of == part) for part in np.unique(part_of[sizes > 0])]
        named = [tuple(group.tolist()) for group in groups]
        return [replace(self, groups=group) for group in named] if len(named) > 1 else []

    def _groups(self) -> list[tuple[Path, list[tuple[int, int]]]]:
        """Return for each file its row groups that are read: the number in it, and the rows."""
        found, start = [], 0
        chosen = None if self.groups is None else {*self.groups}
        for path in files_of(self.path):
            with _file(path) as file:
                sizes = [
                    file.metadata.row_group(group).num_rows
                    for group in range(file.metadata.num_row_groups)
                ]
            kept = [
                (group, rows)
                for group, rows in enumerate(sizes)
                if chosen is None or start + group in chosen
            ]
            found.append((path, kept))
            start += len(sizes)
        return found

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield typed frames; integers and truth values are nullable dtypes, dates datetime64."""
        files = self._groups()
        rows = sum(size for _, groups in files for _, size in groups)
        if rows == 0:
            raise no_rows(str(self.path))
        done = 0
        step = chunk_rows(len(self.columns))
        threads = rows > step and self.groups is None  # they cost a small table more than they save
        for path, groups in files:
            numbers = [number for number, _ in groups]
            for batch in batches_of(path, step, self.columns, numbers, threads=threads):
                try:
                    cells = {name: cells_of(batch.column(name)) for name in self.columns}
                except DAMAGED:
                    raise _damaged(path, done) from None
                yield pd.DataFrame(cells)
                done += batch.num_rows
                if progress is not None:
                    progress(done / rows)


def batches_of(
    path: Path,
    step: int,
    columns: Sequence[str] | None = None,
    groups: Sequence[int] | None = None,
    *,
    threads: bool = True,
) -> Iterator[Any]:
    """Yield batches of a file's rows; the errors of the reader may quote cells.

    Raises:
        TableError: the file is damaged.
    """
    done = 0
    with _file(path) as file:
        batches = file.iter_batches(
            step,
            row_groups=None if groups is None else list(groups),
            columns=None if columns is None else list(columns),
            use_threads=threads,
        )
        while True:
            try:
                batch = next(batches, None)
            except DAMAGED:
                raise _damaged(path, done) from None
            if batch is None:
                return
            yield batch
            done += batch.num_rows


def _damaged(path: Path, row: int) -> TableError:
    return TableError(f"{path}, after row {row}: damaged")


def layout_of(path: Path) -> Any:
    """Return the Arrow schema of a table's file, or of all parts in its folder.

    Raises:
        TableError: a file is damaged, or parts differ.
    """
    first: Any = None
    empty: Any = None
    for part in files_of(path):
        with _file(part) as file:
            layout, rows = file.schema_arrow, file.metadata.num_rows
        if not rows:
            empty = empty or layout
            continue
        if first is not None and not layout.equals(first):
            raise TableError(
                f"{part}: its columns or types differ from those of other parts, so the table "
                "cannot be copied; write all parts alike"
            )
        first = layout
    return empty if first is None else first


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
