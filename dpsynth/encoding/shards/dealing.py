"""Coded rows dealt to shards: all rows of a unit into one, which a keyed hash of its key says.

A part of the table is read and coded, and its rows are written sorted by shard. The key of the hash
is drawn from the operating system for each fit and is in no file, so that neither the shard of a
row nor the number that stands for its unit says anything about the unit. Rows of different units
get the same number of 128 bits by chance with a probability below 10^-20 for 10^9 units.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks.coded import CodedChunk, Coding, Order
from dpsynth.encoding.shards.arrays import Digest, save
from dpsynth.errors import NoRowsError
from dpsynth.schema import PrivacyUnit
from dpsynth.tables import ChunkKeys, Table

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
