"""Which rows belong to one privacy unit: keys, compared as the schema declares."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.schema import PrivacyUnit, Schema
from dpsynth.tables.cell_values import missing_tokens
from dpsynth.tables.text_columns import distinct, texts_of

Ints = npt.NDArray[np.int64]

NO_KEY = -1


@dataclass(frozen=True)
class ChunkKeys:
    """The keys of a chunk's rows, before they have numbers.

    Attributes:
        of_row: for each row, the place of its key among ``texts``; -1 for a missing cell. None if
            each row is a unit.
        texts: the different keys, as they are compared; None for one that counts as missing.
        rows: how many rows there are.
    """

    of_row: Ints | None
    texts: tuple[str | None, ...]
    rows: int

    def __repr__(self) -> str:
        """Show no key: the rows may be real."""
        return short_repr(self, "keys of a chunk")

    @classmethod
    def read(cls, chunk: pd.DataFrame, schema: Schema) -> ChunkKeys:
        """Read the keys of a chunk, each by its own cell."""
        unit = schema.unit
        if unit.column is None:
            return cls(None, (), len(chunk))
        tokens = missing_tokens(schema.column(unit.column))
        of_row, texts = distinct(texts_of(chunk[unit.column]))
        keys = [None if text.strip() in tokens else normalised(text, unit) for text in texts]
        return cls(of_row, tuple(keys), len(chunk))


class Keys:
    """Gives each row the number of its unit, in order of first appearance, chunk by chunk."""

    def __init__(self, schema: Schema) -> None:
        """Take the rules by which keys are compared from the schema."""
        self._schema, self._unit = schema, schema.unit
        self._numbers: dict[str, int] = {}
        self._rows = 0

    def units(self, chunk: pd.DataFrame) -> Ints:
        """Return the unit of each row of the next chunk, `NO_KEY` where the key is missing."""
        return self.numbered(ChunkKeys.read(chunk, self._schema))

    def numbered(self, keys: ChunkKeys) -> Ints:
        """Return the unit of each row of the next chunk, whose keys have been read."""
        if keys.of_row is None:
            start, self._rows = self._rows, self._rows + keys.rows
            return np.arange(start, self._rows, dtype=np.int64)
        numbers = [
            NO_KEY if text is None else self._numbers.setdefault(text, len(self._numbers))
            for text in keys.texts
        ]
        return np.array([*numbers, NO_KEY], dtype=np.int64)[keys.of_row]

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys seen so far, as they are compared, by the numbers of their units."""
        return tuple(self._numbers)

    def newest(self, count: int) -> list[str]:
        """Return the keys of the last units that appeared."""
        return list(islice(reversed(self._numbers), count))[::-1]

    def __len__(self) -> int:
        """Return how many units have appeared."""
        return len(self._numbers)

    def own_units(self, units: Ints) -> Ints:
        """Make each row without a key a unit of its own, if the schema says so."""
        if self._unit.missing_key != "own":
            return units
        keyless = np.flatnonzero(units == NO_KEY)
        units = units.copy()
        units[keyless] = len(self._numbers) + np.arange(len(keyless))
        return units


def normalised(key: str, unit: PrivacyUnit) -> str:
    """Return the text by which a key is compared.

    >>> normalised(" 007a ", PrivacyUnit("id", 1, None, case=True, leading_zeros=False))
    '7a'
    """
    if unit.trim:
        key = key.strip()
    if unit.case:
        key = key.casefold()
    return key if unit.leading_zeros else (key.lstrip("0") or "0")
