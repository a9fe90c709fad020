"""Rows in shards on a disk: read, dealt by unit, seated, and counted shard by shard.

A table read into shards, by whoever reads and codes its parts.

Rows are coded and dealt to shards part by part, then capped and laid out shard by
shard. Each piece of work is answered once (`dpsynth._util.engines`); numbers of rows and
digests of what was written are compared from step to step, and stay internal. Keys are drawn here,
once, by the process that holds the plan. So the same rows are kept whoever does the work.

Coded rows dealt to shards: all rows of a unit into one, which a keyed hash of its key says.

A part of the table is read and coded, and its rows are written sorted by shard. The key of the hash
is drawn from the operating system for each fit and is in no file, so that neither the shard of a
row nor the number that stands for its unit says anything about the unit. Rows of different units
get the same number of 128 bits by chance with a probability below 10^-20 for 10^9 units.

Units of a shard with their rows, at most ``max_rows`` of each, laid out in files.

All rows of a unit are in one shard, so the cap is the same as over the whole table
(`dpsynth.encoding.select`). Units of about as many rows lie together: a group has room for 1, 2, 4,
8, ... rows of a unit, so that no more than half of a file is padding.

Which rows of a unit are kept, and where: whoever lays out its shard chooses the same ones.

The choice follows from a key, the unit, and the order of the unit's own rows in the table, by
SHAKE256. Units are laid out in an order that follows from the same key. The key is drawn once for
each fit by the process that holds the plan, and is in no file. So the choice is uniform for whoever
does not know the key, it depends on no other unit, and a worker that does a shard again keeps the
same rows.

Rows in shards on a disk, counted shard by shard.

Whoever counts, each piece of work is answered once (`dpsynth._util.engines`), and the number of
rows of each shard is compared with what was laid out. Only exact counts and numbers of rows come
back to the process that holds the plan; it adds the noise.

**Privacy.** A unit's rows are all in one shard, where at most ``max_rows`` of them are chosen by
its own rows and a fresh key, as in a `Cohort`. Counts of shards add up to those of a cohort of
all units. So a unit moves them by as much, and the same events pay for them.

Rows of units one after another in one file, from which batches of units are taken.

Training by DP-SGD draws its batches from all units at once, so they lie in one file, mapped into
memory: a batch reads its own rows and no others. Nothing is padded on the disk.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from dpsynth._util.engines import (
    Engine,
    InProcess,
    Take,
    each_once,
    each_once_or_here,
    read_at_once,
)
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks import PART, CodedChunk, Coding, Order, parts_of
from dpsynth.encoding.cohort import Cells, Cohort, assembled, no_unit, placed, ranks_of
from dpsynth.errors import DpsynthError, InputError, NoRowsError
from dpsynth.files import create_private, reason
from dpsynth.privacy import Histogram, Histograms, UnitBound, exact_counts
from dpsynth.schema import PrivacyUnit
from dpsynth.tables import ChunkKeys, Table, size_of

if TYPE_CHECKING:
    from dpsynth.encoding.codec import Codec
    from dpsynth.privacy import Entropy
    from dpsynth.schema import Schema
    from dpsynth.tables import Progress


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
    size = size_of(path) if isinstance(path, Path) else 0
    return min(MOST, max(LEAST, math.ceil(size / PART)))


def is_large(source: object) -> bool:
    """Whether the coded rows of a file are kept on a disk, if nobody says.

    Example:
        >>> is_large("no such file.csv")
        False
    """
    try:
        return isinstance(source, str | Path) and size_of(Path(source)) >= LARGE
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


Ids = npt.NDArray[np.uint64]
OWN = np.uint64(2**64 - 1)
"""In the place of the first half of a hash: the row is a unit of its own."""


@dataclass(frozen=True)
class Dealt:
    """What was written of a part; its numbers are private.

    Attributes:
        name: of its files.
        read: rows that were read.
        ends: where the rows of each shard end, ``[shards]``; all rows that count, in the end.
        digests: of what each shard got, 16 bytes each.
    """

    name: str
    read: int
    ends: npt.NDArray[np.int64]
    digests: tuple[bytes, ...]

    def __repr__(self) -> str:
        """Show no number: the rows may be real."""
        return short_repr(self, "dealt rows")

    def rows_of(self, shard: int) -> slice:
        """Say where the rows of a shard are."""
        return slice(0 if shard == 0 else int(self.ends[shard - 1]), int(self.ends[shard]))


@dataclass(frozen=True)
class Dealer:
    """How rows are dealt.

    Attributes:
        folder: where shards are written.
        shards: how many.
        key: of the hash; secret.
        unit: whose rows stay together.
    """

    folder: Path
    shards: int
    key: bytes
    unit: PrivacyUnit

    def __repr__(self) -> str:
        """Show no key."""
        return short_repr(self, f"{self.shards} shards")

    def deal(self, chunks: Iterable[CodedChunk], number: int) -> Dealt | None:
        """Write the rows of a part, sorted by shard; None if there are none.

        Args:
            chunks: of the part, in order.
            number: of the part.

        Raises:
            InputError: they cannot be written.
        """
        codes: list[npt.NDArray[np.uint16]] = []
        ids: list[Ids] = []
        orders: list[Order] = []
        read = 0
        for chunk in chunks:
            assert chunk.keys is not None
            own, kept = self._units(chunk.keys, (number << 40) + read)
            codes.append(chunk.codes[kept])
            ids.append(own[kept])
            if chunk.order is not None:
                orders.append(chunk.order[kept])
            read += len(kept)
        if not codes:
            return None
        units = np.concatenate(ids)
        shard_of = (units[:, 1] % np.uint64(self.shards)).astype(np.int64)
        ends = np.cumsum(np.bincount(shard_of, minlength=self.shards))
        by_shard = np.argsort(shard_of, kind="stable")
        name = f"part-{number:06}-{secrets.token_hex(4)}"  # if it is done again, under another name
        arrays: dict[str, npt.NDArray[Any]] = {
            "units": units[by_shard],
            "codes": np.concatenate(codes)[by_shard],
        }
        if orders:
            order = np.concatenate(orders)[by_shard]
            arrays["order"] = order.astype("U") if order.dtype == object else order
        digests = [Digest() for _ in ends]
        for kind, array in arrays.items():
            save(self.folder / f"{name}.{kind}", array)
            for digest, rows in zip(digests, np.split(array, ends[:-1]), strict=True):
                digest.add(rows)
        return Dealt(name, read, ends, tuple(digest.value() for digest in digests))

    def _units(self, keys: ChunkKeys, first: int) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return what stands for the unit of each row, ``[rows, 2]``, and which rows count."""
        found = np.empty((keys.rows, 2), dtype=np.uint64)
        found[:, 0], found[:, 1] = OWN, np.arange(first, first + keys.rows, dtype=np.uint64)
        if keys.of_row is None:
            return found, np.ones(keys.rows, dtype=bool)
        hashes = b"".join(
            hashlib.blake2b(
                ("" if text is None else text).encode(errors="surrogatepass"),
                digest_size=16,
                key=self.key,
            ).digest()
            for text in keys.texts
        )
        by_text = np.frombuffer(hashes, dtype=np.uint64).reshape(-1, 2)
        there = np.array([*(text is not None for text in keys.texts), False])
        kept = there[keys.of_row]
        found[kept] = by_text[keys.of_row[kept]]
        return found, kept | (self.unit.missing_key == "own")


@dataclass(frozen=True)
class Dealing:
    """The work of reading, coding and dealing the part of a number."""

    parts: Sequence[Table]
    coding: Coding
    dealer: Dealer

    def __repr__(self) -> str:
        """Name neither file nor schema: logs of other programs may quote it."""
        return short_repr(self, "parts of a table")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def __call__(self, number: int) -> Dealt | None:
        """Read, code and deal a part; it may be blank."""
        chunks = map(self.coding.of, self.parts[number].chunks())
        try:
            return self.dealer.deal(chunks, number)
        except NoRowsError:
            return None


Ints = npt.NDArray[np.int64]

AT_ONCE = 2**17  # rows, with padding


@dataclass(frozen=True)
class Group:
    """Units of a shard that have about as many rows; numbers are private.

    Attributes:
        name: of its files.
        units: how many.
        width: for how many rows of each there is room.
        digest: of what the files hold.
    """

    name: str
    units: int
    width: int
    digest: bytes

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "units")

    def cohorts(self, folder: Path) -> Iterator[Cohort]:
        """Yield the units, some at a time.

        Raises:
            DpsynthError: a file is gone, or was changed; that may be found only after the last.
        """
        codes = mapped(folder / f"{self.name}.codes", self.units)
        counts = mapped(folder / f"{self.name}.rows", self.units)
        step, found = max(1, AT_ONCE // self.width), Digest().add(counts)
        for start in range(0, self.units, step):
            part = slice(start, start + step)
            mask = np.arange(self.width) < counts[part, None]
            found.add(codes[part])
            yield Cohort(codes[part], mask)
        if found.value() != self.digest:
            raise changed()


@dataclass(frozen=True)
class Shard:
    """What was written of a shard; numbers are private.

    Attributes:
        groups: its units.
        dealt: rows that it got.
        rows: that were kept of them.
    """

    groups: tuple[Group, ...]
    dealt: int
    rows: int

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "coded rows of units")


@dataclass(frozen=True)
class Seating:
    """The work of laying out the shard of a number.

    Attributes:
        folder: of the shards.
        dealt: what was written of each part.
        chooser: of the rows of a unit.
        windows: whether a unit keeps consecutive rows.
    """

    folder: Path
    dealt: tuple[Dealt, ...]
    chooser: Chooser
    windows: bool

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "shards of coded rows")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def __call__(self, number: int) -> Shard:
        """Choose rows, and write them unit by unit, the units in random order.

        Raises:
            InputError: they cannot be written.
            DpsynthError: a file is gone, or was changed.
        """
        kinds = ("units", "codes", "order") if self.windows else ("units", "codes")
        found = [self._read(part, number, kinds) for part in self.dealt]
        arrays = [part for part in found if part is not None]
        if not arrays:
            return Shard((), 0, 0)
        ids, codes, *orders = map(np.concatenate, zip(*arrays, strict=True))
        ranks = None
        if orders:
            (order,) = orders
            ranks = ranks_of(order.astype(object) if order.dtype.kind == "U" else order)
        units = _numbered(ids)
        rows, places = self.chooser.select(ids, units, ranks)
        groups = tuple(self._groups(codes, units, rows, places, number))
        return Shard(groups, len(ids), len(rows))

    def _read(
        self, part: Dealt, shard: int, kinds: tuple[str, ...]
    ) -> list[npt.NDArray[Any]] | None:
        """Read what a part holds of a shard, and compare it with what was dealt."""
        place = part.rows_of(shard)
        if place.start == place.stop:
            return None
        found, digest = [], Digest()
        for kind in kinds:
            found.append(mapped(self.folder / f"{part.name}.{kind}", int(part.ends[-1]))[place])
            digest.add(found[-1])
        if digest.value() != part.digests[shard]:
            raise changed()
        return found

    def _groups(
        self,
        codes: npt.NDArray[np.generic],
        units: Ints,
        rows: Ints,
        places: Ints,
        shard: int,
    ) -> Iterator[Group]:
        count_of = np.bincount(units[rows])
        widths = 2 ** np.ceil(np.log2(np.maximum(count_of, 1)))
        widths = np.minimum(widths, self.chooser.maximum)
        own = widths.astype(np.int64)[units[rows]]
        for width in np.unique(own).tolist():
            some = own == width
            name = f"shard-{shard:05}-{width}"
            order = partial(self.chooser.permutation, name)
            group = assembled(codes, units, rows[some], places[some], width, order)
            name = f"{name}-{secrets.token_hex(4)}"  # if it is done again, under another name
            save(self.folder / f"{name}.codes", group.codes)
            counts = group.mask.sum(axis=1, dtype=np.int32)
            save(self.folder / f"{name}.rows", counts)
            digest = Digest().add(counts).add(group.codes)
            yield Group(name, len(counts), width, digest.value())


def _numbered(ids: npt.NDArray[np.generic]) -> Ints:
    """Return a number from 0 for the unit of each row."""
    own: Ids = ids  # type: ignore[assignment]
    order = np.lexsort((own[:, 1], own[:, 0]))
    ordered = own[order]
    new = np.concatenate([[False], (ordered[1:] != ordered[:-1]).any(axis=1)])
    units = np.empty(len(own), dtype=np.int64)
    units[order] = np.cumsum(new)
    return units


def check_seated(dealt: tuple[Dealt, ...], shards: tuple[Shard, ...]) -> None:
    """Compare what shards got with what was dealt to them; the numbers stay here.

    Raises:
        DpsynthError: rows are missing, or there twice.
    """
    for number, shard in enumerate(shards):
        given = sum(place.stop - place.start for place in (d.rows_of(number) for d in dealt))
        if given != shard.dealt or shard.rows > shard.dealt:
            raise DpsynthError("a shard of the coded rows lacks rows or repeats them; fit again")


Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Chooser:
    """How rows are chosen.

    Attributes:
        key: of the hash; secret.
        maximum: rows of a unit that are kept.
    """

    key: bytes
    maximum: int

    def __repr__(self) -> str:
        """Show no key."""
        return short_repr(self, f"{self.maximum} rows of a unit")

    def select(self, ids: Ids, units: Ints, order: Ints | None) -> tuple[Ints, Ints]:
        """Choose rows of each unit, as `dpsynth.encoding.cohort.select` does by entropy.

        Args:
            ids: what stands for the unit of each row, ``[rows, 2]``.
            units: the number of the unit of each row, from 0.
            order: rank of each row in time, if consecutive rows are kept.

        Returns:
            The chosen rows, unit by unit, and the place of each within its unit, from 0.
        """
        counts = np.bincount(units)
        owners = np.empty((len(counts), 2), dtype=np.uint64)
        owners[units] = ids
        many = counts > self.maximum
        if order is not None:
            starts = np.zeros(len(counts))
            starts[many] = (self._words(owners[many], 1) >> np.uint64(11)) * 2.0**-53
            return placed(units, self.maximum, order, lambda found: starts[found])
        within = np.zeros(len(units), dtype=np.uint64)
        of_many = np.flatnonzero(many[units])
        by_unit = of_many[np.argsort(units[of_many], kind="stable")]
        within[by_unit] = self._words(owners[many], counts[many])
        return placed(units, self.maximum, within)

    def permutation(self, group: str, count: int) -> Ints:
        """Return the order of the units of a group, which has a name of its own."""
        words = hashlib.shake_256(self.key + group.encode()).digest(8 * count)
        return np.argsort(np.frombuffer(words, dtype=np.uint64), kind="stable")

    def _words(self, owners: Ids, counts: Ints | int) -> Words:
        """Return so many uniform words of each unit, one unit after another."""
        each = np.broadcast_to(counts, len(owners)).tolist()
        drawn = (
            hashlib.shake_256(self.key + owner.tobytes()).digest(8 * count)
            for owner, count in zip(owners, each, strict=True)
        )
        return np.frombuffer(b"".join(drawn), dtype=np.uint64)


def save(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a new file, of mode 0600 from the start.

    Raises:
        InputError: it cannot be written.
    """
    try:
        with os.fdopen(create_private(path), "wb") as file:
            np.save(file, array, allow_pickle=False)
    except OSError as error:
        raise InputError(
            f"cannot write shards into {path.parent.parent}: {reason(error)}"
        ) from None


class Digest:
    """A digest of arrays, one after another: who reads them again finds out whether they changed.

    >>> Digest().add(np.arange(3)).value() == Digest().add(np.arange(3)).value()
    True
    >>> Digest().add(np.arange(3)).value() == Digest().add(np.arange(1, 4)).value()
    False
    """

    def __init__(self) -> None:
        """Nothing was added yet."""
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, array: npt.NDArray[Any]) -> Self:
        """Add the bytes of an array."""
        self._hash.update(np.ascontiguousarray(array).data)
        return self

    def value(self) -> bytes:
        """Return 16 bytes."""
        return self._hash.digest()


def changed() -> DpsynthError:
    """Say that a file does not hold what was written."""
    return DpsynthError("a shard of the coded rows was changed; fit again")


def mapped(path: Path, rows: int) -> npt.NDArray[Any]:
    """Map a file into memory, to be read only.

    Args:
        path: of the file.
        rows: that it has; at least 1.

    Raises:
        DpsynthError: it is gone, or was changed.
    """
    try:
        array: npt.NDArray[Any] = open_memmap(path, mode="r")  # it refuses objects
    except (OSError, ValueError, EOFError):
        raise DpsynthError("a shard of the coded rows is gone or damaged; fit again") from None
    if len(array) != rows:
        raise changed()
    return array


PIECES = 4  # for each process that counts, at most: each gives back all counts


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
        work = _Counting(
            self.folder,
            self.shards,
            self.cells,
            tuple(histograms),
            tuple(sizes),
            UnitBound.of(event),
            min(len(self.shards), PIECES * self.engine.at_once),
        )
        sums: list[Ints] = []

        def begin() -> Take[_Counted]:
            sums[:] = [
                np.zeros(math.prod(sizes[column] for column in columns), dtype=np.int64)
                for columns in histograms
            ]
            return add

        def add(number: int, counted: _Counted) -> None:
            if counted.rows != [shard.rows for shard in work.shards_of(number)]:
                raise _lacking()
            for whole, part in zip(sums, counted.counts, strict=True):
                whole += part

        each_once_or_here(self.engine, work, work.pieces, begin)
        return sums

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
                raise _lacking()


@dataclass(frozen=True)
class _Counted:
    """Exact counts of some shards, and how many rows of each entered them."""

    rows: list[int]
    counts: list[Ints]

    def __repr__(self) -> str:
        return short_repr(self, "exact counts")


@dataclass(frozen=True)
class _Counting:
    """The work of counting every so many shards, from the one of a number on."""

    folder: Path
    shards: tuple[Shard, ...]
    cells: tuple[tuple[Cells, ...], ...]
    histograms: tuple[Histogram, ...]
    sizes: tuple[int, ...]
    bound: UnitBound
    pieces: int

    def __repr__(self) -> str:
        return short_repr(self, "shards of coded rows")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def shards_of(self, number: int) -> tuple[Shard, ...]:
        """Return the shards of a piece."""
        return self.shards[number :: self.pieces]

    def __call__(self, number: int) -> _Counted:
        rows, whole = [], [np.zeros(1, dtype=np.int64)] * len(self.histograms)
        for shard in self.shards_of(number):
            rows.append(0)
            for cohort in _cohorts(shard, self.folder, self.cells):
                counts = exact_counts(cohort, self.histograms, self.sizes, self.bound)
                whole = [sums + part for sums, part in zip(whole, counts, strict=True)]
                rows[-1] += int(cohort.mask.sum())
        return _Counted(rows, whole)


def _lacking() -> DpsynthError:
    return DpsynthError("a shard of the coded rows lacks rows; fit again")


def _cohorts(shard: Shard, folder: Path, asked: tuple[tuple[Cells, ...], ...]) -> Iterator[Cohort]:
    """Yield the units of a shard, some at a time, with the cells that were asked for."""
    for group in shard.groups:
        for cohort in group.cohorts(folder):
            for cells in asked:
                cohort = cohort.recoded(cells)
            yield cohort


@dataclass(frozen=True)
class StoredRows:
    """Codes of all units, on a disk; how many units and rows there are is private.

    Attributes:
        codes: ``[rows, columns]`` uint16, mapped from a file for its owner alone.
        ends: of each unit, the number of rows up to its last, after a 0; ``[units + 1]``.
        rows_per_unit: how many rows a unit has at most.
    """

    codes: npt.NDArray[np.uint16]
    ends: Ints
    rows_per_unit: int

    def __repr__(self) -> str:
        """Show no number: the rows may be real."""
        return short_repr(self, "coded rows of units")

    def __len__(self) -> int:
        """Count the units: private."""
        return len(self.ends) - 1

    @classmethod
    def write(
        cls, folder: Path, parts: Iterable[Cohort], columns: int, rows_per_unit: int
    ) -> StoredRows:
        """Write units, some at a time, into a new file.

        Args:
            folder: for its owner alone, until the rows are not needed any more.
            parts: the units; each of them is in one part.
            columns: how many each part has.
            rows_per_unit: how many rows a unit has at most; public.

        Raises:
            InputError: the file cannot be written, or no room is left.
            DpsynthError: a part has other columns, or a unit has more rows.
        """
        path = folder / f"units-{secrets.token_hex(4)}.codes"
        counts = [np.zeros(1, dtype=np.int64)]
        try:
            with os.fdopen(create_private(path), "wb") as file:
                for part in parts:
                    of_units = part.mask.sum(axis=1, dtype=np.int64)
                    if part.columns != columns or (of_units > rows_per_unit).any():
                        raise DpsynthError("a shard of the coded rows was changed; fit again")
                    file.write(part.codes[part.mask].astype(np.uint16, copy=False).tobytes())
                    counts.append(of_units)
        except OSError as error:
            raise InputError(f"cannot write shards into {folder.parent}: {reason(error)}") from None
        ends = np.cumsum(np.concatenate(counts))
        shape = (int(ends[-1]), columns)
        codes: npt.NDArray[np.uint16] = np.zeros(shape, dtype=np.uint16)
        if codes.size:
            codes = np.memmap(path, dtype=np.uint16, mode="r", shape=shape)
        return cls(codes, ends, rows_per_unit)

    def cohort(self, chosen: Ints) -> Cohort:
        """Take units by their numbers from 0, with all of their rows; private.

        Returns:
            ``[chosen, rows_per_unit, columns]`` codes and their mask, as `read_cohort` lays them
            out.
        """
        starts, counts = self.ends[chosen], self.ends[chosen + 1] - self.ends[chosen]
        places = np.arange(self.rows_per_unit)
        mask = places < counts[:, None]
        codes = np.zeros((*mask.shape, self.codes.shape[1]), dtype=np.uint16)
        codes[mask] = self.codes[(starts[:, None] + places)[mask]]
        return Cohort(codes, mask)
