"""A table read into shards, and counted shard by shard.

Rows are coded and dealt to shards part by part (`dealing`), then capped and laid out shard by shard
(`seating`), and counted shard by shard. Whoever does the work, each number of a piece is answered
once (`dpsynth._util.engines`), and the numbers of rows are compared from step to step. Only numbers
of private rows and exact counts come back to the process that holds the plan; it adds the noise.

**Privacy.** A unit's rows are all in one shard, where at most ``max_rows`` of them are chosen by
its own rows and fresh randomness, as in a `Cohort`. Counts of shards add up to those of a cohort of
all units. So a unit moves them by as much, and the same events pay for them.
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth._util.engines.engine import Engine, InProcess, each_once
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks.coded import Coding
from dpsynth.encoding.chunks.workers import PART, parts_of
from dpsynth.encoding.cohort import Cohort, no_unit
from dpsynth.encoding.shards.dealing import Dealer, Dealing, Dealt
from dpsynth.encoding.shards.seating import Seating, Shard, check_seated
from dpsynth.encoding.sources.recoding import Cells
from dpsynth.errors import DpsynthError, DpsynthWarning, InputError
from dpsynth.privacy import Entropy, Histogram, Histograms, exact_counts

if TYPE_CHECKING:
    from dpsynth.encoding.chunks.coded import CodedChunk
    from dpsynth.encoding.codec import Codec
    from dpsynth.schema import Schema
    from dpsynth.tables import Progress, Table

Ints = npt.NDArray[np.int64]

LARGE = 2**28  # bytes of a file from which its coded rows are kept on a disk
LEAST, MOST = 8, 256  # shards
CELLS = 2**24  # codes of a part that is read by this process


@dataclass(frozen=True)
class ShardedRows:
    """Rows of units in shards on a disk; a `RowSource`.

    Attributes:
        folder: where they are.
        shards: what is in it.
        columns: how many there are, of the cells that were asked for last.
        rows_per_unit: how many rows a unit has at most.
        engine: who counts.
        cells: what was asked for, one list after another.
    """

    folder: Path
    shards: tuple[Shard, ...]
    columns: int
    rows_per_unit: int
    engine: Engine = field(default_factory=InProcess)
    cells: tuple[tuple[Cells, ...], ...] = ()

    def __repr__(self) -> str:
        """Show no number: the rows may be real."""
        return short_repr(self, "coded rows of units")

    def recoded(self, cells: Sequence[Cells]) -> ShardedRows:
        """Return the same rows with other columns; codes are looked up when they are counted."""
        return replace(self, cells=(*self.cells, tuple(cells)), columns=len(cells))

    def counts(
        self, histograms: Sequence[Histogram], sizes: Sequence[int], event: Histograms
    ) -> list[Ints]:
        """Count histograms exactly, shard by shard, after all checks of each; private.

        Raises:
            InputError: a row is not what the event accounts for.
            DpsynthError: a shard is gone or was changed, or too many workers were lost.
        """
        whole = [
            np.zeros(math.prod(sizes[column] for column in columns), dtype=np.int64)
            for columns in histograms
        ]

        def add(number: int, counted: _Counted) -> None:
            if counted.rows != self.shards[number].rows:
                raise DpsynthError("a shard of the coded rows lacks rows; fit again")
            for sums, part in zip(whole, counted.counts, strict=True):
                sums += part

        work = _Counting(
            self.folder, self.shards, self.cells, tuple(histograms), tuple(sizes), event
        )
        each_once(self.engine, work, len(self.shards), add)
        return whole

    def cohorts(self) -> Iterator[Cohort]:
        """Yield all units, some at a time, each with all of its rows; private.

        Raises:
            DpsynthError: a shard is gone or was changed.
        """
        for shard in self.shards:
            rows = 0
            for cohort in _cohorts(shard, self.folder, self.cells):
                rows += int(cohort.mask.sum())
                yield cohort
            if rows != shard.rows:
                raise DpsynthError("a shard of the coded rows lacks rows; fit again")


@dataclass(frozen=True)
class _Counted:
    """Exact counts of a shard, and how many rows entered them."""

    rows: int
    counts: list[Ints]

    def __repr__(self) -> str:
        return short_repr(self, "exact counts")


@dataclass(frozen=True)
class _Counting:
    """The work of counting the shard of a number."""

    folder: Path
    shards: tuple[Shard, ...]
    cells: tuple[tuple[Cells, ...], ...]
    histograms: tuple[Histogram, ...]
    sizes: tuple[int, ...]
    event: Histograms

    def __repr__(self) -> str:
        return short_repr(self, "shards of coded rows")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def __call__(self, number: int) -> _Counted:
        rows, whole = 0, [np.zeros(1, dtype=np.int64)] * len(self.histograms)
        for cohort in _cohorts(self.shards[number], self.folder, self.cells):
            counts = exact_counts(cohort, self.histograms, self.sizes, self.event)
            whole = [sums + part for sums, part in zip(whole, counts, strict=True)]
            rows += int(cohort.mask.sum())
        return _Counted(rows, whole)


def _cohorts(shard: Shard, folder: Path, asked: tuple[tuple[Cells, ...], ...]) -> Iterator[Cohort]:
    """Yield the units of a shard, some at a time, with the cells that were asked for."""
    for group in shard.groups:
        for cohort in group.cohorts(folder):
            for cells in asked:
                cohort = cohort.recoded(cells)
            yield cohort


def read_shards(
    table: Table,
    codec: Codec,
    schema: Schema,
    entropy: Entropy,
    folder: Path,
    *,
    progress: Progress | None = None,
    engine: Engine | None = None,
    shards: int | None = None,
) -> ShardedRows:
    """Read a table into shards, as `read_cohort` does into memory.

    Args:
        table: to read.
        codec: of the schema.
        schema: of the table.
        entropy: chooses rows, wherever that is done.
        folder: empty and for its owner alone, until the rows are not needed any more
            (`dpsynth.files.scratch_folder`). All machines of an engine see it.
        progress: called with the fraction that is done.
        engine: who reads and counts; this process if None.
        shards: how many; by the size of the file if None.

    Raises:
        TableError: the table is damaged, has no rows, or none of them has a key.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.
        InputError: nothing can be written into the folder, or no room is left.

    Warns:
        DpsynthWarning: the engine failed, and this process has read the table instead.
    """
    engine, progress = engine or InProcess(), progress or _silent
    progress(0.0)
    shards = shards or usual_shards(table)
    dealer = Dealer(folder, shards, secrets.token_bytes(32), schema.unit)
    dealt = tuple(_dealt(table, Coding(schema, codec), dealer, engine, progress))
    if not sum(int(part.ends[-1]) for part in dealt):
        raise no_unit(schema)
    found: dict[int, Shard] = {}

    def take(number: int, shard: Shard) -> None:
        found[number] = shard
        progress(0.8 + 0.2 * len(found) / shards)

    each_once(engine, Seating(folder, dealt, schema.unit, entropy), shards, take)
    seated = [found[number] for number in range(shards)]
    check_seated(dealt, seated)
    for part in folder.glob("part-*"):
        part.unlink(missing_ok=True)
    return ShardedRows(folder, tuple(seated), len(codec.names), schema.unit.max_rows, engine)


def usual_shards(table: Table) -> int:
    """Return how many shards a table is dealt to, by the size of its file alone: public."""
    path = getattr(table, "path", None)
    size = path.stat().st_size if isinstance(path, Path) else 0
    return min(MOST, max(LEAST, math.ceil(size / PART)))


def is_large(source: object) -> bool:
    """Whether the coded rows of a file are kept on a disk, if nobody says.

    Example:
        >>> is_large("no such file.csv")
        False
    """
    try:
        return isinstance(source, str | Path) and Path(source).stat().st_size >= LARGE
    except (OSError, ValueError):  # a table of a database, or one that is refused later
        return False


def _silent(_: float) -> None:
    return None


def _dealt(
    table: Table, coding: Coding, dealer: Dealer, engine: Engine, progress: Progress
) -> list[Dealt]:
    """Read, code and deal all rows: wherever the engine does, or in this process."""
    if parts := parts_of(table, engine):
        try:
            if dealt := _dealt_at_once(Dealing(parts, coding, dealer), engine, progress):
                return dealt
        except InputError:
            pass  # read again, from the start: the error names its line
        except DpsynthError as error:
            again = f"{error}. This process reads the table again, alone"
            warnings.warn(again, DpsynthWarning, stacklevel=3)
        for part in dealer.folder.glob("part-*"):
            part.unlink(missing_ok=True)
    pieces = _pieces(map(coding.of, table.chunks(lambda done: progress(0.8 * done))))
    found = [dealer.deal(chunks, number) for number, chunks in enumerate(pieces)]
    return [part for part in found if part is not None]


def _dealt_at_once(work: Dealing, engine: Engine, progress: Progress) -> list[Dealt]:
    found: dict[int, Dealt | None] = {}

    def take(number: int, part: Dealt | None) -> None:
        found[number] = part
        progress(0.8 * len(found) / len(work.parts))

    each_once(engine, work, len(work.parts), take)
    return [part for _, part in sorted(found.items()) if part is not None]


def _pieces(chunks: Iterator[CodedChunk]) -> Iterator[list[CodedChunk]]:
    """Put chunks together to pieces of about `CELLS` codes."""
    waiting: list[CodedChunk] = []
    for chunk in chunks:
        waiting.append(chunk)
        if sum(one.codes.size for one in waiting) >= CELLS:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
