"""The bundle: which files it has, and the manifest that lists them.

``datapackage.json`` is a Data Package v2 document: each file with its SHA-256 and size, each table
with its Table Schema. Version 1 of the bundle holds seven more files at most, always under the same
names, so that nothing can travel along unseen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from dpsynth.documents import check_format, check_keys, file_digest, text, truth, whole
from dpsynth.errors import ArtifactError
from dpsynth.schema import Schema

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
FORMAT, VERSION = "dpsynth-bundle", 1
MANIFEST = "datapackage.json"
PARQUET, CSV = "data/synthetic.parquet", "data/synthetic.csv"
SCHEMA, PRIVACY = "schema.json", "privacy.json"
QUALITY, AUDIT, REPORT = "quality.json", "audit.json", "report.html"
MOST_CSV_ROWS = 1_000_000

_JSON = {"format": "json", "mediatype": "application/json", "encoding": "utf-8"}
_KINDS: dict[str, dict[str, Any]] = {
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
}
TABLES = frozenset({PARQUET, CSV})
REQUIRED = frozenset({PARQUET, SCHEMA, PRIVACY, REPORT})


@dataclass(frozen=True)
class Drawing:
    """How the table of a bundle was drawn; with the run, enough to draw it again.

    Attributes:
        model: the generator's name.
        run_sha256: digest of the run.
        rows: number of rows.
        seed: seed of the sampling; public, and apart from the noise of the fit.
        condition: the rows were kept to this condition, if any.
        plain: the rows are independent draws, not spread evenly.
    """

    model: str
    run_sha256: str
    rows: int
    seed: int
    condition: str | None = None
    plain: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Write the document that the manifest holds under ``dpsynth``."""
        return {"format": FORMAT, "version": VERSION} | vars(self)

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Drawing:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: a key is missing, unknown or of the wrong type.
        """
        check_keys(document, place, ("format", "version", *(field.name for field in fields(cls))))
        check_format(document, place, FORMAT, VERSION)
        condition = document["condition"]
        return cls(
            model=text(document["model"], f"{place}.model"),
            run_sha256=text(document["run_sha256"], f"{place}.run_sha256"),
            rows=whole(document["rows"], f"{place}.rows", least=1),
            seed=whole(document["seed"], f"{place}.seed", least=0),
            condition=None if condition is None else text(condition, f"{place}.condition"),
            plain=truth(document["plain"], f"{place}.plain"),
        )


def manifest(folder: Path, schema: Schema, drawing: Drawing) -> dict[str, Any]:
    """Describe the files of a bundle; the same files give the same document."""
    resources = [
        described(path, schema)
        | {
            "bytes": (folder / path).stat().st_size,
            "hash": f"sha256:{file_digest(folder / path)}",
        }
        for path in _KINDS
        if (folder / path).exists()
    ]
    return heading(schema, drawing) | {"resources": resources}


def heading(schema: Schema, drawing: Drawing) -> dict[str, Any]:
    """Give all of a manifest but its list of files; no file is read."""
    title = f"Synthetic table: {schema.title or schema.name}"
    document: dict[str, Any] = {"$schema": PROFILE, "name": _slug(schema.name), "title": title}
    if schema.description:
        document["description"] = schema.description
    return document | {"dpsynth": drawing.to_dict()}


def described(path: str, schema: Schema) -> dict[str, Any]:
    """Describe a file of a bundle by what is the same in all bundles of a schema."""
    table = {"schema": schema.to_table_schema()} if path in TABLES else {}
    return _KINDS[path] | {"path": path} | table


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
        if path not in _KINDS:
            raise ArtifactError(f"{place}.path is none of the files of a bundle of version 1")
        if path in files:
            raise ArtifactError(f"{place}.path occurs twice")
        found = re.fullmatch("sha256:([0-9a-f]{64})", text(resource.get("hash"), f"{place}.hash"))
        if found is None:
            raise ArtifactError(f"{place}.hash is no SHA-256")
        size = whole(resource.get("bytes"), f"{place}.bytes", least=0)
        rest = {key: value for key, value in resource.items() if key not in ("hash", "bytes")}
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


def _slug(name: str) -> str:
    """Make a name that a data package may have."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-") or "table"
