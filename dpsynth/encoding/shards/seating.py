"""Units of a shard with their rows, at most ``max_rows`` of each, laid out in files.

All rows of a unit are in one shard, so the cap is the same as over the whole table
(`dpsynth.encoding.select`). Units of about as many rows lie together: a group has room for 1, 2, 4,
8, ... rows of a unit, so that no more than half of a file is padding.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.cohort import Cohort, assembled, ranks_of
from dpsynth.encoding.shards.arrays import Digest, changed, mapped, save
from dpsynth.encoding.shards.choosing import Chooser
from dpsynth.encoding.shards.dealing import Dealt, Ids
from dpsynth.errors import DpsynthError

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
