"""Every public fact about linked tables, checked, and never learned.

A schema of linked tables is a Data Package whose resources are Table Schemas, with a ``dpsynth``
object for the package and one for each resource (docs/cohorts.md is the reference).

>>> schema = LinkedSchema.load("nafld")
>>> schema.table_names, schema.child("labs").kind
(('patients', 'labs', 'events'), 'long')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dpsynth._util.strict_json import digest
from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.linked.facts import LinkedFacts
from dpsynth.schema.linked.reader import read_package
from dpsynth.schema.linked.writer import package_document

SHIPPED = ".package.yaml"


@dataclass(frozen=True, repr=False)
class LinkedSchema(LinkedFacts):
    """The public facts of a table of patients and of tables of what happened to them."""

    @classmethod
    def load(cls, name_or_path: str | Path) -> Self:
        """Read a shipped one by name, or a ``.yaml``, ``.yml`` or ``.json`` file by path.

        Raises:
            InputError: there is no such schema or file. SchemaError: its mistakes, all listed.
        """
        from dpsynth.schema.files import read_document

        document, source, name = read_document(name_or_path, (SHIPPED,))
        return read_package(cls, document, source, default_name=name)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "<dict>") -> Self:
        """Build one from a parsed document; ``source`` is what error messages call it.

        Raises:
            SchemaError: with all the mistakes of the document.
        """
        return read_package(cls, document, source)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``LinkedSchema.from_dict`` of it gives an equal one."""
        return package_document(self)

    def save(self, path: str | Path) -> None:
        """Write the document as YAML or JSON, by suffix, replacing the file in one step."""
        from dpsynth.schema.files import write_document

        write_document(self.to_dict(), path)

    def hash(self) -> str:
        """SHA-256, in hex, of the document as canonical JSON."""
        return digest(self.to_dict())

    def require_complete(self) -> None:
        """Refuse a draft with a `SchemaError` that lists everything that is still to be filled."""
        if not self.draft:
            return
        problems = [Problem("dpsynth.draft", "this is a draft; fill the gaps, then remove draft")]
        raise SchemaError(self.name, [*problems, *self.gaps])


def shipped_packages() -> list[str]:
    """List the names of the schemas of linked tables that come with dpsynth."""
    from dpsynth.schema.files import shipped_names

    return shipped_names(SHIPPED)
