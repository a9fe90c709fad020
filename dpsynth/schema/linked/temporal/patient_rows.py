"""The cells that the terms of temporal rules name, for each patient or for each of her rows.

Rows of a patient are in order of time, then of the declared order, then as they stand. Everything
is computed patient by patient: no value depends on the rows of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.messages import listed
from dpsynth.errors import InputError
from dpsynth.schema.linked.temporal.terms import (
    COUNT,
    EVENT,
    LAST,
    NEXT,
    PATIENT,
    RowTable,
    Tables,
    Term,
    event_tables,
    table_named,
)
from dpsynth.schema.rules import values_of

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """Rows of one table, or of one test or event of it, in order.

    Attributes:
        places: of the rows in their table, by patient and then in order.
        owners: the patient of each, ascending.
        counts: how many rows each patient has.
    """

    places: Ints
    owners: Ints
    counts: Ints

    @property
    def starts(self) -> Ints:
        """Where the rows of each patient begin."""
        return np.asarray(np.cumsum(self.counts) - self.counts)


class PatientRows:
    """Decoded tables of a package, put in order once for all rules that look at them."""

    def __init__(self, tables: Mapping[str, pd.DataFrame], schema: Tables) -> None:
        """Take the tables; see `TemporalRule.holds`.

        Raises:
            InputError: the table of patients is absent, or two of its rows have one key.
        """
        import pandas as pd

        self._tables, self._schema = tables, schema
        self._patients = self._table(schema.patients.name, (schema.key,))
        self._keys = pd.Index(_keys(self._patients[schema.key]))
        if not self._keys.is_unique:
            raise InputError(
                f"two rows of table {schema.patients.name} have one key; a patient has one row"
            )
        self._in_order: dict[tuple[str, str | None], _Rows] = {}

    def __len__(self) -> int:
        """Return the number of patients."""
        return len(self._patients)

    def by_patient(self, terms: Iterable[Term]) -> pd.DataFrame:
        """Return the values of terms, one row for each patient."""
        import pandas as pd

        return pd.DataFrame({term.text: self._values(term) for term in terms})

    def by_row(self, terms: Iterable[Term], ranged: Term) -> tuple[pd.DataFrame, Ints]:
        """Return the values of terms, one row for each row that a term goes through.

        Args:
            terms: of one rule.
            ranged: the one that goes through the rows.

        Returns:
            The values, and the patient of each row.
        """
        import pandas as pd

        assert ranged.table is not None
        rows = self._rows(ranged.table, ranged.named)
        values = {}
        for term in terms:
            if term.ranges:
                values[term.text] = self._row_values(term, rows)
            else:
                values[term.text] = self._values(term).take(rows.owners).reset_index(drop=True)
        return pd.DataFrame(values), rows.owners

    def _values(self, term: Term) -> pd.Series[Any]:
        """Return a term's value of each patient."""
        import pandas as pd

        if term.function == PATIENT:
            frame = self._table(self._schema.patients.name, (str(term.column),))
            return frame[term.column].reset_index(drop=True)
        if term.function == EVENT:
            table = term.table or event_tables(self._schema, str(term.named))[0].name
            term = Term("first", table, term.named, table_named(self._schema, table).time)
        rows = self._rows(str(term.table), term.named)
        if term.function == COUNT:
            return pd.Series(rows.counts)
        places = rows.starts + (rows.counts - 1 if term.function == LAST else 0)
        some = np.flatnonzero(rows.counts)
        cells = self._cells(term, rows.places[places[some]])
        cells.index = pd.Index(some)
        return cells.reindex(np.arange(len(self)))

    def _row_values(self, term: Term, rows: _Rows) -> pd.Series[Any]:
        """Return a term's value for each row, missing where a row has no next one."""
        cells = self._cells(term, rows.places)
        if term.function != NEXT:
            return cells
        followed = np.append(rows.owners[1:] == rows.owners[:-1], np.zeros(1, dtype=bool))
        return cells.shift(-1).where(followed[: len(cells)])

    def _cells(self, term: Term, places: Ints) -> pd.Series[Any]:
        """Return the cells of a column at places, those of a test by its own type."""
        import pandas as pd

        table = table_named(self._schema, str(term.table))
        frame = self._table(table.name, (str(term.column),))
        cells = frame[term.column].take(places).reset_index(drop=True)
        test = next((one for one in table.tests if one.name == term.named), None)
        if test is None or term.column != table.value_column:
            return cells
        if test.kind.is_number and values_of(cells)[0] == "text":
            return pd.to_numeric(cells, errors="coerce")
        if test.kind.is_truth and values_of(cells)[0] == "text":
            return cells.astype(str).str.lower().map(TRUTHS)
        return cells

    def _rows(self, name: str, named: str | None) -> _Rows:
        """Return the rows of a table in order, or those of one test or event."""
        if (name, named) not in self._in_order:
            self._in_order[name, named] = (
                self._sorted(table_named(self._schema, name))
                if named is None
                else self._part(name, named)
            )
        return self._in_order[name, named]

    def _sorted(self, table: RowTable) -> _Rows:
        columns = tuple(name for name in (table.time, table.order) if name is not None)
        frame = self._table(table.name, (table.key, *columns))
        owners = self._owners(frame[table.key])
        ranks = [_ranked(frame[name]) for name in columns]
        known = owners >= 0
        if table.time is not None:
            known &= ranks[0] >= 0
        places = np.flatnonzero(known)
        keys = [owners, *(np.where(rank < 0, rank.max(initial=0) + 1, rank) for rank in ranks)]
        keys = [key[places] for key in keys]
        if not _ascend(keys):
            order = np.lexsort(keys[::-1])  # keeps rows that are alike as they stand
            places, keys[0] = places[order], keys[0][order]
        return _Rows(places, keys[0], np.bincount(keys[0], minlength=len(self)).astype(np.int64))

    def _owners(self, cells: pd.Series[Any]) -> Ints:
        """Return the patient of each row; whole numbers and their texts are the same key."""
        keys, own = _keys(cells), self._keys
        if keys.dtype != own.dtype:
            keys, own = keys.astype(str), own.astype(str)
        return np.asarray(own.get_indexer(keys), dtype=np.int64)

    def _part(self, name: str, named: str) -> _Rows:
        table, whole = table_named(self._schema, name), self._rows(name, None)
        column = str(table.once or table.test_column)
        cells = self._table(name, (column,))[column].take(whole.places)
        kept = np.flatnonzero((cells == named).to_numpy(dtype=bool, na_value=False))
        owners = whole.owners[kept]
        counts = np.bincount(owners, minlength=len(self)).astype(np.int64)
        return _Rows(whole.places[kept], owners, counts)

    def _table(self, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
        if name not in self._tables:
            raise InputError(f"a rule needs table {name}, which is absent")
        frame = self._tables[name]
        absent = [column for column in columns if column not in frame.columns]
        if absent:
            raise InputError(
                f"a rule needs columns of table {name} that are absent: {listed(absent)}"
            )
        return frame


def _keys(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return keys as they compare in all tables: whole numbers as they are, others as text."""
    if cells.dtype.kind in "iu":
        return cells.astype("int64")
    return cells.astype(str)


def _ranked(cells: pd.Series[Any]) -> Ints:
    """Return numbers that order cells as their values are ordered, -1 where one is missing."""
    kind, values, gaps = values_of(cells)
    if kind == "empty":
        return np.full(len(cells), -1, dtype=np.int64)
    if kind == "number" and len(values) and float(np.abs(values[~gaps]).max(initial=0)) < 2**53:
        whole = np.where(gaps, 0, values)
        if (whole == np.floor(whole)).all():
            return np.where(gaps, -1, whole - min(whole.min(), 0)).astype(np.int64)
    if kind == "date":
        ticks = values.astype(np.int64)
        return np.where(gaps, -1, ticks - ticks[~gaps].min(initial=0))
    each, ranks = np.unique(np.where(gaps, values[~gaps][0], values), return_inverse=True)
    if kind == "text":  # "10" is after "9"
        order = sorted(range(len(each)), key=lambda place: _place(str(each[place])))
        ranks = np.argsort(order)[ranks]
    return np.where(gaps, -1, ranks).astype(np.int64)


def _place(text: str) -> tuple[bool, int, str]:
    number = text.isdecimal() and len(text) < 19
    return not number, int(text) if number else 0, text


def _ascend(keys: list[Ints]) -> bool:
    """Tell whether rows are in order of several keys already, the first one first."""
    undecided = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        step = np.diff(key)
        if (step[undecided] < 0).any():
            return False
        undecided &= step == 0
    return True
