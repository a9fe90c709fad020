"""What mechanisms ask of rows, and the checks of counts that came from elsewhere.

Rows are in memory (`CodedRows`), or they are counted where they lie (`CountedRows`): in shards on
a disk, by processes of this machine or of others, or in a warehouse. Exact counts are sums of
integers over units, so where they are added up makes no difference. The noise is added once, to
their sum, by the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.events import ChosenHistograms, JointHistograms

Histograms: TypeAlias = JointHistograms | ChosenHistograms
Histogram: TypeAlias = tuple[int, ...]
"""The columns of a histogram: one, or two."""


@dataclass(frozen=True)
class UnitBound:
    """How much a unit may add to counts: all that a process which only counts learns of an event.

    Attributes:
        name: of the event.
        rows_per_unit: as in the event.
        unit_mass: as in the event.
    """

    name: str
    rows_per_unit: int
    unit_mass: int | None

    decided: ClassVar[bool] = True

    @classmethod
    def of(cls, event: Histograms) -> UnitBound:
        """Leave out the noise.

        >>> UnitBound.of(JointHistograms("rows", 2, 3, 50.0))
        UnitBound(name='rows', rows_per_unit=3, unit_mass=None)
        """
        return cls(event.name, event.rows_per_unit, event.unit_mass)


class CodedRows(Protocol):
    """Rows as codes, grouped by privacy unit; rows beyond a unit's own are masked."""

    @property
    def codes(self) -> NDArray[Any]:
        """Codes, shape [units, rows, columns]."""
        ...

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows are real, shape [units, rows]."""
        ...


@runtime_checkable
class CountedRows(Protocol):
    """Rows grouped by privacy unit that are counted where they lie."""

    @property
    def columns(self) -> int:
        """How many columns there are."""
        ...

    @property
    def rows_per_unit(self) -> int:
        """How many rows a unit has at most."""
        ...

    def counts(
        self, histograms: Sequence[Histogram], sizes: Sequence[int], event: Histograms
    ) -> list[NDArray[np.int64]]:
        """Count histograms exactly, as `dpsynth.privacy.mechanisms.exact_counts` does.

        Only `counts_of` asks for them, and they are private until a mechanism has added noise.

        Args:
            histograms: of each, its columns.
            sizes: number of codes of each column; a row with another code is an error.
            event: a row counts 1, or floor(``event.unit_mass`` / r) for a unit of r rows.

        Returns:
            One int64 array of shape [product of sizes] per histogram, the last column's codes
            innermost.

        Raises:
            InputError: a row is not what the event accounts for.
        """
        ...


def counts_of(
    rows: CountedRows, histograms: Sequence[Histogram], sizes: Sequence[int], event: Histograms
) -> list[NDArray[np.int64]]:
    """Have histograms counted, and check what comes back; private until noise is added.

    Raises:
        InputError: the rows or the counts are not what the event accounts for.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if rows.rows_per_unit > event.rows_per_unit:
        raise InputError(
            f"event '{event.name}' accounts for {event.rows_per_unit} rows per unit, but these rows"
            " have more; read them again with the schema's max_rows"
        )
    if len(sizes) != rows.columns or any(size < 1 for size in sizes):
        raise InputError(
            f"event '{event.name}': each of {rows.columns} columns needs a size of at least 1"
        )
    if not histograms:
        return []
    counts = rows.counts(histograms, sizes, event)
    lengths = [(prod(sizes[column] for column in columns),) for columns in histograms]
    if [count.shape for count in counts] != lengths or any(
        count.dtype != np.int64 or (count < 0).any() for count in counts
    ):
        raise InputError(f"event '{event.name}': counts came back in another shape")
    if len({int(count.sum()) for count in counts}) != 1:  # every row enters every histogram once
        raise InputError(f"event '{event.name}': some of the counts lack rows")
    return counts
