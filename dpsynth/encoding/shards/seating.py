"""Units of a shard with their rows, at most ``max_rows`` of each, laid out in files.

All rows of a unit are in one shard, so the cap is the same as over the whole table
(`dpsynth.encoding.select`). Units of about as many rows lie together: a group has room for 1, 2, 4,
8, ... rows of a unit, so that no more than half of a file is padding.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.cohort import Cohort, assembled, ranks_of, select
from dpsynth.encoding.shards.arrays import mapped, save
from dpsynth.encoding.shards.dealing import Dealt, Ids
from dpsynth.errors import DpsynthError
from dpsynth.privacy import Entropy
from dpsynth.schema import PrivacyUnit

Ints = npt.NDArray[np.int64]

AT_ONCE = 2**17  # rows, with padding


@dataclass(frozen=True)
class Group:
    """Units of a shard that have about as many rows; numbers are private.

    Attributes:
        name: of its files.
        units: how many.
        width: for how many rows of each there is room.
    """

    name: str
    units: int
    width: int

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "units")

    def cohorts(self, folder: Path) -> Iterator[Cohort]:
        """Yield the units, some at a time.

        Raises:
            DpsynthError: a file is gone, or was changed.
        """
        codes = mapped(folder / f"{self.name}.codes", self.units)
        counts = mapped(folder / f"{self.name}.rows", self.units)
        step = max(1, AT_ONCE // self.width)
        for start in range(0, self.units, step):
            part = slice(start, start + step)
            mask = np.arange(self.width) < counts[part, None]
            yield Cohort(codes[part], mask)


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
        unit: how rows of a unit are chosen.
        entropy: chooses them.
    """

    folder: Path
    dealt: tuple[Dealt, ...]
    unit: PrivacyUnit
    entropy: Entropy

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "shards of coded rows")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def __call__(self, number: int) -> Shard:
        """Choose rows, and write them unit by unit; each unit and its rows in random order.

        Raises:
            InputError: they cannot be written.
            DpsynthError: a file is gone, or was changed.
        """
        source = self.entropy
        ids = self._read(number, "units")
        if ids is None:
            return Shard((), 0, 0)
        codes = self._read(number, "codes")
        order = self._read(number, "order") if self.unit.keep == "window" else None
        assert codes is not None
        if order is not None and order.dtype.kind == "U":
            order = order.astype(object)
        units = _numbered(ids)
        ranks = None if order is None else ranks_of(order)
        rows, places = select(units, self.unit.max_rows, source, order=ranks)
        groups = tuple(self._groups(codes, units, rows, places, number, source))
        return Shard(groups, len(ids), len(rows))

    def _read(self, shard: int, kind: str) -> npt.NDArray[np.generic] | None:
        """Gather what parts hold of a shard."""
        found = []
        for part in self.dealt:
            place = part.rows_of(shard)
            if place.start < place.stop:
                whole = mapped(self.folder / f"{part.name}.{kind}", int(part.ends[-1]))
                found.append(whole[place])
        return np.concatenate(found) if found else None

    def _groups(
        self,
        codes: npt.NDArray[np.generic],
        units: Ints,
        rows: Ints,
        places: Ints,
        shard: int,
        source: Entropy,
    ) -> Iterator[Group]:
        count_of = np.bincount(units[rows])
        widths = np.minimum(2 ** np.ceil(np.log2(np.maximum(count_of, 1))), self.unit.max_rows)
        own = widths.astype(np.int64)[units[rows]]
        for width in np.unique(own).tolist():
            some = own == width
            group = assembled(codes, units, rows[some], places[some], width, source)
            name = f"shard-{shard:05}-{width}-{secrets.token_hex(4)}"
            save(self.folder / f"{name}.codes", group.codes)
            save(self.folder / f"{name}.rows", group.mask.sum(axis=1, dtype=np.int32))
            yield Group(name, len(group.mask), width)


def _numbered(ids: npt.NDArray[np.generic]) -> Ints:
    """Return a number from 0 for the unit of each row."""
    own: Ids = ids  # type: ignore[assignment]
    order = np.lexsort((own[:, 1], own[:, 0]))
    ordered = own[order]
    new = np.concatenate([[False], (ordered[1:] != ordered[:-1]).any(axis=1)])
    units = np.empty(len(own), dtype=np.int64)
    units[order] = np.cumsum(new)
    return units


def check_seated(dealt: tuple[Dealt, ...], shards: list[Shard]) -> None:
    """Compare what shards got with what was dealt to them; the numbers stay here.

    Raises:
        DpsynthError: rows are missing, or there twice.
    """
    for number, shard in enumerate(shards):
        given = sum(place.stop - place.start for place in (d.rows_of(number) for d in dealt))
        if given != shard.dealt or shard.rows > shard.dealt:
            raise DpsynthError("a shard of the coded rows lacks rows or repeats them; fit again")
