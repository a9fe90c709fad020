"""What is kept of a chunk: codes, keys, and what its rows are ordered by; each row by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.schema import Column, Dialect, Schema
from dpsynth.tables import ChunkKeys, Keys, distinct, read_cells, texts_of
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth.encoding.codec import Codec

Order = npt.NDArray[Any]
Refused = Literal["stop", "drop"]
"""What a row with a cell that its column refuses does: stop the reading, or count as absent."""

ORDER_BITS = 48  # of the 53 that a number has


@dataclass(frozen=True)
class CodedChunk:
    """Rows of a chunk.

    Attributes:
        codes: ``[rows, columns]``.
        accepted: which rows have no cell that its column refuses, if such rows are left out.
        keys: of their units, until these have numbers.
        order: what rows are ordered by, where whole windows of a unit's rows are kept.
    """

    codes: npt.NDArray[np.uint16]
    accepted: npt.NDArray[np.bool_] | None
    keys: ChunkKeys | None
    order: Order | None

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows")


class CodedRows:
    """The rows of all chunks; keys get their numbers as chunks come, and are not kept."""

    def __init__(self, schema: Schema) -> None:
        """There are no rows yet."""
        self._keys = Keys(schema)
        self._units: list[npt.NDArray[np.int64]] = []
        self._chunks: list[CodedChunk] = []

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows")

    def add(self, chunk: CodedChunk) -> None:
        """Take the next chunk."""
        assert chunk.keys is not None
        self._units.append(self._keys.numbered(chunk.keys))
        self._chunks.append(replace(chunk, keys=None))

    def __len__(self) -> int:
        """Return how many rows there are."""
        return sum(map(len, self._units))

    @property
    def codes(self) -> npt.NDArray[np.uint16]:
        """Codes of all rows, ``[rows, columns]``."""
        return np.concatenate([chunk.codes for chunk in self._chunks])

    @property
    def order(self) -> Order | None:
        """What rows are ordered by, ``[rows]``."""
        order = [chunk.order for chunk in self._chunks if chunk.order is not None]
        return np.concatenate(order) if order else None

    def units(self) -> npt.NDArray[np.int64]:
        """Return the unit of each row, `NO_KEY` of one that does not count."""
        units = self._keys.own_units(np.concatenate(self._units))
        accepted = [chunk.accepted for chunk in self._chunks if chunk.accepted is not None]
        if accepted:
            units[~np.concatenate(accepted)] = NO_KEY
        return units


@dataclass(frozen=True)
class Coding:
    """How chunks are coded.

    Attributes:
        schema: of the table.
        codec: of the schema.
        refused: what becomes of rows with a cell that its column refuses.
    """

    schema: Schema
    codec: Codec
    refused: Refused = "stop"

    def of(self, chunk: pd.DataFrame) -> CodedChunk:
        """Code a chunk.

        Raises:
            RefusedCellError: a cell broke a column that opts in to ``refuse``, and such rows stop.
        """
        schema, accepted = self.schema, None
        if self.refused == "stop":
            codes = self.codec.encode(chunk)
        else:
            codes, accepted = self.codec.accepted(chunk)
        ordered = schema.column(schema.order_column or "") if schema.unit.keep == "window" else None
        order = None if ordered is None else order_of(chunk[ordered.name], ordered, schema.dialect)
        return CodedChunk(codes, accepted, ChunkKeys.read(chunk, schema), order)


def order_of(cells: pd.Series[Any], column: Column, dialect: Dialect) -> Order:
    """Return what rows are ordered by: numbers and times by value, other cells by text."""
    if not column.kind.is_numeric:
        of_text, texts = distinct(texts_of(cells))
        return np.array([*texts, ""], dtype=object)[of_text]
    values = read_cells(cells, column, dialect.decimal)[0]
    mantissas, exponents = np.frexp(values)  # the last bits are the reader's, not the cell's
    rounded: Order = np.ldexp(np.rint(mantissas * 2**ORDER_BITS), exponents - ORDER_BITS)
    return rounded
