"""The folder of statistics: files that follow from one document, and the package that lists them.

The document holds what was paid for, under its own SHA-256. All other files are derived from it,
and are derived anew by whoever reads the folder: one that differs in a byte is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth._util.strict_json import (
    bytes_digest,
    check_format,
    check_keys,
    digest,
    read_document,
    read_plain_bytes,
)
from dpsynth._version import __version__
from dpsynth.errors import ArtifactError
from dpsynth.files import atomic_folder

MANIFEST = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_MEDIA = {"csv": "text/csv", "json": "application/json", "html": "text/html"}
_LARGEST = 2**30  # bytes of a file


@dataclass(frozen=True)
class ChargedStatistics:
    """What a ledger knows statistics by: their certificate and their digest."""

    certificate: dict[str, Any] | None
    stamps: tuple[str, ...]
    digest: str


def save_files(files: Mapping[str, bytes], folder: str | Path) -> Path:
    """Write files into a new folder, all or none.

    Raises:
        InputError: the folder exists or cannot be written.
    """
    with atomic_folder(folder) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
    return Path(folder)


def read_paid(path: Path, form: str, version: int, keys: tuple[str, ...]) -> dict[str, Any]:
    """Read the document of a folder, without its SHA-256, which is compared.

    Raises:
        ArtifactError: it is missing, damaged or of another kind.
    """
    document = read_document(path)
    check_format(document, str(path), form, version)
    check_keys(document, str(path), keys)
    claimed = document.pop("sha256")
    if claimed != digest(document):
        raise ArtifactError(f"{path} is damaged: its content does not fit its SHA-256")
    return document


def require_same(files: Mapping[str, bytes], path: Path) -> None:
    """Compare all files of a folder with what its document gives.

    Args:
        files: what they should be.
        path: of the document.

    Raises:
        ArtifactError: one is missing, or differs.
    """
    for name, content in files.items():
        if read_plain_bytes(path.parent / name, largest=_LARGEST) != content:
            raise ArtifactError(
                f"{path.parent / name} is not what {path.name} gives: it was changed"
            )


def data_package(
    title: str, files: Mapping[str, bytes], tables: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """Describe files as a Data Package; the same files give the same document.

    Args:
        title: of the statistics.
        files: content by name.
        tables: those of the CSV files, by name.
    """
    resources = []
    for name, content in files.items():
        stem, _, ending = name.rpartition(".")
        resource = {
            "name": slug(name if ending != "csv" else stem),
            "path": name,
            "format": ending,
            "mediatype": _MEDIA[ending],
            "bytes": len(content),
            "hash": f"sha256:{bytes_digest(content)}",
        }
        if name in tables:
            resource |= {"type": "table", "encoding": "utf-8"}
            resource["schema"] = {"fields": [_field(column) for _, column in tables[name].items()]}
        resources.append(resource)
    return {
        "$schema": PROFILE,
        "name": slug(title),
        "title": f"Statistics: {title}",
        "dpsynth": {"format": "dpsynth-statistics-package", "version": 1, "writer": __version__},
        "resources": resources,
    }


def _field(column: pd.Series[Any]) -> dict[str, str]:
    if pd.api.types.is_integer_dtype(column.dtype):
        kind = "integer"
    else:
        kind = "number" if pd.api.types.is_float_dtype(column.dtype) else "string"
    return {"name": str(column.name), "type": kind}


def slug(name: str) -> str:
    """Make a name that a data package, or a file, may have.

    >>> slug("Patients by sex & age")
    'patients-by-sex-age'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "statistic"
