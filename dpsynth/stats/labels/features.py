"""What teachers and the student see of a row: features of 0 and 1, cut by public rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
PARTS = 12  # into which the public rows cut an ordered column
MAX_LEVELS = 24  # of a category that have a feature of their own
MIN_SHARE = 0.005  # of the public rows, for a feature of its own


@dataclass(frozen=True, eq=False)
class Features:
    """Features of coded rows.

    An ordered column has a feature for each of its cuts, 1 from the cut on: equal steps make a
    line, unequal ones any curve. A category has one for each of its commonest values but the first.

    Attributes:
        tables: of each column, the features of each code, ``[codes, features]``.
    """

    tables: tuple[Bits, ...]

    @classmethod
    def cut(cls, codec: Codec, codes: npt.NDArray[np.integer], label: int) -> Features:
        """Cut every column but the label where public rows are: all of it is public.

        Args:
            codec: of the schema.
            codes: of public rows, ``[rows, columns]``.
            label: the place of the label among the columns, which has no feature.
        """
        tables = []
        for place, size in enumerate(codec.sizes):
            if place == label:
                tables.append(np.zeros((size, 0), dtype=np.uint8))
            else:
                tables.append(_table(codes[:, place].astype(np.int64), size, codec.cells[place]))
        return cls(tuple(tables))

    @property
    def count(self) -> int:
        """How many features there are."""
        return sum(table.shape[1] for table in self.tables)

    def of(self, codes: npt.NDArray[np.integer]) -> Bits:
        """Return the features of rows, ``[rows, features]``, from their codes."""
        parts = [table[codes[:, place]] for place, table in enumerate(self.tables)]
        return np.concatenate(parts, axis=1)


def _table(codes: Ints, size: int, ordered: int) -> Bits:
    """Return the features of each code of one column."""
    every = np.arange(size)
    found: list[npt.NDArray[np.bool_]] = []
    if ordered > 1:
        known = np.sort(codes[codes < ordered])
        places = np.arange(1, PARTS) * len(known) // PARTS
        cuts = np.unique(known[places]) if len(known) else every[:0]
        found += [(every >= cut) & (every < ordered) for cut in cuts if cut > 0]
    counts = np.bincount(codes, minlength=size)
    counts[:ordered] = 0
    common = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
    common = common[counts[common] >= max(1.0, MIN_SHARE * len(codes))]
    found += [every == code for code in common[0 if ordered else 1 :]]
    return np.array(found, dtype=np.uint8).reshape(len(found), size).T
