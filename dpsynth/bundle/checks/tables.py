"""Both formats of a table of a bundle: allowed cells, the same rows, and no byte beside them.

The rows of the Parquet table are written anew, and nothing of that is kept but two digests. If they
are those of the files, the CSV table holds the same rows and nothing else, and the Parquet table no
byte that its rows do not need.

What holds between the tables of a synthetic cohort: keys, days, caps, and events once.

Each table was compared with its own schema before. Here it is held to what linked tables declare of
it, and to that of patients: a row belongs to a patient, its day lies within the window and not
after the end of her follow-up, she has no more rows than the schema keeps, and no temporal rule is
broken. All of it is true of what a sampler draws, so a difference came from somewhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth._util.formatting import counted
from dpsynth._util.strict_json import file_digest
from dpsynth._version import __version__
from dpsynth.bundle.checks.files import Findings
from dpsynth.bundle.format import ManifestHeader, table_path
from dpsynth.bundle.format.layout import MAX_CSV_ROWS, TEXT, TYPED
from dpsynth.bundle.gates import PatientDays, read_columns, temporal_counts
from dpsynth.encoding import Content, check_table, typed_frames
from dpsynth.errors import Problem
from dpsynth.schema import ChildTable, LinkedSchema, SyntheticTable, synthetic_tables
from dpsynth.schema.relations import converted, elapsed, in_time_units
from dpsynth.schema.types import DAY, TYPES
from dpsynth.tables import table_digests

_LIBRARY = re.compile(r"parquet-cpp-arrow version ([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})")
_HIDING = "is not written as a release writes it: something may hide in it"


@dataclass(frozen=True)
class TablePair:
    """The two files of one table of the bundle in ``folder``; findings go to ``findings``.

    Attributes:
        folder: of the bundle.
        found: the files that are there.
        table: its declaration.
        findings: what is found.
        other_version: whether another dpsynth or another build of its Parquet library may have
            written them, so that bytes cannot be compared.
    """

    folder: Path
    found: set[str]
    table: SyntheticTable
    findings: Findings
    other_version: bool

    @property
    def typed(self) -> str:
        """Where the Parquet table is."""
        return table_path(self.table.name, TYPED)

    @property
    def text(self) -> str:
        """Where the CSV table is."""
        return table_path(self.table.name, TEXT)

    def check(self, heading: ManifestHeader | None) -> None:
        """Check every cell of both, that they hold the same, and how they are written."""
        table = self._cells(self.typed)
        if table is None:
            if self.text in self.found:
                self._cells(self.text)
            return
        findings = self.findings
        if heading is not None and table.rows != (self._rows(heading) or table.rows):
            findings.add(self.typed, "has another number of rows than the manifest says")
        if self.text not in self.found and table.rows <= MAX_CSV_ROWS:
            findings.add(self.text, "is missing")
        with findings.step(self.typed):
            anew = self._anew(heading)
            if self.text in self.found:
                self._compare_text(table, anew.get(self.text))
            if self.typed in anew:
                self._compare_bytes(anew[self.typed])

    def _rows(self, heading: ManifestHeader) -> int | None:
        """Return the number of rows that the manifest states; None where it states none."""
        return heading.drawing.size if self.table.child is None else None

    def _cells(self, path: str) -> Content | None:
        """Check every cell of one of them; None if one is not as the schema allows."""
        before = len(self.findings.problems)
        content = None
        if path in self.found:
            with self.findings.step(path, f"every cell of {path} is one that the schema allows"):
                content, problems = check_table(self.folder / path, self.table)
                self.findings.problems += [
                    Problem(f"{path}: {problem.place}", problem.message) for problem in problems
                ]
        return content if len(self.findings.problems) == before else None

    def _anew(self, heading: ManifestHeader | None) -> dict[str, str]:
        """Return the digests of the files that a release would write of the same rows."""
        if heading is None or heading.writer != __version__:
            return {}
        paths = [path for path in (self.typed, self.text) if path in self.found]
        frames = typed_frames(self.folder / self.typed, self.table)
        kinds = [Path(path).suffix for path in paths]
        return dict(zip(paths, table_digests(frames, self.table.schema, kinds), strict=True))

    def _compare_text(self, table: Content, anew: str | None) -> None:
        """Compare the text table with the other; cell by cell only to say what differs."""
        findings = self.findings
        same = f"{self.text} has the same {table.rows} rows as {self.typed}"
        if anew == file_digest(self.folder / self.text):
            findings.checks += [f"every cell of {self.text} is one that the schema allows", same]
            return
        before = len(findings.problems)
        text = self._cells(self.text)
        if text is not None and text != table:
            findings.add(self.text, f"has other rows than {self.typed}")
        if len(findings.problems) > before:
            return
        if anew is not None:
            findings.add(self.text, _HIDING)
        else:
            findings.checks.append(same)

    def _compare_bytes(self, anew: str) -> None:
        """Compare the bytes of the Parquet table, if the library that wrote it is the one here."""
        findings = self.findings
        if anew == file_digest(self.folder / self.typed):
            findings.checks.append(f"{self.typed} contains nothing except its rows")
            return
        with pq.ParquetFile(self.folder / self.typed) as file:
            writer = str(file.metadata.created_by)
        known = _LIBRARY.fullmatch(writer)
        if known is None:
            findings.add(self.typed, "was written by a program that dpsynth does not use")
        elif self.other_version:
            findings.checks.append(
                f"{self.typed} may contain extra bytes: it is not written as on this machine"
            )
        elif known[1] != pa.cpp_version:
            findings.add(
                self.typed,
                f"says that pyarrow {known[1]} wrote it; this is {pa.cpp_version}, which cannot "
                "compare its bytes: install that version, or accept it (--other-version)",
            )
        else:
            findings.add(
                self.typed,
                f"{_HIDING}; if it was made on another kind of machine, accept it "
                "(--other-version)",
            )


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def check_cohort(folder: Path, schema: LinkedSchema, findings: Findings) -> None:
    """Check the tables of the bundle in ``folder`` against each other.

    Args:
        folder: of the bundle; every cell of its tables is known to be valid.
        schema: of the tables.
        findings: what is found goes there.
    """
    own, *children = synthetic_tables(schema).values()
    place, before = table_path(own.name), len(findings.problems)
    with findings.step(place):
        patients = PatientDays.of(folder, own, schema)
        if not np.array_equal(patients.keys, np.arange(1, len(patients.keys) + 1)):
            findings.add(place, "does not number its patients from 1, in order")
            return
        for table in children:
            for message in _faults(folder, table, patients, schema):
                findings.add(table_path(table.name), message)
        for rule in temporal_counts(folder, schema):
            if rule.broken:
                findings.add(place, f"rule '{rule.text}': some patients break it")
    if len(findings.problems) > before:
        return
    findings.checks += [
        f"keys agree: every row of {counted(len(children), 'table')} belongs to one of "
        f"{counted(len(patients.keys), 'patient')}",
        "no patient has more rows than the schema keeps, and each event at most once",
    ]
    if any(table.child is not None and table.child.time for table in children):
        findings.checks.append(
            "every day lies within the declared window, and none after the end of follow-up"
        )


def _faults(
    folder: Path, table: SyntheticTable, patients: PatientDays, schema: LinkedSchema
) -> Iterator[str]:
    """Name every way in which the rows of a table do not fit the patients or its declaration."""
    child = table.child
    assert child is not None
    named = child.once if child.series is None else child.series.column
    names = {child.key, *filter(None, (child.time, child.order, named))}
    values = read_columns(folder, table, names)
    keys = values[child.key]
    if not np.isin(keys, patients.keys).all():
        yield f"has rows of patients whom table {schema.patients.name} does not have"
        return
    if (np.diff(keys) < 0).any():
        yield "does not have its rows in the order of its patients"
        return
    owners = keys.astype(np.int64) - 1
    kinds = np.zeros(len(owners), dtype=np.int64)
    if named is not None:
        kinds = np.unique(values[named], return_inverse=True)[1]
    yield from _capped(child, owners, kinds)
    if child.order is not None and not np.array_equal(values[child.order], _places(owners)):
        yield "does not number the rows of each patient from 1"
    if child.time is not None:
        time = values[child.time]
        column = table.schema.column(child.time)
        if child.origin is not None:
            seconds = schema.time_seconds
            units = in_time_units(time, column.kind, seconds)
            midnights = seconds == DAY and "hour" not in child.calendar
            if midnights and (converted(units, TYPES["date"], column.kind) != time).any():
                yield "has times of day, which are not modelled"
            time = elapsed(units, patients.origins[owners])
        yield from _timed(schema, time, values[child.time], owners, patients)
        yield from _apart(child, time, owners, kinds, schema)


def _capped(child: ChildTable, owners: Ints, kinds: Ints) -> Iterator[str]:
    """Compare the rows of each patient, of each test or event, with the most that are kept."""
    most = 1 if child.once is not None else child.schema.unit.max_rows
    counts = np.unique(np.column_stack([owners, kinds]), axis=0, return_counts=True)[1]
    if not (counts > most).any():
        return
    if child.once is not None:
        yield "has an event of a patient twice; each happens once"
    else:
        of_each = " of a test" if child.series is not None else ""
        yield f"has more than {counted(most, 'row')}{of_each} of a patient, the most that are kept"


def _places(owners: Ints) -> Ints:
    """Return the place of each row among those of its patient, from 1."""
    return np.arange(len(owners)) - np.searchsorted(owners, owners) + 1


def _timed(
    schema: LinkedSchema, days: Floats, moments: Floats, owners: Ints, patients: PatientDays
) -> Iterator[str]:
    """Compare days since the origin with the window and the end of follow-up; times with the next.

    Args:
        schema: of the tables.
        days: since the origin, ``[rows]``.
        moments: the times as they are written, ``[rows]``.
        owners: the place of the patient of each row, ``[rows]``.
        patients: origins and ends.
    """
    window = schema.window
    assert window is not None
    if np.isnan(days).any():
        yield "has dates of patients without an origin, from which they count"
        return
    if ((days < window.first) | (days > window.last)).any():
        yield (f"has {window.noun}s outside the declared window, {window.first} to {window.last}")
    elif (days > patients.ends[owners]).any():
        yield f"has days after the end of a patient's follow-up, column '{schema.end}'"
    same = np.diff(owners) == 0
    if (np.diff(moments)[same] < 0).any():
        yield "does not have the rows of each patient in order of time"


def _apart(
    child: ChildTable, days: Floats, owners: Ints, kinds: Ints, schema: LinkedSchema
) -> Iterator[str]:
    """Compare the days between two rows of a patient, of each test, with the most declared."""
    if child.longest_gap is None or schema.window is None:
        return
    order = np.lexsort((kinds, owners))  # stable: rows of a test stay in order of time
    alike = (np.diff(owners[order]) == 0) & (np.diff(kinds[order]) == 0)
    if (np.diff(days[order])[alike] > child.longest_gap).any():
        yield (f"has rows of a patient more than {child.longest_gap} {schema.window.noun}s apart")
