"""Copies of a file's rows, dealt out to several files: no cell is read, and none is changed.

A CSV row is copied as it stands in the file; a Parquet column keeps its Arrow type. Rows of a side
that has no file are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from dpsynth.errors import TableError
from dpsynth.schema import Dialect
from dpsynth.tables.checks import CHUNK, Progress, chunk_rows
from dpsynth.tables.frames import without_views
from dpsynth.tables.text_columns import cell_text, texts_of

Sides = npt.NDArray[np.int8]  # one a row
Outputs = Mapping[int, Path]  # the file of each side


class SeenRows:
    """What was read of one column, row by row: two readings of a file are alike if this is.

    A file is split by the keys of one reading and copied by another, and the place of a row is all
    that they share.
    """

    def __init__(self) -> None:
        """Begin with no row."""
        self._digest = hashlib.blake2b(digest_size=32)

    def add(self, texts: Iterable[str | None]) -> None:
        """Take the column's texts of the next rows, None where a cell is missing."""
        for text in texts:
            cell = b"" if text is None else b"t" + text.encode()
            self._digest.update(len(cell).to_bytes(4, "little") + cell)

    @property
    def digest(self) -> bytes:
        """Of all that was added; where one cell ends and the next begins is part of it."""
        return self._digest.digest()


@dataclass(frozen=True)
class Dealt:
    """Who goes where, as the first reading of a file says.

    Attributes:
        sides: one for each row.
        column: by whose cells they were dealt out.
        digest: of these cells, in the order of the rows.
    """

    sides: Sides
    column: str
    digest: bytes


def deal(path: Path, dialect: Dialect, dealt: Dealt, outputs: Outputs, progress: Progress) -> None:
    """Copy each row of a table to the file of its side.

    Args:
        path: a CSV or Parquet file.
        dialect: of CSV.
        dealt: the side of each row.
        outputs: a file of the same kind for each side; rows of other sides are left out.
        progress: called with the fraction of rows that were copied.

    Raises:
        TableError: the file is damaged, or its rows are not those that were dealt out.
    """
    rows_read = SeenRows()
    if path.name.lower().endswith(".parquet"):
        _write_parquet(path, dealt, rows_read, outputs, progress)
    else:
        _write_csv(path, dialect, dealt, rows_read, outputs, progress)
    if rows_read.digest != dealt.digest:
        raise _changed(path)


def _write_csv(
    path: Path,
    dialect: Dialect,
    dealt: Dealt,
    rows_read: SeenRows,
    outputs: Outputs,
    progress: Progress,
) -> None:
    """Copy each row's text to its side."""
    from dpsynth.tables.csv import CsvTable

    records = CsvTable(path, (), dialect).records()
    header, names = next(records)
    trimmed = [str(name).strip() for name in names]
    if dealt.column not in trimmed:
        raise _changed(path)
    place, sides = trimmed.index(dealt.column), dealt.sides
    with ExitStack() as stack:
        files = {
            side: stack.enter_context(_text_file(output, dialect.encoding))
            for side, output in outputs.items()
        }
        for file in files.values():
            file.write(header)
        copied = 0
        for side, (record, cells) in zip(sides.tolist(), records, strict=False):
            rows_read.add((cell_text(cells[place]),))
            if side in files:
                files[side].write(record)
            copied += 1
            if copied % CHUNK == 0:
                progress(copied / len(sides))
        if copied < len(sides) or next(records, None) is not None:
            raise _changed(path)


@contextmanager
def _text_file(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text file, gzipped if its name says so; line ends are written as they come."""
    with ExitStack() as stack:
        raw: Any = stack.enter_context(path.open("wb"))
        if path.name.endswith(".gz"):
            raw = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding=encoding, newline=""))


def _write_parquet(
    path: Path, dealt: Dealt, rows_read: SeenRows, outputs: Outputs, progress: Progress
) -> None:
    """Copy each row to its side; columns keep their Arrow types, but a view of texts is texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dpsynth.tables.parquet import cells_of

    sides = dealt.sides
    with ExitStack() as stack:
        file = stack.enter_context(pq.ParquetFile(path))
        layout = without_views(file.schema_arrow)
        if dealt.column not in layout.names:
            raise _changed(path)
        both: list[tuple[int, Any, list[Any]]] = [
            (side, stack.enter_context(pq.ParquetWriter(output, layout, compression="zstd")), [])
            for side, output in outputs.items()
        ]
        start = 0
        for read in _batches(file, path):
            columns = [c.cast(f.type) for c, f in zip(read.columns, layout, strict=True)]
            batch = pa.RecordBatch.from_arrays(columns, schema=layout)
            here = sides[start : start + batch.num_rows]
            start += batch.num_rows
            if start > len(sides):
                raise _changed(path)
            rows_read.add(texts_of(cells_of(batch.column(dealt.column))).to_pylist())
            for side, writer, batches in both:
                batches.append(batch.filter(pa.array(here == side)))
                if sum(part.num_rows for part in batches) >= CHUNK:
                    writer.write_table(pa.Table.from_batches(batches, layout))
                    batches.clear()
            progress(start / len(sides))
        if start < len(sides):
            raise _changed(path)
        for _, writer, batches in both:
            writer.write_table(pa.Table.from_batches(batches, layout))


def _batches(file: Any, path: Path) -> Iterator[Any]:
    """Yield a Parquet file's rows, all columns; the errors of the reader may quote cells."""
    from dpsynth.tables.parquet import DAMAGED

    batches = file.iter_batches(batch_size=chunk_rows(len(file.schema_arrow)))
    while True:
        try:
            batch = next(batches, None)
        except DAMAGED:
            raise TableError(f"{path} is damaged, or has a column that cannot be copied") from None
        if batch is None:
            return
        yield batch


def _changed(path: Path) -> TableError:
    return TableError(f"{path} changed while it was split; split it again")
