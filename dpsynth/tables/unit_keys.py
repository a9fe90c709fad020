"""Which rows belong to one privacy unit: keys, compared as the schema declares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.schema import PrivacyUnit, Schema
from dpsynth.tables.cell_values import missing_tokens
from dpsynth.tables.text_columns import distinct, texts_of

Ints = npt.NDArray[np.int64]

NO_KEY = -1


class Keys:
    """Gives each row the number of its unit, in order of first appearance, chunk by chunk."""

    def __init__(self, schema: Schema) -> None:
        """Take the rules by which keys are compared from the schema."""
        self._unit = schema.unit
        self._column = None if schema.unit.column is None else schema.column(schema.unit.column)
        self._numbers: dict[str, int] = {}
        self._rows = 0

    def units(self, chunk: pd.DataFrame) -> Ints:
        """Return the unit of each row of the next chunk, `NO_KEY` where the key is missing."""
        if self._column is None:
            start, self._rows = self._rows, self._rows + len(chunk)
            return np.arange(start, self._rows, dtype=np.int64)
        tokens = missing_tokens(self._column)
        of_text, texts = distinct(texts_of(chunk[self._column.name]))
        numbers = [
            NO_KEY
            if text.strip() in tokens
            else self._numbers.setdefault(normalised(text, self._unit), len(self._numbers))
            for text in texts
        ]
        return np.array([*numbers, NO_KEY], dtype=np.int64)[of_text]

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys seen so far, as they are compared, by the numbers of their units."""
        return tuple(self._numbers)

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
