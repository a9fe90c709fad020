"""precision.csv: how precisely columns, groups and pairs of columns were measured.

All of it follows from what the fit released: noisy counts, whose noise has a known scale. People
are privacy units; where each row was counted on its own, they are rows. One line is one of these:

- ``column``: every code of the column was counted, each with this standard error;
- ``group``: one declared category, with its estimated number of people;
- ``pair``: two columns, whose ``cells`` were counted together, or only a ``trend`` (one number for
  each pair of scores), or ``no``: nothing was measured, so the table says nothing of their
  relation that does not follow from others. A line of ``*`` and ``*`` is about all pairs that are
  not listed;
- ``fit``: how many of the measured cells the model misses by more than 3 standard errors.

``times_noise`` says by how many standard errors a typical cell stands out: of a column from no
people, of a pair from what independent columns would give. A count is known to within a tenth (one
standard error) from ``readable_from`` people on.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Self

from dpsynth._util.strict_json import HUGE, names
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError
from dpsynth.models.presets import AGAIN, ONE_WAY, PAIRS
from dpsynth.privacy import ChosenHistograms, Event, JointHistograms
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.schema import Schema, coded_schema

COLUMN, GROUP, PAIR, FIT = "column", "group", "pair", "fit"
KINDS = (FIT, COLUMN, GROUP, PAIR)
COUNTS, CELLS, TREND, NO = "counts", "cells", "trend", "no"
EVERY = "*"
CLEAR = 3.0  # standard errors from which something stands above its noise
READABLE = 10.0  # standard errors of a count that is known to within a tenth
MAX_LINES = 100_000
_ROOM = 1.01  # rounding of what is written with four digits


@dataclass(frozen=True)
class PrecisionLine:
    """One line of the file; a field that says nothing is empty, or None.

    Attributes:
        kind: one of `KINDS`.
        column: name of the column.
        other: of a pair, the other one.
        group: of a group, its category.
        measured: ``counts``, ``cells``, ``trend`` or ``no``.
        cells: that were counted.
        missed: of them, those that the model misses by more than 3 standard errors.
        standard_error: of one count, in people.
        people: estimated number of people in a group.
        times_noise: how many standard errors a typical cell stands out.
        stands_out: ``yes`` or ``no``: whether it is more than noise makes.
        readable_from: number of people from which a count is known to within a tenth.
    """

    kind: str
    column: str = ""
    other: str = ""
    group: str = ""
    measured: str = ""
    cells: int | None = None
    missed: int | None = None
    standard_error: float | None = None
    people: float | None = None
    times_noise: float | None = None
    stands_out: str = ""
    readable_from: int | None = None

    @property
    def texts(self) -> list[str]:
        """Its fields as they are written: numbers with four digits."""
        return ["" if value is None else _text(value) for value in astuple(self)]


HEAD = names(PrecisionLine)
NUMBERS: dict[str, type[int] | type[float]] = {
    **dict.fromkeys(("cells", "missed", "readable_from"), int),
    **dict.fromkeys(("standard_error", "people", "times_noise"), float),
}


@dataclass(frozen=True)
class Precision:
    """The lines of the file, in its order.

    Attributes:
        lines: of the fit, the columns, groups and pairs.
    """

    lines: tuple[PrecisionLine, ...]

    def of(self, kind: str) -> Iterator[PrecisionLine]:
        """Yield the lines of a kind."""
        return (line for line in self.lines if line.kind == kind)

    def to_csv(self) -> bytes:
        """Write the file; the same lines give the same bytes.

        >>> line = PrecisionLine(COLUMN, "age", measured=COUNTS, cells=9, standard_error=12.34)
        >>> print(Precision((line,)).to_csv().decode().splitlines()[1])
        column,age,,,counts,9,,12.34,,,,
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(line.texts for line in self.lines)
        return text.getvalue().encode()

    @classmethod
    def from_csv(cls, content: bytes, place: str) -> Self:
        """Read strictly what ``to_csv`` wrote.

        Raises:
            ArtifactError: a line has another number of fields, or a field is not what it is called.
        """
        try:
            rows = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ArtifactError(f"{place} cannot be read as CSV") from error
        if not rows or tuple(rows[0]) != HEAD:
            raise ArtifactError(f"{place} does not begin with the names of its fields")
        if len(rows) > MAX_LINES + 1:
            raise ArtifactError(f"{place} has more than {MAX_LINES:,} lines")
        lines = (_read(row, f"{place}, line {n}") for n, row in enumerate(rows[1:], start=2))
        return cls(tuple(lines))

    def problems(self, schema: Schema, certificate: Certificate) -> list[str]:
        """List what does not follow from the schema and the certificate's events."""
        columns = coded_schema(schema).modelled
        known = [column.name for column in columns]
        events = {event.name: event for event in certificate.events}
        problems = []
        if [line.column for line in self.of(COLUMN)] != known:
            problems.append("does not list each column of the synthetic table once, in order")
        levels = {column.name: column.levels for column in columns if column.is_categorical}
        if any(line.group not in levels.get(line.column, ()) for line in self.of(GROUP)):
            problems.append("names a group that the schema does not declare")
        keys = [(line.kind, *sorted((line.column, line.other)), line.group) for line in self.lines]
        if len(keys) > len({*keys}):
            problems.append("lists a column, a group or a pair twice")
        error = error_of(events.get(ONE_WAY))
        own = [line for line in self.lines if line.kind in (COLUMN, GROUP)]
        if error is None or any(line.standard_error != error for line in own):
            problems.append("has another noise of counts than the certificate's events")
        named = [{line.column, line.other} for line in self.of(PAIR)]
        pairs = [line for line in self.of(PAIR) if line.measured == CELLS]
        if any(not pair <= {*known} for pair in named if pair != {EVERY}):
            problems.append("names a pair of columns that the synthetic table does not have")
        spent = sum(line.standard_error**-2 if line.standard_error else math.inf for line in pairs)
        if spent > _ROOM * pairs_precision(events.get(PAIRS), events.get(AGAIN)):
            problems.append("has less noise of pairs than the certificate's events")
        if PRODUCTS not in events and any(line.measured == TREND for line in self.of(PAIR)):
            problems.append("names a trend that no event of the certificate measured")
        return problems


def error_of(event: Event | None) -> float | None:
    """Return the standard error of a count of the one-way event, in people, as it is written.

    Args:
        event: of the plan; None if it has none.
    """
    return rounded(event.relative_noise) if isinstance(event, JointHistograms) else None


def pairs_precision(*events: Event | None) -> float:
    """Return the largest sum of 1 / s^2 over the pairs that events may measure, s in people.

    `ChosenHistograms.covers` bounds the sum of mass^2 / sigma^2 of all pairs of an event; noise of
    sigma in counts is sigma / mass in people, or sigma in rows where each row counts 1.
    """
    known = [event for event in events if isinstance(event, ChosenHistograms)]
    moved = [event.mass / (event.unit_mass or 1) for event in known]  # by a unit, at most
    errors = [event.noise_multiplier * one for event, one in zip(known, moved, strict=True)]
    return sum(error**-2 for error in errors)


def rounded(value: float) -> float:
    """Round to the four digits that are written.

    >>> rounded(123.456), rounded(0.0123456)
    (123.5, 0.01235)
    """
    return float(f"{value:.4g}")


def _text(value: object) -> str:
    return repr(rounded(value)) if isinstance(value, float) else str(value)


def _read(row: list[str], place: str) -> PrecisionLine:
    """Read one line: each field by its type."""
    if len(row) != len(HEAD):
        raise ArtifactError(f"{place} has {len(row)} fields; {len(HEAD)} are expected")
    values: dict[str, str | int | float | None] = {}
    for name, text in zip(HEAD, row, strict=True):
        if name not in NUMBERS:
            values[name] = text
            continue
        try:
            value = NUMBERS[name](text) if text else None
        except ValueError:
            raise ArtifactError(f"{place}: {name} is not a number") from None
        if value is not None and not 0 <= value < HUGE:
            raise ArtifactError(f"{place}: {name} is out of range")
        values[name] = value
    line = PrecisionLine(**values)  # type: ignore[arg-type]
    if line.kind not in KINDS or line.measured not in ("", COUNTS, CELLS, TREND, NO):
        raise ArtifactError(f"{place} is of no known kind")
    if line.stands_out not in ("", "yes", "no"):
        raise ArtifactError(f"{place}: stands_out is yes or no")
    return line
