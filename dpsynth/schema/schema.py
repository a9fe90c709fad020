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

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dpsynth._util.strict_json import digest
from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.facts import Facts
from dpsynth.schema.reader import read_schema
from dpsynth.schema.writer import schema_document, synthetic_table_schema


@dataclass(frozen=True, repr=False)
class Schema(Facts):
    """The public facts of one table.

    >>> schema = Schema.load("cardio")  # a shipped one; else a path
    >>> [column.name for column in schema.modelled][:4], schema.population.value
    (['age', 'gender', 'height', 'weight'], 70000)
    """

    @classmethod
    def load(cls, name_or_path: str | Path) -> Self:
        """Read a shipped schema by name, or a ``.yaml``, ``.yml`` or ``.json`` file by path.

        Raises:
            InputError: there is no such schema or file. SchemaError: its mistakes, all listed.
        """
        from dpsynth.schema.files import read_document  # with yaml, which a codec does not need

        document, source, name = read_document(name_or_path)
        return read_schema(cls, document, source, default_name=name)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "<dict>") -> Self:
        """Build a schema from a parsed document; ``source`` is what error messages call it.

        Raises:
            SchemaError: with all the mistakes of the document.
        """
        return read_schema(cls, document, source)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``Schema.from_dict`` of it gives an equal schema."""
        return schema_document(self)

    def to_table_schema(self) -> dict[str, Any]:
        """Write the plain Table Schema v2 of the synthetic table: modelled columns, no dpsynth."""
        return synthetic_table_schema(self)

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


_FIELD = re.compile(r"fields\[[0-9]+\] '(?P<name>.*)'\.(?P<key>[a-z_A-Z.]+)")
_NAMED = 6  # columns that a line of gaps names


def _grouped(gaps: Sequence[Problem]) -> list[Problem]:
    """Put gaps of one kind on one line, with the first columns that have them."""
    groups: dict[tuple[str, str], list[tuple[str, Problem]]] = {}
    for gap in gaps:
        match = _FIELD.fullmatch(gap.place)
        key = (match["key"] if match else gap.place, gap.message)
        groups.setdefault(key, []).append((match["name"] if match else "", gap))
    lines = []
    for (place, message), found in groups.items():
        names = [name for name, _ in found]
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        which = f"{message}: {', '.join(names[:_NAMED])}{rest}"
        lines.append(found[0][1] if len(found) == 1 else Problem(place, which))
    return lines


def shipped_schemas() -> list[str]:
    """List the names of the schemas that come with dpsynth."""
    from dpsynth.schema.files import shipped_names

    return shipped_names()
