"""One mapping of a schema document with its place: typed reads that note what is wrong and go on.

Two kinds of notes: mistakes, and gaps (something is still to be written; a draft may have them).
Every read returns a value of its type or None, so that one pass finds every mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsynth._util.arguments import type_name
from dpsynth._util.messages import did_you_mean, listed, plain, shown
from dpsynth.errors import Problem

TODO = "TODO"
PROPOSAL = "proposal:"  # begins a basis that no person has confirmed
NO_BASIS = "say where it comes from (a form, a device range, a coding manual); never from the data"
MAX_WHOLE = 2**53  # beyond it, JSON readers and float64 lose digits


def is_todo(value: object) -> bool:
    """Tell whether a value is the blank of a draft."""
    return isinstance(value, str) and value == TODO


def is_proposal(basis: str | None) -> bool:
    """Tell whether a basis is still a proposal of `dpsynth schema draft`.

    >>> is_proposal("Proposal: 0 to 10"), is_proposal("ward protocol, page 3"), is_proposal(None)
    (True, False, False)
    """
    return basis is not None and basis.strip().lower().startswith(PROPOSAL)


def is_finite(value: float | int) -> bool:
    """Tell whether a number is one that bounds can use; false for NaN, infinity and 1e301."""
    return abs(value) <= 1e300


@dataclass
class FieldFindings:
    """The notes of one reading, in the order of the document."""

    mistakes: list[Problem] = field(default_factory=list)
    everything: list[Problem] = field(default_factory=list)

    def mistake(self, place: str, message: str) -> None:
        """Note what is wrong."""
        self.mistakes.append(Problem(place, message))
        self.everything.append(Problem(place, message))

    def gap(self, place: str, message: str) -> None:
        """Note what is still to be written."""
        self.everything.append(Problem(place, message))


class FieldReader:
    """A mapping inside the document."""

    def __init__(self, value: object, place: str, findings: FieldFindings) -> None:
        """Take a value that should be a mapping; anything else is noted and read as empty."""
        self.place = place
        self.findings = findings
        self.values: dict[str, Any] = {}
        if not isinstance(value, Mapping):
            self.mistake(
                None, f"a mapping is expected, not {shown(value) if place else type_name(value)}"
            )
            return
        for key, content in value.items():
            if isinstance(key, str):
                self.values[key] = content
                if is_todo(content):
                    self.findings.gap(self.at(key), "is still TODO; fill it, or remove the key")
            else:
                self.mistake(None, f"keys are text; {shown(key)} is not: write it in quotes")

    def at(self, key: str | None) -> str:
        """Give the place of a key."""
        return ".".join(part for part in (self.place, key and plain(key)) if part) or "document"

    def mistake(self, key: str | None, message: str) -> None:
        """Note a mistake at a key, or at this part as a whole."""
        self.findings.mistake(self.at(key), message)

    def gap(self, key: str, message: str) -> None:
        """Note a gap at a key, unless its TODO is noted already."""
        if not is_todo(self.values.get(key)):
            self.findings.gap(self.at(key), message)

    def has(self, key: str) -> bool:
        """Tell whether a key is there and filled: neither null nor TODO."""
        value = self.values.get(key)
        return value is not None and not is_todo(value)

    def part(self, key: str) -> FieldReader:
        """Read a mapping; an absent one is empty."""
        return FieldReader(self.values[key] if self.has(key) else {}, self.at(key), self.findings)

    def text(self, key: str) -> str | None:
        """Read a text that is not blank."""
        return self.check_text(key, self.values[key]) if self.has(key) else None

    def check_text(self, key: str, value: object) -> str | None:
        """Check one text: not blank, and every character can be written to a file."""
        if not isinstance(value, str):
            self.mistake(key, f"text is expected, not {shown(value)}: write it in quotes")
        elif not value.strip():
            self.mistake(key, "the text is blank; write something or remove the key")
        elif any("\ud800" <= character <= "\udfff" for character in value):
            self.mistake(key, "the text has half a character (a lone surrogate); write it anew")
        else:
            return value
        return None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Read a list of texts, trimmed, each kept once; an empty text is allowed."""
        if not self.has(key):
            return None
        if not isinstance(self.values[key], list | tuple):
            self.mistake(key, f"a list is expected, not {shown(self.values[key])}")
            return None
        texts = []
        for index, value in enumerate(self.values[key]):
            if isinstance(value, Mapping):  # Table Schema v2: a missing value with a label
                value = value.get("value")
            if value == "":
                texts.append("")
            elif (text := self.check_text(f"{key}[{index}]", value)) is not None:
                texts.append(text.strip())
        return tuple(dict.fromkeys(texts))

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        if not self.has(key):
            return default
        if not isinstance(self.values[key], bool):
            self.mistake(key, f"true or false is expected, not {shown(self.values[key])}")
            return default
        return bool(self.values[key])

    def choice(self, key: str, options: Collection[str], default: str) -> str:
        """Read one of a few words."""
        value = self.text(key)
        if value is None or value in options:
            return value or default
        meant = did_you_mean(value, options)
        self.mistake(key, f"{shown(value)} is not one of {listed(options)}{meant}")
        return default

    def number(self, key: str) -> float | int | None:
        """Read a finite number."""
        value = self.values.get(key)
        if not self.has(key):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            quoted = isinstance(value, str) and value.strip()[:1] in tuple("+-.0123456789")
            hint = ": write it without quotes, like 100000 or 0.5" if quoted else ""
            self.mistake(key, f"a number is expected, not {shown(value)}{hint}")
        elif not is_finite(value):
            self.mistake(key, "the number is not finite; declare a finite one")
        else:
            return value
        return None

    def whole(self, key: str, *, minimum: int) -> int | None:
        """Read a whole number of at least ``least``."""
        value = self.number(key)
        if value is None:
            return None
        if not minimum <= value <= MAX_WHOLE or value != int(value):
            self.mistake(
                key, f"a whole number of at least {minimum} is expected, not {shown(value)}"
            )
            return None
        return int(value)

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Note every key that is not known."""
        for key in self.values:
            if key not in known:
                meant = did_you_mean(key, known)
                self.mistake(key, f"there is no such key here{meant}; known: {listed(known)}")
