"""How a private table fits its schema: exact figures, for the office that writes the schema.

The figures are not private: they never leave the office, and nothing in a fit reads them. The table
is read once, in chunks; what is kept of it is counts, hashes of rows, and up to 10,000 distinct
texts of each column that its codec does not take as they stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth.encoding import SetCoder, related
from dpsynth.encoding.column_codecs import Kind
from dpsynth.errors import NoRowsError, TableError
from dpsynth.inspection.check_result import CheckResult
from dpsynth.inspection.column_check import ColumnCheck, Kinds, times
from dpsynth.inspection.findings import (
    CROWD,
    DUPLICATES,
    LIMITS,
    ROWS,
    SCHEMA,
    TABLE,
    UNITS,
    Finding,
    Level,
    share_text,
)
from dpsynth.inspection.kept import (
    Replaced,
    ReplacedInRows,
    computed_findings,
    uncompared_columns,
    unread_columns,
)
from dpsynth.inspection.keys import (
    AT_END,
    CROWDED,
    FoundKeys,
    WrittenKeys,
    key_findings,
    written_findings,
)
from dpsynth.inspection.row_check import RowCheck, RowFacts
from dpsynth.inspection.schema_warnings import schema_warnings
from dpsynth.inspection.unlike_rows import UnlikeRows, record_findings
from dpsynth.schema import Column, Schema, coded_schema, place_names, single
from dpsynth.schema.column import MISSING
from dpsynth.tables import (
    Keys,
    OptOut,
    Progress,
    Source,
    Table,
    needed_columns,
    open_columns,
    units_beside,
)
from dpsynth.tables.records import RecordLog
from dpsynth.tables.table import Recorded
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]


def check_table(
    source: Source, schema: Schema, opt_out: OptOut | None, progress: Progress | None
) -> CheckResult:
    """Compare a private table with its schema: see `check`."""
    reading, table = TableReading(schema, opt_out), opened(source, schema)
    reading.begin(table)
    log, chunks = logged_chunks(table, schema, progress)
    try:
        for chunk in chunks:
            reading.add(chunk)
    except NoRowsError:
        if log is None or not log.records:
            raise
        found = tuple(record_findings(log))
        read = {TABLE: read_sizes(log, {"rows": 0, "units": 0})}
        return CheckResult(schema, {}, found, {}, {}, read, None)  # no record is one of the table
    return reading.found(log=log)


class SetCheck(ColumnCheck):
    """Counts the cells of one column of several codes, chunk by chunk.

    Unknown texts that are kept are parts of cells: single codes.
    """

    def __init__(self, column: Column, decimal: str) -> None:
        """Take the declaration; nothing is counted."""
        super().__init__(single(column), decimal)
        self.column, self.sets = column, SetCoder(column, decimal)
        self.replaced = Replaced(column, decimal)
        self.untidy = 0

    def add(
        self,
        cells: pd.Series[Any],
        units: pd.Series[Any] | None = None,
        dates: pd.Series[Any] | None = None,
        numbers: Ints | None = None,
        base: pd.Series[Any] | None = None,
    ) -> Kinds:
        """Count the cells of a chunk, and return the `Kind` of each."""
        kinds = self.sets.kinds(cells)
        self.replaced.add(cells, kinds, numbers=numbers)
        self.counts += times(kinds, len(Kind), numbers)
        of_cell, every = self.sets.sets(cells)
        for one, number in zip(every, times(of_cell, len(every), numbers).tolist(), strict=True):
            self.untidy += number if one.untidy else 0
            self.suspects.add(Kind.UNKNOWN, one.unknown, [number] * len(one.unknown))
        return kinds

    def findings(self) -> list[Finding]:
        """List what is wrong with the cells; a clean column has none."""
        return [*super().findings(), *self._untidy()]

    def _words(self, kind: Kind) -> tuple[str, str]:
        """Say what is wrong with cells, and what a fit does with them."""
        if kind is Kind.CLIPPED:
            most, ordered = self.sets.several.most, self.sets.several.ordered
            kept = "the first" if ordered else "some of them, chosen by the cell alone"
            return f"hold more than {counted(most, 'code')}", f"keeps {kept}"
        what = super()._words(kind)[1]
        left = "leaves such codes out" if self.column.on_unknown == MISSING else what
        return "hold an unknown code", left

    def _remedy(self, kind: Kind) -> str:
        """Say what to do where no cause was found."""
        if kind is Kind.CLIPPED:
            return "compare most with the manual of the extract; more codes need more noise"
        return super()._remedy(kind)

    def _untidy(self) -> list[Finding]:
        if not self.untidy:
            return []
        total = int(self.counts.sum())
        level = min(LIMITS[DUPLICATES].level(self.untidy / total, self.untidy), Level.WARNING)
        return [
            Finding(
                self.column.name,
                DUPLICATES,
                level,
                f"{share_text(self.untidy, total)} hold a code twice or an empty part; a fit "
                "counts a code once and leaves empty parts out",
                self.untidy,
                total,
                "is the separator right? If so, nothing is to be done",
            )
        ]


class TableReading:
    """Compares a table with its schema, chunk by chunk.

    Attributes:
        columns: the checks of its modelled columns, by name.
        keys: of the units that were read.
        written: how each key is written.
    """

    def __init__(self, schema: Schema, opt_out: OptOut | None = None) -> None:
        """Take the declaration, and who is left out."""
        self._schema, self._opt_out = schema, opt_out
        dates = {
            one.name: (one, schema.column(one.interval.base))
            for one in schema.modelled
            if one.interval is not None
        }
        decimal = schema.dialect.decimal
        sets = {place_names(one)[0]: one for one in schema.modelled if one.several is not None}
        places = {name for one in sets.values() for name in place_names(one)}
        raised = {one.name: one for one in schema.modelled if one.floor is not None}
        self._raised = frozenset(raised)  # their cells are checked, and not their gaps
        self.columns: dict[str, ColumnCheck] = {}
        for coded in coded_schema(schema).modelled:
            column = raised.get(coded.name, coded)
            if column.name in sets:
                self.columns[sets[column.name].name] = SetCheck(sets[column.name], decimal)
            elif column.status_of is None and column.name not in places:
                self.columns[column.name] = ColumnCheck(column, decimal, dates.get(column.name))
        self.keys = Keys(schema)
        self._rows = RowCheck(schema)
        self._unlike = UnlikeRows(schema.unit)
        self.written = WrittenKeys(schema.unit)
        self._seen = 0
        self._computed = [column.name for column in schema.modelled if column.is_computed]
        self.in_rows = ReplacedInRows(schema, ())
        self._header: tuple[str, ...] = ()
        self._columns: tuple[str, ...] = ()
        self._elsewhere: Collection[str] = ()

    def begin(self, table: Table, elsewhere: Collection[str] = ()) -> None:
        """Take the table: its columns, and those of other tables that lie in the same source."""
        self._header, self._columns = table.header, table.columns
        self._elsewhere = elsewhere
        self.in_rows = ReplacedInRows(self._schema, table.columns)

    def add(self, chunk: pd.DataFrame) -> tuple[pd.DataFrame, Ints, dict[str, Kinds]]:
        """Count the cells and rows of a chunk.

        Returns:
            The chunk without the units that opted out, the unit of each row, and what the cells of
            each modelled column are.
        """
        known = len(self.keys)
        units = self.keys.units(chunk)
        new = self.keys.newest(len(self.keys) - known)
        rows = np.arange(self._seen, self._seen + len(chunk))
        self._seen += len(chunk)
        if self._opt_out is not None:
            gone = np.array([*(key in self._opt_out.keys for key in self.keys.texts), False])
            here = ~gone[units]
            chunk, units, rows = chunk[here], units[here], rows[here]
        kinds = self.add_cells(chunk, self.columns)
        self.in_rows.add(chunk, self.in_rows.names)
        read = chunk.drop(columns=self._computed, errors="ignore")
        self._rows.add(read, units, kinds, self.columns)
        self._unlike.add(units, rows, kinds, new)
        if self._schema.unit.column is not None and self.written.varies:
            self.written.add(chunk[self._schema.unit.column], units, self.keys.texts)
        return chunk, units, kinds

    def add_cells(
        self, chunk: pd.DataFrame, names: Iterable[str], numbers: Ints | None = None
    ) -> dict[str, Kinds]:
        """Count the cells of some columns of a chunk, and return what they are.

        Args:
            chunk: with all columns that are read.
            names: of modelled columns.
            numbers: how often each row is there; once if None.
        """
        cells = related(chunk, self._schema)
        return {
            name: self.columns[name].add(
                cells[name] if name in cells and name not in self._raised else chunk[name],
                units_beside(chunk, self.columns[name].column),
                chunk[name] if self.columns[name].dates is not None else None,
                numbers,
                self._base(chunk, name),
            )
            for name in names
        }

    def _base(self, chunk: pd.DataFrame, name: str) -> pd.Series[Any] | None:
        """Return the cells of the date that a gap leans on."""
        dates = self.columns[name].dates
        return None if dates is None else chunk[dates[1].name]

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows and units were read."""
        return self._rows.facts().sizes

    def key_findings(self, place: str, where: str = AT_END) -> FoundKeys:
        """Judge the keys that were read, without those of units that opted out."""
        if self._schema.unit.column is None:
            return FoundKeys()
        units = self._rows.units
        counts = np.bincount(units[units != NO_KEY], minlength=len(self.keys.texts)).tolist()
        rows = {key: n for key, n in zip(self.keys.texts, counts, strict=True) if n}
        found = key_findings(rows, self._schema.unit, place, where)
        crowd = CROWDED * self._schema.unit.max_rows
        found.texts[CROWD] = Counter({key: n for key, n in rows.items() if n >= crowd})
        return found

    def found(self, rows: RowFacts | None = None, log: RecordLog | None = None) -> CheckResult:
        """Judge what was read.

        Args:
            rows: what was counted of them, if that was elsewhere; then no key was read.
            log: of the records, if it was a text file.
        """
        used = any(column.suspects.has_decimals for column in self.columns.values())
        for column in self.columns.values():
            column.suspects.sign_is_used = used
        for name, counts in self.in_rows.findings().items():
            if name in self.columns:
                self.columns[name].replaced.counts.update(counts)
        found = [finding for column in self.columns.values() for finding in column.findings()]
        keys = FoundKeys() if rows is not None else self.key_findings(TABLE)
        rows = self._rows.facts() if rows is None else rows
        found += computed_findings(self.in_rows, self.columns)
        found += unread_columns(self._header, self._schema, self._elsewhere)
        found += uncompared_columns(self._header, self._columns, self._schema)
        found += rows.findings()
        found += keys.findings
        found += written_findings([self.written], TABLE, AT_END)
        found += self._unlike.findings(
            lambda row: f"row {row + 1:,}" if log is None else f"line {log.line_of(row):,}"
        )
        if log is not None:
            footer = self._unlike.footer
            lines = record_findings(log, 0 if footer is None else log.line_of(footer))
            if any(one.level is Level.SERIOUS for one in lines):  # the sizes follow from these
                found = [one for one in found if one.kind not in (ROWS, UNITS)]
            found += lines
        found += [
            Finding(problem.place, SCHEMA, Level.WARNING, problem.message)
            for problem in schema_warnings(self._schema)
        ]
        return CheckResult(
            self._schema,
            {name: column.shares for name, column in self.columns.items()},
            tuple(sorted(found, key=lambda finding: -finding.level)),
            {name: column.suspects for name, column in self.columns.items()},
            {f"{TABLE}:{kind}": texts for kind, texts in keys.texts.items()},
            {TABLE: read_sizes(log, rows.sizes)},
            rows.shares,
        )


def logged_chunks(
    table: Table, schema: Schema, progress: Progress | None
) -> tuple[RecordLog | None, Iterator[pd.DataFrame]]:
    """Read a table; of a text file, irregular records are noted in the log, and left out."""
    if not isinstance(table, Recorded):
        return None, table.chunks(progress)
    logged = table.logged(schema.unit.column)
    return logged.log, logged.chunks(progress)


def read_sizes(log: RecordLog | None, sizes: dict[str, int]) -> dict[str, int]:
    """Return how many lines and records, rows and units were read."""
    return ({} if log is None else {"lines": log.lines, "records": log.records}) | sizes


def opened(source: Source, schema: Schema) -> Table:
    """Open what a fit reads, the column of the order, and computed columns that the table has."""
    return with_computed(source, schema, {*needed_columns(schema), schema.order_column})


def with_computed(source: Source, schema: Schema, needed: Collection[str | None]) -> Table:
    """Open columns of a table, and those that a fit computes, to compare them.

    A fit does not read these, so they may be absent, or of a kind that no fit takes.
    """
    names = tuple(column.name for column in schema.columns if column.name in needed)
    table = open_columns(source, schema, names, private=True)
    header = {*table.header}
    computed = {c.name for c in schema.modelled if c.is_computed and c.name in header}
    if not computed:
        return table
    for chosen in (computed, *({name} for name in sorted(computed))):
        names = tuple(c.name for c in schema.columns if c.name in {*table.columns, *chosen})
        try:
            table = open_columns(source, schema, names, private=True)
        except TableError:
            continue
        if chosen == computed:
            break
    return table
