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

What a schema of one table and one of linked tables share: their documents.

Documents are read from files and written into them, digested, and drafts are refused.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from dpsynth._util.strict_json import digest
from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.column import Facts
from dpsynth.schema.discovered import as_declared
from dpsynth.schema.reader import read_schema
from dpsynth.schema.writer import schema_document, synthetic_table_schema

_FIELD = re.compile(
    r"((?P<table>resources\[[0-9]+\])\.schema\.)?"
    r"fields\[[0-9]+\] '(?P<name>.*)'\.(?P<key>[a-z_A-Z.]+)"
)
_TABLE = re.compile(r"(?P<table>resources\[[0-9]+\])\.(?P<key>dpsynth\.[a-z_A-Z.]+)")
_NAMED = 6  # columns that a line of gaps names


class SchemaDocument(ABC):
    """Public facts that are read from a document and written back into one."""

    name: str
    draft: bool
    gaps: tuple[Problem, ...]
    shipped_suffix: ClassVar[str]

    @classmethod
    @abstractmethod
    def _read(cls, document: object, source: str, **default_name: str) -> Self:
        """Build a schema from a parsed document; a ``default_name`` is for one that states none."""

    @classmethod
    def load(cls, name_or_path: str | Path) -> Self:
        """Read a shipped schema by name, or a ``.yaml``, ``.yml`` or ``.json`` file by path.

        Raises:
            InputError: there is no such schema or file. SchemaError: its mistakes, all listed.
        """
        from dpsynth.schema.files import read_document  # with yaml, which a codec does not need

        document, source, name = read_document(name_or_path, (cls.shipped_suffix,))
        return cls._read(document, source, default_name=name)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "<dict>") -> Self:
        """Build a schema from a parsed document; ``source`` is what error messages call it.

        Raises:
            SchemaError: with all the mistakes of the document.
        """
        return cls._read(document, source)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``from_dict`` of it gives an equal schema."""

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
        raise SchemaError(self.name, [*problems, *_grouped(self.gaps)])


def _grouped(gaps: Sequence[Problem]) -> list[Problem]:
    """Put gaps of one kind on one line, with the first columns or tables that have them."""
    groups: dict[tuple[str, str], list[tuple[str, Problem]]] = {}
    for gap in gaps:
        match = _FIELD.fullmatch(gap.place) or _TABLE.fullmatch(gap.place)
        key = (match["key"] if match else gap.place, gap.message)
        parts = match.groupdict() if match else {}
        name = ".".join(part for part in (parts.get("table"), parts.get("name")) if part)
        groups.setdefault(key, []).append((name, gap))
    lines = []
    for (place, message), members in groups.items():
        names = [name for name, _ in members]
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        columns = f"{message}: {', '.join(names[:_NAMED])}{rest}"
        lines.append(members[0][1] if len(members) == 1 else Problem(place, columns))
    return lines


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
