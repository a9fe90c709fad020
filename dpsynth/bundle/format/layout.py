"""What a file of a bundle is, and how the manifest describes and lists it.

``datapackage.json`` is a Data Package v2 document: each file with its SHA-256 and size, each table
with its Table Schema. The bundle of a single table holds ten more files at most,
always under the same names, so that nothing can travel along unseen; and beside the manifest, which
cannot list it, a signature of the manifest. That of linked tables has its tables under
the names that its schema gives them, and their keys in their Table Schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from dpsynth._util.strict_json import text, whole
from dpsynth.errors import ArtifactError
from dpsynth.schema import (
    NOTE_FILE,
    AnySchema,
    Column,
    Schema,
    SyntheticTable,
    file_stem,
    synthetic_tables,
)

FORMAT, VERSION = "dpsynth-bundle", 1
MANIFEST, SIGNATURE = "datapackage.json", "datapackage.json.sig"
PARQUET, CSV = "data/synthetic.parquet", "data/synthetic.csv"
SCHEMA, PRIVACY = "schema.json", "privacy.json"
QUALITY, AUDIT = "quality.json", "audit.json"
PRECISION = "precision.csv"
REPORT, CARD, CROISSANT = "report.html", "CARD.md", "croissant.json"
NOTE = f"data/{NOTE_FILE}"
SIGNATURE_BYTES = 64  # of Ed25519, RFC 8032
MAX_CSV_ROWS = 1_000_000
PARQUET_SIZE = "dpsynth:bytes"  # see size_key
TYPED, TEXT = ".parquet", ".csv"
DOCUMENTS = (
    *("schema", "privacy", "quality", "audit", "precision", "report", "card", "croissant", "note"),
)
"""Names that the manifest gives to files that are no tables."""


@dataclass(frozen=True)
class BundleFile:
    """One public file that a bundle may hold; all of them are in `dpsynth.bundle.files`.

    Release, verification and the manifest go through the same list, so one entry says how a file
    is described, written, read and compared. A file is a table, a document (with ``document``) or
    derived from the others (with ``derive``).

    Attributes:
        path: in the bundle, such as ``report.html``.
        name: in the manifest.
        title: likewise, for people.
        format: likewise, such as ``json``.
        mediatype: likewise.
        encoding: likewise; None for a binary file.
        required: whether every bundle of this version has it.
        table: the name of the synthetic table whose rows it holds; None of any other file.
        document: from `Contents` to a document of JSON types, or to the bytes of a document of
            another format; None where a bundle has none. The file holds JSON types as
            `strict_json.written` writes them, and `verify` refuses other bytes.
        check: reads a document that a bundle need not have: called with the folder, the paths of
            all files, the `Contents` so far and the `Findings`; returns the `Contents` with it.
        derive: from `dpsynth.bundle.files.Material` to the bytes of the file; `verify` derives them
            anew and compares.
    """

    path: str
    name: str
    title: str
    format: str
    mediatype: str
    encoding: str | None = "utf-8"
    required: bool = False
    table: str | None = None
    document: Callable[[Any], dict[str, Any] | bytes | None] | None = None
    check: Callable[[Path, set[str], Any, Any], Any] | None = None
    derive: Callable[[Any], bytes] | None = None

    def __post_init__(self) -> None:
        """Refuse a file that nothing would compare with the rest of the bundle."""
        if [self.is_table, self.document is not None, self.derive is not None].count(True) != 1:
            raise ValueError(f"{self.path} is a table, or has one of document and derive")

    @property
    def is_table(self) -> bool:
        """Whether it holds synthetic rows."""
        return self.table is not None

    def described(self, schema: AnySchema) -> dict[str, Any]:
        """Describe the file by what is the same in all bundles of a schema."""
        entry: dict[str, Any] = {"name": self.name, "title": self.title}
        kind = "table" if self.is_table else None
        if self.path == SCHEMA and not isinstance(schema, Schema):
            kind = "json"  # else frictionless takes it for the schema of one table
        entry |= {} if kind is None else {"type": kind}
        entry |= {"format": self.format, "mediatype": self.mediatype}
        entry |= {} if self.encoding is None else {"encoding": self.encoding}
        entry |= {"path": self.path}
        if self.table is None:
            return entry
        tables = synthetic_tables(schema)
        own = tables[self.table]
        table = own.schema.to_table_schema()
        if Path(self.path).suffix == TYPED:
            table["fields"] = [
                _in_parquet(field, column)
                for field, column in zip(table["fields"], own.schema.modelled, strict=True)
            ]
        return entry | {"schema": _keys_of(own, tables) | table}


def _keys_of(own: SyntheticTable, tables: Mapping[str, SyntheticTable]) -> dict[str, Any]:
    """Write the keys of one of several tables: they point to the typed table of patients."""
    patients = next(iter(tables.values()))
    if own.key is None:
        return {}
    if own is patients:
        return {"primaryKey": [own.key]}
    name = resource_names(tables)[patients.name][TYPED]
    reference = {"resource": name, "fields": [patients.key]}
    return {"foreignKeys": [{"fields": [own.key], "reference": reference}]}


def resource_names(tables: Iterable[str]) -> dict[str, dict[str, str]]:
    """Name the files of each table in a manifest, by suffix: in small letters, and none twice.

    >>> resource_names(["patients", "Labs", "report"])["report"]
    {'.parquet': 'report.2', '.csv': 'report.2-csv'}
    """
    names, taken = {}, set(DOCUMENTS)
    for place, table in enumerate(tables):
        name = table.lower()
        while {name, f"{name}-csv"} & taken:
            name = f"{name}.{place}"
        names[table] = {TYPED: name, TEXT: f"{name}-csv"}
        taken |= set(names[table].values())
    return names


def table_path(table: str, suffix: str = TYPED) -> str:
    """Return where a bundle has a table, in the format of the suffix."""
    return f"data/{file_stem(table)}{suffix}"


def _in_parquet(field: dict[str, Any], column: Column) -> dict[str, Any]:
    """Describe a column as Parquet holds it: a year is an integer there.

    frictionless turns a null into not-a-number; that is named as missing, and nothing else is: a
    number is never written as ``nan``.
    """
    described = field | {"type": column.kind.parquet_schema}
    return described | ({"missingValues": ["", "nan"]} if column.kind.is_number else {})


def size_key(path: str) -> str:
    """Name the entry of a manifest that holds a file's size in bytes.

    That of a Parquet file has a name of its own: frictionless does not count its bytes, and would
    find them missing.
    """
    return PARQUET_SIZE if Path(path).suffix == TYPED else "bytes"


def listed_files(
    document: dict[str, Any], files: Mapping[str, BundleFile]
) -> dict[str, tuple[str, int, dict[str, Any]]]:
    """Read a manifest's list of files, trusting none of its paths.

    Returns:
        For each path its SHA-256, its size in bytes, and the rest of its description.

    Raises:
        ArtifactError: a path leaves the bundle, occurs twice or is unknown to this version, or a
            required file is not listed.
    """
    resources = document.get("resources")
    if not isinstance(resources, list):
        raise ArtifactError("resources: a list is expected")
    listed: dict[str, tuple[str, int, dict[str, Any]]] = {}
    for index, resource in enumerate(resources):
        place = f"resources[{index}]"
        if not isinstance(resource, dict):
            raise ArtifactError(f"{place}: an object is expected")
        path = text(resource.get("path"), f"{place}.path")
        if not _is_inside(path):
            raise ArtifactError(f"{place}.path leaves the bundle")
        if path not in files:
            raise ArtifactError(f"{place}.path is not a file of a bundle of version {VERSION}")
        if path in listed:
            raise ArtifactError(f"{place}.path occurs twice")
        digest = re.fullmatch("sha256:([0-9a-f]{64})", text(resource.get("hash"), f"{place}.hash"))
        if digest is None:
            raise ArtifactError(f"{place}.hash is not a SHA-256")
        counted = size_key(path)
        size = whole(resource.get(counted), f"{place}.{counted}", minimum=0)
        rest = {key: value for key, value in resource.items() if key not in ("hash", counted)}
        listed[path] = (digest[1], size, rest)
    required = {path for path, file in files.items() if file.required}
    absent = sorted(required - set(listed))
    if absent:
        raise ArtifactError(f"resources: {', '.join(absent)} is not listed")
    return listed


def _is_inside(path: str) -> bool:
    """Tell whether a path is relative, plain, and stays within its folder."""
    parts = PurePosixPath(path).parts
    plain = path == "/".join(parts) and "\\" not in path and ":" not in path
    return plain and bool(parts) and parts[0] != "/" and ".." not in parts
