"""The files of a bundle: which there may be, and how the manifest describes and lists them.

``datapackage.json`` is a Data Package v2 document: each file with its SHA-256 and size, each table
with its Table Schema. Version 2 of the bundle holds nine more files at most, always under the same
names, so that nothing can travel along unseen; and beside the manifest, which cannot list it, a
signature of the manifest.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from dpsynth._util.strict_json import text, whole
from dpsynth.errors import ArtifactError
from dpsynth.schema import Schema

FORMAT, VERSION = "dpsynth-bundle", 2
MANIFEST, SIGNATURE = "datapackage.json", "datapackage.json.sig"
PARQUET, CSV = "data/synthetic.parquet", "data/synthetic.csv"
SCHEMA, PRIVACY = "schema.json", "privacy.json"
QUALITY, AUDIT = "quality.json", "audit.json"
REPORT, CARD, CROISSANT = "report.html", "CARD.md", "croissant.json"
SIGNATURE_BYTES = 64  # of Ed25519, RFC 8032
MOST_CSV_ROWS = 1_000_000
PARQUET_SIZE = "dpsynth:bytes"  # see size_key

_JSON = {"format": "json", "mediatype": "application/json", "encoding": "utf-8"}
KINDS: dict[str, dict[str, Any]] = {
    PARQUET: {
        "name": "synthetic",
        "title": "Synthetic table",
        "type": "table",
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
    },
    CSV: {
        "name": "synthetic-csv",
        "title": "Synthetic table, as text",
        "type": "table",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
    },
    SCHEMA: {"name": "schema", "title": "Schema of the source table: public facts", **_JSON},
    PRIVACY: {"name": "privacy", "title": "Privacy certificate", **_JSON},
    QUALITY: {"name": "quality", "title": "Quality figures that the budget paid for", **_JSON},
    AUDIT: {
        "name": "audit",
        "title": "Attacks on the training, on nobody's rows",
        **_JSON,
    },
    REPORT: {
        "name": "report",
        "title": "What was guaranteed, and the data dictionary: a page for people",
        "format": "html",
        "mediatype": "text/html",
        "encoding": "utf-8",
    },
    CARD: {
        "name": "card",
        "title": "Card of the model and of the table: what they are for, and their limits",
        "format": "md",
        "mediatype": "text/markdown",
        "encoding": "utf-8",
    },
    CROISSANT: {
        "name": "croissant",
        "title": "The tables for machine-learning tools (Croissant)",
        "format": "json",
        "mediatype": "application/ld+json",
        "encoding": "utf-8",
    },
}
TABLES = frozenset({PARQUET, CSV})
REQUIRED = frozenset({PARQUET, SCHEMA, PRIVACY, REPORT, CARD, CROISSANT})


def described(path: str, schema: Schema) -> dict[str, Any]:
    """Describe a file of a bundle by what is the same in all bundles of a schema."""
    if path not in TABLES:
        return KINDS[path] | {"path": path}
    table = schema.to_table_schema()
    if path == PARQUET:
        table["fields"] = [_in_parquet(field) for field in table["fields"]]
    return KINDS[path] | {"path": path, "schema": table}


def _in_parquet(field: dict[str, Any]) -> dict[str, Any]:
    """Describe a column as Parquet holds it: a year is an integer there.

    frictionless turns a null into not-a-number; that is named as missing, and nothing else is: a
    number is never written as ``nan``.
    """
    if field["type"] not in ("integer", "number", "year"):
        return field
    kind = "integer" if field["type"] == "year" else field["type"]
    return field | {"type": kind, "missingValues": ["", "nan"]}


def size_key(path: str) -> str:
    """Name the entry of a manifest that holds a file's size in bytes.

    That of the Parquet file has a name of its own: frictionless does not count its bytes, and would
    find them missing.
    """
    return PARQUET_SIZE if path == PARQUET else "bytes"


def listed_files(document: dict[str, Any]) -> dict[str, tuple[str, int, dict[str, Any]]]:
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
    files: dict[str, tuple[str, int, dict[str, Any]]] = {}
    for index, resource in enumerate(resources):
        place = f"resources[{index}]"
        if not isinstance(resource, dict):
            raise ArtifactError(f"{place}: an object is expected")
        path = text(resource.get("path"), f"{place}.path")
        if not _is_inside(path):
            raise ArtifactError(f"{place}.path leaves the bundle")
        if path not in KINDS:
            raise ArtifactError(f"{place}.path is not a file of a bundle of version 2")
        if path in files:
            raise ArtifactError(f"{place}.path occurs twice")
        found = re.fullmatch("sha256:([0-9a-f]{64})", text(resource.get("hash"), f"{place}.hash"))
        if found is None:
            raise ArtifactError(f"{place}.hash is not a SHA-256")
        counted = size_key(path)
        size = whole(resource.get(counted), f"{place}.{counted}", least=0)
        rest = {key: value for key, value in resource.items() if key not in ("hash", counted)}
        files[path] = (found[1], size, rest)
    absent = sorted(REQUIRED - set(files))
    if absent:
        raise ArtifactError(f"resources: {', '.join(absent)} is not listed")
    return files


def _is_inside(path: str) -> bool:
    """Tell whether a path is relative, plain, and stays within its folder."""
    parts = PurePosixPath(path).parts
    plain = path == "/".join(parts) and "\\" not in path and ":" not in path
    return plain and bool(parts) and parts[0] != "/" and ".." not in parts
