"""What the cells of one column are: shares by kind, and findings with their likely causes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth.encoding.column_codecs import Coder, Kind, coder_of
from dpsynth.inspection import hints
from dpsynth.inspection.causes import (
    REST_WORDS,
    Suspects,
    clipped_causes,
    date_causes,
    date_of_gap,
    gap_causes,
    number_causes,
    plain_text,
    truth_causes,
    unknown_causes,
)
from dpsynth.inspection.findings import (
    ABSENT,
    CLIPPED,
    LIMITS,
    ROLLED_UP,
    UNKNOWN,
    UNREADABLE,
    Cause,
    Finding,
    share_text,
)
from dpsynth.inspection.kept import Replaced
from dpsynth.schema import Column
from dpsynth.schema.column import MISSING, OTHER, REFUSE
from dpsynth.schema.relations import Interval
from dpsynth.tables import distinct, read_cells, texts_of, trimmed

MAX_VALID = 5_000  # valid values of a numeric column that are kept, the first ones

Kinds = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


def times(places: npt.NDArray[np.integer], size: int, numbers: Ints | None) -> Ints:
    """Return how often each place is there, ``[size]``.

    >>> times(np.array([2, 0, 2]), 3, np.array([5, 1, 1])).tolist()
    [1, 0, 6]
    """
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, places, 1 if numbers is None else numbers)
    return found


def _some(places: Ints, numbers: Ints) -> Ints:
    """Return some of the places, each as often as its share of all says; all if they are few."""
    total = int(numbers[places].sum())
    if total <= MAX_VALID:
        return np.repeat(places, numbers[places])
    return np.repeat(places, np.ceil(numbers[places] * (MAX_VALID / total)).astype(np.int64))


@dataclass(frozen=True)
class CellShares:
    """Shares of a column's cells that the codec does not take as they stand.

    Attributes:
        missing: absent, or a declared missing value; where the column is required, too.
        clipped: outside the declared bounds.
        unknown: a category that is not declared.
        bad: not of the declared type.
    """

    missing: float
    clipped: float
    unknown: float
    bad: float


class ColumnCheck:
    """Counts the cells of one column, chunk by chunk."""

    def __init__(
        self,
        column: Column,
        decimal: str,
        dates: tuple[Column, Column] | None = None,
        *,
        days: bool = False,
    ):
        """Take the declaration; nothing is counted.

        Args:
            column: as it is coded.
            decimal: the declared decimal sign.
            dates: of a gap, the date that it is declared for, and the one that it leans on.
            days: whether a fit keeps the day of a date and time alone.
        """
        self.column, self.dates = column, dates
        self.interval: Interval | None = None if dates is None else dates[0].interval
        self.coder: Coder = coder_of(column, decimal)
        self.counts = np.zeros(len(Kind), dtype=np.int64)
        self.suspects = Suspects(column, decimal)
        self.replaced = Replaced(column if dates is None else dates[0], decimal, days=days)

    def add(
        self,
        cells: pd.Series[Any],
        units: pd.Series[Any] | None = None,
        dates: pd.Series[Any] | None = None,
        numbers: Ints | None = None,
        base: pd.Series[Any] | None = None,
    ) -> Kinds:
        """Count the cells of a chunk, and return the `Kind` of each.

        Args:
            cells: of the column as it is coded.
            units: of the column that names the unit of each cell, if there is one.
            dates: of a gap, the cells that the table has for it.
            numbers: how often each cell is there; once if None.
            base: of a gap, the cells of the date that it leans on.
        """
        kinds = self.coder.kinds(cells, units)
        if self.dates is None:
            self.replaced.add(cells, kinds, units, None, numbers)
        elif dates is not None and base is not None:
            self.replaced.add(dates, kinds, None, (base, self.dates[1]), numbers)
        self.counts += times(kinds, len(Kind), numbers)
        for kind in (Kind.CLIPPED, Kind.UNKNOWN, Kind.BAD):
            places = np.flatnonzero(kinds == kind)
            if len(places) and kind is Kind.BAD and self.dates is not None and dates is not None:
                unread = places[self._unreadable(dates.iloc[places])]
                self._keep(kind, dates, unread, numbers)
            elif len(places):
                self._keep(kind, cells, places, numbers)
        if not self.column.is_categorical and len(self.suspects.valid) < MAX_VALID:
            places = np.flatnonzero(kinds == Kind.VALID)
            places = places[:MAX_VALID] if numbers is None else _some(places, numbers)
            values = read_cells(cells.iloc[places], self.column, self.suspects.decimal)[0]
            self.suspects.valid = np.append(self.suspects.valid, values)
        return kinds

    def _unreadable(self, cells: pd.Series[Any]) -> Ints:
        """Return which dates of a gap cannot be read; the others lean on one that cannot."""
        assert self.dates is not None
        values, missing = read_cells(cells, self.dates[0], self.suspects.decimal)
        return np.flatnonzero(~(np.isfinite(values) | missing))

    def _keep(self, kind: Kind, cells: pd.Series[Any], places: Ints, numbers: Ints | None) -> None:
        boolean = self.column.kind.is_truth
        of_kind = cells.iloc[places]
        texts = trimmed(texts_of(of_kind, decimal=self.suspects.decimal, boolean=boolean))
        of_text, words = distinct(texts)
        here = of_text >= 0
        each = None if numbers is None else numbers[places][here]
        self.suspects.add(kind, words, times(of_text[here], len(words), each).tolist())

    @property
    def shares(self) -> CellShares:
        """Shares of all cells."""
        total = int(self.counts.sum())
        share = (self.counts / max(total, 1)).tolist()
        return CellShares(
            missing=share[Kind.MISSING],
            clipped=share[Kind.CLIPPED],
            unknown=share[Kind.UNKNOWN],
            bad=share[Kind.BAD],
        )

    def findings(self) -> list[Finding]:
        """List what is wrong with the cells, with likely causes; a clean column has none."""
        valid, missing, clipped, unknown, bad = self.counts.tolist()
        filled = valid + clipped + unknown + bad
        findings = []
        if bad:
            findings.append(self._finding(UNREADABLE, Kind.BAD, bad, filled, bad + unknown))
        if unknown:
            findings.append(self._finding(UNKNOWN, Kind.UNKNOWN, unknown, filled, bad + unknown))
        if clipped:
            findings.append(self._finding(CLIPPED, Kind.CLIPPED, clipped, filled, clipped))
        if missing and self.column.required:
            total = filled + missing
            findings.append(
                Finding(
                    self.column.name,
                    ABSENT,
                    LIMITS[ABSENT].level(missing / total, missing),
                    f"is required, but {share_text(missing, total)} are missing; a fit "
                    f"{_becomes(self.column.on_bad)}",
                    missing,
                    total,
                    "leave out required, or complete the extract",
                )
            )
        return [*findings, *self.replaced.finding(self.counts)]

    def _finding(self, word: str, kind: Kind, count: int, total: int, judged: int) -> Finding:
        """Make a finding; the level of unknown and unreadable cells follows from both together."""
        level = LIMITS[word].level(judged / total, judged)
        if word == UNKNOWN and _is_rolled_up(self.column):
            level = ROLLED_UP.level(judged / total, judged)
        texts = self.suspects.of_kind.get(kind, Counter())
        verb, what = self._words(kind)
        causes = self._causes(kind, total - judged > 0)
        remedy = "" if causes else self._remedy(kind)
        values = f", {counted(len(texts), 'different value')}" if texts else ""
        return Finding(
            self.column.name,
            word,
            level,
            f"{share_text(count, total)} {verb}{values}; a fit {what}",
            count,
            total,
            remedy,
            causes,
            count - texts.total(),
        )

    def _words(self, kind: Kind) -> tuple[str, str]:
        """Say what is wrong with cells, and what a fit does with them."""
        policy = {Kind.BAD: self.column.on_bad, Kind.UNKNOWN: self.column.on_unknown}.get(kind)
        what = "moves them to the nearest bound" if policy is None else _becomes(policy)
        return _VERBS[kind], what

    def _causes(self, kind: Kind, readable: bool) -> tuple[Cause, ...]:
        texts, column = self.suspects.of_kind.get(kind, Counter[str]()), self.column
        if kind is Kind.BAD and self.dates is not None:
            own = Suspects(date_of_gap(*self.dates), self.suspects.decimal)
            return date_causes(own, texts, readable=readable)
        if kind is Kind.CLIPPED and self.interval is not None:
            return gap_causes(self.interval, texts)
        if kind is Kind.CLIPPED:
            return clipped_causes(self.suspects, texts)
        if kind is Kind.UNKNOWN:
            return unknown_causes(self.suspects, texts)
        if column.is_categorical and column.kind.is_number and column.labels:
            return unknown_causes(self.suspects, texts) or number_causes(self.suspects, texts)
        if column.kind.is_truth:
            return truth_causes(self.suspects, texts)
        if column.kind.is_point:
            return date_causes(self.suspects, texts, readable=readable)
        return number_causes(self.suspects, texts)

    def _remedy(self, kind: Kind) -> str:
        """Say what to do where no cause was found."""
        if kind is not Kind.BAD or self.dates is None:
            return _remedy(kind, self.column)
        own, base = self.dates
        if self.suspects.of_kind.get(kind):
            return _remedy(kind, own)
        return f"it is counted from {base.name}, which cannot be read there: correct that column"


_VERBS = {
    Kind.BAD: "are unreadable",
    Kind.UNKNOWN: "are unknown",
    Kind.CLIPPED: "are outside the bounds",
}


def _is_rolled_up(column: Column) -> bool:
    """Whether the schema lists a category for the rest, so that unknown cells are expected."""
    target = column.on_unknown
    listed = target in (column.categories or ()) or (column.nullable and target == OTHER)
    return listed and plain_text(target) in REST_WORDS


def _becomes(policy: str) -> str:
    """Say what a fit makes of cells, by a column's policy."""
    if policy == REFUSE:
        return "stops at the first of them"
    words = {MISSING: "missing", "minimum": "the minimum", "maximum": "the maximum"}
    return f"makes them {words.get(policy) or repr(policy)}"


def _remedy(kind: Kind, column: Column) -> str:
    """Say what to do where no cause was found."""
    if kind is Kind.CLIPPED:
        return "compare the bounds with their source (bounds_basis), and the extract with its unit"
    if kind is Kind.UNKNOWN:
        collected = column.on_unknown in (OTHER, *(column.categories or ()))
        other = "" if collected or not column.kind.is_text else f"; {hints.REST}"
        return f"compare the list of categories or codes with the coding manual{other}"
    return f"compare the extract with the declared type, {column.type}"
