"""The codes that patients have in all of their tables, up to the private list.

As in one table (`dpsynth.encoding.code_search`), what leaves this module are codes that
`privacy.select_codes` selected, all columns of all tables at once: a patient with d different codes
anywhere adds 1 / sqrt(d) to each of them, under one threshold. That d is bounded by the columns
times the most rows that are looked at in any of the tables, which the event states.

A patient is a key of the table of patients. Rows of no patient have no part in it, as they have
none in what is learned. Of each table, at most so many rows of a patient are looked at as the
declared cap says, chosen by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.encoding.code_search import NONE, Searched
from dpsynth.encoding.cohort import select
from dpsynth.errors import NoRowsError
from dpsynth.privacy import Occurrences, select_codes
from dpsynth.schema import Discovering, LinkedSchema, discovering, tables_as_declared
from dpsynth.tables import Keys
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth.privacy import CodeDiscovery, Entropy
    from dpsynth.tables import Progress, Table

Ints = npt.NDArray[np.int64]
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
