"""Findings of a check: what was found in which column, how bad it is, and what it is due to.

A finding is internal: it is computed from exact private rows. It names columns, rules and shares.
The cells themselves are kept only in `Cause.texts`, and `values_file` alone writes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from dpsynth._util.formatting import agreeing, counted, percent
from dpsynth.tables.records import IRREGULAR

TABLE = "table"  # the place of a finding about the table as a whole
MIN_SERIOUS = 5  # cells, rows or units; fewer are never serious, whatever share they are


class Level(IntEnum):
    """How much a finding matters; only a serious one stops `dpsynth run`."""

    NOTE = 1
    WARNING = 2
    SERIOUS = 3

    @property
    def word(self) -> str:
        """The level in lower case."""
        return self.name.lower()


@dataclass(frozen=True)
class Limits:
    """Above which share, or factor, a finding is a warning, and above which it is serious."""

    warning: float
    serious: float

    def level(self, value: float, count: int = MIN_SERIOUS) -> Level:
        """Judge a share; few cells are never serious.

        >>> Limits(0.01, 0.05).level(0.06).word, Limits(0.01, 0.05).level(0.06, 2).word
        ('serious', 'warning')
        """
        if value > self.serious and count >= MIN_SERIOUS:
            return Level.SERIOUS
        return Level.WARNING if value > self.warning else Level.NOTE


ABSENT, BROKEN, CLIPPED, DUPLICATES, KEYLESS = (
    "absent",
    "broken",
    "clipped",
    "duplicates",
    "keyless",
)
MANY_ROWS, REPEATED, ROWS, UNITS = "many-rows", "repeated", "rows", "units"
REPLACED = "replaced"
UNKNOWN, UNREADABLE, SCHEMA = "unknown", "unreadable", "schema"
CROWD, DAMAGED, WORDS, WRITTEN = "crowd", "damaged-keys", "words-as-keys", "written-differently"
UNLIKE, SWALLOWED, SEVERAL, BLANK = "unlike-rows", "swallowed-lines", "several-lines", "blank-lines"

# docs/schema.md lists them.
LIMITS: Mapping[str, Limits] = {
    UNREADABLE: Limits(0.01, 0.05),  # of the cells that are filled in; unknown ones are added
    UNKNOWN: Limits(0.01, 0.05),
    CLIPPED: Limits(0.01, 0.05),
    ABSENT: Limits(0.01, 0.05),  # of all cells of a required column
    BROKEN: Limits(0.01, 0.10),  # of the rows that the rule can judge
    DUPLICATES: Limits(0.01, 0.10),  # of the rows with a key
    REPEATED: Limits(0.01, 0.10),
    KEYLESS: Limits(0.01, 0.05),  # of all rows
    MANY_ROWS: Limits(0.10, 0.50),  # of the units
    WORDS: Limits(0.01, 0.05),  # of the rows with a key
    WRITTEN: Limits(0.0, 0.0),  # of the rows with a key; those that count as one: never serious
    DAMAGED: Limits(0.0, 0.0),  # of the rows with a key
    CROWD: Limits(0.0, math.inf),  # of the units
    **dict.fromkeys(IRREGULAR, Limits(0.0, 0.0)),  # of the records; a fit stops
    SWALLOWED: Limits(0.0, 0.0),  # of the lines
    UNLIKE: Limits(0.01, 0.01),  # of the rows: more have another form of key, see `unlike_rows`
    SEVERAL: Limits(math.inf, math.inf),  # of the records
    BLANK: Limits(math.inf, math.inf),  # of the lines
    REPLACED: Limits(0.01, math.inf),  # of the cells that are filled in; a fit goes by the schema
    ROWS: Limits(1.5, math.inf),  # factors; a wrong size costs accuracy, but no privacy
    UNITS: Limits(1.5, math.inf),
}
KINDS = tuple(LIMITS)
ROLLED_UP = Limits(0.20, 1.0)  # unknown categories that a declared category stands for


@dataclass(frozen=True)
class Cause:
    """What some of the cells of a finding are probably due to.

    Attributes:
        key: a short name, such as ``case``.
        cells: how many cells it explains.
        message: what they are, in words; no cell.
        remedy: what to do; where it is a line of the schema, with placeholders for cells.
        texts: PRIVATE: the cells, each with what it would be, or "".
    """

    key: str
    cells: int
    message: str
    remedy: str
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Write all but the private cells."""
        return {
            "cause": self.key,
            "cells": self.cells,
            "message": self.message,
            "remedy": self.remedy,
        }


@dataclass(frozen=True)
class Finding:
    """One thing that a person should look at.

    Attributes:
        place: a column, the text of a rule, or `TABLE`.
        kind: one of `KINDS`, or `SCHEMA` for what is known without data.
        level: how much it matters.
        message: what was found, in words; no cell.
        count: cells, rows or units; 0 where nothing is counted.
        total: of how many.
        remedy: what to do, where no cause says it.
        causes: likely ones, the most frequent first.
        unseen: cells whose values were too many to be compared with causes.
    """

    place: str
    kind: str
    level: Level
    message: str
    count: int = 0
    total: int = 0
    remedy: str = ""
    causes: tuple[Cause, ...] = ()
    unseen: int = field(default=0, repr=False)

    @property
    def key(self) -> str:
        """What the setting ``accept`` calls it: ``place:kind``."""
        return f"{self.place}:{self.kind}"

    @property
    def unexplained(self) -> int:
        """Cells for which no cause was found."""
        return self.count - sum(cause.cells for cause in self.causes)

    def to_dict(self) -> dict[str, Any]:
        """Write it without any cell; internal."""
        return {
            "place": self.place,
            "kind": self.kind,
            "level": self.level.word,
            "count": self.count,
            "total": self.total,
            "message": self.message,
            "remedy": self.remedy,
            "causes": [cause.to_dict() for cause in self.causes],
        }

    def lines(self) -> list[str]:
        """Word it for a person: one line, then how to fix it."""
        lines = [f"{self.level.word:<8} {self.place}: {self.message}"]
        if self.remedy:
            lines.append(f"{'':11}{self.remedy}")
        for cause in self.causes:
            words = agreeing(cause.cells, cause.message)
            lines.append(f"{'':11}{counted(cause.cells, 'cell')} {words}")
            lines.append(f"{'':13}{cause.remedy}")
        if self.causes and self.unexplained > self.unseen:
            rest = counted(self.unexplained - self.unseen, "cell")
            lines.append(f"{'':11}{rest}: no likely cause found")
        if self.causes and self.unseen:
            rest = counted(self.unseen, "cell")
            lines.append(f"{'':11}{rest}: not compared, as there are too many different values")
        return lines


def share_text(count: int, total: int, noun: str = "cell") -> str:
    """Write a share with its count.

    >>> share_text(39, 100)
    '39.0 % (39 of 100 cells)'
    """
    return f"{percent(count / total if total else 0.0)} ({count:,} of {counted(total, noun)})"
