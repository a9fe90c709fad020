"""Small files that a person writes (a policy, settings), with all their mistakes named at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.messages import listed
from dpsynth._util.strict_yaml import SUFFIXES, parse_json, parse_yaml
from dpsynth._util.whole_files import read_whole
from dpsynth.errors import InputError, Problem, SchemaError

MAX_BYTES = 2**20  # bytes


def read_plain(path: str | Path, noun: str, *, subject: str, title: str) -> Any:
    """Parse a file of at most 1 MiB of YAML or JSON, without running anything in it.

    Args:
        path: the file.
        noun: what kind of file it is, for messages: ``policy``.
        subject: what is never so large: ``a policy is``.
        title: what has mistakes: ``policy office.yaml has``.

    Raises:
        InputError: it is missing, too large, or not plain YAML or JSON.
    """
    path = path_of(path, f"the path of a {noun} file")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} is not a {noun} file; use a name that ends in {listed(SUFFIXES)}")
    try:
        return read_document(path, f"{noun} file", never=f"{subject} not")
    except SchemaError as error:
        raise refusal(title, error.problems) from None


def read_document(path: str | Path, noun: str, *, largest: int = MAX_BYTES, never: str = "") -> Any:
    """Parse a file of YAML, or of JSON if its name ends so.

    Args:
        path: the file.
        noun: what kind of file it is, for messages: ``policy file``.
        largest: bytes that it may have.
        never: what is never so large: ``a policy is not``.

    Raises:
        InputError: it is missing, not a plain file, or too large.
        SchemaError: it is not plain YAML or JSON; with every mistake.
    """
    content = read_whole(path, largest=largest, noun=noun, never=never)
    parse = parse_json if Path(path).suffix.lower() == ".json" else parse_yaml
    return parse(content, str(path))


def refusal(title: str, problems: Sequence[Problem]) -> InputError:
    """Word all mistakes of a document, one a line; ``title`` ends in a verb."""
    count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
    return InputError(f"{title} {count}:", items=problems)
