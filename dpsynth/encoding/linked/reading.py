"""The tables of a schema, read into histories.

This is where one patient's influence is bounded (add or remove one patient with all rows in all
tables). A patient's codes, days, order and cap follow from her own rows, from public facts and from
fresh randomness; so a patient more or less changes no other one's history. Rows that belong to
nobody in the table of patients, because their key is missing, unknown or opted out, are left out,
as rows without a key are of a single table; `Tally` has their number for internal reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks.coded import Refused
from dpsynth.encoding.linked.assembly import PlacedRows, capped_series, first_days, place_rows
from dpsynth.encoding.linked.codec import HistoryCodec
from dpsynth.encoding.linked.histories import Histories, SeriesRows
from dpsynth.encoding.linked.patients import read_patients
from dpsynth.encoding.linked.rows import read_rows
from dpsynth.errors import TableError
from dpsynth.tables import OptOut

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
