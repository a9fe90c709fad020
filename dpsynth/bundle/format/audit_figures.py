"""Figures of a public audit, and how numbers, texts and lists of ``audit.json`` are read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from dpsynth._util.strict_json import HUGE, check_keys, names, number, several, text, whole
from dpsynth.errors import ArtifactError

MAX_COUNT = 100_000  # canaries, and what else is counted of them
MAX_TEXT_LENGTH = 1_000  # characters of a text
_MAX_POINTS = 100  # of a curve
_NEAR = 1e-3  # of a rate that is written with few digits


@dataclass(frozen=True)
class AuditFigure:
    """A figure with its interval, the number it was computed from, and what it is held against."""

    value: float
    low: float | None
    high: float | None
    n: int
    reference: float | None = None
    chance: float | None = None

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the area under a curve."""
        check_keys(document, place, names(cls))
        value, low, high, reference, chance = (
            None if document[name] is None else share(document[name], f"{place}.{name}")
            for name in ("value", "low", "high", "reference", "chance")
        )
        if value is None or (low is None) != (high is None):
            raise ArtifactError(f"{place}: a value, and both ends of its interval, are expected")
        if low is not None and high is not None and low > high:
            raise ArtifactError(f"{place}.low is above {place}.high")
        count = counted(document["n"], f"{place}.n", minimum=1)
        return cls(value, low, high, count, reference, chance)


@dataclass(frozen=True)
class Hits:
    """So many hits in so many trials, with the interval of the rate."""

    hits: int
    runs: int
    value: float
    low: float
    high: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one rate."""
        check_keys(document, place, names(cls))
        runs = counted(document["runs"], f"{place}.runs", minimum=1)
        hits = counted(document["hits"], f"{place}.hits", maximum=runs)
        value, low, high = (
            share(document[name], f"{place}.{name}") for name in ("value", "low", "high")
        )
        if abs(value - hits / runs) > _NEAR or not low - _NEAR <= value <= high + _NEAR:
            raise ArtifactError(f"{place}: the rate is not that of its hits")
        return cls(hits, runs, value, low, high)


@dataclass(frozen=True)
class Cut:
    """Canaries in and out that score above the cut with so many false alarms at most."""

    fpr: float
    tpr: Hits
    false: Hits

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the rates at one cut."""
        check_keys(document, place, names(cls))
        return cls(
            fpr=share(document["fpr"], f"{place}.fpr"),
            tpr=Hits.from_dict(document["tpr"], f"{place}.tpr"),
            false=Hits.from_dict(document["false"], f"{place}.false"),
        )


@dataclass(frozen=True)
class RocFigure:
    """A curve: shares of canaries out and in that score above one cut after another."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly a curve; it never falls."""
        check_keys(document, place, names(cls))
        fpr, tpr = (
            several(share, document[name], f"{place}.{name}", maximum=_MAX_POINTS)
            for name in ("fpr", "tpr")
        )
        falls = any(after < before for side in (fpr, tpr) for before, after in pairwise(side))
        if len(fpr) != len(tpr) or falls:
            raise ArtifactError(f"{place}: two lists of equal length that never fall are expected")
        return cls(fpr, tpr)


def counted(value: Any, place: str, *, minimum: int = 0, maximum: int = MAX_COUNT) -> int:
    """Check that a value is a count in range."""
    count = whole(value, place, minimum=minimum)
    if count > maximum:
        raise ArtifactError(f"{place}: a whole number of at most {maximum} is expected")
    return count


def said(value: Any, place: str) -> str:
    """Check that a value is text, and no book."""
    words = text(value, place)
    if len(words) > MAX_TEXT_LENGTH:
        raise ArtifactError(f"{place}: at most {MAX_TEXT_LENGTH} characters are expected")
    return words


def share(value: Any, place: str) -> float:
    """Check that a value is a number from 0 to 1."""
    return within(value, place, 1.0)


def within(value: Any, place: str, maximum: float) -> float:
    """Check that a value is a number from 0 to ``most``."""
    figure = number(value, place, above=-HUGE)
    if not 0 <= figure <= maximum:
        raise ArtifactError(f"{place}: a number from 0 to {maximum:g} is expected")
    return figure
