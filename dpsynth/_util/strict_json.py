"""JSON documents, written one way and read strictly.

Written: UTF-8, keys in their given order, no NaN, a newline at the end. Read: a size limit, no NaN
or infinity, no key twice, no key that the format does not know, a clear `ArtifactError` for
anything else. Digests are SHA-256 over canonical text (sorted keys, no spaces): indentation is
free.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from dpsynth._util.messages import listed, shown
from dpsynth._util.whole_files import read_whole, require_plain
from dpsynth.errors import SPACES, ArtifactError

MAX_BYTES = 64 * 2**20  # bytes of one document
HUGE = 1e300  # no number of ours comes near it
BLOCK = 2**20
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")

_Read = TypeVar("_Read")


def written(document: Mapping[str, Any]) -> bytes:
    """Give the bytes of a document, the same for equal documents in equal order."""
    return (json_text(document) + "\n").encode()


def json_text(document: Any, *, indent: int | None = 2, separators: Any = None) -> str:
    """Write JSON whose letters are readable, and whose unprintable characters are escaped.

    >>> print(json_text(["Jos\u00e9" + chr(0x202E)], indent=None).replace(chr(92), "/"))
    ["Jos\u00e9/u202e"]
    """
    text = json.dumps(
        document, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False
    )
    return _BEYOND_ASCII.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    """Escape a character that is not printable; half of one stays, which no file can hold."""
    letter = match[0]
    if letter.isprintable() or letter in SPACES or "\ud800" <= letter <= "\udfff":
        return letter
    return "\\u007f" if letter == "\x7f" else json.dumps(letter).strip('"')


def digest(document: Any) -> str:
    """Give the SHA-256 (hex) of a document's canonical text."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Give the SHA-256 (hex) of a file's bytes."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            total.update(block)
    return total.hexdigest()


def bytes_digest(content: bytes) -> str:
    """Give the SHA-256 (hex) of bytes."""
    return hashlib.sha256(content).hexdigest()


def read_plain_bytes(path: Path, *, largest: int = MAX_BYTES) -> bytes:
    """Read a whole plain file of limited size.

    Raises:
        ArtifactError: it is missing, no plain file, too large, or cannot be read.
    """
    return read_whole(path, largest=largest, error=ArtifactError, links=False)


def require_plain_file(path: Path, *, largest: int | None = None) -> None:
    """Refuse what is missing, no plain file (a link, a pipe, a folder), or too large.

    Raises:
        ArtifactError: with the path and the reason.
    """
    require_plain(path, largest=largest, error=ArtifactError, links=False)


def read_document(path: Path) -> dict[str, Any]:
    """Read one JSON object from a file.

    Raises:
        ArtifactError: it is missing, no plain file, too large, or not strict JSON.
    """
    return parsed(read_plain_bytes(path), str(path))


def parsed(content: bytes, place: str, *, lenient: bool = False) -> dict[str, Any]:
    """Parse one strict JSON object.

    Args:
        content: UTF-8.
        place: what messages call it.
        lenient: take whole numbers of any size and halves of characters, as a ledger does, which
            has to count what a record claims, whatever else it holds.

    Raises:
        ArtifactError: it is not UTF-8, not JSON, holds NaN, infinity, a whole number of more than
            20 digits, half a character or a key twice, nests too deeply, or is no object.
    """
    try:
        document = json.loads(
            content.decode(),
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=int if lenient else _whole,
            object_pairs_hook=_no_key_twice,
        )
        if b"\\u" in content and not lenient:
            json.dumps(document, ensure_ascii=False).encode()  # half of a pair of surrogates
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{place} is damaged: it is not strict JSON") from error
    return as_object(document, place)


def as_object(value: Any, place: str) -> dict[str, Any]:
    """Check that a value is an object."""
    if not isinstance(value, dict):
        raise ArtifactError(f"{place} is damaged: an object is expected")
    return value


def check_keys(
    document: Any, place: str, keys: Iterable[str], optional: Iterable[str] = ()
) -> None:
    """Check that a document is an object with exactly these keys.

    Raises:
        ArtifactError: it names the keys that are missing or unknown.
    """
    present, required = set(as_object(document, place)), set(keys)
    problems = [f"'{key}' is missing" for key in sorted(required - present)]
    problems += [f"{shown(key)} is unknown" for key in sorted(present - required - set(optional))]
    if problems:
        raise ArtifactError(f"{place}: {listed(problems)}")


def check_format(document: Mapping[str, Any], place: str, name: str, version: int) -> None:
    """Check the ``format`` and ``version`` of a document, before anything else of it is read."""
    if document.get("format") != name:
        raise ArtifactError(f"{place} is not a {name} document")
    stated = document.get("version")
    if type(stated) is not int or stated != version:
        raise ArtifactError(
            f"{place} has version {shown(stated)} of {name}; this dpsynth reads version {version}: "
            "use the dpsynth that wrote it"
        )


def text(value: Any, place: str) -> str:
    """Check that a value is text."""
    if not isinstance(value, str):
        raise ArtifactError(f"{place}: text is expected")
    return value


def matching(value: Any, place: str, pattern: str, noun: str) -> str:
    """Check that a value is text of a narrow form, in which no words can travel."""
    if re.fullmatch(pattern, text(value, place), re.ASCII) is None:
        raise ArtifactError(f"{place} is not a valid {noun}")
    return str(value)


def sha256_text(value: Any, place: str) -> str:
    """Check that a value is a SHA-256 in hexadecimal digits."""
    return matching(value, place, "[0-9a-f]{64}", "SHA-256 in hex")


def version_text(value: Any, place: str) -> str:
    """Check that a value is the version of a program."""
    return matching(value, place, "[0-9A-Za-z.+!-]{1,40}", "version")


def names(record: type) -> tuple[str, ...]:
    """Return the keys of a document: the fields of a dataclass."""
    return tuple(field.name for field in fields(record))


def several(
    read_item: Callable[[Any, str], _Read],
    value: Any,
    place: str,
    *,
    minimum: int = 0,
    maximum: int | None = None,
) -> tuple[_Read, ...]:
    """Read a list, once its length is known to be in range."""
    if not isinstance(value, list):
        raise ArtifactError(f"{place}: a list is expected")
    if len(value) < minimum or (maximum is not None and len(value) > maximum):
        raise ArtifactError(f"{place}: a list of {minimum} to {maximum} entries is expected")
    return tuple(read_item(item, f"{place}[{index}]") for index, item in enumerate(value))


def texts(value: Any, place: str) -> tuple[str, ...]:
    """Check that a value is a list of texts."""
    if not isinstance(value, list):
        raise ArtifactError(f"{place}: a list of texts is expected")
    return tuple(text(item, f"{place}[{index}]") for index, item in enumerate(value))


def whole(value: Any, place: str, *, minimum: int) -> int:
    """Check that a value is a whole number, at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ArtifactError(f"{place}: a whole number of at least {minimum} is expected")
    return value


def truth(value: Any, place: str) -> bool:
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        raise ArtifactError(f"{place}: true or false is expected")
    return value


def number(value: Any, place: str, *, above: float) -> float:
    """Check that a value is a finite number above ``above``."""
    wrong = isinstance(value, bool) or not isinstance(value, int | float)
    if wrong or not above < value < HUGE:
        raise ArtifactError(f"{place}: a number above {above:g} is expected")
    return float(value)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _whole(literal: str) -> int:
    if len(literal) > 20:
        raise ValueError("a whole number is too large")
    return int(literal)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key occurs twice")
    return document
