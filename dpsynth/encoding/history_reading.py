"""The tables of a schema, read into histories.

The tables of a schema, read into histories.

This is where one patient's influence is bounded (add or remove one patient with all rows in all
tables). A patient's codes, days, order and cap follow from her own rows, from public facts and from
fresh randomness; so a patient more or less changes no other one's history. Rows that belong to
nobody in the table of patients, because their key is missing, unknown or opted out, are left out,
as rows without a key are of a single table; `Tally` has their number for internal reports.

The table of patients, read: who there is, and each one's codes, end of follow-up and origin.

Each of these is a function of the patient's own row. Who counts as a patient is as well: one with
a key, one row, no cell that its column refuses, and not on the list of those who opted out.

The rows of a child table, coded one by one: each is a function of its own cells.

A row of a long table is coded by the test that it names, so only that test's column looks at it.

The rows of a child table put to their patients: days in the window, in order, and capped.

Everything here is done within a patient. A day is moved into the window, and up to the end of the
patient's own follow-up. Rows are ordered by time, then by the declared order, then by their codes:
never by their place in the file, which depends on who wrote other rows and when. Rows that are
equal in all of these are the same row. Of a patient with more rows than the cap, a random subset or
a window from a random start is kept, by fresh randomness; the first rows would tell of themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks import Refused, order_of
from dpsynth.encoding.cohort import ranks_of, select
from dpsynth.encoding.column_codecs import REFUSED, coder_of
from dpsynth.encoding.histories import NEVER, Histories, SeriesRows
from dpsynth.encoding.history_calendar import with_calendar_of, with_parts
from dpsynth.encoding.history_codec import ChildCodec, HistoryCodec
from dpsynth.encoding.relations import related
from dpsynth.errors import NoRowsError, RefusedCellError, TableError
from dpsynth.schema.relations import elapsed, in_time_units
from dpsynth.tables import Keys, OptOut, read_cells, typed_values
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy
    from dpsynth.tables import Progress, Table


COUNTED = ("keyless", "strangers", "undeclared", "timeless", "early", "late")


@dataclass
class Tally:
    """How many rows of each table did not come in as they stand. Private: never publish it.

    Attributes:
        rows: by table and by what happened to them: ``keyless``, ``strangers`` (no patient has
            their key), ``undeclared`` tests and ``timeless`` rows are left out; ``early`` and
            ``late`` days are moved into the window and follow-up; ``capped`` ones are beyond
            ``max_rows``.
    """

    rows: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __repr__(self) -> str:
        """Show no number: it is about real rows."""
        return short_repr(self, "numbers of rows")

    def take(self, table: str, placed: PlacedRows, kept: int | None = None) -> None:
        """Count the rows of a table."""
        for what in COUNTED:
            self.rows[table, what] += getattr(placed, what)
        if kept is not None:
            self.rows[table, "capped"] += len(placed.patients) - kept


def read_histories(
    tables: Mapping[str, Table],
    codec: HistoryCodec,
    entropy: Entropy,
    *,
    opt_out: OptOut | None = None,
    refused: Refused = "stop",
    progress: Progress | None = None,
    tally: Tally | None = None,
) -> Histories:
    """Read linked tables: patients in random order, each with all her rows, in time and capped.

    Where refused rows are left out (``drop``), whether there are histories does not depend on any
    cell, as in `read_cohort`; a patient whose own row is refused, or occurs twice, is left out with
    all her rows.

    Args:
        tables: as `dpsynth.tables.open_linked` opens them.
        codec: of their schema.
        entropy: source of the order of patients and of the rows that are kept.
        opt_out: patients who are left out of all tables.
        refused: what a row with a refused cell does.
        progress: called with the fraction of each table that has been read.
        tally: is told how many rows were left out or moved.

    Raises:
        TableError: a table is damaged. If refused rows stop: a patient's key has several rows, no
            patient has a key, or no row of a table that has rows has a patient.
        NoRowsError: the table of patients has no row, and refused rows stop.
        RefusedCellError: a cell broke a column that opts in to ``refuse``, and such rows stop.
    """
    schema = codec.schema
    patients = read_patients(
        tables[schema.patients.name],
        codec,
        entropy,
        opt_out=opt_out,
        refused=refused,
        progress=progress,
    )
    onsets = [np.empty((len(patients.codes), 0), dtype=np.int64)]
    series: list[tuple[SeriesRows, ...]] = []
    for one in codec.children:
        name = one.child.name
        rows = read_rows(tables[name], one, refused, progress)
        placed = place_rows(rows, one, patients, codec)
        lost = placed.keyless + placed.strangers == len(rows.units)
        if refused == "stop" and lost and len(rows.units) and opt_out is None:
            raise TableError(
                f"table {name}: no row belongs to a patient of table {schema.patients.name}; "
                f"correct column '{one.child.key}' or '{schema.key}', how keys are compared "
                "(dpsynth.key), or the foreign key"
            )
        if one.child.once is not None:
            onsets.append(first_days(placed, one, len(patients.codes)))
            kept = None
        else:
            series.append(capped_series(placed, one, entropy))
            kept = sum(len(rows.patients) for rows in series[-1])
        if tally is not None:
            tally.take(name, placed, kept)
    return Histories(patients.codes, patients.ends, np.concatenate(onsets, axis=1), tuple(series))


Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Patients:
    """Those who count, by number, in random order.

    Attributes:
        numbers: by the text of the key.
        codes: of the baseline, ``[patients, columns]``.
        ends: last day of follow-up, ``[patients]``.
        origins: time of the origin since 1970-01-01, in the unit of time; NaN without one.
    """

    numbers: dict[str, int]
    codes: Codes
    ends: Ints
    origins: Floats

    def of_rows(self, units: Ints, keys: Keys) -> Ints:
        """Return the patient of each row of another table, `NO_KEY` for a row of none."""
        numbers = [self.numbers.get(text, NO_KEY) for text in keys.texts]
        return np.array([*numbers, NO_KEY], dtype=np.int64)[units]


def read_patients(
    table: Table,
    codec: HistoryCodec,
    entropy: Entropy,
    *,
    opt_out: OptOut | None,
    refused: Refused,
    progress: Progress | None,
) -> Patients:
    """Read the table of patients; of one that repeats them, a row of each by chance.

    Raises:
        TableError: it is damaged; or refused rows stop, and no row has a key, or a key has several
            rows. NoRowsError: it has no row, and refused rows stop. RefusedCellError: a cell broke
            a column that opts in to ``refuse``, and such rows stop.
    """
    schema, keys = codec.schema.patients, Keys(codec.schema.patients)
    codes = [np.empty((0, len(codec.baseline)), dtype=np.uint16)]
    units: list[Ints] = [np.empty(0, dtype=np.int64)]
    ends, origins = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    accepted: list[Bools] = [np.empty(0, dtype=bool)]
    try:
        for chunk in table.chunks(progress):
            if refused == "stop":
                coded, sound = codec.patients.encode(chunk), np.ones(len(chunk), dtype=bool)
            else:
                coded, sound = codec.patients.accepted(chunk)
            codes.append(coded)
            accepted.append(sound)
            units.append(keys.units(chunk))
            ends.append(_ends(chunk, codec))
            origins.append(_origins(chunk, codec))
    except NoRowsError:
        if refused == "stop":
            raise
    unit_of_row = np.concatenate(units)
    if refused == "stop" and (unit_of_row == NO_KEY).all():
        raise TableError(
            f"table {schema.name}: no row has a key in column '{schema.unit.column}'; correct the "
            "table, the column's missingValues, or the primaryKey"
        )
    known, sound = len(keys.texts), np.concatenate(accepted)
    if codec.schema.repeated:
        unit_of_row = one_row_each(np.where(sound, unit_of_row, NO_KEY), entropy)
    rows_of_unit = np.bincount(unit_of_row[unit_of_row != NO_KEY], minlength=known)
    if refused == "stop" and (rows_of_unit > 1).any():
        raise TableError(
            f"table {schema.name}: a key in column '{schema.unit.column}' has several rows, and "
            "each row is one patient; keep one of them, or declare it as `repeated`"
        )
    left = rows_of_unit == 1
    if opt_out is not None:
        left &= ~opt_out.of_units(keys, known)
    left = np.append(left, False)  # of a row without a key
    rows = np.flatnonzero(left[unit_of_row] & sound)
    rows = rows[entropy.permutation(len(rows))]
    texts = keys.texts
    return Patients(
        {texts[unit]: number for number, unit in enumerate(unit_of_row[rows].tolist())},
        np.concatenate(codes)[rows],
        np.concatenate(ends)[rows],
        np.concatenate(origins)[rows],
    )


def one_row_each(units: Ints, entropy: Entropy) -> Ints:
    """Return `NO_KEY` for all rows of a patient but one, which chance chooses.

    The first one would be a matter of how the file is sorted.
    """
    chosen, _ = select(units, 1, entropy)
    kept = np.full(len(units), NO_KEY, dtype=np.int64)
    kept[chosen] = units[chosen]
    return kept


def _ends(chunk: pd.DataFrame, codec: HistoryCodec) -> Ints:
    """Return each patient's last day of follow-up; a missing one is the window's."""
    name, schema = codec.schema.end, codec.schema.patients
    if name is None:
        return np.full(len(chunk), codec.last, dtype=np.int64)
    coder = coder_of(codec.patients.schema.column(name), schema.dialect.decimal)
    column = codec.patients.schema.column(name)
    days = typed_values(coder.read(related(chunk, schema)[name])[1], column.kind)
    days = days - codec.schema.day_zero if column.kind.is_time else days
    return np.clip(np.where(np.isnan(days), codec.last, days), 0, codec.last).astype(np.int64)


def _origins(chunk: pd.DataFrame, codec: HistoryCodec) -> Floats:
    """Return the day of each patient's origin since 1970-01-01; NaN where no table has dates."""
    name, schema = codec.schema.origin, codec.schema.patients
    if name is None:
        return np.full(len(chunk), codec.schema.day_zero)
    column = schema.column(name)
    values = read_cells(chunk[name], column, schema.dialect.decimal)[0]
    return in_time_units(values, column.kind, codec.schema.time_seconds)


@dataclass(frozen=True, eq=False, repr=False)
class ChildRows:
    """The rows of a table, as they come.

    Attributes:
        units: the number of each row's key, `NO_KEY` without one.
        keys: the keys, by number.
        named: which test or event a row is about, by code; 0 in a wide table. A code beyond the
            last one means none that is declared.
        values: codes of the values of a row, ``[rows, values]``.
        times: in the unit of the column, NaN where missing or bad; zeros without a time.
        ranks: of the column that orders rows; zeros without one.
        accepted: whether no cell is refused.
    """

    units: Ints
    keys: Keys
    named: Ints
    values: Codes
    times: Floats
    ranks: Ints
    accepted: Bools


def read_rows(
    table: Table, codec: ChildCodec, refused: Refused, progress: Progress | None
) -> ChildRows:
    """Read a child table; one without rows is empty.

    Raises:
        TableError: the table is damaged. RefusedCellError: a cell broke a column that opts in to
            ``refuse``, and such rows stop.
    """
    child = codec.child
    keys, width = Keys(child.schema), len(codec.others) + bool(codec.tests)
    units, named = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    values, times = [np.empty((0, width), dtype=np.uint16)], [np.empty(0)]
    accepted: list[Bools] = [np.empty(0, dtype=bool)]
    order: list[Any] = []
    try:
        for chunk in table.chunks(progress):
            tests, codes, sound = _coded(chunk, codec)
            if refused == "stop" and not sound.all():
                raise _refusal(chunk, codec)
            units.append(keys.units(chunk))
            named.append(tests)
            values.append(codes)
            accepted.append(sound)
            times.append(_times(chunk, codec))
            if child.order is not None:
                column = child.schema.column(child.order)
                order.append(order_of(chunk[child.order], column, child.schema.dialect))
    except NoRowsError:
        pass
    unit_of_row = np.concatenate(units)
    ranks = ranks_of(np.concatenate(order)) if order else np.zeros(len(unit_of_row), dtype=np.int64)
    return ChildRows(
        unit_of_row,
        keys,
        np.concatenate(named),
        np.concatenate(values),
        np.concatenate(times),
        ranks,
        np.concatenate(accepted),
    )


def _coded(chunk: pd.DataFrame, codec: ChildCodec) -> tuple[Ints, Codes, Bools]:
    """Return what each row is about, the codes of its values, and whether none is refused."""
    coded, sound = codec.codec.accepted(with_parts(chunk, codec.child))
    place, others = codec.naming, list(codec.others)
    named = np.zeros(len(chunk), dtype=np.int64)
    if place is not None:
        named = coded[:, place].astype(np.int64)
    if not codec.tests:
        return named, coded[:, others], sound
    assert codec.child.series is not None
    cells = chunk[codec.child.series.value]
    first = np.zeros(len(chunk), dtype=np.int32)
    for code, coder in enumerate(codec.tests):
        rows = np.flatnonzero((named == code) & sound)
        if len(rows):
            first[rows] = coder.encode(cells.iloc[rows])
    sound &= first != REFUSED
    first[~sound] = 0
    return named, np.column_stack([first.astype(np.uint16), coded[:, others]]), sound


def _refusal(chunk: pd.DataFrame, codec: ChildCodec) -> RefusedCellError:
    """Word the error for a chunk with a cell that its column, or its test, refuses."""
    place = f"table {codec.child.name}"
    try:
        codec.codec.encode(with_parts(chunk, codec.child))
    except RefusedCellError as error:
        return RefusedCellError(f"{place}: {error}")
    return RefusedCellError(
        f"{place}: a test declares `refuse`, and a value in column "
        f"'{codec.child.series and codec.child.series.value}' is not what it declares; correct the "
        "table, or send such values to missing, a bound or a category by on_bad and on_unknown"
    )


def _times(chunk: pd.DataFrame, codec: ChildCodec) -> Floats:
    child = codec.child
    if child.time is None:
        return np.zeros(len(chunk))
    column = child.schema.column(child.time)
    values, missing = read_cells(chunk[child.time], column, child.schema.dialect.decimal)
    return np.where(missing | ~np.isfinite(values), np.nan, values)


@dataclass(frozen=True, eq=False, repr=False)
class PlacedRows:
    """Rows that have a patient, a day, and a test or event that is declared; in order.

    Attributes:
        patients: the patient of each row, ascending.
        named: which test or event it is about.
        days: within the window and follow-up; 0 without time.
        values: codes, ``[rows, values]``.
        keyless, strangers, undeclared, timeless, early, late: how many rows of the table had no
            key, no patient, an undeclared test, no time; and how many were moved to the first day,
            or to the last one. All of them are private.
    """

    patients: Ints
    named: Ints
    days: Ints
    values: Codes
    keyless: int
    strangers: int
    undeclared: int
    timeless: int
    early: int
    late: int


def place_rows(
    rows: ChildRows, codec: ChildCodec, patients: Patients, whole: HistoryCodec
) -> PlacedRows:
    """Put rows to their patients, in order."""
    owners = patients.of_rows(rows.units, rows.keys)
    declared = np.ones(len(owners), dtype=bool)
    if codec.naming is not None:
        declared = rows.named < len(codec.names)
    days = _days(rows, codec, patients, owners, whole.schema.time_seconds)
    timed = np.isfinite(days)
    at = np.flatnonzero((owners >= 0) & declared & timed & rows.accepted)
    keys = [rows.values[at, column] for column in reversed(range(rows.values.shape[1]))]
    at = at[np.lexsort([*keys, rows.named[at], rows.ranks[at], rows.times[at], owners[at]])]
    owner, day = owners[at], days[at]
    ends = np.minimum(patients.ends[owner], whole.last)
    if codec.child.time is None:
        bounded = np.zeros(len(at), dtype=np.int64)
        early = late = 0
    else:
        bounded = np.clip(day, whole.first, ends).astype(np.int64)
        early, late = int((day < whole.first).sum()), int((day > ends).sum())
    values = rows.values[at]
    clipped = np.flatnonzero(bounded != day)
    if codec.child.calendar and len(clipped):  # a row that is moved has the calendar of its new day
        new_days = bounded[clipped] + patients.origins[owner[clipped]].astype(np.int64)
        values[clipped] = with_calendar_of(values[clipped], new_days, codec.child)
    return PlacedRows(
        owner,
        rows.named[at],
        bounded,
        values,
        keyless=int((rows.units < 0).sum()),
        strangers=int(((owners < 0) & (rows.units >= 0)).sum()),
        undeclared=int((~declared & (owners >= 0)).sum()),
        timeless=int((~timed & declared & (owners >= 0)).sum()),
        early=early,
        late=late,
    )


def capped_series(
    placed: PlacedRows, codec: ChildCodec, entropy: Entropy
) -> tuple[SeriesRows, ...]:
    """Keep at most ``max_rows`` rows of a patient in each series of a table."""
    unit = codec.child.schema.unit
    found = []
    for number in range(len(codec.series)):
        mine = np.flatnonzero(placed.named == number)
        order = np.arange(len(mine)) if unit.keep == "window" else None
        kept, _ = select(placed.patients[mine], unit.max_rows, entropy, order=order)
        mine = mine[np.sort(kept)]
        found.append(SeriesRows(placed.patients[mine], placed.days[mine], placed.values[mine]))
    return tuple(found)


def first_days(placed: PlacedRows, codec: ChildCodec, patients: int) -> Ints:
    """Return the first day of each event of each patient, ``[patients, events]``."""
    onsets = np.full((patients, len(codec.names)), np.iinfo(np.int64).max)
    np.minimum.at(onsets, (placed.patients, placed.named), placed.days)
    return np.where(onsets == np.iinfo(np.int64).max, NEVER, onsets)


def _days(
    rows: ChildRows, codec: ChildCodec, patients: Patients, owners: Ints, seconds: int
) -> npt.NDArray[np.float64]:
    """Return whole units of time since each patient's origin; NaN where there is none."""
    child = codec.child
    if child.time is None or child.origin is None:
        return rows.times
    times = in_time_units(rows.times, child.schema.column(child.time).kind, seconds)
    origins = np.append(patients.origins, np.nan)  # the last one is nobody's
    return elapsed(times, origins[owners])
