"""Schema files: found by name or path, read without running anything in them, written whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from dpsynth._util import written_files
from dpsynth._util.arguments import path_text
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth._util.strict_json import json_text
from dpsynth._util.strict_yaml import SUFFIXES, parse_yaml, yaml_text
from dpsynth.errors import InputError
from dpsynth.files import write_atomically
from dpsynth.schema.code_systems import with_code_lists

MAX_FILE = 4 * 2**20
TABLE = ".schema.yaml"
"""Ends the names of the shipped schemas of one table."""


def shipped_names(suffix: str = TABLE) -> list[str]:
    """List the names of the shipped schemas, or of other files of a suffix."""
    files = resources.files("dpsynth.data_schemas").iterdir()
    return sorted(f.name.removesuffix(suffix) for f in files if f.name.endswith(suffix))


def read_document(
    name_or_path: str | Path, suffixes: Sequence[str] = (TABLE,)
) -> tuple[Any, str, str]:
    """Read a document by shipped name or path.

    Args:
        name_or_path: of the document.
        suffixes: of the shipped ones.

    Returns:
        The document, what to call it in messages, and the name of a schema that states none.

    Raises:
        InputError: there is no such name or file, or it cannot be read.
        SchemaError: it is not YAML or JSON, or more than a schema may be, or names a code list
            that cannot be read.
    """
    path = Path(path_text(name_or_path, "the name or path of a schema"))
    if isinstance(name_or_path, str) and not path.suffix and path.name == name_or_path:
        files = {name: name + suffix for suffix in suffixes for name in shipped_names(suffix)}
        names = sorted(files)
        if name_or_path not in names:
            meant = did_you_mean(name_or_path, names)
            raise InputError(
                f"no shipped schema is called {shown(name_or_path)}{meant}; shipped: "
                f"{listed(names) or 'none'}. A schema of your own is given by its path (.yaml)"
            )
        file = resources.files("dpsynth.data_schemas").joinpath(files[name_or_path])
        return parse_yaml(file.read_bytes(), name_or_path), name_or_path, name_or_path
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} is not a schema file; use a name that ends in {listed(SUFFIXES)}")
    if not path.exists():
        stem = _stem(path)
        hint = f"; the shipped schema is called {stem!r}" if stem in shipped_names() else ""
        raise InputError(f"schema file {path} does not exist{hint}")
    own = written_files.read_document(
        path, "schema file", largest=MAX_FILE, never="a schema is not"
    )
    document = with_code_lists(own, str(path))
    return document, str(path), _stem(path)


def write_document(document: dict[str, Any], path: str | Path) -> None:
    """Write a document as YAML or JSON, by suffix, in one step.

    Raises:
        InputError: the suffix is neither, or the place cannot be written to.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a schema file ends in {listed(SUFFIXES)}")
    if suffix == ".json":
        text = json_text(document) + "\n"
    else:
        text = yaml_text(document)
    write_atomically(path, text.encode())


def _stem(path: Path) -> str:
    """Give the name before the first dot, in the characters that a schema's name may have."""
    stem = path.name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]", "-", stem) or "table"
