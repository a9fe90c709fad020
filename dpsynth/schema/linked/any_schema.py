"""The schema of one table or of linked ones: which of the two, its document says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsynth.schema.linked.linked_schema import SHIPPED, LinkedSchema
from dpsynth.schema.linked.reader import read_package
from dpsynth.schema.reader import read_schema
from dpsynth.schema.row.contradictions import require_consistent
from dpsynth.schema.schema import Schema

AnySchema = Schema | LinkedSchema


def load_any(name_or_path: str | Path) -> AnySchema:
    """Read a schema of one table, or of linked tables; a document with ``resources`` is of these.

    Raises:
        InputError: there is no such schema or file. SchemaError: its mistakes, all listed.

    >>> load_any("nafld"), load_any("demo").name
    (<LinkedSchema nafld, 3 tables>, 'demo')
    """
    from dpsynth.schema.files import TABLE, read_document  # with yaml, which a codec does not need

    document, source, name = read_document(name_or_path, (TABLE, SHIPPED))
    if is_linked(document):
        return read_package(LinkedSchema, document, source, default_name=name)
    return read_schema(Schema, document, source, default_name=name)


def any_from_dict(document: Mapping[str, Any], source: str = "<dict>") -> AnySchema:
    """Build either from a parsed document; ``source`` is what error messages call it.

    Raises:
        SchemaError: with all the mistakes of the document.
    """
    kind = LinkedSchema if is_linked(document) else Schema
    return kind.from_dict(document, source)


def is_linked(document: object) -> bool:
    """Tell whether a parsed document is about linked tables."""
    return isinstance(document, Mapping) and "resources" in document


def require_consistent_tables(schema: AnySchema) -> None:
    """Refuse rules within the rows of a table that contradict each other.

    Raises:
        SchemaError: names the fewest declarations that no row can meet.
    """
    if isinstance(schema, Schema):
        require_consistent(schema)
        return
    for table in (schema.patients, *(child.schema for child in schema.children)):
        require_consistent(table)
