"""What a fit does not use of a table, or replaces: what the table says against what coding keeps.

Each cell that a fit takes is compared with what its codec makes of it, whatever the reason: a
category with the text that stands there, a number or a time with its point on the lattice, a date
that is known by a gap with what the gap and the other date give, a derived column with its formula.
Cells that a fit does not take as they stand (unreadable, unknown, clipped) have findings of their
own. Only counts are kept; no cell is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from dpsynth._util.formatting import counted, plural
from dpsynth._util.messages import listed
from dpsynth.encoding import Codec, SetCoder
from dpsynth.encoding.column_codecs import Coder, Kind, NumericCoder, coder_of
from dpsynth.encoding.relations import absent_of, computed
from dpsynth.inspection import hints
from dpsynth.inspection.findings import LIMITS, REPLACED, TABLE, Cause, Finding, Level, share_text
from dpsynth.schema import Column, Schema, lattice_of, needs, with_needs
from dpsynth.schema.relations import WORDS, Interval, converted
from dpsynth.schema.types import TYPES, YEAR
from dpsynth.tables import (
    array_of,
    declared_texts,
    distinct,
    is_close,
    is_typed,
    read_cells,
    read_signed,
    read_texts,
    texts_of,
    trimmed,
)
from dpsynth.tables.cell_values import READER_WORDS, missing_tokens

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]

_OFFSET = re.compile(r".*[0-9]{2}:[0-9]{2}.*?(Z|[+-][0-9]{2}(:?[0-9]{2}){0,2})")
_NOTHING = "nothing is to be done if that is meant"

# What becomes of cells, and what to do about it. The first that fits a cell counts.
NO_BASE, DERIVED, COARSE, CONDITION, EMPTY, READER = (
    *("no-base", "derived", "derived-rounded", "condition", "empty", "reader-word"),
)
ZONE, TIME, LIMIT, CONVERTED, SINGLE = (
    *("zone", "time-of-day", "limit", "converted", "single-precision"),
)
ROUNDED, GAP_UNIT, ROLLED, MAPPED, CASE, BLANKS = (
    *("rounded", "gap-unit", "rolled-up", "values", "case", "blanks"),
)
CHANGES = (
    *(NO_BASE, DERIVED, COARSE, CONDITION, EMPTY, READER, ZONE, TIME, LIMIT, CONVERTED, SINGLE),
    *(ROUNDED, GAP_UNIT, ROLLED, MAPPED, CASE, BLANKS),
)
# The schema declares these, or they lose nothing; so they are a note, however many there are.
HARMLESS = frozenset({READER, CONVERTED, SINGLE, ROUNDED, GAP_UNIT, ROLLED, MAPPED, CASE, BLANKS})


class Replaced:
    """Counts the cells of one column that come back from coding as something else.

    Attributes:
        counts: of cells, by what becomes of them.
        filled: cells that are not missing.
    """

    def __init__(self, column: Column, decimal: str, *, days: bool = False) -> None:
        """Take the declaration, as published; nothing is counted.

        Args:
            column: its declaration.
            decimal: the declared decimal sign.
            days: whether a fit keeps the day of a date and time alone.
        """
        self.column, self.decimal, self._days = column, decimal, days or column.kind.drops_time
        self.counts: Counter[str] = Counter()
        self.filled = 0
        self._coder: Coder | None = None
        self._sets: SetCoder | None = None
        if column.several is not None:
            self._sets = SetCoder(column, decimal)
        elif column.interval is None:
            self._coder = coder_of(column, decimal)
        self._tokens = missing_tokens(column) | {*column.forms.reason_texts}

    def add(
        self,
        cells: pd.Series[Any],
        kinds: Kinds,
        units: pd.Series[Any] | None = None,
        base: tuple[pd.Series[Any], Column] | None = None,
        numbers: Ints | None = None,
    ) -> None:
        """Count the cells of a chunk.

        Args:
            cells: as the table has them.
            kinds: of the coded cells; of an interval, those of its gaps.
            units: the unit of each cell, if the column has several.
            base: of an interval, the cells of the other date, and its declaration.
            numbers: how often each cell is there; once if None.
        """
        each = np.ones(len(cells), dtype=np.int64) if numbers is None else numbers
        raw = texts_of(cells, decimal=self.decimal, boolean=self.column.kind.is_truth)
        bare = trimmed(raw)
        filled = _flags(pc.not_equal(bare, ""))
        taken = filled & np.isin(kinds, (Kind.VALID, Kind.MISSING, Kind.CLIPPED))
        self.filled += int(each[filled].sum())
        if not taken.any():
            return
        left = taken.copy()
        for change, cells_of in self._changes(cells, raw, bare, kinds, units, base):
            found = left & cells_of
            if found.any():
                self.counts[change] += int(each[found].sum())
                left &= ~found

    def _changes(
        self,
        cells: pd.Series[Any],
        raw: Any,
        bare: Any,
        kinds: Kinds,
        units: pd.Series[Any] | None,
        base: tuple[pd.Series[Any], Column] | None,
    ) -> Iterable[tuple[str, Bools]]:
        """Yield what becomes of cells, and of which; the first that is yielded counts."""
        column = self.column
        declared = declared_texts(cells, column, self.decimal)
        valid = kinds == Kind.VALID
        if base is not None:
            yield from self._of_interval(cells, kinds, base)
        unsaid = _flags(pc.is_in(declared, value_set=array_of(sorted(READER_WORDS - self._tokens))))
        yield READER, unsaid & (kinds == Kind.MISSING)
        if column.kind.is_numeric and not column.is_categorical:
            yield from self._of_values(cells, declared, units, valid)
        elif column.codes is not None and not column.discovers:  # which codes it finds is open
            yield ROLLED, valid & self._rolled(cells, declared)
        mapped = _flags(pc.not_equal(declared, bare))
        folded = _flags(pc.equal(pc.utf8_lower(declared), pc.utf8_lower(bare)))
        yield MAPPED, mapped & ~folded
        yield CASE, mapped
        yield BLANKS, _flags(pc.not_equal(raw, bare))

    def _of_interval(
        self, cells: pd.Series[Any], kinds: Kinds, base: tuple[pd.Series[Any], Column]
    ) -> Iterable[tuple[str, Bools]]:
        """Compare dates with what the other date and the gap give."""
        column, interval = self.column, self.column.interval
        assert interval is not None
        values, missing = read_cells(cells, column, self.decimal)
        known = np.isfinite(values) & ~missing
        yield NO_BASE, known & (kinds == Kind.MISSING)
        other, absent = read_cells(*base, self.decimal)
        known &= np.isfinite(other) & ~absent & (kinds == Kind.VALID)
        other = converted(other, base[1].kind, column.kind)
        yield GAP_UNIT, known & _within_unit(interval, other, values, column, known)

    def _of_values(
        self,
        cells: pd.Series[Any],
        declared: Any,
        units: pd.Series[Any] | None,
        valid: Bools,
    ) -> Iterable[tuple[str, Bools]]:
        """Compare numbers and times with the lattice points that they are put on."""
        column = self.column
        values, missing, signs = read_signed(cells, column, self.decimal, units)
        known = np.isfinite(values) & ~missing
        if column.kind.is_time:
            yield ZONE, known & self._zoned(cells, declared)
        if self._days and column.kind.is_time:
            seconds, day = self._seconds(cells, declared), TYPES["date"]
            coarse = column.kind if column.kind.drops_time else day
            own = converted(values, column.kind, coarse)
            differs = converted(own, coarse, TYPES["datetime"]) != seconds
            yield TIME, known & np.isfinite(seconds) & differs
            return
        at = read_cells(cells, column, self.decimal, units)[0]
        yield LIMIT, known & (signs != 0) & np.isfinite(at) & ~is_close(at, values)
        if units is not None:
            plain_values = read_signed(cells, column, self.decimal)[0]
            yield CONVERTED, known & np.isfinite(plain_values) & ~is_close(plain_values, values)
        if not isinstance(self._coder, NumericCoder):
            return
        lattice = self._coder.lattice
        own = np.where(known, values, float(lattice.values(np.zeros(1, dtype=np.int64))[0]))
        kept = lattice.values(lattice.positions(own))
        off = known & valid & (signs == 0) & ~np.isclose(own, kept, rtol=1e-12, atol=0.0)
        with np.errstate(over="ignore"):  # what single precision cannot hold is equal to nothing
            alike = own.astype(np.float32) == kept.astype(np.float32)
        yield SINGLE, off & alike & column.kind.is_number
        yield ROUNDED, off

    def _seconds(self, cells: pd.Series[Any], declared: Any) -> npt.NDArray[np.float64]:
        """Return cells of dates as seconds, with their time of day."""
        own = replace(self.column, type="datetime")
        if is_typed(cells) and cells.dtype.kind == "M":
            return read_cells(cells, own, self.decimal)[0]
        return read_texts(declared, own, self.decimal)

    def _zoned(self, cells: pd.Series[Any], declared: Any) -> Bools:
        """Tell which times have an offset from UTC."""
        if cells.dtype.kind == "M":
            return np.full(len(cells), getattr(cells.dtype, "tz", None) is not None)
        of_text, texts = distinct(declared)
        return np.array([*(bool(_OFFSET.fullmatch(text)) for text in texts), False])[of_text]

    def _rolled(self, cells: pd.Series[Any], declared: Any) -> Bools:
        """Tell which codes come back as the name of their group, or as another code."""
        of_text, texts = distinct(declared)
        each = pd.Series(texts, dtype=object)
        if self._sets is not None:
            said = [self._parts(text) for text in texts]
            kept = [self._parts(text) for text in self._sets.bounded(each)]
        else:
            assert self._coder is not None
            said = [{text.strip()} for text in texts]
            kept = [{text} for text in self._coder.read(each)[1]]
        return np.array([*(a != b for a, b in zip(said, kept, strict=True)), False])[of_text]

    def _parts(self, text: str | None) -> set[str]:
        assert self._sets is not None
        parts = [] if text is None else text.split(self._sets.several.separator)
        return {part.strip() for part in parts} - {""}

    def finding(self, counts: Ints) -> list[Finding]:
        """Word what was found.

        Args:
            counts: of the column's cells, by `Kind`.
        """
        name, total = self.column.name, int(counts.sum())
        if total and counts[Kind.MISSING] == total and not self.counts:
            if self.column.required:
                return []  # it has a finding of its own
            return [
                Finding(
                    name,
                    REPLACED,
                    Level.WARNING,
                    f"holds no value in {counted(total, 'row')}; a fit spends budget on it, and "
                    "every synthetic cell is missing, except for noise",
                    total,
                    total,
                    "export the column again; or leave it out: dpsynth: {role: drop}",
                )
            ]
        return _finding(name, self.counts, self.filled, self._words)

    def _words(self, change: str) -> tuple[str, str]:
        """Return what becomes of cells, and what to do."""
        column, interval = self.column, self.column.interval
        if interval is not None and change == NO_BASE:
            return (
                f"are dates whose {interval.base} is missing; a fit knows them by their gap to it, "
                "so it drops them",
                f"complete {interval.base} in the source; or declare {column.name} by bounds of "
                "its own, without its gap",
            )
        if interval is not None and change == GAP_UNIT:
            unit = plural(WORDS[interval.unit])
            return (
                f"are kept to whole {unit} from {interval.base}; the rest is drawn again",
                "to keep more, declare the gap in shorter units, with longest in them: dpsynth: "
                "{unit: ...}",
            )
        if change == ROLLED and column.codes is not None:
            return "are codes that a fit puts into their group", _NOTHING
        if change == TIME and "weekday" not in column.kind.calendar:
            return (
                "have a day; a fit keeps the year and month alone",
                "let the source write years and months, or declare type date",
            )
        if change == TIME and not column.kind.drops_time:  # the time of a row of linked tables
            return (
                "have a time of day; a fit keeps the day alone",
                "to keep the hour, add to the column, unless its rows are events: dpsynth: "
                "{calendar: [hour]}; it takes budget from other facts, so only if it matters",
            )
        message, remedy = _WORDS[change]
        if isinstance(self._coder, NumericCoder):
            step = self._coder.lattice.stride / 10**self._coder.lattice.decimals
            unit = "" if column.kind.is_plain else " seconds"
            message = message.replace("STEP", f"{step:g}{unit}")
        return message, remedy


_WORDS: Mapping[str, tuple[str, str]] = {
    READER: (
        "hold a word such as NA that readers of tables take for a missing value, and the schema "
        "does not declare it; a fit takes them as missing",
        hints.MISSING,
    ),
    ZONE: (
        "are times with an offset from UTC; a fit keeps the time on the clock and drops the offset",
        "let the source write local times without an offset, all of one place",
    ),
    TIME: (
        "have a time of day; a fit keeps the day alone",
        "let the source write the day alone; the time of day needs a column of its own",
    ),
    LIMIT: (
        "are limits that a fit moves to the nearest declared one",
        "declare each limit of the assay: dpsynth: {censored: ...}",
    ),
    CONVERTED: ("are in another unit; a fit converts them", _NOTHING),
    SINGLE: (
        "are numbers that were stored in single precision; a fit rounds them to the step, STEP",
        "let the source write numbers with the digits that were recorded; else nothing is to be "
        "done",
    ),
    ROUNDED: (
        "lie between two steps; a fit rounds them to the step, STEP",
        "if the rest matters, declare a smaller step: dpsynth: {step: ...}",
    ),
    MAPPED: ("are replaced by the value map of the schema", _NOTHING),
    CASE: ("differ from the declared word by upper and lower case; a fit ignores it", _NOTHING),
    BLANKS: ("have blanks around them; a fit leaves the blanks out", _NOTHING),
    CONDITION: (
        "are filled in where the condition of the column (present_if) does not hold; a fit leaves "
        "them empty",
        "compare present_if with the coding manual, or correct these rows in the source",
    ),
    DERIVED: (
        "differ from what the schema computes them from; a fit does not read them, and synthetic "
        "cells follow the schema",
        "correct the formula or the source; or declare the column by bounds or categories of its "
        "own",
    ),
    COARSE: (
        "differ from what the schema computes them from, by rounding alone: the source keeps fewer "
        "decimals; a fit does not read them, and synthetic cells follow the schema",
        "declare the step to which the source rounds: dpsynth: {step: ...}",
    ),
}


def _finding(place: str, counts: Counter[str], total: int, words: Any) -> list[Finding]:
    """Word what becomes of the cells of a place; nothing where all come back."""
    if not counts:
        return []
    lost = sum(cells for change, cells in counts.items() if change not in HARMLESS)
    count = min(sum(counts.values()), total)
    causes = [Cause(one, counts[one], *words(one)) for one in CHANGES if counts[one]]
    return [
        Finding(
            place,
            REPLACED,
            LIMITS[REPLACED].level(lost / total if total else 0.0, lost),
            f"{share_text(count, total)} come back from a fit as something else, or are not used",
            count,
            total,
            causes=tuple(sorted(causes, key=lambda cause: -cause.cells)),
        )
    ]


def _flags(array: Any) -> Bools:
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def _within_unit(interval: Interval, base: Any, values: Any, column: Column, known: Bools) -> Bools:
    """Tell which dates a whole gap and the other date do not give exactly."""
    if interval.unit == YEAR:
        return np.ones(len(values), dtype=bool)
    gap = np.where(known, values - base, 0.0)
    return np.asarray(gap % interval.length(column.kind.seconds) != 0)


class ReplacedInRows:
    """Counts cells that other cells of their row decide: derived ones, and ones with a condition.

    Attributes:
        names: the columns that are judged.
    """

    def __init__(self, schema: Schema, present: Collection[str]) -> None:
        """Take the declaration, and which columns the table has."""
        self._schema, self._codec = schema, Codec(schema)
        self._columns = {column.name: column for column in schema.modelled}
        self.names = tuple(
            column.name
            for column in schema.modelled
            if (column.is_computed or column.present_if is not None)
            and column.name in present
            and self.beside(column.name) <= {*present}
            and self._is_of_columns(column.name)
        )
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self._filled: Counter[str] = Counter()

    def beside(self, name: str) -> frozenset[str]:
        """Return the columns that decide about a column, itself among them, as the table has them.

        Columns that are computed are not needed, but those that they are computed from.
        """
        every = with_needs([name], self._columns)
        units = {self._columns[one].forms.unit for one in every}
        read = {one for one in every if one == name or not self._columns[one].is_computed}
        read = {self._columns[one].status_of or one for one in read}
        return frozenset(read | {unit.column for unit in units if unit is not None})

    def _is_of_columns(self, name: str) -> bool:
        """Whether all that decides about a column is a modelled column."""
        every = with_needs([name], self._columns)
        return all({*needs(self._columns[one])} <= {*self._columns} for one in every)

    def add(self, chunk: pd.DataFrame, names: Iterable[str], numbers: Ints | None = None) -> None:
        """Count the rows of a chunk that has all columns that decide about these."""
        names = list(names)
        if not names:
            return
        each = np.ones(len(chunk), dtype=np.int64) if numbers is None else numbers
        bounded = self._codec.bounded(chunk)
        cells = {column: bounded[column] for column in bounded.columns}
        for name in names:
            column = self._columns[name]
            texts = trimmed(texts_of(chunk[name]))
            filled = _flags(pc.not_equal(texts, "")) & ~self._missing(chunk[name], column)
            self._filled[name] += int(each[filled].sum())
            if column.present_if is not None:
                lost = filled & absent_of(cells, column)
                self._counts[name][CONDITION] += int(each[lost].sum())
                filled &= ~lost
            if column.is_computed:
                lost, coarse = self._differs(chunk[name], cells, column)
                self._counts[name][DERIVED] += int(each[filled & lost & ~coarse].sum())
                self._counts[name][COARSE] += int(each[filled & lost & coarse].sum())

    def _missing(self, cells: pd.Series[Any], column: Column) -> Bools:
        if column.several is not None:
            return np.asarray(
                SetCoder(column, self._schema.dialect.decimal).kinds(cells) == Kind.MISSING
            )
        return np.asarray(
            coder_of(column, self._schema.dialect.decimal).kinds(cells) == Kind.MISSING
        )

    def _differs(
        self, own: pd.Series[Any], cells: Mapping[Any, pd.Series[Any]], column: Column
    ) -> tuple[Bools, Bools]:
        """Tell which cells of a computed column the schema does not give, or only rounded."""
        wanted = computed(cells, column, self._columns)
        decimal = self._schema.dialect.decimal
        if column.is_categorical:
            read = coder_of(column, decimal).read(own)[1].to_numpy(dtype=object)
            differs = np.asarray(read != wanted.to_numpy(dtype=object))
            return differs, np.zeros(len(own), dtype=bool)
        lattice = lattice_of(column)
        values = read_cells(own, column, decimal)[0]
        meant = read_cells(wanted, column, decimal)[0]
        known = np.isfinite(values) & np.isfinite(meant)
        places = [lattice.positions(np.where(known, one, 0.0)) for one in (values, meant)]
        differs = np.asarray(~known | (places[0] != places[1]))
        few = _decimals(values[known], lattice.decimals)
        if few >= lattice.decimals:
            return differs, np.zeros(len(own), dtype=bool)
        apart = np.abs(np.where(known, values - meant, np.inf))
        half = (10.0**-few + lattice.stride / 10.0**lattice.decimals) / 2
        return differs, apart <= half * (1 + 1e-9)

    def findings(self) -> dict[str, Counter[str]]:
        """Return the counts of each column, where there are any."""
        return {name: +counts for name, counts in self._counts.items() if +counts}

    def filled(self, name: str) -> int:
        """Return how many cells of a column are not missing."""
        return self._filled[name]


def _decimals(values: npt.NDArray[np.float64], most: int) -> int:
    """Return with how many decimals all values can be written; ``most`` if not with fewer."""
    every = range(most)
    return next((n for n in every if np.allclose(values, np.round(values, n), 1e-12)), most)


def computed_findings(rows: ReplacedInRows, columns: Collection[str]) -> list[Finding]:
    """Word what was found of columns that have no check of their own, as derived ones."""
    found = []
    for name, counts in rows.findings().items():
        if name not in columns:
            found += _finding(name, counts, rows.filled(name), _WORDS.__getitem__)
    return found


def uncompared_columns(
    header: Collection[str], read: Collection[str], schema: Schema
) -> list[Finding]:
    """Name the computed columns of a table whose cells are of a kind that no fit reads."""
    return [
        Finding(
            column.name,
            REPLACED,
            Level.NOTE,
            "is computed by a fit, and the table's own cells could not be compared: they are of a "
            "type that no fit reads",
            remedy="to compare them, let the source write numbers, dates or text as the schema "
            "declares them; else nothing is to be done",
        )
        for column in schema.modelled
        if column.is_computed and column.name in header and column.name not in read
    ]


def unread_columns(
    header: Iterable[str], schema: Schema, elsewhere: Collection[str] = ()
) -> list[Finding]:
    """Tell which columns of a table its schema does not have, by place.

    Their names are not shown: in a file whose header is missing or damaged, they are cells.

    Args:
        header: of the table.
        schema: of the table.
        elsewhere: columns of other tables that lie in the same source.
    """
    declared = {*elsewhere, *(column.name for column in schema.columns)}
    names = [
        f"column {number}" + ", which has no name" * (not name.strip())
        for number, name in enumerate(map(str, header), 1)
        if name not in declared
    ]
    if not names:
        return []
    them = "it" if len(names) == 1 else "them"
    return [
        Finding(
            TABLE,
            REPLACED,
            Level.NOTE,
            f"has {counted(len(names), 'column')} that the schema does not have, so a fit does not "
            f"read {them}: {listed(names)}",
            len(names),
            len(names),
            f"nothing is to be done unless the synthetic table needs {them}: then declare {them} "
            "in the schema",
        )
    ]
