"""One column to codes and back: numeric columns by points of a lattice, others by their categories.

Nothing is fitted. The code of a cell is a function of the cell and the column's declaration.

The status of a column: coded from its cells, and made to agree with them when rows are drawn.

Nothing is fitted: the status of a cell is a function of the cell and its column's declaration. It
is a coded column of its own, which each row enters once, like any other; so one unit moves its
histogram by what it moves any other's, and the plan has counted it. Making a drawn status and a
drawn cell agree reads no private row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.grid import Grid
from dpsynth.schema import Bound, Column, Lattice, Schema, in_units, lattice_of
from dpsynth.schema.column import HIGH, LOW, MISSING, REFUSE, VALUE
from dpsynth.tables import (
    array_of,
    declared_texts,
    distinct,
    is_close,
    missing_words,
    nearest,
    nearest_limits,
    numbers,
    read_cells,
    read_signed,
    read_texts,
    typed_series,
)

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
Units = pd.Series | None  # the unit of each cell, where a column has several
REFUSED = -1  # stands for a cell that its column refuses


class Kind(IntEnum):
    """How a coder takes a cell: as it stands, or by which of the column's policies."""

    VALID = 0
    MISSING = 1
    CLIPPED = 2
    UNKNOWN = 3
    BAD = 4


class Coder(Protocol):
    """Encodes and decodes one column."""

    @property
    def size(self) -> int:
        """Number of codes."""

    def encode(self, cells: pd.Series[Any], units: Units = None) -> Codes:
        """Return the code of each cell, `REFUSED` for one that the column refuses."""

    def kinds(self, cells: pd.Series[Any], units: Units = None) -> Kinds:
        """Return the `Kind` of each cell: why `encode` gives it the code that it gives."""

    def read(self, cells: pd.Series[Any], units: Units = None) -> tuple[Codes, pd.Series[Any]]:
        """Return codes as `encode` does, and each cell so bounded, in the declared type.

        What the column refuses is missing there, or its first category or a bound.
        """

    def decode(self, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> pd.Series[Any]:
        """Return a cell of the declared type for each code."""


def coder_of(column: Column, decimal: str) -> Coder:
    """Return the coder of a column; ``decimal`` is the decimal sign of its text."""
    if column.is_categorical:
        return CategoryCoder(column, decimal)
    return NumericCoder(column, decimal, lattice_of(column))


@dataclass(frozen=True)
class NumericCoder:
    """The codes of a grid on the column's lattice; then missing, if the column is nullable."""

    column: Column
    decimal: str
    lattice: Lattice

    @cached_property
    def grid(self) -> Grid:
        """Which points of the lattice share a code."""
        return Grid.of(self.lattice, number=self.column.kind.is_number)

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.grid.codes + int(self.column.nullable)

    def encode(self, cells: pd.Series[Any], units: Units = None) -> Codes:
        """Return the code of each cell, `REFUSED` for one that the column refuses."""
        return self._encode(*read_cells(cells, self.column, self.decimal, units))[0]

    def read(self, cells: pd.Series[Any], units: Units = None) -> tuple[Codes, pd.Series[Any]]:
        """Return codes, and each cell at its own lattice point, however many share a code."""
        values, missing = read_cells(cells, self.column, self.decimal, units)
        codes, positions = self._encode(values, missing)
        bad = ~np.isfinite(values) | (missing & self.column.required)
        positions[bad] = 0 if self.column.on_bad == "minimum" else self.lattice.points - 1
        absent = (missing | (bad & (self.column.on_bad == MISSING))) & self.column.nullable
        return codes, typed_series(self.lattice.values(positions), absent, self.column)

    def _encode(self, values: Floats, missing: Bools) -> tuple[Codes, npt.NDArray[np.int64]]:
        """Return codes, and positions on the lattice; those of bad cells mean nothing."""
        bad = ~np.isfinite(values)
        positions = self.lattice.positions(np.where(bad, 0.0, values))
        codes = self.grid.code_of(positions).astype(np.int32)
        codes[bad] = self._bad_code
        codes[missing] = self.grid.codes if self.column.nullable else self._bad_code
        return codes, positions

    def kinds(self, cells: pd.Series[Any], units: Units = None) -> Kinds:
        """Return the `Kind` of each cell; clipped is what lies outside the declared bounds."""
        values, missing = read_cells(cells, self.column, self.decimal, units)
        low, high = (float(in_units(bound, self.column.kind)) for bound in self._bounds)
        slack = 1e-9 * self.lattice.stride / 10**self.lattice.decimals  # 0.1 + 0.2 is 0.3
        kinds = np.full(len(values), Kind.VALID, dtype=np.uint8)
        kinds[(values < low - slack) | (values > high + slack)] = Kind.CLIPPED
        kinds[~np.isfinite(values)] = Kind.BAD
        kinds[missing] = Kind.MISSING
        return kinds

    def decode(self, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> pd.Series[Any]:
        """Draw a lattice point uniformly among those of each code."""
        cells = codes.astype(np.int64)
        missing = cells >= self.grid.codes
        cells[missing] = 0
        values = self.lattice.values(self.grid.draw(cells, rng))
        return typed_series(values, missing, self.column)

    @property
    def _bounds(self) -> tuple[Bound, Bound]:
        low, high = self.column.minimum, self.column.maximum
        assert low is not None and high is not None  # or there would be no lattice
        return low, high

    @property
    def _bad_code(self) -> int:
        low, high = self.grid.code_of(np.array([0, self.lattice.points - 1])).tolist()
        targets = {MISSING: self.grid.codes, REFUSE: REFUSED, "minimum": low}
        return int(targets.get(self.column.on_bad, high))


@dataclass(frozen=True)
class CategoryCoder:
    """One code a category, in the declared order; then other, if it can occur; then missing."""

    column: Column
    decimal: str

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.column.levels) + int(self.column.nullable)

    def encode(self, cells: pd.Series[Any], units: Units = None) -> Codes:
        """Return the code of each cell, `REFUSED` for one that the column refuses."""
        of_text, texts = self._distinct(cells)
        codes = [self._read(text)[0] for text in texts]
        return np.array([*codes, self._missing_code], dtype=np.int32)[of_text]

    def kinds(self, cells: pd.Series[Any], units: Units = None) -> Kinds:
        """Return the `Kind` of each cell; unknown is a category that is not declared."""
        of_text, texts = self._distinct(cells)
        kinds = [self._read(text)[1] for text in texts]
        return np.array([*kinds, Kind.MISSING], dtype=np.uint8)[of_text]

    def read(self, cells: pd.Series[Any], units: Units = None) -> tuple[Codes, pd.Series[Any]]:
        """Return codes, and the category that each cell is taken for."""
        codes = self.encode(cells, units)
        rng = np.random.default_rng(0)  # a category has nothing to draw
        return codes, self.decode(np.maximum(codes, 0), rng)

    def decode(self, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> pd.Series[Any]:
        """Return the category of each code; strings are objects, None where missing."""
        missing = codes >= len(self.column.levels)
        if self.column.kind.is_text:
            levels = np.array([*self.column.levels, None], dtype=object)
            return pd.Series(levels[codes])
        values = np.append(self._levels, 0.0)[codes]
        if not self.column.kind.is_truth:
            return typed_series(values, missing, self.column)
        truth = values != 0
        return pd.Series(truth if self.column.required else pd.arrays.BooleanArray(truth, missing))

    def _distinct(self, cells: pd.Series[Any]) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Factorise a column into its distinct trimmed texts; -1 is a missing cell."""
        return distinct(declared_texts(cells, self.column, self.decimal))

    def _read(self, text: str) -> tuple[int, Kind]:
        """Return the code of one trimmed text, and why."""
        missing = self._missing_code, Kind.MISSING
        unknown = self._unknown_code, Kind.UNKNOWN
        bad = self._bad_code, Kind.BAD
        if text in self._tokens:
            return missing
        if self._usual_words and text.lower() in self.column.levels:
            text = text.lower()  # readers make truth values of these words in any case
        if text in self._words:
            return self._words[text], Kind.VALID
        if (codes := self.column.codes) is not None:
            found = codes.roll_up(text)
            return unknown if found is None else (self._words.get(found, unknown[0]), Kind.VALID)
        if self.column.kind.is_text:
            return unknown
        value = read_texts(array_of([text]), self.column, self.decimal)[0]
        whole = self.column.kind.has_decimals or is_close(value, np.rint(value))
        if not (np.isfinite(value) and whole):
            return bad
        if nearest(value, self._token_values) is not None:
            return missing
        number = nearest(value, self._numbers)
        if number is not None:
            return self._values[number], Kind.VALID
        return bad if self.column.kind.is_truth else unknown

    def _target(self, policy: str) -> int:
        """Return the code that a policy sends a cell to."""
        if policy == REFUSE:
            return REFUSED
        if policy == MISSING and self.column.nullable:
            return len(self.column.levels)
        return self.column.levels.index(policy)

    @cached_property
    def _bad_code(self) -> int:
        return self._target(self.column.on_bad)

    @cached_property
    def _unknown_code(self) -> int:
        return self._target(self.column.on_unknown)

    @cached_property
    def _missing_code(self) -> int:
        return len(self.column.levels) if self.column.nullable else self._bad_code

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return missing_words(self.column)

    @cached_property
    def _token_values(self) -> Floats:
        """Tokens by value, so that 9.0 is missing where "9" is declared to be."""
        values = read_texts(array_of(sorted(self._tokens)), self.column, self.decimal)
        return values[np.isfinite(values)]

    @cached_property
    def _usual_words(self) -> bool:
        """Whether true and false are words for a boolean column, in the usual spellings."""
        words = {*self.column.true_values, *self.column.false_values}
        return self.column.kind.is_truth and {"True", "False"} <= words

    @cached_property
    def _words(self) -> dict[str, int]:
        """Texts that name a category as they stand."""
        levels = self.column.levels
        if self.column.kind.is_numeric:  # 1 may be written 01, 1.0 or 1,0
            return {}
        words = {level: code for code, level in enumerate(levels)}
        if self.column.kind.is_truth:
            words |= dict.fromkeys(self.column.false_values, words["false"])
            words |= dict.fromkeys(self.column.true_values, words["true"])
        for reason, texts in self.column.forms.reasons if self.column.kind.is_text else ():
            words |= dict.fromkeys(texts, words[reason])
        return words

    @cached_property
    def _levels(self) -> Floats:
        """Categories as numbers; true is 1."""
        return level_values(self.column)

    @cached_property
    def _values(self) -> dict[float, int]:
        """Code by number, so that 1.0 is the category "1"; for a boolean, if 0 and 1 are words."""
        if self.column.kind.is_truth:
            words = self.column.true_values + self.column.false_values
            return {float(word): self._words[word] for word in words if word in ("0", "1")}
        return {value: code for code, value in enumerate(self._levels.tolist())}

    @cached_property
    def _numbers(self) -> Floats:
        return np.array(list(self._values), dtype=np.float64)


def level_values(column: Column) -> Floats:
    """Return the categories of a column that is not of type string as numbers; true is 1."""
    texts: Sequence[str] = column.levels
    if column.kind.is_truth:
        texts = [{"true": "1", "false": "0"}[text] for text in texts]
    return numbers(array_of(texts))


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
