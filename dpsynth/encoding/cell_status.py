"""The status of a column: coded from its cells, and made to agree with them when rows are drawn.

Nothing is fitted: the status of a cell is a function of the cell and its column's declaration. It
is a coded column of its own, which each row enters once, like any other; so one unit moves its
histogram by what it moves any other's, and the plan has counted it. Making a drawn status and a
drawn cell agree reads no private row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import Coder, Codes, Kind, Units
from dpsynth.schema import Column, Schema
from dpsynth.schema.column import HIGH, LOW, MISSING, VALUE
from dpsynth.tables import declared_texts, distinct, nearest, nearest_limits, read_signed
from dpsynth.tables.cell_values import read_texts
from dpsynth.tables.text_columns import array_of


@dataclass(frozen=True)
class StatusCoder:
    """Codes a status from the cells of its column.

    Attributes:
        status: the status column.
        column: the column that it is the status of.
        coder: the coder of that column.
        decimal: the decimal sign of text.
    """

    status: Column
    column: Column
    coder: Coder
    decimal: str

    def encode(self, cells: pd.Series[Any], units: Units = None) -> Codes:
        """Return the status of each cell."""
        levels = self.status.levels
        codes = np.full(len(cells), levels.index(VALUE), dtype=np.int32)
        if self.column.nullable:
            absent = self.coder.encode(cells, units) == self.coder.size - 1
            codes[absent] = levels.index(MISSING)
        reasons = self._reasons(cells)
        codes[reasons >= 0] = reasons[reasons >= 0]
        if self.column.forms.is_censored:
            _, missing, signs = read_signed(cells, self.column, self.decimal, units)
            good = np.isin(self.coder.kinds(cells, units), (Kind.VALID, Kind.CLIPPED)) & ~missing
            for sign, side in ((-1, LOW), (1, HIGH)):
                if side in levels:
                    codes[(signs == sign) & good] = levels.index(side)
        return codes

    def read(self, cells: pd.Series[Any], units: Units = None) -> tuple[Codes, pd.Series[Any]]:
        """Return codes, and the status of each cell as text."""
        codes = self.encode(cells, units)
        return codes, pd.Series(np.array(self.status.levels, dtype=object)[codes])

    def _reasons(self, cells: pd.Series[Any]) -> npt.NDArray[np.int32]:
        """Return the code of the reason of each cell, -1 for a cell without one."""
        if not self.column.forms.reasons:
            return np.full(len(cells), -1, dtype=np.int32)
        of_text, texts = distinct(declared_texts(cells, self.column, self.decimal))
        codes = [self._reason(text) for text in texts]
        return np.array([*codes, -1], dtype=np.int32)[of_text]

    def _reason(self, text: str) -> int:
        """Return the code of the reason that a text is, by its text or by its value."""
        for reason, texts in self.column.forms.reasons:
            if text in texts:
                return self.status.levels.index(reason)
        if not self.column.kind.is_numeric:
            return -1
        value = read_texts(array_of([text]), self.column, self.decimal)
        for reason, texts in self.column.forms.reasons:
            values = read_texts(array_of(texts), self.column, self.decimal)
            if np.isfinite(value[0]) and nearest(value[0], values[np.isfinite(values)]) is not None:
                return self.status.levels.index(reason)
        return -1


def status_coders(schema: Schema, coders: dict[str, Coder]) -> dict[str, StatusCoder]:
    """Return what codes each status column from the cells of its column."""
    by_name = {}
    for status in schema.modelled:
        if status.status_of is not None:
            column = schema.column(status.status_of)
            coder = coders[column.name]
            by_name[status.name] = StatusCoder(status, column, coder, schema.dialect.decimal)
    return by_name


def agreed(columns: dict[str, pd.Series[Any]], schema: Schema) -> dict[str, pd.Series[Any]]:
    """Return drawn columns in which each status says what its column's cell is.

    The status decides: where it is low or high, the cell is at the nearest limit of that side;
    where it is a reason or missing, the cell is missing. A cell that was drawn as missing beside
    the status ``value`` makes the status ``missing``.
    """
    columns = dict(columns)
    for status in schema.modelled:
        if status.status_of is None:
            continue
        column = schema.column(status.status_of)
        words = columns[status.name].to_numpy(dtype=object)
        cells = columns[column.name].copy()
        for side in (LOW, HIGH):
            at = words == side
            if at.any():
                drawn = cells[at].to_numpy(dtype=np.float64, na_value=np.nan)
                limits = nearest_limits(np.nan_to_num(drawn), side, column)
                cells[at] = limits.astype(np.int64) if column.kind.whole else limits
        absent = ~np.isin(words, (VALUE, LOW, HIGH))
        if column.nullable:
            cells[absent] = pd.NaT if cells.dtype.kind == "M" else None
            words = np.where((words == VALUE) & cells.isna().to_numpy(dtype=bool), MISSING, words)
        columns[column.name], columns[status.name] = cells, pd.Series(words, dtype=object)
    return columns
