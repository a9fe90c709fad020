"""The schema: every public fact that dpsynth may use about a table, checked, and never learned.

A schema is a Frictionless Table Schema v2 document with a ``dpsynth`` object at table and field
level (docs/schema.md is the reference). This module holds the facts; `schema_reader` builds them
from a document and reports every mistake at once, `schema_writer` turns them back into one.

>>> schema = Schema.from_dict({
...     "fields": [{"name": "sex", "type": "string",
...                 "constraints": {"enum": ["F", "M"], "required": True},
...                 "dpsynth": {"bounds_basis": "admission form"}}],
...     "dpsynth": {"version": 1, "population": {"value": 900, "basis": "annual report"},
...                 "rows": {"value": 900, "basis": "annual report"}}})
>>> schema.column("sex").on_unknown, schema.unit.column
('other', None)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from dpsynth.documents import digest
from dpsynth.errors import InputError, Problem, SchemaError
from dpsynth.rules import Rule

TYPES = ("integer", "number", "boolean", "string", "date", "datetime", "year")
ROLES = (
    *("unit", "order", "target", "sensitive", "quasi_identifier"),
    *("group", "time", "event", "drop"),
)
UNMODELLED = frozenset({"unit", "order", "drop"})
OTHER = "other"
MISSING = "missing"
REFUSE = "refuse"

Bound = int | float | date | datetime


@dataclass(frozen=True)
class Declared:
    """A public number and the sentence that says where it comes from; 0 in a draft's blank."""

    value: int
    basis: str


@dataclass(frozen=True)
class Dialect:
    """How the source CSV is written: declared, never sniffed."""

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    quote: str = '"'


@dataclass(frozen=True)
class PrivacyUnit:
    """Whose presence is hidden, and at most how many rows of one unit count.

    ``column`` is None where each row is a unit. ``keep`` picks the rows of a unit that has more
    than ``max_rows``: "random" ones, or a "window" of consecutive ones. Keys are compared after
    trimming (``trim``), regardless of case (``case``), with or without leading zeros
    (``leading_zeros``: True keeps them). A row without a key is dropped, or its "own" unit.

    ``person`` names whom the ledger counts ("patient"); None where the unit itself is counted. One
    has at most ``max_units`` units of the table: an assumption, which nothing can check.
    ``same_as`` lists key columns of other extracts that name the same persons.
    """

    column: str | None
    max_rows: int
    max_rows_basis: str | None
    keep: str = "random"
    trim: bool = True
    case: bool = False
    leading_zeros: bool = True
    missing_key: str = "drop"
    person: str | None = None
    same_as: tuple[str, ...] = ()
    max_units: int = 1
    max_units_basis: str | None = None


@dataclass(frozen=True)
class Codes:
    """A published code system and the declared roll-up of its codes into categories."""

    system: str
    rollup: str


@dataclass(frozen=True)
class Column:
    """One column of the table: type, bounds or categories, roles, and what bad cells become.

    ``on_bad`` is where unparsable text and unexpected missing values go, ``on_unknown`` where an
    undeclared category goes; both are resolved: "missing", "refuse", "minimum", "maximum",
    "other", or one of the categories. Bounds have the column's type; ``step`` is in its unit (days
    for dates, seconds for datetimes).
    """

    name: str
    type: str
    roles: frozenset[str] = frozenset()
    minimum: Bound | None = None
    maximum: Bound | None = None
    categories: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    step: float | int | None = None
    required: bool = False
    missing_values: tuple[str, ...] = ("",)
    true_values: tuple[str, ...] = ("true", "True", "TRUE", "1")
    false_values: tuple[str, ...] = ("false", "False", "FALSE", "0")
    on_bad: str = MISSING
    on_unknown: str = MISSING
    codes: Codes | None = None
    ucum: str | None = None
    bounds_basis: str | None = None
    title: str | None = None
    description: str | None = None
    format: str | None = None

    @property
    def modelled(self) -> bool:
        """Whether the column is part of the synthetic table."""
        return not self.roles & UNMODELLED

    @property
    def nullable(self) -> bool:
        """Whether a value may be missing."""
        return not self.required

    @property
    def is_categorical(self) -> bool:
        """Whether the column has a list of categories; booleans have one."""
        return self.categories is not None

    @property
    def has_other(self) -> bool:
        """Whether the code ``other`` is added after the declared categories."""
        if self.categories is None or OTHER in self.categories:
            return False
        return OTHER in (self.on_bad, self.on_unknown)

    @property
    def levels(self) -> tuple[str, ...]:
        """The categories that a synthetic cell can hold: the declared ones, then ``other``."""
        return (self.categories or ()) + ((OTHER,) if self.has_other else ())


@dataclass(frozen=True)
class Schema:
    """The public facts of one table."""

    name: str
    columns: tuple[Column, ...]
    unit: PrivacyUnit
    population: Declared
    rows: Declared
    dialect: Dialect = Dialect()
    rules: tuple[Rule, ...] = ()
    title: str | None = None
    description: str | None = None
    source: str | None = None
    draft: bool = False

    @classmethod
    def load(cls, name_or_path: str | Path) -> Schema:
        """Read a shipped schema by name, or a ``.yaml``, ``.yml`` or ``.json`` file by path.

        Raises:
            InputError: there is no such schema or file. SchemaError: its mistakes, all listed.
        """
        from dpsynth.schema_files import read_document
        from dpsynth.schema_reader import read_schema

        document, source, name = read_document(name_or_path)
        return read_schema(document, source, default_name=name)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "<dict>") -> Schema:
        """Build a schema from a parsed document; ``source`` is what error messages call it.

        Raises:
            SchemaError: with all the mistakes of the document.
        """
        from dpsynth.schema_reader import read_schema

        return read_schema(document, source)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``Schema.from_dict`` of it gives an equal schema."""
        from dpsynth.schema_writer import schema_document

        return schema_document(self)

    def to_table_schema(self) -> dict[str, Any]:
        """Write the plain Table Schema v2 of the synthetic table: modelled columns, no dpsynth."""
        from dpsynth.schema_writer import synthetic_table_schema

        return synthetic_table_schema(self)

    def save(self, path: str | Path) -> None:
        """Write the document as YAML or JSON, by suffix, replacing the file in one step."""
        from dpsynth.schema_files import write_document

        write_document(self.to_dict(), path)

    def hash(self) -> str:
        """SHA-256, in hex, of the document as canonical JSON."""
        return digest(self.to_dict())

    def require_complete(self) -> None:
        """Refuse a draft with a `SchemaError` that lists everything that is still to be filled."""
        if not self.draft:
            return
        document = self.to_dict()
        del document["dpsynth"]["draft"]
        problems = [Problem("dpsynth.draft", "this is a draft; fill the gaps, then remove draft")]
        try:
            Schema.from_dict(document)
        except SchemaError as error:
            problems.extend(error.problems)
        raise SchemaError(self.name, problems)

    def column(self, name: str) -> Column:
        """Return the column of that name; an `InputError` says that there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"schema {self.name} has no column {name!r}")

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns of the synthetic table, in order: all but unit, order and drop."""
        return tuple(column for column in self.columns if column.modelled)

    @property
    def order_column(self) -> str | None:
        """The name of the column that orders the rows of a unit, if one is declared."""
        return next((column.name for column in self.columns if "order" in column.roles), None)

    @property
    def may_refuse(self) -> bool:
        """Whether a cell can stop a fit, because a column opts in to ``refuse``."""
        return any(REFUSE in (column.on_bad, column.on_unknown) for column in self.modelled)


def shipped_schemas() -> list[str]:
    """List the names of the schemas that come with dpsynth."""
    from dpsynth.schema_files import shipped_names

    return shipped_names()
