"""Tables of a package, read once: what is kept of each row, and of the table of patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec, related
from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.inspection.column_check import ColumnCheck, Kinds
from dpsynth.inspection.table_check import TableReading
from dpsynth.schema import ChildTable, Column, LinkedSchema, Schema, published_tables
from dpsynth.schema.relations import in_time_units
from dpsynth.schema.types import DAY
from dpsynth.tables import OptOut, read_cells, texts_of, trimmed, typed_series
from dpsynth.tables.records import RecordLog
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]


class RowsRead:
    """What is kept of the rows of one table; private.

    Attributes:
        schema: of the table.
        reading: its cells compared with their columns.
        log: of the records, if the table is a text file.
    """

    def __init__(
        self,
        schema: Schema,
        in_rules: frozenset[str],
        linked: Sequence[tuple[str, ...]],
        opt_out: OptOut | None,
    ) -> None:
        """Take what to keep.

        Args:
            schema: of the table.
            in_rules: columns that temporal rules name.
            linked: groups of columns by which rows of tables point to each other.
            opt_out: patients who are left out.
        """
        self.schema = schema
        self.reading = TableReading(schema, opt_out)
        self.log: RecordLog | None = None
        self._in_rules = [column for column in schema.modelled if column.name in in_rules]
        self._codec = Codec(schema) if self._in_rules else None
        self._units: list[Ints] = []
        self._cells: list[pd.DataFrame] = []
        self._links: dict[tuple[str, ...], list[npt.NDArray[np.object_]]] = {
            columns: [] for columns in linked
        }

    def add(self, chunk: pd.DataFrame) -> tuple[pd.DataFrame, Ints, dict[str, Kinds]]:
        """Read a chunk; return it without those who opted out."""
        chunk, units, kinds = self.reading.add(chunk)
        self._units.append(units)
        if self._codec is not None:
            bounded = self._codec.bounded(chunk)
            kept = {}
            for column in self._in_rules:
                cells = bounded[column.name]
                if column.name in kinds:
                    cells = cells.where(kinds[column.name] == Kind.VALID)
                kept[column.name] = cells
            self._cells.append(pd.DataFrame(kept))
        for columns, parts in self._links.items():
            parts.append(self._joined(chunk, units, columns))
        return chunk, units, kinds

    def _joined(
        self, chunk: pd.DataFrame, units: Ints, columns: tuple[str, ...]
    ) -> npt.NDArray[np.object_]:
        """Return what each row is called; the patient's key as it is compared."""
        keys = pd.Series([*self.reading.keys.texts, None], dtype=object)
        parts = [
            keys.take(units).reset_index(drop=True)
            if name == self.schema.unit.column
            else trimmed(texts_of(chunk[name])).to_pandas()
            for name in columns
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + "\x1f" + part
        objects: npt.NDArray[np.object_] = whole.to_numpy(dtype=object, copy=True)
        empty = np.logical_or.reduce([(part.isna() | (part == "")).to_numpy() for part in parts])
        objects[empty] = None
        return objects

    @property
    def units(self) -> Ints:
        """The number of each row's key, `NO_KEY` without one."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._units])

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, as they are compared, by number; of those who opted out, too."""
        return self.reading.keys.texts

    def cells(self) -> pd.DataFrame:
        """Return the typed cells of the columns that rules name; not valid ones are missing."""
        if not self._cells:
            return pd.DataFrame(index=pd.RangeIndex(len(self.units)))
        return pd.concat(self._cells, ignore_index=True)

    def links(self, columns: tuple[str, ...]) -> npt.NDArray[np.object_]:
        """Return what each row is called by a group of columns; None where one is missing."""
        return np.concatenate([np.empty(0, dtype=object), *self._links[columns]])


class PatientsRead(RowsRead):
    """The table of patients: each key's row, origin and end."""

    def __init__(
        self,
        whole: LinkedSchema,
        in_rules: frozenset[str],
        linked: Sequence[tuple[str, ...]],
        opt_out: OptOut | None,
    ) -> None:
        """Take the schema of the package."""
        super().__init__(whole.patients, in_rules, linked, opt_out)
        self._whole = whole
        self._origins: list[Floats] = []
        self._ends: list[Floats] = []
        self._hashes: list[Hashes] = []

    def add(self, chunk: pd.DataFrame) -> tuple[pd.DataFrame, Ints, dict[str, Kinds]]:
        """Read a chunk, with the origin and the end of each row."""
        chunk, units, kinds = super().add(chunk)
        origin, end, decimal = self._whole.origin, self._whole.end, self.schema.dialect.decimal
        nothing = np.full(len(chunk), np.nan)
        start = self._whole.day_zero
        origins = np.full(len(chunk), start)
        if origin is not None:
            origins = times_of(chunk, self.schema, origin, self._whole.time_seconds)
        self._origins.append(origins)
        ends = nothing
        if end is not None:
            column = self.schema.column(end)
            ends = _numbers(chunk, self.schema, end)
            if column.interval is None:
                ends = read_cells(chunk[end], column, decimal)[0]
                ends = ends - start if column.kind.is_time else ends
        self._ends.append(ends)
        if self._whole.repeated:
            names = [column.name for column in self.schema.modelled if column.is_read]
            texts = {name: texts_of(chunk[name]).to_pandas().fillna("") for name in names}
            hashed = pd.util.hash_pandas_object(pd.DataFrame(texts), index=False)
            self._hashes.append(np.asarray(hashed, dtype=np.uint64))
        return chunk, units, kinds

    def first_rows(self) -> Ints:
        """Return the first row of each patient, in order of appearance, without those who left."""
        units = self.units
        _, first = np.unique(np.where(units == NO_KEY, -1, units), return_index=True)
        first = first[units[first] != NO_KEY]
        return np.asarray(first, dtype=np.int64)

    def numbers(self) -> dict[str, int]:
        """Return the number of each patient, by her key."""
        texts = self.keys
        return {texts[unit]: n for n, unit in enumerate(self.units[self.first_rows()].tolist())}

    def twice(self) -> Counter[str]:
        """Return the keys that stand in several rows, with their rows; PRIVATE."""
        counts = np.bincount(self.units[self.units != NO_KEY], minlength=len(self.keys))
        return Counter({self.keys[k]: int(counts[k]) for k in np.flatnonzero(counts > 1).tolist()})

    def origins(self) -> Floats:
        """Return the day of each patient's origin since 1970-01-01, NaN without one."""
        return np.concatenate([np.empty(0), *self._origins])[self.first_rows()]

    def ends(self) -> Floats:
        """Return the last day of each patient's follow-up; without one, that of the window."""
        last = 0 if self._whole.window is None else self._whole.window.last
        ends = np.concatenate([np.empty(0), *self._ends])[self.first_rows()]
        return np.clip(np.where(np.isfinite(ends), ends, last), 0, last)

    def varying(self) -> tuple[int, int]:
        """Return how many patients have rows that differ, and how many have several rows."""
        units = self.units
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *self._hashes])
        frame = pd.DataFrame({"unit": units, "hash": hashes})[units != NO_KEY]
        each = frame.groupby("unit")["hash"].agg(["size", "nunique"])
        return int((each["nunique"] > 1).sum()), int((each["size"] > 1).sum())


def times_of(chunk: pd.DataFrame, schema: Schema, name: str, seconds: int) -> Floats:
    """Return the time of each date since 1970-01-01, in a unit; NaN where there is none."""
    column = schema.column(name)
    values, missing = read_cells(chunk[name], column, schema.dialect.decimal)
    times = in_time_units(values, column.kind, seconds)
    return np.where(missing | ~np.isfinite(times), np.nan, times)


def _numbers(chunk: pd.DataFrame, schema: Schema, name: str) -> Floats:
    """Return a modelled column as numbers: of an interval, its gap."""
    cells: Any = related(chunk, schema)[name]
    return np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)


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
        self._seconds = whole.time_seconds
        decimal = child.schema.dialect.decimal
        self.tests = {test.name: ColumnCheck(test, decimal) for test in child.tests}
        self.time: ColumnCheck | None = None
        if child.time is not None and whole.window is not None:
            days = whole.time_seconds == DAY and "hour" not in child.calendar
            self.time = ColumnCheck(_time_column(whole, child), decimal, days=days)
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
            days = times_of(chunk, schema, name, self._seconds)
        else:
            values, missing = read_cells(chunk[name], column, schema.dialect.decimal)
            days = np.where(missing | ~np.isfinite(values), np.nan, values)
        gone = np.isnan(days)
        ticks = days
        if column.kind.is_time:
            ticks = np.rint(days * self._seconds) // column.kind.seconds
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
