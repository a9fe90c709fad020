"""The schema: every public fact that dpsynth may use about a table, checked, and never learned.

A schema is a Frictionless Table Schema v2 document with a ``dpsynth`` object at table and field
level (docs/schema.md is the reference). This module holds the facts; `schema.reader` builds them
from a document and reports every mistake at once, `dpsynth.schema.writer` turns them back into one.

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

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpsynth._util.strict_json import digest
from dpsynth.schema.discovered import as_declared
from dpsynth.schema.document import SchemaDocument
from dpsynth.schema.facts import Facts
from dpsynth.schema.reader import read_schema
from dpsynth.schema.writer import schema_document, synthetic_table_schema

SHIPPED = ".schema.yaml"


@dataclass(frozen=True, repr=False)
class Schema(SchemaDocument, Facts):
    """The public facts of one table.

    >>> schema = Schema.load("cardio")  # a shipped one; else a path
    >>> [column.name for column in schema.modelled][:4], schema.population.value
    (['age', 'gender', 'height', 'weight'], 70000)
    """

    shipped_suffix: ClassVar[str] = SHIPPED

    @classmethod
    def _read(cls, document: object, source: str, **default_name: str) -> Self:
        return read_schema(cls, document, source, **default_name)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``Schema.from_dict`` of it gives an equal schema."""
        return schema_document(self)

    def hash(self) -> str:
        """SHA-256, in hex, of the document as declared, without codes that a fit has found."""
        return digest(schema_document(as_declared(self)))

    def to_table_schema(self) -> dict[str, Any]:
        """Write the plain Table Schema v2 of the synthetic table: modelled columns, no dpsynth."""
        return synthetic_table_schema(self)


def shipped_schemas() -> list[str]:
    """List the names of the schemas that come with dpsynth."""
    from dpsynth.schema.files import shipped_names

    return shipped_names(SHIPPED)
