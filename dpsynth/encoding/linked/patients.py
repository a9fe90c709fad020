"""The table of patients, read: who there is, and each one's codes, end of follow-up and origin.

Each of these is a function of the patient's own row. Who counts as a patient is as well: one with
a key, one row, no cell that its column refuses, and not on the list of those who opted out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.chunks.coded import Refused
from dpsynth.encoding.cohort import select
from dpsynth.encoding.column_codecs import coder_of
from dpsynth.encoding.relations import related
from dpsynth.errors import NoRowsError, TableError
from dpsynth.schema import Column
from dpsynth.tables import Keys, OptOut, read_cells
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth.encoding.linked.codec import HistoryCodec
    from dpsynth.privacy import Entropy
    from dpsynth.tables import Progress, Table

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SECONDS = 86_400  # of a day


@dataclass(frozen=True, eq=False, repr=False)
class Patients:
    """Those who count, by number, in random order.

    Attributes:
        numbers: by the text of the key.
        codes: of the baseline, ``[patients, columns]``.
        ends: last day of follow-up, ``[patients]``.
        origins: day of the origin since 1970-01-01, NaN without one, ``[patients]``.
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


def whole_days(cells: pd.Series[Any], column: Column, decimal: str) -> Floats:
    """Return days since 1970-01-01 of dates or times, whole numbers as they are; NaN for others."""
    values = read_cells(cells, column, decimal)[0]
    return np.floor(values / SECONDS) if is_in_seconds(column) else values


def is_in_seconds(column: Column) -> bool:
    """Tell whether a column of times is read in seconds, not in days."""
    return column.kind.is_time and not column.kind.in_days


def _ends(chunk: pd.DataFrame, codec: HistoryCodec) -> Ints:
    """Return each patient's last day of follow-up; a missing one is the window's."""
    name, schema = codec.schema.end, codec.schema.patients
    if name is None:
        return np.full(len(chunk), codec.last, dtype=np.int64)
    coder = coder_of(codec.patients.schema.column(name), schema.dialect.decimal)
    days = coder.read(related(chunk, schema)[name])[1].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.clip(np.where(np.isnan(days), codec.last, days), 0, codec.last).astype(np.int64)


def _origins(chunk: pd.DataFrame, codec: HistoryCodec) -> Floats:
    """Return the day of each patient's origin; NaN where no table has dates."""
    name, schema = codec.schema.origin, codec.schema.patients
    if name is None:
        return np.full(len(chunk), np.nan)
    return whole_days(chunk[name], schema.column(name), schema.dialect.decimal)
