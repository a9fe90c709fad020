"""Arguments of public functions, named in messages by their types and never by their content.

Whoever calls a function with the wrong object may hand over rows of patients: a list of records, an
array, the text of a CSV file. So a message says what kind of object it got, and what to give.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpsynth.errors import DpsynthError, InputError

MAX_PATH = 4096  # characters, as of Linux
_VOWELS = tuple("aeiou")


def type_name(value: object) -> str:
    """Name the type of an object, and the package that it is from.

    >>> type_name([1, 2]), type_name(7)
    ('a list', 'an int')
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0].strip("_")
    words = kind.__name__ if package in ("builtins", "main") else f"{package} {kind.__name__}"
    article = "an" if words.lower().startswith(_VOWELS) else "a"
    return f"{article} {words}"


def path_text(
    value: object,
    expected: str = "the path of a file or folder",
    error: type[DpsynthError] = InputError,
) -> str:
    """Return a path as text.

    Args:
        value: text or a path.
        expected: what a message asks for.
        error: the class of the error.

    Raises:
        DpsynthError: of that class: it is an object of another type, or text that is no path. It
            does not quote the value.

    >>> path_text([{"patient": "0001"}])
    Traceback (most recent call last):
    dpsynth.errors.InputError: a list was given in place of the path of a file or folder
    """
    if not isinstance(value, str | os.PathLike):
        raise error(f"{type_name(value)} was given in place of {expected}")
    text = value if isinstance(value, str) else os.fspath(value)
    if not isinstance(text, str):
        raise error(f"a path of bytes was given in place of {expected}; write it as text")
    if any(sign in text for sign in "\0\r\n"):
        raise error(f"a text of several lines was given in place of {expected}")
    if text.lstrip().startswith(("{", "[")) and not os.path.lexists(text):
        raise error(f"a text in JSON was given in place of {expected}")
    if len(text) > MAX_PATH:
        raise error(f"a text longer than a path was given in place of {expected}")
    return text


def path_of(
    value: object,
    expected: str = "the path of a file or folder",
    error: type[DpsynthError] = InputError,
) -> Path:
    """Return a path; refuse what is none, as `path_text`."""
    return Path(path_text(value, expected, error))


def require_list(values: Iterable[Any], expected: str) -> list[Any]:
    """Return the items of a list or tuple; refuse what else could be walked through.

    Raises:
        InputError: it is something else, such as a table or an array; its items are not shown.
    """
    if not isinstance(values, list | tuple):
        raise InputError(f"{type_name(values)} was given in place of {expected}")
    return list(values)
