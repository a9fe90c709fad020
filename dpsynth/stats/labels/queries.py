"""The public rows that are to be labelled: read, written, and coded like private ones.

They are published with their labels, so nobody may take private rows for them. A column of the
label, if they have one, is left out before anything else is done.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.strict_json import bytes_digest
from dpsynth.encoding import Codec
from dpsynth.errors import DpsynthError, InputError, TableError
from dpsynth.schema import PrivacyUnit, Schema
from dpsynth.stats.labels.task import Task
from dpsynth.tables import (
    Source,
    Table,
    as_source,
    as_written,
    needed_columns,
    open_columns,
    texts_of,
)

MAX_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class Queries:
    """Public rows.

    Attributes:
        cells: their cells as text, without the label; an empty one is an empty text.
        written: whether cells are written as in a synthetic table, and not as in the private one.
    """

    cells: pd.DataFrame
    written: bool

    @classmethod
    def read(cls, source: Source, schema: Schema, label: str) -> Queries:
        """Read public rows, in the dialect of the schema or as a synthetic table is written.

        Args:
            source: a CSV or Parquet file, or a DataFrame.
            schema: of the private table.
            label: the column to leave out; it need not be there.

        Raises:
            InputError: the table cannot be read, lacks a column, or has too many rows.
        """
        table, written = _opened(source, schema, label)
        frames, rows = [], 0
        for chunk in table.chunks():
            rows += len(chunk)
            if rows > MAX_ROWS:
                raise InputError(f"the queries have more than {MAX_ROWS:,} rows; give fewer")
            frames.append(pd.DataFrame({name: _texts(chunk[name]) for name in chunk}))
        return cls.from_csv(_csv(pd.concat(frames, ignore_index=True)), written)

    @classmethod
    def from_csv(cls, content: bytes, written: bool) -> Queries:
        """Read back what `csv` wrote.

        Raises:
            TableError: it is no such table.
        """
        try:
            cells = pd.read_csv(
                io.BytesIO(content), dtype=str, na_filter=False, skip_blank_lines=False
            )
        except (ValueError, pd.errors.ParserError, UnicodeDecodeError):
            raise TableError("the table of queries is damaged") from None
        if _csv(cells) != content:
            raise TableError("the queries have a cell that does not survive being written")
        return cls(cells, written)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.cells)

    def csv(self) -> bytes:
        """Return the cells as a CSV file."""
        return _csv(self.cells)

    @property
    def digest(self) -> str:
        """SHA-256 of the cells."""
        return bytes_digest(self.csv())

    def codes(self, task: Task) -> npt.NDArray[np.uint16]:
        """Return the codes of the rows, ``[rows, columns]``; what is there of the label is filler.

        Raises:
            InputError: a cell breaks a column that refuses, or a column is missing.
        """
        codec = Codec(as_written(task.schema)) if self.written else task.codec
        try:
            return codec.encode(self.cells.assign(**{task.label: task.axis.labels[0]}))
        except DpsynthError as error:
            raise InputError(f"the queries: {error}") from None


def columns_of(schema: Schema, label: str) -> tuple[str, ...]:
    """Return the columns that public rows need: those that are modelled, but the label and keys."""
    plain = replace(schema, unit=PrivacyUnit(column=None, max_rows=1, max_rows_basis=None))
    return tuple(name for name in needed_columns(plain) if name != label)


def _opened(source: Source, schema: Schema, label: str) -> tuple[Table, bool]:
    """Open in the schema's dialect, or else as a synthetic table; say which."""
    source, needed = as_source(source), columns_of(schema, label)
    try:
        return open_columns(source, schema, needed, private=False), False
    except TableError as error:
        if isinstance(source, pd.DataFrame):
            raise
        try:
            return open_columns(source, as_written(schema), needed, private=False), True
        except TableError:
            raise error from None


def _texts(cells: pd.Series[Any]) -> list[str]:
    return ["" if text is None else text for text in texts_of(cells).to_pylist()]


def _csv(cells: pd.DataFrame) -> bytes:
    return cells.to_csv(index=False, lineterminator="\n").encode()
