"""The tables of a bundle as events: the Medical Event Data Standard (MEDS 0.4) of sequence models.

Each patient is a list of events: a time, a code and perhaps a number. A value of the baseline has
no time. A category is part of its code (``visits//ward//ICU``), a number stands beside it. A date
is an event at its own time: a stay is ``stays`` at its admission and ``stays//discharged`` at its
discharge. A time of day is one on the day of its row, and a number of hours where none is. Nothing
but the bundle is read, so this is post-processing of what was released already (Dwork and Roth, The
Algorithmic Foundations of Differential Privacy, 2014, Proposition 2.1).

The standard: https://github.com/Medical-Event-Data-Standard/meds

The files of a MEDS dataset: events, codes, splits and a description, in the standard's types.

The standard: https://github.com/Medical-Event-Data-Standard/meds
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_document, written
from dpsynth._version import __version__
from dpsynth.bundle.format import ManifestHeader, table_path
from dpsynth.bundle.format.layout import MANIFEST, SCHEMA
from dpsynth.bundle.verifier import verify
from dpsynth.encoding import typed_frames, values_of
from dpsynth.errors import InputError
from dpsynth.files import atomic_folder, check_no_bundle
from dpsynth.schema import (
    AnySchema,
    ChildTable,
    Column,
    LinkedSchema,
    Schema,
    SyntheticTable,
    any_from_dict,
    unit_of,
)
from dpsynth.tables import typed_values
from dpsynth.tables.writer import SYNTHETIC_NOTE

DAY_ZERO = np.datetime64("2000-01-01", "us")
"""The origin of every patient where tables hold days and nobody knows a date."""
_LAST = 1_000  # place of the end of follow-up among the events of one time

Ints = npt.NDArray[np.int64]
Times = npt.NDArray[np.datetime64]


@dataclass(frozen=True)
class Exported:
    """What was written: how many patients and events, and tables that were left out."""

    patients: int
    events: int
    left_out: tuple[str, ...]


def export_meds(bundle: str | Path, output: str | Path) -> Exported:
    """Write the tables of a bundle as a MEDS dataset into a new folder.

    A table whose rows are only ordered has no times, and is left out.

    Raises:
        InputError: the bundle is of a single table, or the folder exists, lies in a bundle or
            cannot be written.
        VerificationError: the bundle does not verify.
    """
    folder = path_of(bundle, "the folder of a bundle")
    check_no_bundle(output)
    verify(folder)
    schema = any_from_dict(read_document(folder / SCHEMA), source=SCHEMA)
    check_linked_tables(schema, folder)
    with atomic_folder(output) as temporary:
        return write_events(folder, temporary)


def check_linked_tables(schema: AnySchema, place: str | Path) -> None:
    """Refuse a single table, whose rows are not events of patients.

    Raises:
        InputError: it names ``place``, a bundle or a run.
    """
    if isinstance(schema, Schema):
        raise InputError(
            f"{place} has a single table, without patients whose rows belong together; MEDS needs "
            "linked tables"
        )


def write_events(folder: Path, temporary: Path) -> Exported:
    """Write the events of a bundle of linked tables, which has been verified.

    Args:
        folder: the bundle.
        temporary: an empty folder.
    """
    schema = LinkedSchema.from_dict(read_document(folder / SCHEMA), source=SCHEMA)
    heading = ManifestHeader.of(read_document(folder / MANIFEST), schema)
    events = _Events(schema, folder)
    frame = pd.concat(events.all(heading), ignore_index=True)
    order = ["subject", "time", "place", "row"]
    frame = frame.sort_values(order, kind="stable", na_position="first")
    patients = np.arange(1, events.patients + 1)
    write_dataset(frame, patients, heading, temporary)
    return Exported(len(patients), len(frame), tables_without_time(folder))


def tables_without_time(folder: Path) -> tuple[str, ...]:
    """Name the tables of a bundle that have no events."""
    schema = LinkedSchema.from_dict(read_document(folder / SCHEMA), source=SCHEMA)
    return tuple(child.name for child in schema.children if child.time is None)


class _Events:
    """Reads the events off the tables of a bundle."""

    def __init__(self, schema: LinkedSchema, folder: Path) -> None:
        """Read the table of patients."""
        self._schema, self._folder = schema, folder
        self._tables = ManifestHeader.of(read_document(folder / MANIFEST), schema).tables
        own = self._tables[schema.patients.name]
        self._baseline = self._read(own)
        self.patients = len(self._baseline)
        start = DAY_ZERO if schema.start is None else np.datetime64(schema.start, "us")
        self._origins = np.full(self.patients, start)
        if schema.origin is not None:
            self._origins = self._baseline[schema.origin].to_numpy().astype("datetime64[us]")

    def all(self, heading: ManifestHeader) -> Iterator[pd.DataFrame]:
        """Yield frames of events: subject, time, code, number, words, and where they stand."""
        own = self._tables[self._schema.patients.name]
        subjects = np.arange(1, self.patients + 1)
        nothing = np.full(self.patients, np.datetime64("NaT", "us"))
        for column, _ in own.variables():
            cells = self._baseline[column.name]
            if column.name == self._schema.end:
                ends = _frame(subjects, self._ends(cells, column), own.name, column, None)
                yield ends.assign(place=_LAST)
            elif _is_moment(column):
                yield _frame(subjects, _moments(cells), own.name, column, None)
            else:
                yield _frame(subjects, nothing, own.name, column, cells)
        for place, child in enumerate(self._schema.children, start=1):
            if child.time is not None:
                for frame in self._of_child(child, self._tables[child.name]):
                    yield frame.assign(place=place)

    def _ends(self, cells: pd.Series[Any], column: Column) -> Times:
        """Return the time at which follow-up ends."""
        if column.kind.is_time:
            return _moments(cells)
        return self._origins + self._since(cells.to_numpy(dtype=np.float64, na_value=np.nan))

    def _since(self, units: npt.NDArray[np.float64]) -> npt.NDArray[np.timedelta64]:
        """Return the time since the origin: days, or the unit of the window."""
        window = self._schema.window
        seconds = 0 if window is None else window.seconds  # without a window, nothing is timed
        since = np.where(np.isnan(units), 0, units * seconds).astype(np.int64)
        whole = since.astype("timedelta64[s]").astype("timedelta64[us]")
        return np.where(np.isnan(units), np.timedelta64("NaT", "us"), whole)

    def _of_child(self, child: ChildTable, table: SyntheticTable) -> Iterator[pd.DataFrame]:
        frame = self._read(table)
        if frame.empty:
            return
        key = table.schema.column(child.key)
        subjects = values_of(frame, key, table).astype(np.int64)
        times = frame[child.time].to_numpy()
        if child.origin is None:
            times = self._origins[subjects - 1] + self._since(times.astype(np.float64))
        times = times.astype("datetime64[us]")
        if child.series is None and child.once is None:
            yield _frame(subjects, times, child.name, None, None)  # the row itself
        for column, test in table.variables():
            if column.name == child.time or (child.series and column.name == child.series.column):
                continue
            rows, cells = np.arange(len(frame)), frame.get(column.name)
            if test is not None and child.series is not None:
                rows = np.flatnonzero((frame[child.series.column] == test).to_numpy(dtype=bool))
                cells = frame[child.series.value].iloc[rows]
            if column.name == child.once:  # an event needs no name of its column
                column = Column("", "string", categories=column.categories)
            at = times[rows]
            if _is_moment(column):
                at, cells = _moments(cells), None
            elif column.kind.is_clock and not column.is_categorical and cells is not None:
                at, cells = at.astype("datetime64[D]") + _clocks(cells, column), None
            events = _frame(subjects[rows], at, child.name, column, cells)
            yield events.assign(row=rows[events["row"].to_numpy()])

    def _read(self, table: SyntheticTable) -> pd.DataFrame:
        path = self._folder / table_path(table.name)
        return pd.concat(typed_frames(path, table), ignore_index=True)


def _is_moment(column: Column) -> bool:
    """Tell whether the cells of a column are dates; those of a list of dates are categories."""
    return column.kind.is_time and not column.is_categorical


def _moments(cells: Any) -> Times:
    """Return the dates of cells."""
    times: Times = pd.to_datetime(cells).to_numpy().astype("datetime64[us]")
    return times


def _clocks(cells: pd.Series[Any], column: Column) -> npt.NDArray[np.timedelta64]:
    """Return the times of day of cells, since midnight."""
    seconds = typed_values(cells, column.kind)
    since = np.where(np.isnan(seconds), 0, 1e6 * seconds).astype("timedelta64[us]")
    return np.where(np.isnan(seconds), np.timedelta64("NaT", "us"), since)


def _frame(
    subjects: Ints, times: Times, table: str, column: Column | None, cells: pd.Series[Any] | None
) -> pd.DataFrame:
    """Return the events of one column; a missing cell is none."""
    name = f"{table}//{column.name}" if column is not None and column.name else table
    words = np.full(len(subjects), _described(table, column), dtype=object)
    codes, numbers = np.full(len(subjects), name, dtype=object), np.full(len(subjects), np.nan)
    kept = ~np.isnat(times)
    if cells is not None and column is not None:
        kept = ~cells.isna().to_numpy(dtype=bool)
        if column.is_categorical:
            texts = cells.astype(str).str.removesuffix(".0") if not column.kind.is_text else cells
            codes = np.array([f"{name}//{_word(text)}" for text in texts], dtype=object)
            words = np.array(
                [
                    f"{one}: {column.labels.get(text, _word(text))}"
                    for one, text in zip(words, texts, strict=True)
                ],
                dtype=object,
            )
        elif column.kind.is_clock:
            numbers = _clocks(cells, column) / np.timedelta64(1, "h")
        elif column.kind.is_number:
            numbers = pd.to_numeric(cells).to_numpy(dtype=np.float64, na_value=np.nan)
    columns = {"subject": subjects, "time": times, "code": codes, "number": numbers}
    columns |= {"place": np.zeros(len(subjects), np.int64), "row": np.arange(len(subjects))}
    return pd.DataFrame(columns | {"words": words})[kept]


def _described(table: str, column: Column | None) -> str:
    """Describe the events of a column, with the unit of their numbers."""
    title = table if column is None else (column.title or column.name or table)
    unit = "" if column is None else unit_of(column)
    return f"{title} ({unit})" if unit else title


def _word(text: object) -> str:
    return str(text).lower() if text in ("True", "False") else str(text)


VERSION = "0.4.1"
"""Of the standard."""
SPLITS = ("held_out", "tuning", *["train"] * 8)
"""The split of a patient, by the last digit of her number."""


def write_dataset(
    frame: pd.DataFrame, patients: npt.NDArray[np.int64], heading: ManifestHeader, folder: Path
) -> None:
    """Write a dataset.

    Args:
        frame: the events in order: subject, time, code, number and words.
        patients: all subjects, also those without an event.
        heading: of the bundle.
        folder: an empty one.
    """
    (folder / "data").mkdir()
    (folder / "metadata").mkdir()
    _write(_data(frame), folder / "data" / "0.parquet")
    _write(_codes(frame), folder / "metadata" / "codes.parquet")
    splits = pa.array([SPLITS[number % 10] for number in patients.tolist()])
    table = pa.table({"subject_id": pa.array(patients, pa.int64()), "split": splits})
    _write(table, folder / "metadata" / "subject_splits.parquet")
    (folder / "metadata" / "dataset.json").write_bytes(written(_dataset(heading)))


def _write(table: pa.Table, path: Path) -> None:
    """Write a table whose metadata say that it is synthetic."""
    pq.write_table(table.replace_schema_metadata(SYNTHETIC_NOTE), path)


def _data(frame: pd.DataFrame) -> pa.Table:
    """Return the table of events in the standard's types."""
    return pa.table(
        {
            "subject_id": pa.array(frame["subject"], pa.int64()),
            "time": pa.array(frame["time"].to_numpy().astype("datetime64[us]"), pa.timestamp("us")),
            "code": pa.array(frame["code"].tolist(), pa.string()),
            "numeric_value": pa.array(
                frame["number"].to_numpy(), pa.float32(), from_pandas=True, safe=False
            ),
        }
    )


def _codes(frame: pd.DataFrame) -> pa.Table:
    """Describe every code."""
    words = frame.drop_duplicates("code").sort_values("code")
    parents = pa.array([None] * len(words), pa.list_(pa.string()))
    return pa.table(
        {
            "code": pa.array(words["code"].tolist(), pa.string()),
            "description": pa.array(words["words"].tolist(), pa.string()),
            "parent_codes": parents,
        }
    )


def _name(title: str) -> str:
    """Say in the title that the data are synthetic, if the office's does not."""
    return title if "synthetic" in title.lower() else f"{title} (synthetic data)"


def _dataset(heading: ManifestHeader) -> dict[str, Any]:
    """Describe the dataset."""
    about = heading.about
    document = {
        "dataset_name": _name(heading.title),
        "dataset_version": about.version,
        "etl_name": "dpsynth release --meds",
        "etl_version": __version__,
        "meds_version": VERSION,
        "license": about.licence,
        "location_uri": about.homepage,
    }
    return {key: value for key, value in document.items() if value}
