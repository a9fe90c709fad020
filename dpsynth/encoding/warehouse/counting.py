"""Counts of columns and pairs of columns, and other cells for their codes, by GROUP BY.

Counts are exact and private: they come over the connection to a mechanism, which adds noise once.
A single column is counted by its codes, and these are recoded here. For pairs, the recoded cells
are first written into a temporary table of their own, so that what comes over the connection is no
finer than the table that is counted. Weights are exact whole numbers: rows are counted by how many
rows their unit has, and each such count is multiplied here.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import ibis
import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.sources import Cells, Lookup, UnitRows
from dpsynth.encoding.warehouse.lattices import by_bisection
from dpsynth.encoding.warehouse.patterns import (
    Classes,
    UnitPatterns,
    first_of_class,
    parsed_patterns,
)
from dpsynth.errors import InputError
from dpsynth.privacy import ChosenHistograms, JointHistograms
from dpsynth.tables import Session

Ints = npt.NDArray[np.int64]

ROWS, UNIT = "unit_rows", "unit"


@dataclass(frozen=True, eq=False)
class _Cell:
    """What the cells of a column are: a column of the temporary table, and a cell for each code.

    Attributes:
        name: of the column.
        cells: of each of its codes.
    """

    name: str
    cells: Ints


@dataclass(frozen=True, eq=False)
class WarehouseRows:
    """Coded rows in a temporary table of a warehouse; a `dpsynth.encoding.RowSource`.

    Attributes:
        rows_per_unit: how many rows a unit has at most.
    """

    rows_per_unit: int
    _session: Session
    _dialect: str
    _table: str
    _cells: tuple[_Cell, ...]

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows in a warehouse")

    @classmethod
    def of(
        cls, session: Session, dialect: str, table: str, most: int, sizes: Sequence[int]
    ) -> WarehouseRows:
        """Take a temporary table with columns ``c0``, ``c1``, ... of codes below these sizes."""
        cells = tuple(_Cell(f"c{place}", np.arange(size)) for place, size in enumerate(sizes))
        return cls(most, session, dialect, table, cells)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self._cells)

    def recoded(self, cells: Sequence[Cells]) -> WarehouseRows:
        """Return the same rows with other columns; nothing is asked of the warehouse yet.

        Raises:
            InputError: cells follow from several columns.
        """
        return replace(self, _cells=tuple(map(self._recoded, cells)))

    def _recoded(self, cells: Cells) -> _Cell:
        if isinstance(cells, UnitRows):  # a unit has at least one row, whose cell is 0
            return _Cell(ROWS, np.arange(-1, self.rows_per_unit))
        if not isinstance(cells, Lookup):
            raise InputError(
                "a column above others is counted by codes of several columns, which dpsynth does "
                "not do in a warehouse; leave out --in-warehouse"
            )
        own = self._cells[cells.column]
        if cells.cells is None:
            return own
        if own.cells.max() >= len(cells.cells):
            raise InputError("a column has a code outside its cells; encode it with its schema")
        known = np.maximum(own.cells, 0)
        return _Cell(own.name, np.where(own.cells < 0, -1, cells.cells[known].astype(np.int64)))

    def counts(
        self,
        histograms: Sequence[tuple[int, ...]],
        sizes: Sequence[int],
        event: JointHistograms | ChosenHistograms,
    ) -> list[Ints]:
        """Count histograms, as `dpsynth.privacy.mechanisms.exact_counts` does.

        Args:
            histograms: of each, its column, or its columns.
            sizes: number of cells of each column.
            event: whose unit mass says what a row counts.

        Returns:
            One int64 array for each histogram, the last column's cells innermost. They are private
            until noise is added.

        Raises:
            InputError: a row has a cell outside of its column, or its unit too many rows.
            TableError: the warehouse refuses.
        """
        table, names = self._grouped(histograms)
        found = []
        for columns in histograms:
            size = int(np.prod([sizes[column] for column in columns]))
            found.append(
                self._count(columns, [names[c] for c in columns], table, sizes, size, event)
            )
        return found

    def patterns(self, asked: Classes) -> UnitPatterns:
        """Count the units that are alike in what is asked of them; their rows are numbered.

        Args:
            asked: the columns, and what of each is told apart. Codes of a class come as its first.

        Raises:
            InputError: a unit has too many rows.
            TableError: the warehouse refuses.
        """
        cells = [_Cell(f"c{place}", first_of_class(classes)) for place, classes in asked.items()]
        row = " || ',' || ".join(f"CAST({_looked_up(cell)} AS VARCHAR)" for cell in cells) or "''"
        units = (
            f"SELECT string_agg(own, ';' ORDER BY own) AS pattern "
            f"FROM (SELECT {UNIT}, {row} AS own FROM {self._table}) AS dpsynth_rows GROUP BY {UNIT}"
        )
        query = f"SELECT pattern, COUNT(*) FROM ({units}) AS dpsynth_units GROUP BY pattern"
        return parsed_patterns(self._session.rows(query), len(cells), self.rows_per_unit)

    def _grouped(self, histograms: Sequence[tuple[int, ...]]) -> tuple[str, dict[int, str]]:
        """Return a temporary table with the cells of all columns, if any are counted together."""
        names = {place: cell.name for place, cell in enumerate(self._cells)}
        if all(len(columns) == 1 for columns in histograms):
            return self._table, names
        return self._binned, {place: f"b{place}" for place in names}

    @cached_property
    def _binned(self) -> str:
        name = f"dpsynth_{secrets.token_hex(8)}"
        cells = [
            f"CAST({_looked_up(cell)} AS INTEGER) AS b{place}"
            for place, cell in enumerate(self._cells)
        ]
        self._session.derive(name, f"SELECT {', '.join([*cells, ROWS])} FROM {self._table}")
        return name

    def _count(
        self,
        columns: Sequence[int],
        names: Sequence[str],
        table: str,
        sizes: Sequence[int],
        size: int,
        event: JointHistograms | ChosenHistograms,
    ) -> Ints:
        groups = list(dict.fromkeys([*names, ROWS]))
        kinds = dict.fromkeys(groups, "int32")
        rows = ibis.table(kinds, name=table)
        query = rows.group_by([rows[name] for name in groups]).aggregate(number=rows.count())
        answer = self._session.rows(ibis.to_sql(query, dialect=self._dialect))
        counted = np.array(answer, dtype=np.int64).reshape(len(answer), len(groups) + 1)
        of_unit, numbers = counted[:, groups.index(ROWS)], counted[:, -1]
        if len(counted) and not (1 <= of_unit.min() and of_unit.max() <= self.rows_per_unit):
            raise InputError("a unit has more rows than its cap; read the table again")
        if event.unit_mass is not None:
            numbers = numbers * (event.unit_mass // of_unit)
        cells = np.zeros(len(counted), dtype=np.int64)
        for column, name in zip(columns, names, strict=True):
            own = counted[:, groups.index(name)]
            if table == self._table:
                own = self._cells[column].cells[own]
            if len(own) and (own.min() < 0 or own.max() >= sizes[column]):
                raise InputError("a row has a code outside its column; encode it with its schema")
            cells = cells * sizes[column] + own
        histogram = np.zeros(size, dtype=np.int64)
        np.add.at(histogram, cells, numbers)
        return histogram


def _looked_up(cell: _Cell) -> str:
    """Return the cell of each code, by bisection over stretches of codes with one cell."""
    starts = np.flatnonzero(np.diff(cell.cells, prepend=cell.cells[0] - 1)).tolist()
    return by_bisection(cell.name, starts, lambda place: str(cell.cells[starts[place]]))
