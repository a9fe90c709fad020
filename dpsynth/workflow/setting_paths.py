"""Which settings are paths, and what each is relative to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = 1
ENDINGS = {"work": ".work", "internal": ".internal"}  # of folders beside the bundle
REQUIRED = ("schema", "data", "dataset", "epsilon", "delta", "output")
PATHS = ("data", "output", "opt_out", "policy", "gates", "work", "internal")


def is_shipped(schema: str) -> bool:
    """Whether a schema is named by the name of a shipped one, and not by its path.

    >>> is_shipped("cardio"), is_shipped("cardio.schema.yaml"), is_shipped("mine/cardio")
    (True, False, False)
    """
    return not Path(schema).suffix and Path(schema).name == schema


def joined(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose relative paths are relative to a folder."""
    paths = dict(values)
    for name in PATHS:
        if isinstance(paths.get(name), Path):
            paths[name] = folder / paths[name]
    if isinstance(paths.get("data"), str):  # the URL of a database, maybe with a query's file
        url, sign, query = paths["data"].partition("#@")
        paths["data"] = url + sign + (str(folder / query) if sign else "")
    schema = paths.get("schema")
    if schema is not None and not is_shipped(schema):
        paths["schema"] = str(folder / schema)
    return paths


def source_from(folder: Path, source: str) -> str:
    """Write the URL of a database; the file of a query as seen from a folder."""
    url, sign, query = source.partition("#@")
    return url + sign + (path_from(folder, Path(query)) if sign else "")


def beside(output: Path, ending: str) -> Path:
    """Name a folder after the bundle."""
    return output.with_name(output.name + ending)


def path_from(folder: Path, path: Path) -> str:
    """Write a path as seen from a folder; one that was named from the root stays so, outside it."""
    whole, start = Path(os.path.abspath(path)), Path(os.path.abspath(folder))
    if path.is_absolute() and start not in whole.parents:
        return str(path)
    return Path(os.path.relpath(whole, start)).as_posix()
