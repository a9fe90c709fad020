"""A table read into shards, by whoever reads and codes its parts.

Rows are coded and dealt to shards part by part (`dealing`), then capped and laid out shard by shard
(`seating`). Each piece of work is answered once (`dpsynth._util.engines`); numbers of rows and
digests of what was written are compared from step to step, and stay internal. Keys are drawn here,
once, by the process that holds the plan. So the same rows are kept whoever does the work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpsynth._util.engines import (
    Engine,
    InProcess,
    Take,
    each_once,
    each_once_or_here,
    read_at_once,
)
from dpsynth.encoding.chunks.coded import Coding
from dpsynth.encoding.chunks.workers import PART, parts_of
from dpsynth.encoding.cohort import no_unit
from dpsynth.encoding.shards.choosing import Chooser
from dpsynth.encoding.shards.dealing import Dealer, Dealing, Dealt
from dpsynth.encoding.shards.seating import Seating, Shard, check_seated
from dpsynth.encoding.shards.sharded_rows import ShardedRows

if TYPE_CHECKING:
    from dpsynth.encoding.chunks.coded import CodedChunk
    from dpsynth.encoding.codec import Codec
    from dpsynth.privacy import Entropy
    from dpsynth.schema import Schema
    from dpsynth.tables import Progress, Table

LARGE = 2**28  # bytes of a file from which its coded rows are kept on a disk
LEAST, MOST = 8, 256  # shards
CELLS = 2**24  # codes of a part that is read by this process


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
        entropy: gives the keys by which rows are dealt and chosen; no worker sees it.
        folder: empty and for its owner alone, until the rows are not needed any more
            (`dpsynth.files.scratch_folder`). All machines of an engine see it.
        progress: called with the fraction that is done.
        engine: who reads and counts; this process if None.
        shards: how many; by the size of the file if None.

    Raises:
        TableError: the table is damaged, has no rows, or none of them has a key.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.
        InputError: nothing can be written into the folder, or no room is left.
        DpsynthError: a shard lacks rows, or was changed.

    Warns:
        DpsynthWarning: the engine failed, and this process has done its work instead.
    """
    engine, progress, folder = engine or InProcess(), progress or _silent, folder.absolute()
    progress(0.0)
    shards, unit = shards or usual_shards(table), schema.unit
    dealer = Dealer(folder, shards, _key(entropy), unit)
    chooser = Chooser(_key(entropy), unit.max_rows)
    dealt = _dealt(table, Coding(schema, codec), dealer, engine, progress)
    if not sum(int(part.ends[-1]) for part in dealt):
        raise no_unit(schema)
    seating = Seating(folder, dealt, chooser, unit.keep == "window")
    seated = _seated(seating, shards, engine, progress)
    for part in folder.glob("part-*"):
        part.unlink(missing_ok=True)
    return ShardedRows(folder, seated, len(codec.names), unit.max_rows, engine)


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
) -> tuple[Dealt, ...]:
    """Read, code and deal all rows: wherever the engine does, or in this process."""
    if parts := parts_of(table, engine):
        dealing = Dealing(parts, coding, dealer)
        if dealt := read_at_once(lambda: _dealt_at_once(dealing, engine, progress)):
            return dealt
        for part in dealer.folder.glob("part-*"):
            part.unlink(missing_ok=True)
    pieces = _pieces(map(coding.of, table.chunks(lambda done: progress(0.8 * done))))
    found = (dealer.deal(chunks, number) for number, chunks in enumerate(pieces))
    return tuple(part for part in found if part is not None)


def _dealt_at_once(work: Dealing, engine: Engine, progress: Progress) -> tuple[Dealt, ...]:
    found: dict[int, Dealt | None] = {}

    def take(number: int, part: Dealt | None) -> None:
        found[number] = part
        progress(0.8 * len(found) / len(work.parts))

    each_once(engine, work, len(work.parts), take)
    return tuple(part for _, part in sorted(found.items()) if part is not None)


def _seated(work: Seating, shards: int, engine: Engine, progress: Progress) -> tuple[Shard, ...]:
    """Lay out all shards, and compare them with what was dealt."""
    found: dict[int, Shard] = {}

    def take(number: int, shard: Shard) -> None:
        found[number] = shard
        progress(0.8 + 0.2 * len(found) / shards)

    def begin() -> Take[Shard]:
        found.clear()
        return take

    each_once_or_here(engine, work, shards, begin)
    seated = tuple(found[number] for number in range(shards))
    check_seated(work.dealt, seated)
    return seated


def _key(entropy: Entropy) -> bytes:
    """Draw the key of a hash."""
    return entropy.integers(0, 256, 32).astype(np.uint8).tobytes()


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
