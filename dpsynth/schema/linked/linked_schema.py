"""Every public fact about linked tables, checked, and never learned.

A schema of linked tables is a Data Package whose resources are Table Schemas, with a ``dpsynth``
object for the package and one for each resource (docs/cohorts.md is the reference).

>>> schema = LinkedSchema.load("nafld")
>>> schema.table_names, schema.child("labs").kind
(('patients', 'labs', 'events'), 'long')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpsynth._util.strict_json import digest
from dpsynth.schema.document import SchemaDocument
from dpsynth.schema.linked.discovering import tables_as_declared
from dpsynth.schema.linked.facts import LinkedFacts
from dpsynth.schema.linked.reader import read_package
from dpsynth.schema.linked.writer import package_document

SHIPPED = ".package.yaml"


@dataclass(frozen=True, repr=False)
class LinkedSchema(SchemaDocument, LinkedFacts):
    """The public facts of a table of patients and of tables of what happened to them."""

    shipped_suffix: ClassVar[str] = SHIPPED

    @classmethod
    def _read(cls, document: object, source: str, **default_name: str) -> Self:
        return read_package(cls, document, source, **default_name)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``LinkedSchema.from_dict`` of it gives an equal one."""
        return package_document(self)

    def hash(self) -> str:
        """SHA-256, in hex, of the document as declared, without codes that a fit has found."""
        return digest(package_document(tables_as_declared(self)))


def shipped_packages() -> list[str]:
    """List the names of the schemas of linked tables that come with dpsynth."""
    from dpsynth.schema.files import shipped_names

    return shipped_names(SHIPPED)
