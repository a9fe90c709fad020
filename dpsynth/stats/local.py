"""The local model: the law of perturbed answers, their files, and what they say of all people.

Each person's answers are randomised at the source (`dpsynth.stats.perturbing`), where no curator is
trusted. Nobody collects a private row: so no ledger is charged, and what each person spends is
written beside the answers.

**Randomisers.** A randomiser has privacy epsilon in the local model if no report is more than
e^epsilon times as likely from one category as from another. Write R for a rational number of at
most e^epsilon.

**Randomised response** among k categories reports the own one with probability p = R / (R + k - 1)
and each other with q = 1 / (R + k - 1). A report v has probability p from v and q from any other
category, so two categories differ by p / q = R at most. Source: Kairouz, Oh, Viswanath (2014),
arXiv 1407.1338.

**Optimised unary encoding** reports a bit for each category, drawn independently: 1 with p = 1 / 2
for the own one and with q = 1 / (R + 1) for each other. Two categories u and v differ in two bits
alone. The ratio is largest where the bit of u is 1 and that of v is 0: p (1 - q) / (q (1 - p)),
which is (1 - q) / q = R. Source: Wang, Blocki, Li, Jha (USENIX Security 2017), section 4.2.

**Exactness.** R is e^epsilon rounded *down* to a multiple of 2^-24, from 60 decimal digits. All
probabilities are ratios of whole numbers, and each draw is one uniform whole number below the
denominator: no float rounds a probability, and the ratio R is kept exactly.

**The choice.** A category that nobody has is reported with probability q, so n reports estimate
its count with variance n q (1 - q) / (p - q)^2. The randomiser with the lower variance is used;
that is randomised response where k - 2 is at most 3 R. It follows from k and epsilon alone, which
are public.

Several columns: their reports are drawn independently, so the ratios multiply and the epsilons of
the columns add up to that of the person.

**Files.** A table of reports is a CSV file. A cell of randomised response is the label of the
reported category; one of unary encoding is text of 0 and 1, a bit for each category in their order.
The settings beside it (``NAME.csv.json``) hold what was public before anyone answered: columns,
categories, randomisers and epsilons.

**Estimates.** Of n people, m have a category; a report speaks for it with probability p from one of
them and q from anyone else (see `Randomiser`). If c reports speak for it, then

    (c - n q) / (p - q)

has mean m: it is unbiased, and may lie below 0 or above n.

**The interval of the count** is about these n people and covers the randomisation alone. c is a
sum of two binomials, with variance m p (1 - p) + (n - m) q (1 - q). The interval holds each m whose
mean is within z standard deviations of c, of the variance at that very m, after half a report is
taken off (Wilson's score interval with continuity correction).

**The interval of the share** is about the population, if the people are an independent sample of
it. Each report then speaks for the category with probability t p + (1 - t) q where t is the share,
so c is binomial. Clopper and Pearson's interval of that probability, moved back to t, holds t with
at least the confidence, whatever n is: it covers both the sampling and the randomisation.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import counted, figure, figure_at_most
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    as_object,
    check_format,
    check_keys,
    matching,
    number,
    read_document,
    several,
    text,
    texts,
    written,
)
from dpsynth._util.whole_files import csv_cells_up_to
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, DpsynthError, InputError, TableError
from dpsynth.files import atomic_file, cannot_read, check_vacant, write_new
from dpsynth.privacy import Entropy, Event, exactly
from dpsynth.stats.answer_request import AnswerRequest, Kind, Numbers, Result
from dpsynth.tables.checks import check_file

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

RESPONSE, UNARY = "randomised response", "unary encoding"
MECHANISMS = (RESPONSE, UNARY)
MAX_CATEGORIES = 4096
MIN_EPSILON, MAX_EPSILON = 0.001, 20.0
_PARTS = 2**24  # of R; R + k - 1 parts fit into 64 bits
_DIGITS = Context(prec=60)
_BLOCK = 2**21  # draws at a time

FORMAT, VERSION = "dpsynth-local", 1
_KEYS = ("format", "version", "schema", "epsilon", "columns", "stamps")
_ROOM = 10_000_000  # letters of a cell; unary encoding has a few thousand
TABLE = "estimates"


@dataclass(frozen=True)
class Randomiser:
    """How one column is perturbed.

    Attributes:
        kind: `RESPONSE` or `UNARY`.
        size: how many categories there are, k.
        epsilon: what a report costs.
    """

    kind: str
    size: int
    epsilon: float

    def __post_init__(self) -> None:
        """Refuse what has no exact law here.

        Raises:
            InputError: too few or too many categories, or an epsilon out of range.
        """
        if self.kind not in MECHANISMS:
            raise InputError(f"a randomiser is one of {', '.join(MECHANISMS)}")
        if not 2 <= self.size <= MAX_CATEGORIES:
            raise InputError(
                f"a column that is perturbed has 2 to {MAX_CATEGORIES:,} categories, not "
                f"{self.size:,}"
            )
        if not MIN_EPSILON <= self.epsilon <= MAX_EPSILON:
            raise InputError(
                f"the epsilon of a column in the local model lies between {MIN_EPSILON:g} and "
                f"{MAX_EPSILON:g}"
            )

    @classmethod
    def chosen(cls, size: int, epsilon: float) -> Self:
        """Return the randomiser of the lower variance, by public facts.

        Raises:
            InputError: too few or too many categories, or an epsilon out of range.

        Example:
            >>> Randomiser.chosen(2, 1.0).kind, Randomiser.chosen(100, 1.0).kind
            ('randomised response', 'unary encoding')
        """
        return min((cls(kind, size, epsilon) for kind in MECHANISMS), key=lambda one: one.variance)

    @cached_property
    def odds(self) -> int:
        """R in parts of 2^-24: never more than e^epsilon."""
        below = Decimal(repr(float(self.epsilon))).exp(_DIGITS)
        slack = 1 - Decimal(10) ** -50
        return math.floor(_DIGITS.multiply(_DIGITS.multiply(below, slack), _PARTS))

    @property
    def whole(self) -> int:
        """The denominator of q: a draw is a uniform whole number below it."""
        others = self.size - 1 if self.kind == RESPONSE else 1
        return self.odds + others * _PARTS

    @property
    def own(self) -> Fraction:
        """The probability p that a report speaks for the own category."""
        return Fraction(self.odds, self.whole) if self.kind == RESPONSE else Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        """The probability q that a report speaks for a given other category."""
        return Fraction(_PARTS, self.whole)

    @property
    def variance(self) -> Fraction:
        """The variance that a report adds to the estimated count of a category nobody has."""
        return self.other * (1 - self.other) / (self.own - self.other) ** 2

    def reports(self, codes: npt.NDArray[np.integer[Any]], entropy: Entropy) -> Ints:
        """Perturb categories.

        Args:
            codes: the place of each person's category, ``[people]``.
            entropy: where the coins come from.

        Returns:
            The reported places ``[people]`` (randomised response), or bits ``[people, size]``
            (unary encoding).

        Raises:
            ValueError: a code is none of a category; no coin has been thrown then.
        """
        if codes.ndim != 1 or (len(codes) and not 0 <= codes.min() <= codes.max() < self.size):
            raise ValueError("a code is not that of a category")
        own: Ints = codes.astype(np.int64)
        if self.kind == UNARY:
            return self._bits(own, entropy)
        drawn = entropy.integers(0, self.whole, len(codes))
        others = (drawn - self.odds) // _PARTS  # among the categories but the own one
        return np.where(drawn < self.odds, own, others + (others >= own))

    def _bits(self, codes: Ints, entropy: Entropy) -> Ints:
        """Draw a bit for each category; the own one by a fair coin."""
        bits = np.empty((len(codes), self.size), dtype=np.int64)
        step = max(1, _BLOCK // self.size)
        for start in range(0, len(codes), step):
            part = codes[start : start + step]
            drawn = entropy.integers(0, self.whole, (len(part), self.size)) < _PARTS
            drawn[np.arange(len(part)), part] = entropy.integers(0, 2, len(part)) == 1
            bits[start : start + step] = drawn
        return bits

    def supports(self, reports: Ints) -> Ints:
        """Count the reports that speak for each category, ``[size]``."""
        if self.kind == UNARY:
            return np.asarray(reports.sum(axis=0, dtype=np.int64))
        return np.bincount(reports, minlength=self.size).astype(np.int64)


@dataclass(frozen=True)
class LocalColumn:
    """What is public of a perturbed column.

    Attributes:
        name: of the column.
        labels: of its categories, in order.
        randomiser: how it was perturbed.
    """

    name: str
    labels: tuple[str, ...]
    randomiser: Randomiser


@dataclass(frozen=True)
class LocalSettings:
    """What is public of perturbed answers.

    Attributes:
        schema: its name.
        epsilon: what a person spends on all columns together.
        columns: in order.
        stamps: why the answers protect nobody, such as ``seeded-entropy``.
    """

    schema: str
    epsilon: float
    columns: tuple[LocalColumn, ...]
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the columns and the cost."""
        return short_repr(self, counted(len(self.columns), "column"), f"epsilon {self.epsilon:g}")

    def to_dict(self) -> dict[str, Any]:
        """Give the settings in JSON types."""
        columns = [
            {
                "name": one.name,
                "mechanism": one.randomiser.kind,
                "epsilon": one.randomiser.epsilon,
                "categories": list(one.labels),
            }
            for one in self.columns
        ]
        head = {"format": FORMAT, "version": VERSION, "schema": self.schema}
        stamps = list(self.stamps)
        return head | {"epsilon": self.epsilon, "columns": columns, "stamps": stamps}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read settings strictly.

        Raises:
            ArtifactError: they are missing, damaged, or their columns cost more than they say.
        """
        path = path_of(path)
        return cls.from_dict(read_document(path), str(path))

    @classmethod
    def from_dict(cls, document: dict[str, Any], place: str) -> Self:
        """Read settings back from ``to_dict``; as `load`."""
        check_format(document, place, FORMAT, VERSION)
        check_keys(document, place, _KEYS)
        try:
            columns = several(_column, document["columns"], f"{place}: columns", minimum=1)
        except ArtifactError:
            raise
        except DpsynthError as error:
            raise ArtifactError(f"{place}: {error}") from None
        epsilon = number(document["epsilon"], f"{place}: epsilon", above=0)
        if sum(exactly(one.randomiser.epsilon) for one in columns) > exactly(epsilon):
            raise ArtifactError(f"{place}: its columns cost more than its epsilon")
        if len({one.name for one in columns}) < len(columns):
            raise ArtifactError(f"{place}: two columns have the same name")
        stamps = texts(document["stamps"], f"{place}: stamps")
        return cls(text(document["schema"], f"{place}: schema"), epsilon, columns, stamps)


def _column(value: Any, place: str) -> LocalColumn:
    check_keys(as_object(value, place), place, ("name", "mechanism", "epsilon", "categories"))
    labels = texts(value["categories"], f"{place}.categories")
    kind = matching(value["mechanism"], f"{place}.mechanism", f"{RESPONSE}|{UNARY}", "mechanism")
    if len(set(labels)) < len(labels):
        raise ArtifactError(f"{place}.categories: two are alike")
    epsilon = number(value["epsilon"], f"{place}.epsilon", above=0)
    return LocalColumn(
        text(value["name"], f"{place}.name"), labels, Randomiser(kind, len(labels), epsilon)
    )


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Perturbed answers with their settings.

    Attributes:
        settings: public.
        reports: of each column: places ``[people]``, or bits ``[people, categories]``.
    """

    settings: LocalSettings
    reports: tuple[Ints, ...]

    def __repr__(self) -> str:
        """Show no answer."""
        return short_repr(self, counted(len(self.settings.columns), "perturbed column"))

    @property
    def people(self) -> int:
        """How many answered."""
        return len(self.reports[0])

    def csv(self) -> bytes:
        """Return the table of reports."""
        cells = [
            _written(one, reports)
            for one, reports in zip(self.settings.columns, self.reports, strict=True)
        ]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([one.name for one in self.settings.columns])
        writer.writerows(zip(*cells, strict=True))
        return file.getvalue().encode()

    def write(self, path: str | Path) -> None:
        """Write the table, and its settings beside it; both appear whole, the table last.

        Raises:
            InputError: one of them exists, or the folder cannot be written to.
        """
        beside = settings_path(path)
        check_vacant(path)
        check_vacant(beside)
        content = self.csv()
        with atomic_file(path, new=True) as temporary:
            temporary.write_bytes(content)
            write_new(beside, written(self.settings.to_dict()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read reports and their settings strictly; messages quote no cell.

        Raises:
            ArtifactError: the settings are missing or damaged.
            TableError: the table is not one of these settings.
        """
        path = path_of(path)
        settings = LocalSettings.load(settings_path(path))
        check_file(path)
        try:
            with csv_cells_up_to(_ROOM), path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file, strict=True))
        except OSError as error:
            raise TableError(f"{path} cannot be read: {cannot_read(error)}") from error
        except (ValueError, csv.Error):
            raise TableError(f"{path} is damaged: it is no CSV table in UTF-8") from None
        if not rows or rows[0] != [one.name for one in settings.columns]:
            raise TableError(f"{path} does not have the columns of {settings_path(path)}")
        if len(rows) == 1:
            raise TableError(f"{path} has no rows")
        if any(len(row) != len(settings.columns) for row in rows):
            raise TableError(f"{path} is damaged: a row is shorter or longer than its header")
        cells = list(zip(*rows[1:], strict=True))
        found = [
            _read(one, list(texts), path)
            for one, texts in zip(settings.columns, cells, strict=True)
        ]
        return cls(settings, tuple(found))


def settings_path(path: str | Path) -> Path:
    """Return where the settings of a table of reports lie."""
    return Path(f"{path}.json")


def _written(column: LocalColumn, reports: Ints) -> list[str]:
    if column.randomiser.kind == RESPONSE:
        return [column.labels[place] for place in reports.tolist()]
    letters = (reports + ord("0")).astype(np.uint8)
    return [row.tobytes().decode() for row in letters]


def _read(column: LocalColumn, cells: list[str], path: Path) -> Ints:
    size = column.randomiser.size
    if column.randomiser.kind == RESPONSE:
        place_of = {label: place for place, label in enumerate(column.labels)}
        places = [place_of.get(cell, -1) for cell in cells]
        if min(places) >= 0:
            return np.array(places, dtype=np.int64)
    elif all(len(cell) == size and not cell.strip("01") for cell in cells):
        bits = np.frombuffer("".join(cells).encode(), dtype=np.uint8) - ord("0")
        return bits.reshape(-1, size).astype(np.int64)
    raise TableError(f"{path}: a cell of column '{column.name}' is no report of its settings")


@dataclass(frozen=True, eq=False)
class LocalRequest(AnswerRequest):
    """What is asked of perturbed answers: how many people have each category.

    Attributes:
        settings: by which the answers were perturbed.
        confidence: of each interval by itself.
    """

    settings: LocalSettings
    confidence: float
    kind: ClassVar[Kind] = Kind(
        "local",
        "the estimates",
        "Perturbed answers",
        "local.json",
        "dpsynth-local-estimates",
        ("settings", "confidence", "people", "supports"),
    )

    def __post_init__(self) -> None:
        """Refuse intervals that say too little, or have no end.

        Raises:
            InputError: the confidence is out of range.
        """
        if not 0.5 <= self.confidence <= 0.9999:
            raise InputError("the confidence of intervals lies between 0.5 and 0.9999")

    @property
    def title(self) -> str:
        """The name of the schema."""
        return self.settings.schema

    @classmethod
    def read(cls, document: Mapping[str, Any], path: Path) -> LocalRequest:
        """Read a request back from the document of estimates."""
        place = f"{path}: settings"
        settings = LocalSettings.from_dict(as_object(document["settings"], place), place)
        return cls(settings, number(document["confidence"], f"{path}: confidence", above=0))

    def asked(self) -> dict[str, Any]:
        """Return the settings and the confidence as keys of the document."""
        return {"settings": self.settings.to_dict(), "confidence": self.confidence}

    def problems(self, certificate: Certificate | None, stamps: Sequence[str]) -> list[str]:
        """Require the stamps of the settings."""
        same = tuple(stamps) == self.settings.stamps
        return [] if same else ["the stamps are not those of its settings"]

    def numbers(
        self, document: Mapping[str, Any], events: Mapping[str, Event], path: Path
    ) -> Numbers:
        """Read how many people answered, and how many reports speak for each category."""
        people, columns = document["people"], self.settings.columns
        stated = as_object(document["supports"], f"{path}: supports")
        fits = type(people) is int and people > 0 and set(stated) == {one.name for one in columns}
        if not fits or not all(_is_tally(stated[one.name], one, people) for one in columns):
            raise ArtifactError(f"{path} has numbers that reports of its settings cannot have")
        supports = {one.name: np.array(stated[one.name], dtype=np.int64) for one in columns}
        return {"people": people, "supports": supports}

    def paid(self, numbers: Numbers) -> dict[str, Any]:
        """Return the same as keys of the document."""
        supports = {name: part.tolist() for name, part in numbers["supports"].items()}
        return {"people": numbers["people"], "supports": supports}

    def results(self, numbers: Numbers, events: Mapping[str, Event]) -> tuple[Result, ...]:
        """Return the table of estimates.

        Its columns are ``column``, ``category``, ``count``, ``lower``, ``upper`` (of these people),
        ``share``, ``share_lower``, ``share_upper`` (of the population).
        """
        people, parts = numbers["people"], []
        for one in self.settings.columns:
            supports = numbers["supports"][one.name]
            figures = estimated(one.randomiser, supports, people, self.confidence)
            names = {"column": one.name, "category": np.array(one.labels, dtype=object)}
            parts.append(pd.DataFrame({**names, **figures}))
        table = pd.concat(parts, ignore_index=True)
        return (Result(TABLE, table, TABLE, facts={"people": people}),)

    def described(self, result: Result, events: Mapping[str, Event]) -> dict[str, Any]:
        """Say by which settings it was perturbed, and what intervals cover."""
        return {
            "settings": self.settings.to_dict(),
            "people": result.facts["people"],
            "confidence": self.confidence,
            "intervals": {
                "count": "of these people; covers the randomisation",
                "share": "of the population that they are a sample of; covers both",
            },
        }

    def page(
        self, numbers: Numbers, certificate: Certificate | None, results: Sequence[Result]
    ) -> dict[str, object]:
        """Return a section for each column."""
        table = results[0].table
        return {
            "people": f"{numbers['people']:,}",
            "epsilon": f"{self.settings.epsilon:g}",
            "factor": figure_at_most(math.exp(self.settings.epsilon)),
            "confidence": f"{100 * self.confidence:g} %",
            "columns": [
                {
                    "name": one.name,
                    "mechanism": one.randomiser.kind,
                    "epsilon": figure(one.randomiser.epsilon),
                    "rows": table[table["column"] == one.name].to_dict("records"),
                }
                for one in self.settings.columns
            ],
        }

    def summary(self, results: Sequence[Result]) -> tuple[dict[str, Any], str]:
        """Say how many people answered, and how many have each category."""
        (result,) = results
        values = {
            "people": result.facts["people"],
            "confidence": self.confidence,
            "rows": result.table.to_dict("records"),
        }
        return values, f"{result.facts['people']:,} people"

    def checked(self, certificate: Certificate | None, files: int) -> list[str]:
        """Say that all follows from the reports, and what each person spends."""
        return [
            f"all {files} files follow from the settings and the numbers of reports",
            f"the columns cost each person at most epsilon {self.settings.epsilon:g} together",
        ]


def _is_tally(stated: Any, column: LocalColumn, people: int) -> bool:
    """Whether so many people can have sent reports that speak so often for each category."""
    if not isinstance(stated, list) or len(stated) != len(column.labels):
        return False
    if not all(type(one) is int and 0 <= one <= people for one in stated):
        return False
    return column.randomiser.kind == UNARY or sum(stated) == people


def estimated(
    randomiser: Randomiser, supports: Ints, people: int, confidence: float
) -> dict[str, Floats]:
    """Return counts and shares with their intervals, from the reports that speak for each.

    Args:
        randomiser: by which each person's report was drawn.
        supports: how many reports speak for each category.
        people: how many reports there are.
        confidence: of each interval.
    """
    p, q = float(randomiser.own), float(randomiser.other)
    count = (supports - people * q) / (p - q)
    lower, upper = count_interval(randomiser, supports, people, confidence)
    low, high = share_interval(randomiser, supports, people, confidence)
    of_people = {"count": count.round(1), "lower": lower, "upper": upper}
    share = (count / people).round(6)
    return of_people | {"share": share, "share_lower": low, "share_upper": high}


def count_interval(
    randomiser: Randomiser, supports: Ints, people: int, confidence: float
) -> tuple[Floats, Floats]:
    """Return the interval of each count, rounded outwards to tenths."""
    from scipy.special import ndtri

    p, q = float(randomiser.own), float(randomiser.other)
    z = float(ndtri((1 + confidence) / 2))
    apart, others, slope = p - q, people * q * (1 - q), p * (1 - p) - q * (1 - q)
    ends = []
    for sign in (-1, 1):
        # (apart m - y)^2 = z^2 (others + slope m), solved for m
        y = supports + sign / 2 - people * q
        middle = (2 * apart * y + z**2 * slope) / (2 * apart**2)
        inside = 4 * apart * y * slope + z**2 * slope**2 + 4 * apart**2 * others
        ends.append(middle + sign * z * np.sqrt(np.maximum(inside, 0.0)) / (2 * apart**2))
    lower, upper = (np.clip(end, 0, people) for end in ends)
    return np.floor(10 * lower) / 10, np.ceil(10 * upper) / 10


def share_interval(
    randomiser: Randomiser, supports: Ints, people: int, confidence: float
) -> tuple[Floats, Floats]:
    """Return the interval of each share, rounded outwards to millionths."""
    from scipy.special import betaincinv

    p, q = float(randomiser.own), float(randomiser.other)
    tail, rest = (1 - confidence) / 2, people - supports
    low = np.where(supports > 0, betaincinv(np.maximum(supports, 1), rest + 1, tail), 0.0)
    high = np.where(rest > 0, betaincinv(supports + 1, np.maximum(rest, 1), 1 - tail), 1.0)
    lower, upper = (np.clip((end - q) / (p - q), 0, 1) for end in (low, high))
    return np.floor(1e6 * lower) / 1e6, np.ceil(1e6 * upper) / 1e6
