"""All chunks of a table, in order, however many processes read them.

Several processes read parts of the file that hold whole rows. If one of them fails, whatever the
reason, this process reads the table from the start by itself: then an error names the same line as
ever, and nothing depends on the number of processes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.workers import WorkerPool
from dpsynth.encoding.chunks.coded import CodedChunk, CodedRows, Coding
from dpsynth.errors import DpsynthError, NoRowsError
from dpsynth.tables import Divisible

if TYPE_CHECKING:
    from dpsynth.tables import Progress, Table

PART = 2**25  # bytes of a file that one process reads at a time, about
LARGE = 2**26  # bytes of a file that several processes read sooner than one, which need not start
_SHARES = 2  # parts for each process, at least: none waits long for the others


def coded_rows(
    table: Table, coding: Coding, *, workers: int = 1, progress: Progress | None = None
) -> CodedRows:
    """Read and code all rows of a table.

    Args:
        table: to read.
        coding: how.
        workers: processes that read at once. Files that can be cut are CSV, not compressed, and
            Parquet of several row groups; another table is read by this process alone.
        progress: called with the fraction that has been read.

    Raises:
        TableError: the table is damaged, or has no rows.
        RefusedCellError: as `Coding.of`.
    """
    parts = _parts(table, workers) if workers > 1 else []
    if parts:
        try:
            if len(rows := _read_at_once(parts, coding, workers, progress)):
                return rows
        except DpsynthError:
            pass  # read again, from the start
    rows = CodedRows(coding.schema)
    for chunk in table.chunks(progress):
        rows.add(coding.of(chunk))
    return rows


def usual_workers(source: object) -> int:
    """Return how many processes read a table, if nobody says: one for each core if it is large.

    Example:
        >>> usual_workers("no such file.csv")
        1
    """
    if not isinstance(source, str | Path):
        return 1
    try:
        return os.cpu_count() or 1 if Path(source).stat().st_size >= LARGE else 1
    except (OSError, ValueError):  # a table of a database, or one that is refused later
        return 1


def _parts(table: Table, workers: int) -> Sequence[Table]:
    if not isinstance(table, Divisible):
        return []
    size = table.path.stat().st_size
    return table.parts(max(_SHARES * workers, math.ceil(size / PART)))


@dataclass(frozen=True)
class _Reading:
    """The work of a process: to read and code the part of a number."""

    parts: Sequence[Table]
    coding: Coding

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def __call__(self, number: int) -> tuple[int, list[CodedChunk]]:
        try:
            return number, [self.coding.of(chunk) for chunk in self.parts[number].chunks()]
        except NoRowsError:  # a part may be blank
            return number, []


def _read_at_once(
    parts: Sequence[Table], coding: Coding, workers: int, progress: Progress | None
) -> CodedRows:
    """Read parts as processes are free, and take them in order."""
    rows, done = CodedRows(coding.schema), 0
    early: dict[int, list[CodedChunk]] = {}
    waiting = iter(range(len(parts)))
    with WorkerPool(_Reading(parts, coding)) as pool:
        pool.start_workers(min(workers, len(parts)))
        while done < len(parts):
            while pool.idle and (number := next(waiting, None)) is not None:
                pool.start(number)
            if (answer := pool.next()) is None:
                continue
            early[answer[0]] = answer[1]
            while done in early:
                for chunk in early.pop(done):
                    rows.add(chunk)
                done += 1
            if progress is not None:
                progress(done / len(parts))
    return rows
