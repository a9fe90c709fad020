"""Linked tables whose columns have codes that a fit discovers: as declared, and as found.

As of one table (`dpsynth.schema.discovered`): a plan, a charge and a digest are about what was
declared, and a run holds what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from dpsynth._util.short_repr import short_repr
from dpsynth.schema.column import Column
from dpsynth.schema.discovered import as_declared, with_found
from dpsynth.schema.linked.facts import LinkedFacts
from dpsynth.schema.schema import Schema

AnyLinked = TypeVar("AnyLinked", bound=LinkedFacts)
FoundInTables = Mapping[str, Mapping[str, tuple[str, ...]]]  # codes by table, then by column


@dataclass(frozen=True, repr=False)
class Discovering:
    """A table with columns whose codes a fit discovers.

    Attributes:
        schema: of the table.
        columns: those of them.
        rows: of a patient that are looked at, at most: in a table of tests, of all of them.
    """

    schema: Schema
    columns: tuple[Column, ...]
    rows: int

    def __repr__(self) -> str:
        """Name the table."""
        return short_repr(self, self.schema.name)


def discovering(schema: LinkedFacts) -> tuple[Discovering, ...]:
    """Return the tables that have columns whose codes a fit discovers, that of patients first."""
    tables = [(schema.patients, 1)]
    tables += [
        (child.schema, child.schema.unit.max_rows * max(1, len(child.tests)))
        for child in schema.children
    ]
    found = []
    for table, rows in tables:
        if columns := tuple(column for column in table.modelled if column.discovers):
            found.append(Discovering(table, columns, rows))
    return tuple(found)


def tables_with_found(schema: AnyLinked, found: FoundInTables) -> AnyLinked:
    """Return the schema whose columns have the codes that a fit has found."""
    return replace(
        schema,
        patients=with_found(schema.patients, found.get(schema.patients.name, {})),
        children=tuple(
            replace(child, schema=with_found(child.schema, found.get(child.name, {})))
            for child in schema.children
        ),
    )


def tables_as_declared(schema: AnyLinked) -> AnyLinked:
    """Return the schema as it was before any fit found a code."""
    if not discovering(schema):
        return schema
    return replace(
        schema,
        patients=as_declared(schema.patients),
        children=tuple(
            replace(child, schema=as_declared(child.schema)) for child in schema.children
        ),
    )
