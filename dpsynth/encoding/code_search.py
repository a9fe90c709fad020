"""The codes that units have, in the columns whose codes are discovered, up to the private list.

Of a fit, the only things that leave this module are codes that `privacy.select_codes` selected.
Rows with their codes (`CodedCells`) are private, as the rows of a cohort are.

What is a code of a cell follows from this cell and the declaration: it fits the column's pattern,
and is no missing value, no reason, and no category by its declaration. Of each unit, at most
``max_rows`` rows are looked at, chosen at random as for any other event.

The codes that patients have in all of their tables, up to the private list.

As in one table (`dpsynth.encoding.code_search`), what leaves this module are codes that
`privacy.select_codes` selected, all columns of all tables at once: a patient with d different codes
anywhere adds 1 / sqrt(d) to each of them, under one threshold. That d is bounded by the columns
times the most rows that are looked at in any of the tables, which the event states.

A patient is a key of the table of patients. Rows of no patient have no part in it, as they have
none in what is learned. Of each table, at most so many rows of a patient are looked at as the
declared cap says, chosen by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.cohort import select
from dpsynth.errors import NoRowsError
from dpsynth.privacy import Occurrences, select_codes
from dpsynth.schema import (
    Column,
    Discovering,
    LinkedSchema,
    Schema,
    as_declared,
    discovering,
    tables_as_declared,
)
from dpsynth.tables import Keys, declared_texts, distinct, missing_words
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth.encoding.codec import Codec
    from dpsynth.privacy import CodeDiscovery, Entropy
    from dpsynth.tables import Progress, Table


Ints = npt.NDArray[np.int64]
NONE = -1  # a cell without a code that may be found


def find_codes(
    table: Table,
    schema: Schema,
    event: CodeDiscovery,
    entropy: Entropy,
    progress: Progress | None = None,
    before_noise: Callable[[], None] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Return the codes of each column that a fit may publish, in ascending order.

    Of more codes than a column's ``most``, those with the largest noisy counts are kept.

    Args:
        table: the private table.
        schema: with columns whose codes are discovered.
        event: of the plan, with its noise.
        entropy: of the choice of rows, and of the noise.
        progress: of the reading.
        before_noise: called when all rows were read, and no noise has been drawn; what it raises
            ends the search.

    Raises:
        InputError: the plan's event is not about this schema; no noise has been drawn.
        TableError: the table is damaged, or has no rows.
    """
    schema = as_declared(schema)
    searched = [Searched(column, schema) for column in schema.modelled if column.discovers]
    keys = Keys(schema)
    units, codes = [], []
    for chunk in table.chunks(progress):
        units.append(keys.units(chunk))
        codes.append(np.stack([one.codes(chunk) for one in searched], axis=1))
    of_row = keys.own_units(np.concatenate(units))
    rows, _ = select(of_row, schema.unit.max_rows, entropy)
    kept = np.concatenate(codes)[rows]
    first = np.concatenate([[0], np.cumsum([len(one.names) for one in searched])])
    has_code = kept != NONE
    occurrences = Occurrences(
        np.broadcast_to(of_row[rows][:, None], kept.shape)[has_code],
        (kept + first[:-1])[has_code],
    )
    if before_noise is not None:
        before_noise()
    selected = select_codes(occurrences, event, entropy)
    found = {}
    for one, begin, end in zip(searched, first, first[1:], strict=False):
        own = (selected.codes >= begin) & (selected.codes < end)
        found[one.column.name] = one.published(selected.codes[own] - begin, selected.counts[own])
    return found


@dataclass(frozen=True, eq=False, repr=False)
class CodedCells:
    """Rows of units with the codes in columns whose codes nobody declared; private.

    Attributes:
        units: the unit of each row, ``[rows]``.
        codes: of all modelled columns as declared, ``[rows, columns]``.
        columns: names of the undeclared ones.
        numbers: of the code in each of these, ``[rows, undeclared]``; `NONE` where there is none.
        texts: the codes of each of them, by number.
    """

    units: Ints
    codes: npt.NDArray[np.uint16]
    columns: tuple[str, ...]
    numbers: Ints
    texts: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        """Show no code."""
        return short_repr(self, "rows with the codes of their cells")


def read_coded_cells(
    table: Table, codec: Codec, columns: Sequence[str], entropy: Entropy
) -> CodedCells:
    """Read at most ``max_rows`` rows of each unit with the codes in undeclared columns.

    Args:
        table: the private table.
        codec: of its schema.
        columns: whose codes are discovered.
        entropy: of the choice of rows.

    Raises:
        TableError: the table is damaged, or has no rows.
    """
    schema = codec.schema
    searched = [Searched(schema.column(name), schema) for name in columns]
    keys = Keys(schema)
    units, codes, numbers = [], [], []
    for chunk in table.chunks(None):
        units.append(keys.units(chunk))
        codes.append(codec.encode(chunk))
        numbers.append(np.stack([one.codes(chunk) for one in searched], axis=1))
    of_row = keys.own_units(np.concatenate(units))
    chosen, _ = select(of_row, schema.unit.max_rows, entropy)
    return CodedCells(
        of_row[chosen],
        np.concatenate(codes)[chosen],
        tuple(columns),
        np.concatenate(numbers)[chosen],
        tuple(tuple(one.names) for one in searched),
    )


class Searched:
    """A column, and the codes that were seen in it so far; they are private."""

    def __init__(self, column: Column, schema: Schema) -> None:
        """Search a column of a table."""
        assert column.codes is not None and column.codes.discovery is not None
        self.column, self._decimal = column, schema.dialect.decimal
        self._codes, self._most = column.codes, column.codes.discovery.most
        self._others = {*missing_words(column), *column.forms.reason_texts, *column.levels}
        self.names: dict[str, int] = {}

    def codes(self, chunk: pd.DataFrame) -> Ints:
        """Return the number of the code in each cell of a chunk, `NONE` where there is none."""
        cells: pd.Series[Any] = chunk[self.column.name]
        of_text, texts = distinct(declared_texts(cells, self.column, self._decimal))
        numbers = []
        for text in texts:
            code = None if text in self._others else self._codes.candidate(text)
            if code is None or code in self._others:
                numbers.append(NONE)
            else:
                numbers.append(self.names.setdefault(code, len(self.names)))
        return np.array([*numbers, NONE], dtype=np.int64)[of_text]

    def published(self, selected: Ints, counts: Ints) -> tuple[str, ...]:
        """Return the selected codes as texts; of too many, those with the largest noisy counts.

        Of equal counts, the earlier text comes first. The numbers of codes follow from the order of
        all rows of the table, which no event has paid for, so nothing may depend on them.
        """
        names = list(self.names)
        texts = [names[number] for number in selected.tolist()]
        ranked = sorted(zip((-counts).tolist(), texts, strict=True))
        return tuple(sorted(text for _, text in ranked[: self._most]))


Found = dict[str, dict[str, tuple[str, ...]]]


def find_codes_of_patients(
    tables: Mapping[str, Table],
    schema: LinkedSchema,
    event: CodeDiscovery,
    entropy: Entropy,
    progress: Progress | None = None,
    before_noise: Callable[[], None] | None = None,
) -> Found:
    """Return the codes of each column of each table that a fit may publish, in ascending order.

    Args:
        tables: the private tables, by name.
        schema: with columns whose codes are discovered.
        event: of the plan, with its noise.
        entropy: of the choice of rows, and of the noise.
        progress: of the reading of each table.
        before_noise: as of `find_codes`.

    Raises:
        InputError: the plan's event is not about this schema; no noise has been drawn.
        TableError: a table is damaged. NoRowsError: there is no patient.
    """
    schema = tables_as_declared(schema)
    patients = _numbers(tables[schema.patients.name], schema, progress)
    units, codes, searched = [], [], []
    first = 0
    for one in discovering(schema):
        columns = [Searched(column, one.schema) for column in one.columns]
        owners, seen = _kept(tables[one.schema.name], one, columns, patients, entropy, progress)
        for place, column in enumerate(columns):
            has = seen[:, place] != NONE
            units.append(owners[has])
            codes.append(seen[has, place] + first)
            searched.append((one.schema.name, column, first))
            first += len(column.names)
    occurrences = Occurrences(np.concatenate(units), np.concatenate(codes))
    if before_noise is not None:
        before_noise()
    selected = select_codes(occurrences, event, entropy)
    found: Found = {}
    for table, column, begin in searched:
        own = (selected.codes >= begin) & (selected.codes < begin + len(column.names))
        published = column.published(selected.codes[own] - begin, selected.counts[own])
        found.setdefault(table, {})[column.column.name] = published
    return found


def _numbers(table: Table, schema: LinkedSchema, progress: Progress | None) -> dict[str, int]:
    """Return the number of each patient, by her key."""
    keys = Keys(schema.patients)
    for chunk in table.chunks(progress):
        keys.units(chunk)
    return {key: number for number, key in enumerate(keys.texts)}


def _kept(
    table: Table,
    one: Discovering,
    columns: list[Searched],
    patients: Mapping[str, int],
    entropy: Entropy,
    progress: Progress | None,
) -> tuple[Ints, Ints]:
    """Return the patient of each row that counts, and the number of its code in each column."""
    keys = Keys(one.schema)
    units, codes = [np.empty(0, np.int64)], [np.empty((0, len(columns)), np.int64)]
    try:
        for chunk in table.chunks(progress):
            units.append(keys.units(chunk))
            codes.append(np.stack([column.codes(chunk) for column in columns], axis=1))
    except NoRowsError:
        pass
    numbers = np.array([*(patients.get(key, NO_KEY) for key in keys.texts), NO_KEY], np.int64)
    owners = numbers[np.concatenate(units)]
    rows, _ = select(owners, one.rows, entropy)
    return owners[rows], np.concatenate(codes)[rows]
