"""The tables of a schema that can be asked, and the codes of their columns; public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsynth._util.messages import did_you_mean, listed
from dpsynth.encoding import Codec, HistoryCodec, read_histories
from dpsynth.errors import InputError
from dpsynth.privacy import Entropy
from dpsynth.schema import ChildTable, LinkedSchema, Schema
from dpsynth.stats.statistic import Rows
from dpsynth.tables import Table

TABLE = "table"
"""The key of an entry that names its table."""


@dataclass(frozen=True, eq=False)
class AskedTable:
    """A table whose rows also have the columns of their patient.

    Attributes:
        codec: of these columns: those of the patient first, then the table's own.
        of_patient: the places of the patient's columns among those of the table of patients; a
            column that the table has as well is the table's.
        child: which of the tables of repeated rows it is; None for that of patients.
    """

    codec: Codec
    of_patient: tuple[int, ...]
    child: int | None

    @property
    def schema(self) -> Schema:
        """The schema of these columns; its unit is the patient, with the table's cap."""
        return self.codec.schema


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """Linked tables, as they can be asked.

    Attributes:
        schema: of them.
        codec: of their histories.
        asked: each table by name, that of patients first.
        refused: why a table cannot be asked, by name.
    """

    schema: LinkedSchema
    codec: HistoryCodec
    asked: Mapping[str, AskedTable]
    refused: Mapping[str, str]

    @classmethod
    def of(cls, schema: LinkedSchema) -> LinkedTables:
        """Derive what can be asked from public facts.

        Raises:
            SchemaError: a column's bounds and step do not make a lattice.

        Example:
            >>> tables = LinkedTables.of(LinkedSchema.load("clinic"))
            >>> list(tables.asked), tables.asked["visits"].codec.names[-3:]
            (['patients', 'visits'], ('systolic', 'weight', 'drugs'))
        """
        codec = HistoryCodec(schema)
        patients = schema.patients
        everything = tuple(range(len(codec.patients.names)))
        own = Codec(replace(codec.patients.schema, rules=()))
        asked, refused = {patients.name: AskedTable(own, everything, None)}, {}
        place = 0
        for one in codec.children:
            why = _refusal(one.child, patients)
            if why is None:
                asked[one.child.name] = _beside(codec.patients, one.codec, one.child, place)
            else:
                refused[one.child.name] = why
            place += one.child.once is None
        return cls(schema, codec, asked, refused)

    def table_of(self, entry: Mapping[str, Any]) -> str:
        """Return the table that an entry names; that of patients if it names none.

        Raises:
            InputError: there is no such table, or it cannot be asked.
        """
        name = entry.get(TABLE, self.schema.patients.name)
        if name in self.refused:
            raise InputError(self.refused[name])
        if not isinstance(name, str) or name not in self.asked:
            meant = did_you_mean(str(name), list(self.asked))
            raise InputError(f"'table' must be one of {listed(list(self.asked))}{meant}")
        return name


def _refusal(child: ChildTable, patients: Schema) -> str | None:
    """Say why a table cannot be asked; None if it can."""
    if child.kind != "wide":
        rows = "a test in each row" if child.kind == "long" else "events that happen once"
        return f"table '{child.name}' has {rows}; statistics are of tables with a row a visit"
    if child.schema.dialect.decimal != patients.dialect.decimal:
        return f"table '{child.name}' writes decimals otherwise than that of patients"
    return None


def _beside(patients: Codec, own: Codec, child: ChildTable, place: int) -> AskedTable:
    """Put the columns of patients beside those of a table."""
    kept = tuple(i for i, name in enumerate(patients.names) if name not in own.names)
    columns = (*(patients.schema.modelled[i] for i in kept), *own.schema.modelled)
    codec = Codec(replace(own.schema, columns=columns, rules=()))
    sizes = (*(patients.sizes[i] for i in kept), *own.sizes)
    if codec.sizes != sizes:
        raise InputError(f"table '{child.name}' has columns whose codes follow from other columns")
    return AskedTable(codec, kept, place)


def read_linked_rows(
    tables: Mapping[str, Table], linked: LinkedTables, entropy: Entropy
) -> dict[str | None, Rows]:
    """Read all tables, and return the rows of each that can be asked, by its name.

    Raises:
        TableError: a table is damaged, or its keys are wrong.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.
    """
    histories = read_histories(tables, linked.codec, entropy)
    found: dict[str | None, Rows] = {}
    for name, one in linked.asked.items():
        if one.child is None:
            units = np.arange(len(histories), dtype=np.int64)
            found[name] = Rows(units, histories.baseline)
        else:
            (rows,) = histories.rows[one.child]
            patients = histories.baseline[rows.patients][:, list(one.of_patient)]
            codes = np.hstack([patients, rows.values])
            found[name] = Rows(rows.patients.astype(np.int64), codes)
    return found
