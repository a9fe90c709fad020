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
from typing import TYPE_CHECKING, Any, cast

from dpsynth._util.engines import Engine, InProcess, in_order, read_at_once
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks.coded import CodedChunk, CodedRows, Coding
from dpsynth.errors import DpsynthError, NoRowsError
from dpsynth.tables import Divisible

if TYPE_CHECKING:
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
        engine: who reads; this process if None. Files that can be cut are CSV, not compressed, and
            Parquet of several row groups; another table is read by this process alone.
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
        return os.cpu_count() or 1 if Path(source).stat().st_size >= large else 1
    except (OSError, ValueError):  # a table of a database, or one that is refused later
        return 1


def parts_of(table: Table, engine: Engine) -> Sequence[Table]:
    """Cut a table into parts that an engine reads at once; none where this process reads it."""
    if not isinstance(table, Divisible) or (engine.at_once == 1 and not engine.distant):
        return []
    count = max(_SHARES * engine.at_once, math.ceil(table.path.stat().st_size / PART))
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
