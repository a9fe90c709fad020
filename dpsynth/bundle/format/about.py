"""What an office says in public about a release: who publishes it, for what, under which licence.

None of it comes from data. It goes into the manifest, ``croissant.json`` and ``CARD.md`` of a
bundle; whatever is not said is left out there, or named as not said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any, Self

from dpsynth._util.messages import did_you_mean, listed
from dpsynth._util.strict_yaml import SUFFIXES
from dpsynth._util.written_files import read_document
from dpsynth.errors import InputError, SchemaError

MAX_TEXT_LENGTH, MAX_KEYWORDS = 4_000, 50
_LINE = 300  # characters of what is one line

_URL = re.compile(r"https?://[^\s<>\"']+")
_MAIL = re.compile(r"[^\s@<>\"']+@[^\s@<>\"']+")
_VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")
_LICENCE = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]*")


@dataclass(frozen=True)
class About:
    """The public words of a release; each may be missing.

    Attributes:
        title: of the dataset; the schema's title is taken if there is none.
        version: of the dataset, three numbers (``1.0.0``).
        date: of publication (ISO 8601); a bundle has no clock of its own.
        publisher: the organisation that releases it.
        contact: an e-mail address or a web address for questions.
        licence: its identifier (SPDX or Open Definition), such as ``CC-BY-4.0``.
        licence_url: where its text is.
        homepage: web address of the dataset.
        citation: how to cite it.
        intended_use: what it is meant for.
        limits: what it must not be used for, as the office sees it.
        keywords: by which it may be found.
    """

    title: str | None = None
    version: str | None = None
    date: str | None = None
    publisher: str | None = None
    contact: str | None = None
    licence: str | None = None
    licence_url: str | None = None
    homepage: str | None = None
    citation: str | None = None
    intended_use: str | None = None
    limits: str | None = None
    keywords: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Write what is said, and nothing else."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        words = {name: value for name, value in values.items() if value}
        return words | ({"keywords": list(self.keywords)} if self.keywords else {})

    @classmethod
    def from_dict(cls, document: Any, place: str = "about") -> Self:
        """Read strictly what ``to_dict`` writes, or a person in YAML.

        Raises:
            InputError: with every mistake, in one line.
        """
        if not isinstance(document, Mapping):
            raise InputError(f"{place}: names with texts are expected, as in docs/bundle.md")
        names = [field.name for field in fields(cls)]
        mistakes = [
            f"{place} has an unknown entry{did_you_mean(str(name), names)}; known are "
            + listed(names)
            for name in document
            if name not in names
        ]
        values: dict[str, Any] = {}
        for name in names:
            value: Any = document.get(name)
            if isinstance(value, date):  # YAML reads 2026-11-22 as one
                value = value.isoformat()
            if name not in document:
                continue
            fault = _keywords_fault(value) if name == "keywords" else _fault(name, value)
            if fault:
                mistakes.append(f"{place}.{name} {fault}")
            else:
                values[name] = tuple(value) if name == "keywords" else value.strip()
        if mistakes:
            raise InputError("; ".join(mistakes))
        return cls(**values)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a YAML or JSON file.

        Raises:
            InputError: it is missing, too large, no YAML or JSON, or as in `from_dict`.
        """
        path = Path(path)
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path}: the name of this file must end in {listed(SUFFIXES)}")
        try:
            document = read_document(path, "file", never="a few sentences are not")
        except SchemaError as error:
            raise InputError(f"{path}: {error.problems[0]}") from None
        return cls.from_dict(document, str(path))


def _fault(name: str, value: Any) -> str | None:
    """Say what is wrong with one entry, if anything is."""
    if not isinstance(value, str) or not value.strip():
        return "must be text (in quotes, if it looks like a number), or be left out"
    if any(not c.isprintable() and c not in "\n\t" for c in value):
        return "has a character that cannot be shown; write plain text"
    if len(value) > MAX_TEXT_LENGTH:
        return f"has more than {MAX_TEXT_LENGTH} characters"
    if name not in _LONG and ("\n" in value.strip() or len(value) > _LINE):
        return f"must be one line of at most {_LINE} characters"
    check, expected = _CHECKS.get(name, (_any, ""))
    return None if check(value.strip()) else f"must be {expected}"


def _keywords_fault(value: Any) -> str | None:
    if not isinstance(value, list | tuple) or len(value) > MAX_KEYWORDS:
        return f"must be a list of at most {MAX_KEYWORDS} words"
    faults = [_fault("keyword", word) for word in value]
    return next((fault for fault in faults if fault), None)


def _any(text: str) -> bool:
    return True


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_address(text: str) -> bool:
    return bool(_URL.fullmatch(text) or _MAIL.fullmatch(text))


_LONG = frozenset({"citation", "intended_use", "limits"})
_CHECKS: dict[str, tuple[Callable[[str], Any], str]] = {
    "version": (_VERSION.fullmatch, "a version of three numbers, such as 1.0.0"),
    "date": (_is_date, "a date such as 2026-11-22"),
    "contact": (_is_address, "an e-mail or web address"),
    "licence": (_LICENCE.fullmatch, "an identifier of a licence, such as CC-BY-4.0"),
    "licence_url": (_URL.fullmatch, "a web address"),
    "homepage": (_URL.fullmatch, "a web address"),
}
