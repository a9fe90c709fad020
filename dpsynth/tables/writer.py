"""Synthetic tables to CSV and Parquet: streamed, whole or not at all, repeatable to the byte."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import file_digest
from dpsynth.files import atomic_file, atomic_folder, check_vacant, write_private
from dpsynth.schema import (
    NOTE_FILE,
    SINGLE,
    AnySchema,
    Column,
    Schema,
    file_stem,
    lattice_of,
    published_tables,
)
from dpsynth.tables.cell_values import written_cells
from dpsynth.tables.checks import CHUNK
from dpsynth.tables.formats import WRITTEN, table_kind
from dpsynth.tables.text_columns import distinct, is_typed, texts_of

SYNTHETIC_NOTE = {b"synthetic": b"true", b"generator": b"dpsynth"}
"""Metadata of every Parquet file that holds synthetic rows."""
Shaped = Any  # a block as it is written: the bytes of its text, or an Arrow table
Shape = Callable[[pd.DataFrame], Shaped]
Put = Callable[[Shaped], None]  # takes one block
Sink = Any  # a binary file that is only written to


def write_table(
    frames: Iterable[pd.DataFrame],
    path: str | Path,
    schema: Schema,
    *,
    overwrite: bool = False,
    private: bool = False,
) -> str:
    """Write decoded frames as one table, by the suffix .csv, .csv.gz or .parquet.

    CSV follows RFC 4180 but for line ends of one byte (LF), whatever the dialect of the source: a
    missing cell is empty, numbers have the decimals of their declared step, or as many as each cell
    needs where none is declared, dates are ISO 8601, truth values are true and false. Parquet holds
    int64, double, bool, string, date32, time32[ms], timestamp[us] and duration[s], and its metadata
    say that the rows are synthetic.
    Bytes depend on the rows alone, not on how they were cut into frames. With ``private``, the file
    is for its owner alone.

    Returns:
        The SHA-256 (hex) of the file.

    Raises:
        TableError: the suffix is unknown; checked before the first frame is asked for.
        InputError: the file exists and ``overwrite`` is False, or cannot be written.
        ValueError: a frame lacks a column.
    """
    check_output(path, overwrite=overwrite)
    blocks = map(shape_of(path, schema), _blocks(frames, schema))
    return write_shaped(blocks, path, schema, overwrite=overwrite, private=private)


def write_shaped(
    blocks: Iterable[Shaped],
    path: str | Path,
    schema: Schema,
    *,
    overwrite: bool = False,
    private: bool = False,
) -> str:
    """Write blocks of `CHUNK` rows that `shape_of` has shaped, as `write_table` would.

    Several processes may shape blocks; one writes them, in order. All blocks but the last have
    exactly `CHUNK` rows.
    """
    target = path_of(path)
    check_output(target, overwrite=overwrite)
    with atomic_file(target, new=not overwrite, private=private) as temporary:
        with temporary.open("wb") as file, WRITERS[table_kind(target)](file, schema) as put:
            for block in blocks:
                put(block)
        return file_digest(temporary)  # of these rows, whoever may replace the file later


def shape_of(path: str | Path, schema: Schema) -> Shape:
    """Return what turns a block of rows into what is written of it; it can be pickled.

    Raises:
        TableError: the suffix is unknown.
    """
    return SHAPES[table_kind(path_of(path))](schema)


def says_synthetic(path: Path) -> bool:
    """Tell whether a file is a Parquet file whose metadata say that dpsynth wrote it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError):
        return False
    return SYNTHETIC_NOTE.items() <= metadata.items()


def table_digests(
    frames: Iterable[pd.DataFrame], schema: Schema, kinds: Sequence[str]
) -> tuple[str, ...]:
    """Return the SHA-256 of the files that `write_table` would write, and write none."""
    sums = [_Sum() for _ in kinds]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(WRITERS[kind](total, schema))
            for kind, total in zip(kinds, sums, strict=True)
        ]
        shapes = [SHAPES[kind](schema) for kind in kinds]
        for block in _blocks(frames, schema):
            for shape, put in zip(shapes, writers, strict=True):
                put(shape(block))
    return tuple(total.sha256.hexdigest() for total in sums)


class _Sum(io.RawIOBase):
    """A file of which only the digest is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.sha256 = hashlib.sha256()
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.sha256.update(content)
        size = memoryview(content).nbytes
        self._written += size
        return size

    def tell(self) -> int:
        return self._written


def check_output(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a destination that `write_table` would refuse; worth calling before long work.

    Raises:
        TableError: the suffix is unknown.
        InputError: it exists and ``overwrite`` is False, or nothing can be written there.
    """
    table_kind(path_of(path))
    if not (overwrite and Path(path).is_file()):
        check_vacant(path)


def _blocks(frames: Iterable[pd.DataFrame], schema: Schema) -> Iterator[pd.DataFrame]:
    """Cut the rows of all frames into blocks of `CHUNK` rows, with the modelled columns."""
    blocks = RowBlocks(schema)
    for frame in frames:
        yield from blocks.add(frame)
    yield from blocks.rest()


class RowBlocks:
    """Rows that come in frames of any length, cut into blocks of `CHUNK` rows."""

    def __init__(self, schema: Schema) -> None:
        """Take the modelled columns of a schema."""
        self._names = [column.name for column in schema.modelled]
        self._waiting: list[pd.DataFrame] = []
        self._rows = 0

    def add(self, frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """Yield the blocks that a frame completes; a `ValueError` names columns that it lacks."""
        absent = [name for name in self._names if name not in frame.columns]
        if absent:
            raise ValueError(f"a frame lacks the columns {', '.join(absent)}")
        self._waiting.append(frame[self._names])
        self._rows += len(frame)
        while self._rows >= CHUNK:
            several = len(self._waiting) > 1
            rows = pd.concat(self._waiting, ignore_index=True) if several else self._waiting[0]
            yield rows.iloc[:CHUNK]
            self._waiting, self._rows = [rows.iloc[CHUNK:]], self._rows - CHUNK

    def rest(self) -> Iterator[pd.DataFrame]:
        """Yield the rows that are left, if there are any."""
        if self._rows:
            yield pd.concat(self._waiting, ignore_index=True)


class _TextShape:
    """Blocks as the lines of a CSV file, in UTF-8."""

    def __init__(self, schema: Schema) -> None:
        self._spell = [_Spelling(column) for column in schema.modelled]

    def __call__(self, block: pd.DataFrame) -> bytes:
        columns = [speller.texts(block[speller.column.name]) for speller in self._spell]
        return _lines(zip(*columns, strict=True))


def _lines(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


@contextmanager
def _csv_writer(file: Sink, schema: Schema) -> Iterator[Put]:
    """Write the names of the columns, and then blocks as they are."""
    file.write(_lines([[column.name for column in schema.modelled]]))
    yield file.write


@contextmanager
def _gzip_writer(file: Sink, schema: Schema) -> Iterator[Put]:
    """Write blocks as gzipped text, which records neither its name nor the time."""
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed,
        _csv_writer(packed, schema) as put,
    ):
        yield put


class _Spelling:
    """How the cells of one column are written as text."""

    def __init__(self, column: Column) -> None:
        self.column = column
        numeric = column.kind.has_decimals and not column.is_categorical
        self._decimals = lattice_of(column).decimals if numeric else None
        self._as_needed = column.step is None

    def texts(self, cells: pd.Series[Any]) -> npt.NDArray[np.object_]:
        """Return the texts of a block of cells, empty where missing; spells each value once."""
        if is_typed(cells) and self.column.kind.is_spelled:
            return written_cells(cells, self.column).fillna("").to_numpy(dtype=object)
        if self._decimals is not None:
            of_text, values = pd.factorize(cells.to_numpy(dtype=np.float64))
            spelled = [f"%.{self._decimals}f" % value for value in values.tolist()]
            if self._as_needed and self._decimals:
                spelled = [text.rstrip("0").rstrip(".") for text in spelled]
        else:
            of_text, texts = distinct(texts_of(cells, boolean=True))
            spelled = [self._spell(text) for text in texts]
        return np.array([*spelled, ""], dtype=object)[of_text]

    def _spell(self, text: str) -> str:
        kind = self.column.kind
        if kind.read is None or kind.write is None:
            return text.zfill(kind.digits)
        value = kind.read(text, None)
        return kind.write(value) if value == value else text


class _ArrowShape:
    """Blocks as Arrow tables."""

    def __init__(self, schema: Schema) -> None:
        import pyarrow as pa

        self.layout = pa.schema(
            [
                pa.field(
                    column.name, pa.type_for_alias(column.kind.arrow), nullable=column.nullable
                )
                for column in schema.modelled
            ],
            metadata=SYNTHETIC_NOTE,
        )

    def __call__(self, block: pd.DataFrame) -> Any:
        import pyarrow as pa

        cells = [_arrow(block[field.name], field.type) for field in self.layout]
        return pa.Table.from_arrays(cells, schema=self.layout)


@contextmanager
def _parquet_writer(file: Sink, schema: Schema) -> Iterator[Put]:
    """Write each block as one row group."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, _ArrowShape(schema).layout, compression="zstd") as writer:
        yield lambda block: writer.write_table(block, row_group_size=CHUNK)


def _arrow(cells: pd.Series[Any], kind: Any) -> Any:
    """Return a decoded column as an Arrow array, null where missing."""
    import pyarrow as pa

    if cells.dtype.kind == "M":
        return pa.array(cells.to_numpy(), from_pandas=True).cast(kind)
    if pa.types.is_duration(kind):
        return pa.array(cells, type=pa.int64(), from_pandas=True).cast(kind)
    return pa.array(cells, type=kind, from_pandas=True)


WRITERS: dict[str, Callable[[Sink, Schema], AbstractContextManager[Put]]] = {
    ".csv": _csv_writer,
    ".csv.gz": _gzip_writer,
    ".parquet": _parquet_writer,
}

SHAPES: dict[str, Callable[[Schema], Shape]] = {
    ".csv": _TextShape,
    ".csv.gz": _TextShape,
    ".parquet": _ArrowShape,
}


_NOTE = (
    "The tables in this folder are synthetic. dpsynth drew them; no row describes a real person.\n"
    "Keep this note with the tables when you pass them on.\n"
)


def write_linked(
    blocks: Iterable[Mapping[str, pd.DataFrame]],
    folder: str | Path,
    tables: Mapping[str, Schema],
    *,
    kind: str = ".csv",
    private: bool = False,
    overwrite: bool = False,
    note: bool = True,
) -> dict[str, str]:
    """Write decoded frames of all tables into a new folder, a file for each; see `write_table`.

    The name of each file says that it is synthetic, such as ``synthetic-labs.csv``, and so does a
    note beside them.

    Args:
        blocks: a frame of each table, for some patients at a time.
        folder: the destination.
        tables: the schema of each table as it is written, by name; see `published_tables`.
        kind: suffix of the files: .csv, .csv.gz or .parquet.
        private: whether the folder is for its owner alone.
        overwrite: replace a folder that is there, if it holds files of these tables alone.
        note: whether the folder gets the note `NOTE_FILE`; a bundle writes one of its own.

    Returns:
        The SHA-256 (hex) of each file, by the name of its table.

    Raises:
        InputError: the folder exists and is not replaced, or cannot be written.
        TableError: the suffix is unknown.
        ValueError: a frame lacks a column.
    """
    table_kind(Path(f"table{kind}"))
    names = {name: f"{file_stem(name)}{kind}" for name in tables}
    replaced = table_files(tables) if overwrite else ()
    with atomic_folder(folder, private=private, replaced=replaced) as temporary:
        with ExitStack() as stack:
            rows = {name: RowBlocks(schema) for name, schema in tables.items()}
            shape = {name: SHAPES[kind](schema) for name, schema in tables.items()}
            put = {}
            for name, schema in tables.items():
                file = stack.enter_context((temporary / names[name]).open("wb"))
                put[name] = stack.enter_context(WRITERS[kind](file, schema))
            for frames in blocks:
                for name, frame in frames.items():
                    for block in rows[name].add(frame):
                        put[name](shape[name](block))
            for name, waiting in rows.items():
                for block in waiting.rest():
                    put[name](shape[name](block))
        if note:
            write = write_private if private else Path.write_bytes
            write(temporary / NOTE_FILE, _NOTE.encode())
        return {name: file_digest(temporary / file) for name, file in names.items()}


def write_synthetic(
    frames: Iterable[Any],
    output: str | Path,
    schema: AnySchema,
    *,
    suffix: str = ".csv",
    overwrite: bool = False,
    private: bool = False,
    note: bool = True,
) -> dict[str, str]:
    """Write what was drawn: one table, or the linked tables of a folder.

    Args:
        frames: of one table; of linked ones, a frame of each table, for some patients at a time.
        output: the table, or the folder; see `write_table` and `write_linked`.
        schema: of the source.
        suffix: of the files of linked tables: .csv, .csv.gz or .parquet.
        overwrite: replace what is there.
        private: whether the output is for its owner alone.
        note: whether a folder gets the note `NOTE_FILE`.

    Returns:
        The SHA-256 (hex) of each file by the name of its table.
    """
    if isinstance(schema, Schema):
        options = {"overwrite": overwrite, "private": private}
        return {SINGLE: write_table(frames, output, schema, **options)}
    return write_linked(
        frames,
        output,
        published_tables(schema),
        kind=suffix,
        private=private,
        overwrite=overwrite,
        note=note,
    )


def check_synthetic_output(
    output: str | Path, schema: AnySchema, *, suffix: str = ".csv", overwrite: bool = False
) -> None:
    """Refuse an output that `write_synthetic` would refuse, before anything is drawn.

    Raises:
        TableError: the suffix is unknown.
        InputError: the output exists and is not replaced.
    """
    if isinstance(schema, Schema):
        check_output(output, overwrite=overwrite)
        return
    table_kind(Path(f"table{suffix}"))
    check_vacant(path_of(output), table_files(published_tables(schema)) if overwrite else ())


def table_files(tables: Iterable[str]) -> list[str]:
    """Return the names that files of tables may have, whatever their kind, and that of the note."""
    return [NOTE_FILE, *(file_stem(name) + suffix for name in tables for suffix in WRITTEN)]
