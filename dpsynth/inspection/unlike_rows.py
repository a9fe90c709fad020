"""Rows that are unlike all others: totals, other footers, and lines that explain the header.

No word is looked for. A row stands out by the kinds of characters of its key, such as letters
where all other keys are digits, and by columns that are valid in all other rows and not in it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpsynth._util.formatting import counted
from dpsynth.encoding.column_codecs import Kind
from dpsynth.inspection.column_check import Kinds
from dpsynth.inspection.findings import (
    BLANK,
    LIMITS,
    MIN_SERIOUS,
    SEVERAL,
    SWALLOWED,
    TABLE,
    UNLIKE,
    Finding,
    Level,
    share_text,
)
from dpsynth.schema import PrivacyUnit
from dpsynth.tables.records import (
    HEADERS,
    JOINED,
    LONG,
    QUOTES,
    SHORT,
    Lines,
    RecordLog,
    character_kinds,
)
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]

ALONE = 2  # columns in which an outermost row has to stand alone, if its key is like the others


@dataclass
class _Span:
    """How many rows there are of something, and which are the first and the last of them."""

    rows: int = 0
    first: int = -1
    last: int = -1

    def add(self, places: Ints) -> None:
        if len(places):
            self.first = int(places[0]) if self.first < 0 else self.first
            self.last = int(places[-1])
            self.rows += len(places)


@dataclass
class _Column:
    """The cells of a column that are not valid, by the kind of their row's key."""

    span: _Span = field(default_factory=_Span)
    of_kind: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Unlike:
    """A finding, and which are the first and the last of its rows."""

    first: int
    last: int
    finding: Finding


class UnlikeRows:
    """Compares each row with all others, chunk by chunk; a few numbers are kept of each column.

    Attributes:
        footer: the first of the rows at the end that `findings` has found to be unlike all others.
    """

    def __init__(self, unit: PrivacyUnit) -> None:
        """Begin with no row, and take whether rows have keys, and count without one."""
        self._keyed, self._own = unit.column is not None, unit.missing_key == "own"
        self._numbers: dict[frozenset[str], int] = {}  # of the kinds of keys
        self._kind_of_unit = array("q")
        self._spans: list[_Span] = []
        self._columns: dict[str, _Column] = {}
        self._counting = _Span()  # rows of a unit
        self._empty = _Span()  # those of them without a valid cell
        self._outer: dict[str, bool] = {}  # whether the first and last row have such a cell
        self._rows = 0  # of the table
        self._total = 0  # of those that were taken
        self.footer: int | None = None

    def add(
        self, units: Ints, rows: Ints, kinds: Mapping[str, Kinds], new_keys: Sequence[str]
    ) -> None:
        """Take the rows of a chunk.

        Args:
            units: the unit of each.
            rows: the place of each in the table.
            kinds: what the cells of each modelled column are.
            new_keys: of the units that appear for the first time, by their numbers.
        """
        of_row = np.full(len(rows), NO_KEY, dtype=np.int64)
        if self._keyed:
            for key in new_keys:
                number = self._numbers.setdefault(character_kinds(key), len(self._numbers))
                self._kind_of_unit.append(number)
            while len(self._spans) < len(self._numbers):
                self._spans.append(_Span())
            keyed = units != NO_KEY
            of_row[keyed] = np.frombuffer(self._kind_of_unit, dtype=np.int64)[units[keyed]]
            for number in np.unique(of_row[of_row != NO_KEY]).tolist():
                self._spans[number].add(rows[of_row == number])
        wrong_of_row = np.zeros(len(rows), dtype=bool)
        wrong_in_all = np.full(len(rows), len(kinds) >= ALONE)
        for name, cells in kinds.items():
            wrong = cells != Kind.VALID
            wrong_of_row |= wrong
            wrong_in_all &= wrong
            if wrong.any():
                column = self._columns.setdefault(name, _Column())
                column.span.add(rows[wrong])
                numbers, counts = np.unique(of_row[wrong], return_counts=True)
                for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                    column.of_kind[number] = column.of_kind.get(number, 0) + count
        of_unit = np.full(len(rows), True) if self._own else units != NO_KEY
        self._counting.add(rows[of_unit])
        self._empty.add(rows[wrong_in_all & of_unit])
        if of_unit.any():
            self._outer.setdefault("start", bool(wrong_of_row[of_unit][0]))
            self._outer["end"] = bool(wrong_of_row[of_unit][-1])
        if len(rows):
            self._rows = int(rows[-1]) + 1
        self._total += len(rows)

    def findings(self, where: Callable[[int], str]) -> list[Finding]:
        """Judge the rows.

        Args:
            where: names the place of a row, counted from 0, such as its line.
        """
        if self._rows <= MIN_SERIOUS:
            return []
        found: list[_Unlike] = []
        every = [*self._ends(where), *self._kinds(where), *self._without_cells(where)]
        for one in every:  # each row is in one finding
            if not any(one.first <= other.last and other.first <= one.last for other in found):
                found.append(one)
        ends = [one.first for one in found if one.last == self._counting.last]
        self.footer = min(ends, default=None)
        return [one.finding for one in found]

    def _ends(self, where: Callable[[int], str]) -> list[_Unlike]:
        """Judge rows at the end, and at the start, whose keys are unlike all others."""
        found: list[_Unlike] = []
        spans = [one for one in self._spans if one.rows]
        if spans:
            last, first = max(one.last for one in spans), min(one.first for one in spans)
            tails = [
                one.first
                for one in spans
                if not any(o.first < one.first <= o.last for o in spans)
                and self._are_few(last - one.first + 1)
            ]
            heads = [
                one.last
                for one in spans
                if not any(o.first <= one.last < o.last for o in spans)
                and self._are_few(one.last - first + 1)
            ]
            if tails and (tail := min(tails)) > first:
                columns = sum(one.span.first >= tail for one in self._columns.values())
                found.append(self._unlike(tail, last, columns, "end", where(tail)))
            if heads and (head := max(heads)) < last:
                columns = sum(one.span.last <= head for one in self._columns.values())
                found.append(self._unlike(first, head, columns, "start", where(first)))
        found += [*self._block(where, at_end=True), *self._block(where, at_end=False)]
        return sorted(found, key=lambda one: -one.finding.level)

    def _are_few(self, rows: int) -> bool:
        """Whether so many rows may be a footer; more are another form of keys, from some row on."""
        return rows == 1 or rows <= LIMITS[UNLIKE].warning * self._rows

    def _block(self, where: Callable[[int], str], *, at_end: bool) -> list[_Unlike]:
        """Judge outermost rows that lack a valid cell in columns where all other rows have one."""
        outermost = self._counting.last if at_end else self._counting.first
        blocks = Counter(
            (one.span.first, one.span.last)
            for one in self._columns.values()
            if one.span.rows == one.span.last - one.span.first + 1
            and (one.span.last if at_end else one.span.first) == outermost
        )
        wide = [
            (last - first + 1, first, last)
            for (first, last), columns in blocks.items()
            if columns >= ALONE and self._are_few(last - first + 1)
        ]
        if not wide:
            return []
        rows, first, last = max(wide)
        columns, place = blocks[first, last], "the end" if at_end else "the start"
        if rows == 1:
            message = (
                f"1 row at {place} ({where(first)}) has {counted(columns, 'cell')} that are "
                "missing or do not fit, in columns where all other rows are valid"
            )
        else:
            message = (
                f"{counted(rows, 'row')} at {place} (first: {where(first)}) have no valid cell in "
                f"{counted(columns, 'column')} where all other rows are valid"
            )
        # Several rows may be those that are not complete yet, unless one is empty.
        serious = rows == 1 or (at_end and self._empty.last == last)
        level = Level.SERIOUS if serious else Level.WARNING
        return [_Unlike(first, last, self._finding(rows, level, message))]

    def _without_cells(self, where: Callable[[int], str]) -> list[_Unlike]:
        """Judge rows in which no column is valid, at the end of the table."""
        span = self._empty
        if not span.rows or span.last < self._counting.last or span.last - span.first >= span.rows:
            return []
        finding = self._finding(
            span.rows,
            Level.SERIOUS,
            f"{counted(span.rows, 'row')} at the end (first: {where(span.first)}) "
            f"{'has' if span.rows == 1 else 'have'} no valid cell in any column",
        )
        return [_Unlike(span.first, span.last, finding)]

    def _unlike(self, first: int, last: int, columns: int, place: str, line: str) -> _Unlike:
        """Judge outer rows by their keys, and by columns where only they are not valid."""
        rows = last - first + 1
        alone = rows == 1 and self._outer[place]  # no total is valid in every column
        level = Level.SERIOUS if alone or columns else Level.WARNING
        verb = "has a key" if rows == 1 else "have keys"
        they = "it is" if rows == 1 else "they are"
        beside = f", and {counted(columns, 'column')} where only {they} not valid"
        finding = self._finding(
            rows,
            level,
            f"{counted(rows, 'row')} at the {place} ({line}) {verb} of other characters than "
            f"all other rows{beside if columns else ''}",
        )
        return _Unlike(first, last, finding)

    def _kinds(self, where: Callable[[int], str]) -> list[_Unlike]:
        """Judge keys of one kind, wherever they are: rows like no other row in some column."""
        found: list[_Unlike] = []
        most = max(self._spans, key=lambda one: one.rows, default=None)
        for number, span in enumerate(self._spans):
            few = span.rows <= LIMITS[UNLIKE].warning * self._rows
            one_key = self._kind_of_unit.count(number) == 1
            if span is most or not span.rows or not (few or one_key):
                continue
            columns = sum(
                one.span.rows == span.rows == one.of_kind.get(number, 0)
                for one in self._columns.values()
            )
            if columns:
                have, they = ("has", "it is") if span.rows == 1 else ("have", "they are")
                finding = self._finding(
                    span.rows,
                    Level.SERIOUS,
                    f"{counted(span.rows, 'row')} (first: {where(span.first)}) {have} a key of "
                    "other characters than all other rows, and "
                    f"{counted(columns, 'column')} where only {they} not valid",
                )
                found.append(_Unlike(span.first, span.last, finding))
        return found

    def _finding(self, rows: int, level: Level, message: str) -> Finding:
        counts = "counts as a patient" if rows == 1 else "count as patients"
        return Finding(
            TABLE,
            UNLIKE,
            level,
            f"{message}; a fit {'takes it for a row' if rows == 1 else 'takes them for rows'} like "
            f"all others, so what is no patient {counts}",
            rows,
            self._total,
            "a total, another footer, or a second line of the header? Remove "
            f"{'it' if rows == 1 else 'these rows'} from the extract",
        )


_STOPS = "; a fit stops"


def record_findings(log: RecordLog, footer: int = 0) -> list[Finding]:
    """List what is wrong with the records of a file, each with its first line and no cell.

    Args:
        log: of the records.
        footer: the line of the first row of those at the end that are unlike all others, and not
            records of patients; 0 for none.
    """
    return [*_irregular(log, footer or log.last_regular + 1), *_of_cells(log)]


def _irregular(log: RecordLog, footer: int) -> list[Finding]:
    words = {
        SHORT: ("have fewer fields than the header", _short(log, footer)),
        LONG: ("have more fields than the header", _long(log)),
        QUOTES: (
            "have quotes that match no record",
            "a quote that is opened and never closed, or one in the middle of a quoted cell? Let "
            "the source write a quote in a cell twice; or, if it puts no cell between quotes, set "
            'at the end of the schema: dpsynth: {dialect: {quote: ""}}',
        ),
        HEADERS: (
            "repeat the header",
            "leave out the header of all files but the first when you join files",
        ),
        JOINED: (
            "begin with a byte order mark, as a file does",
            "join files without their byte order marks, and without the headers of all but the "
            "first",
        ),
    }
    return [
        _finding(kind, Level.SERIOUS, log.irregular[kind], log.records, what + _STOPS, remedy)
        for kind, (what, remedy) in words.items()
        if log.irregular[kind].count
    ]


def _of_cells(log: RecordLog) -> list[Finding]:
    found = []
    if log.swallowed.count:
        found.append(
            _finding(
                SWALLOWED,
                Level.SERIOUS,
                log.swallowed,
                log.lines,
                "stand between two quotes in one cell and look like records of their own; a fit "
                "does not see these records",
                "a quote that is opened and not closed where its cell ends? Let the source write a "
                "quote in a cell twice; or, if it puts no cell between quotes, set at the end of "
                'the schema: dpsynth: {dialect: {quote: ""}}',
            )
        )
    if log.several.count:
        found.append(
            _finding(
                SEVERAL,
                Level.NOTE,
                log.several,
                log.records,
                "have a cell that spans several lines",
                "nothing is to be done if a column of notes holds line breaks",
            )
        )
    if log.blank.count:
        found.append(
            _finding(
                BLANK,
                Level.NOTE,
                log.blank,
                log.lines,
                "are blank, between records; a fit leaves them out",
                "is a part of the extract lost there, or a page break? If not, nothing is to be "
                "done",
            )
        )
    return found


def _short(log: RecordLog, footer: int) -> str:
    short = log.irregular[SHORT]
    if log.lacking_last == short.count:
        return (
            f"the header ends in a separator, so column {log.width} has no name, and the records "
            "do not: let the source write both alike"
        )
    if short.first >= footer > 1:
        remove = "a footer, such as a total or a number of rows? Remove"
        if not log.begun.count:
            return f"{remove} {'this line' if short.count == 1 else 'these lines'} at the end"
        cut = f"line {log.begun.first:,} begins as a record and is not complete"
        if log.begun.count == short.count == 1:
            return f"{cut}: is the file cut off there? Export or copy it again"
        return f"{cut}: is the file cut off there? Export or copy it again. Or {remove} these lines"
    for sign, count in log.other_separator.items():
        if 2 * count > log.irregular[SHORT].count:
            return f"they have {sign!r} as separator: let the source write one separator"
    return (
        "a line break inside a cell without quotes? Let the source write such cells between "
        "quotes; if it leaves out empty cells at the end of a line, let it write every separator"
    )


def _long(log: RecordLog) -> str:
    if log.trailing == log.irregular[LONG].count:
        return "they end in a separator, and the header does not: let the source write both alike"
    return (
        "a separator inside a cell without quotes, such as a decimal comma? Let the source write "
        "such cells between quotes, or use another separator and declare it"
    )


def _finding(
    kind: str, level: Level, lines: Lines, total: int, message: str, remedy: str
) -> Finding:
    what, semicolon, effect = message.partition(";")
    first = f"{what} (first: line {lines.first:,})"
    return Finding(
        TABLE,
        kind,
        level,
        f"{share_text(lines.count, total, 'line')} {first}{semicolon}{effect}",
        lines.count,
        total,
        remedy,
    )
