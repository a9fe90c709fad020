"""A table of rows, read once: its cells, keys, days, tests and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.inspection.column_check import ColumnCheck, Kinds
from dpsynth.inspection.linked.patient_read import DAY, Floats, Ints, RowsRead, days_of
from dpsynth.schema import ChildTable, Column, LinkedSchema, published_tables
from dpsynth.tables import OptOut, read_cells, typed_series

Bools = npt.NDArray[np.bool_]
NAMELESS = -1  # of no test or event that is declared


class ChildRead(RowsRead):
    """What is kept of the rows of a table of rows; private.

    Attributes:
        child: the table.
        tests: the cells of each test's value, compared with what it declares, by its name.
        time: the cells of the column of the day; None without one.
    """

    def __init__(
        self,
        whole: LinkedSchema,
        child: ChildTable,
        in_rules: frozenset[str],
        linked: Sequence[tuple[str, ...]],
        opt_out: OptOut | None,
    ) -> None:
        """Take the schema of the package and the table."""
        super().__init__(child.schema, in_rules, linked, opt_out)
        self.child, self._rule_columns = child, in_rules
        decimal = child.schema.dialect.decimal
        self.tests = {test.name: ColumnCheck(test, decimal) for test in child.tests}
        self.time: ColumnCheck | None = None
        if child.time is not None and whole.window is not None:
            self.time = ColumnCheck(_time_column(whole, child), decimal, days=True)
        self._naming = child.once if child.once is not None else child.test_column
        names = () if self._naming is None else child.schema.column(self._naming).levels
        self.names = tuple(names)
        self._named: list[Ints] = []
        self._times: list[Floats] = []
        self._plain: list[pd.DataFrame] = []

    def add(self, chunk: pd.DataFrame) -> tuple[pd.DataFrame, Ints, dict[str, Kinds]]:
        """Read a chunk, with the day and the test of each row."""
        chunk, units, kinds = super().add(chunk)
        child, plain = self.child, {}
        named = self._named_rows(chunk, kinds)
        self._named.append(named)
        if child.time is not None:
            if self.time is not None:
                self.time.add(chunk[child.time])
            times, series = self._times_of(chunk)
            self._times.append(times)
            plain[child.time] = series
        else:
            self._times.append(np.zeros(len(chunk)))
        if child.order is not None:
            plain[child.order] = chunk[child.order].reset_index(drop=True)
        values = self._add_values(chunk, named)
        if values is not None:
            plain[str(child.value_column)] = values
        self._plain.append(pd.DataFrame(plain, index=pd.RangeIndex(len(chunk))))
        return chunk, units, kinds

    def _named_rows(self, chunk: pd.DataFrame, kinds: dict[str, Kinds]) -> Ints:
        """Return the number of each row's test or event, `NAMELESS` for none that is declared."""
        if self._naming is None:
            return np.zeros(len(chunk), dtype=np.int64)
        column = self.schema.column(self._naming)
        codes = coder_of(column, self.schema.dialect.decimal).encode(chunk[self._naming])
        known = (kinds[self._naming] == Kind.VALID) & (codes >= 0) & (codes < len(self.names))
        return np.where(known, codes, NAMELESS).astype(np.int64)

    def _times_of(self, chunk: pd.DataFrame) -> tuple[Floats, pd.Series]:
        """Return the day of each row, NaN without one, and the typed cells."""
        name, schema = str(self.child.time), self.schema
        column = schema.column(name)
        if self.child.origin is not None:
            days = days_of(chunk, schema, name)
        else:
            values, missing = read_cells(chunk[name], column, schema.dialect.decimal)
            days = np.where(missing | ~np.isfinite(values), np.nan, values)
        gone = np.isnan(days)
        ticks = days if column.kind.in_days or not column.kind.is_time else days * DAY
        return days, typed_series(np.where(gone, 0.0, ticks), gone, replace(column, required=False))

    def _add_values(self, chunk: pd.DataFrame, named: Ints) -> pd.Series | None:
        """Compare the values of each test; return typed cells if a rule names them."""
        name = self.child.value_column
        if name is None:
            return None
        kept = name in self._rule_columns
        values = np.full(len(chunk), None, dtype=object)
        for number, check in enumerate(self.tests.values()):
            rows = np.flatnonzero(named == number)
            if not len(rows):
                continue
            cells = chunk[name].iloc[rows]
            kinds = check.add(cells)
            if kept:
                read = check.coder.read(cells)[1].to_numpy(dtype=object)
                valid = kinds == Kind.VALID
                values[rows[valid]] = read[valid]
        return pd.Series(values) if kept else None

    @property
    def named(self) -> Ints:
        """The number of each row's test or event; 0 in a wide table."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._named])

    @property
    def times(self) -> Floats:
        """The day of each row: since the origin, or since 1970-01-01 for a date; NaN without one.

        It is 0 in a table that is only ordered.
        """
        return np.concatenate([np.empty(0), *self._times])

    def cells(self) -> pd.DataFrame:
        """Return the typed cells of the columns that rules name, with time and order."""
        plain = pd.concat(self._plain, ignore_index=True) if self._plain else pd.DataFrame()
        return pd.concat([super().cells(), plain], axis=1)


def _time_column(whole: LinkedSchema, child: ChildTable) -> Column:
    """Return the column of the day with bounds, so that its cells can be judged."""
    return published_tables(whole)[child.name].column(str(child.time))
