"""Which rows of a unit are kept, and where: whoever lays out its shard chooses the same ones.

The choice follows from a key, the unit, and the order of the unit's own rows in the table, by
SHAKE256. Units are laid out in an order that follows from the same key. The key is drawn once for
each fit by the process that holds the plan, and is in no file. So the choice is uniform for whoever
does not know the key, it depends on no other unit, and a worker that does a shard again keeps the
same rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.cohort import placed
from dpsynth.encoding.shards.dealing import Ids

Ints = npt.NDArray[np.int64]
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
