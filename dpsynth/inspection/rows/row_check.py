"""What the rows of a table are: rules that they break, duplicates, and how they divide into units.

Rows are compared by 64-bit hashes of their texts, so that the memory is 8 bytes a row. Two
different rows of ten million share a hash with probability below 1 in 100,000.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.encoding.column_codecs import Kind
from dpsynth.inspection.column_check import ColumnCheck, Kinds
from dpsynth.inspection.findings import DUPLICATES, REPEATED
from dpsynth.inspection.rows.row_facts import RowFacts
from dpsynth.schema import Schema
from dpsynth.tables import texts_of
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class RowCheck:
    """Counts the rows of a table, chunk by chunk.

    Attributes:
        judged: rows of which each rule could be judged, ``[rules]``.
        broken: those that break it, ``[rules]``.
    """

    def __init__(self, schema: Schema) -> None:
        """Take the declared unit, order and rules."""
        self._schema = schema
        self.broken = np.zeros(len(schema.rules), dtype=np.int64)
        self._codec = Codec(schema)
        self.judged = np.zeros(len(schema.rules), dtype=np.int64)
        self._units: list[Ints] = []
        self._whole: list[Hashes] = []
        self._visits: list[Hashes] = []

    def add(
        self,
        chunk: pd.DataFrame,
        units: Ints,
        kinds: dict[str, Kinds],
        columns: dict[str, ColumnCheck],
    ) -> None:
        """Count the rows of a chunk.

        Args:
            chunk: its cells.
            units: the unit of each row.
            kinds: of the cells of each modelled column.
            columns: their checks.
        """
        self._units.append(units)
        if self._schema.unit.column is not None:
            self._whole.append(_hashes(chunk)[units != NO_KEY])
        order = self._schema.order_column
        if self._schema.unit.column is not None and order is not None:
            texts = texts_of(chunk[order]).to_pandas().str.strip()
            known = (units != NO_KEY) & texts.notna().to_numpy() & (texts != "").to_numpy()
            visits = pd.DataFrame({"unit": units.astype(str), "order": texts.astype(object)})
            self._visits.append(_hashes(visits)[known])
        self.add_rules(chunk, kinds, columns)

    def add_rules(
        self,
        chunk: pd.DataFrame,
        kinds: dict[str, Kinds],
        columns: dict[str, ColumnCheck],
        rules: Collection[int] | None = None,
        numbers: Ints | None = None,
    ) -> None:
        """Judge the rules on the rows of a chunk.

        Args:
            chunk: its cells.
            kinds: of the cells of each modelled column that a rule names.
            columns: their checks.
            rules: the places of those that are judged; all if None.
            numbers: how often each row is there; once if None.
        """
        cells = self._codec.bounded(chunk) if self._schema.rules else chunk
        each = np.ones(len(chunk), dtype=np.int64) if numbers is None else numbers
        for place, rule in enumerate(self._schema.rules):
            if not set(rule.columns) <= set(columns) or (rules is not None and place not in rules):
                continue  # it names a column that the table does not have, only the codes
            judged = np.ones(len(chunk), dtype=bool)
            for name in rule.columns:
                judged &= kinds[name] == Kind.VALID
            holds = rule.holds(cells)
            self.judged[place] += each[judged].sum()
            self.broken[place] += each[judged & ~holds].sum()

    @property
    def units(self) -> Ints:
        """The unit of each row."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._units])

    def facts(self) -> RowFacts:
        """Return what was counted."""
        units = self.units
        sizes, numbers = np.unique(np.bincount(units[units != NO_KEY]), return_counts=True)
        return RowFacts(
            self._schema,
            len(units),
            int((units == NO_KEY).sum()),
            {
                rows: number
                for rows, number in zip(sizes.tolist(), numbers.tolist(), strict=True)
                if rows
            },
            self.judged,
            self.broken,
            {DUPLICATES: _again(self._whole), REPEATED: _again(self._visits)},
        )


def _again(hashes: list[Hashes]) -> tuple[int, int]:
    """Return how many rows repeat another one, and how many there are."""
    every = np.concatenate(hashes) if hashes else np.empty(0, dtype=np.uint64)
    return len(every) - len(np.unique(every)), len(every)


def _hashes(frame: pd.DataFrame) -> Hashes:
    """Return a hash of each row, of the texts of its cells."""
    texts = pd.DataFrame(
        {place: texts_of(frame.iloc[:, place]).to_pandas() for place in range(frame.shape[1])}
    )
    return np.asarray(pd.util.hash_pandas_object(texts.fillna(""), index=False), dtype=np.uint64)
