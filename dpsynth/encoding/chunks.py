"""All chunks of a table, in order, whoever reads them.

Several processes, or other machines, read parts of the file that hold whole rows. If one of them
fails, whatever the reason, this process reads the table from the start by itself: then an error
names the same line as ever, and nothing depends on who reads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.engines import Engine, InProcess, in_order, read_at_once
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import DpsynthError, NoRowsError
from dpsynth.schema import Column, Dialect, Schema
from dpsynth.tables import ChunkKeys, Divisible, Keys, distinct, read_cells, size_of, texts_of
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth.encoding.codec import Codec
    from dpsynth.tables import Progress, Table


PART = 2**25  # bytes of a file that one process reads at a time, about
LARGE = 2**26  # bytes of a file that several processes read sooner than one, which need not start
_SHARES = 2  # parts for each process, at least: none waits long for the others


def coded_rows(
    table: Table,
    coding: Coding,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> CodedRows:
    """Read and code all rows of a table.

    Args:
        table: to read.
        coding: how.
        engine: who reads; this process if None. Files that can be cut are CSV and JSON Lines, not
            compressed, and Parquet of several row groups; another table is read by this process
            alone.
        progress: called with the fraction that has been read.

    Raises:
        TableError: the table is damaged, or has no rows.
        RefusedCellError: as `Coding.of`.

    Warns:
        DpsynthWarning: the engine failed, and this process has read the table instead.
    """
    engine = engine or InProcess()
    parts = parts_of(table, engine)
    if parts and (found := read_at_once(lambda: _coded(parts, coding, engine, progress))):
        return found
    rows = CodedRows(coding.schema)
    for chunk in table.chunks(progress):
        rows.add(coding.of(chunk))
    return rows


def usual_workers(source: object, large: int = LARGE) -> int:
    """Return how many processes read a table, if nobody says: one for each core if it is large.

    Args:
        source: of the table.
        large: bytes from which it is.

    Example:
        >>> usual_workers("no such file.csv")
        1
    """
    if not isinstance(source, str | Path):
        return 1
    try:
        return os.cpu_count() or 1 if size_of(Path(source)) >= large else 1
    except (OSError, ValueError):  # a table of a database, or one that is refused later
        return 1


def parts_of(table: Table, engine: Engine) -> Sequence[Table]:
    """Cut a table into parts that an engine reads at once; none where this process reads it."""
    if not isinstance(table, Divisible) or (engine.at_once == 1 and not engine.distant):
        return []
    count = max(_SHARES * engine.at_once, math.ceil(size_of(table.path) / PART))
    if not engine.distant:
        return table.parts(count)
    seen: Divisible = replace(cast(Any, table), path=table.path.absolute())
    return seen.parts(count)  # workers have folders of their own


@dataclass(frozen=True)
class CodedPart:
    """What was read of a part.

    Attributes:
        rows: how many were read.
        chunks: they, as codes.
    """

    rows: int
    chunks: list[CodedChunk]

    def __repr__(self) -> str:
        """Show no code and no number: the rows may be real."""
        return short_repr(self, "coded rows")


@dataclass(frozen=True)
class Reading:
    """The work of reading and coding the part of a number.

    Workers get no more than this: parts by their places in the file, schema and codec.
    """

    parts: Sequence[Table]
    coding: Coding

    def __repr__(self) -> str:
        """Name neither file nor schema: logs of other programs may quote it."""
        return short_repr(self, "parts of a table")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def __call__(self, number: int) -> CodedPart:
        """Read and code a part; it may be blank."""
        rows, chunks = 0, []
        try:
            for frame in self.parts[number].chunks():
                rows += len(frame)
                chunks.append(self.coding.of(frame))
        except NoRowsError:
            pass
        return CodedPart(rows, chunks)


def _coded(
    parts: Sequence[Table], coding: Coding, engine: Engine, progress: Progress | None
) -> CodedRows:
    """Read parts wherever the engine does, and take them in order.

    Raises:
        DpsynthError: a part failed, or not every row of every part was read and taken once.
    """
    rows, read = CodedRows(coding.schema), 0

    def take(number: int, part: CodedPart) -> None:
        nonlocal read
        read += part.rows
        for chunk in part.chunks:
            rows.add(chunk)
        if progress is not None:
            progress((number + 1) / len(parts))

    in_order(engine, Reading(parts, coding), len(parts), take)
    if len(rows) != read:  # how many stays here
        raise DpsynthError("the rows that were taken are not those that the parts were read with")
    return rows


Order = npt.NDArray[Any]
Refused = Literal["stop", "drop"]
"""What a row with a cell that its column refuses does: stop the reading, or count as absent."""

ORDER_BITS = 48  # of the 53 that a number has


@dataclass(frozen=True)
class CodedChunk:
    """Rows of a chunk.

    Attributes:
        codes: ``[rows, columns]``.
        accepted: which rows have no cell that its column refuses, if such rows are left out.
        keys: of their units, until these have numbers.
        order: what rows are ordered by, where whole windows of a unit's rows are kept.
    """

    codes: npt.NDArray[np.uint16]
    accepted: npt.NDArray[np.bool_] | None
    keys: ChunkKeys | None
    order: Order | None

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows")


class CodedRows:
    """The rows of all chunks; keys get their numbers as chunks come, and are not kept."""

    def __init__(self, schema: Schema) -> None:
        """There are no rows yet."""
        self._keys = Keys(schema)
        self._units: list[npt.NDArray[np.int64]] = []
        self._chunks: list[CodedChunk] = []

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows")

    def add(self, chunk: CodedChunk) -> None:
        """Take the next chunk."""
        assert chunk.keys is not None
        self._units.append(self._keys.numbered(chunk.keys))
        self._chunks.append(replace(chunk, keys=None))

    def __len__(self) -> int:
        """Return how many rows there are."""
        return sum(map(len, self._units))

    @property
    def codes(self) -> npt.NDArray[np.uint16]:
        """Codes of all rows, ``[rows, columns]``."""
        return np.concatenate([chunk.codes for chunk in self._chunks])

    @property
    def order(self) -> Order | None:
        """What rows are ordered by, ``[rows]``."""
        order = [chunk.order for chunk in self._chunks if chunk.order is not None]
        return np.concatenate(order) if order else None

    def units(self) -> npt.NDArray[np.int64]:
        """Return the unit of each row, `NO_KEY` of one that does not count."""
        units = self._keys.own_units(np.concatenate(self._units))
        accepted = [chunk.accepted for chunk in self._chunks if chunk.accepted is not None]
        if accepted:
            units[~np.concatenate(accepted)] = NO_KEY
        return units


@dataclass(frozen=True)
class Coding:
    """How chunks are coded.

    Attributes:
        schema: of the table.
        codec: of the schema.
        refused: what becomes of rows with a cell that its column refuses.
    """

    schema: Schema
    codec: Codec
    refused: Refused = "stop"

    def of(self, chunk: pd.DataFrame) -> CodedChunk:
        """Code a chunk.

        Raises:
            RefusedCellError: a cell broke a column that opts in to ``refuse``, and such rows stop.
        """
        schema, accepted = self.schema, None
        if self.refused == "stop":
            codes = self.codec.encode(chunk)
        else:
            codes, accepted = self.codec.accepted(chunk)
        ordered = schema.column(schema.order_column or "") if schema.unit.keep == "window" else None
        order = None if ordered is None else order_of(chunk[ordered.name], ordered, schema.dialect)
        return CodedChunk(codes, accepted, ChunkKeys.read(chunk, schema), order)


def order_of(cells: pd.Series[Any], column: Column, dialect: Dialect) -> Order:
    """Return what rows are ordered by: numbers and times by value, other cells by text."""
    if not column.kind.is_numeric:
        of_text, texts = distinct(texts_of(cells))
        return np.array([*texts, ""], dtype=object)[of_text]
    values = read_cells(cells, column, dialect.decimal)[0]
    mantissas, exponents = np.frexp(values)  # the last bits are the reader's, not the cell's
    rounded: Order = np.ldexp(np.rint(mantissas * 2**ORDER_BITS), exponents - ORDER_BITS)
    return rounded
