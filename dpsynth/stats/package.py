"""The Data Package of statistics: what files there are, with their digests and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsynth._util.strict_json import bytes_digest
from dpsynth._version import __version__

MANIFEST = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_MEDIA = {"csv": "text/csv", "json": "application/json", "html": "text/html"}


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
