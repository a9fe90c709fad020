"""report.html: the page of a bundle for those who receive it and those whose data are behind it.

A pure function of public things: the schema, the certificate, a profile of the synthetic table, the
verdicts of public gates, what the office says of it, quality figures if the plan paid for them, and
audits on synthetic rows if any were made. The same inputs give the same bytes; there is no clock
and no machine in it. One file, without script, which asks no network for anything. Every text that
a person wrote is escaped, set apart from its surroundings, and rid of invisible characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TypeVar

from jinja2 import Environment
from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import (
    counted,
    figure,
    figure_at_most,
    one_in,
    percent,
    percent_at_least,
    percent_at_most,
    quantity,
    shown,
)
from dpsynth._util.html import environment
from dpsynth.bundle.format import Contents, ManifestHeader, Precision, Quality, audits_digest
from dpsynth.bundle.format.layout import TYPED
from dpsynth.bundle.format.precision import CELLS, COLUMN, FIT, GROUP, PAIR, TREND, PrecisionLine
from dpsynth.bundle.gates import ColumnProfile, GateResult, HistoryProfile, Profile
from dpsynth.bundle.gates.histories import Course, EventCurve, RowCounts, SamplePatient
from dpsynth.bundle.gates.public_gates import NOT_AUDITED
from dpsynth.bundle.pages.audit_cards import audit_cards
from dpsynth.bundle.pages.limits import is_stratified
from dpsynth.bundle.pages.table_words import words_of
from dpsynth.certificate import (
    BudgetLine,
    attack_conditions,
    budget_lines,
    for_person,
    protected,
    readings,
    what_it_is_not,
)
from dpsynth.models import description_of
from dpsynth.privacy import counted_several, reserved, short_of, source_unit, units_of, whom
from dpsynth.schema import Bound, Column, Schema, SyntheticTable, kind_of, relation_of, unit_of
from dpsynth.schema.code_systems import Codes
from dpsynth.schema.types import MINUTE

_SHARES = frozenset({"cells", "rules"})  # gates whose figure is a share

_OF_EVENT = re.compile(r"event ('[^']+'): (.+)")  # a statement of a certificate


def public_page(
    contents: Contents,
    profiles: Sequence[Profile],
    verdicts: Sequence[GateResult],
    tables: Mapping[str, str],
    histories: HistoryProfile | None = None,
) -> str:
    """Return the public page of a bundle as HTML.

    Args:
        contents: the documents of the bundle.
        profiles: of each synthetic table.
        verdicts: of the public gates.
        tables: SHA-256 of each table in the bundle, in hex, by path.
        histories: what patients of linked tables look like in time; None of a single table.
    """
    heading, certificate = contents.heading, contents.certificate
    quality, audits = contents.quality, contents.audits
    lines = budget_lines(certificate, quality=quality is not None)
    return (
        _environment()
        .get_template("report.html")
        .render(
            version=heading.writer,
            schema=heading.schema,
            about=heading.about,
            title=heading.about.title or heading.schema.title or heading.schema.name,
            certificate=certificate,
            sections=sections_of(heading, tuple(profiles), contents.precision),
            single=isinstance(heading.schema, Schema),
            histories=None if histories is None else history_pictures(histories),
            stratified=is_stratified(heading.drawing),
            verdicts=verdicts,
            overridden={override.gate: override for override in certificate.overrides},
            drawing=heading.drawing,
            model=description_of(heading.drawing.model),
            typed={path: one for path, one in tables.items() if path.endswith(TYPED)},
            quality=quality,
            precision=None if contents.precision is None else precision_section(contents.precision),
            audits=None if audits is None else audit_cards(audits),
            audits_sha256=None if audits is None else audits_digest(audits),
            reserved=reserved(certificate.events) is not None,
            readings=readings(certificate),
            protected=protected(certificate.unit, certificate.tables),
            what_it_is_not=what_it_is_not(several=not isinstance(heading.schema, Schema)),
            arithmetic=_together(
                [*certificate.exact, *certificate.floating_point], len(certificate.events)
            ),
            lines=lines,
            budget_picture=_budget_picture(lines),
            distances=None if quality is None else _distances(quality),
            agreements=() if quality is None else _agreements(quality),
        )
    )


def _together(statements: Sequence[str], events: int) -> list[str]:
    """Say once what holds of several events, and without their names if it holds of all.

    >>> several = ["event 'a': exact", "event 'b': exact", "event 'c': near", "the sum is near"]
    >>> _together(several, 3)
    ["events 'a' and 'b': exact", "event 'c': near", 'the sum is near']
    >>> _together(several[:2], 2)
    ['each of the 2 events below: exact']
    """
    groups: dict[str, list[str]] = {}
    for statement in statements:
        of_event = _OF_EVENT.fullmatch(statement)
        names = groups.setdefault(statement if of_event is None else of_event[2], [])
        names += [] if of_event is None else [of_event[1]]
    return [
        f"{_events(names, events)}: {rest}" if names else rest for rest, names in groups.items()
    ]


def _events(names: Sequence[str], events: int) -> str:
    if len(names) == 1:
        return f"event {names[0]}"
    if len(set(names)) == events:
        return f"each of the {events} events below"
    return f"events {', '.join(names[:-1])} and {names[-1]}"


@cache
def _environment() -> Environment:
    pages = environment(__package__)
    pages.filters |= {
        "figure": figure,
        "percent": lambda share: _unbroken(percent(share)),
        "at_least": lambda share: _unbroken(percent_at_least(share)),
        "bound": figure_at_most,
        "at_most": lambda share: _unbroken(percent_at_most(share)),
        "unbroken": _unbroken,
        "one_in": one_in,
        "sentence": _sentence,
    }
    words = (attack_conditions, counted_several, for_person, short_of, source_unit, units_of, whom)
    pages.globals |= {word.__name__: word for word in words}
    pages.globals |= {
        "hundred": svg.hundred,
        "not_audited": NOT_AUDITED,
        "found": lambda verdict: _judged(verdict, verdict.value),
        "share": lambda rows, all_rows: _unbroken(percent(rows / all_rows)) if all_rows else "none",
        "word": _word,
        "limit": lambda verdict: _judged(verdict, verdict.limit),
    }
    return pages


def _sentence(text: str) -> str:
    """Begin with a capital, end with a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _unbroken(text: str) -> Markup:
    """Keep the sign of per cent beside its number."""
    return Markup("&nbsp;%").join(shown(part) for part in text.split(" %"))


def _word(verdict: GateResult) -> str:
    """Say in a word or two what a check came to."""
    if verdict.passed:
        return "passed"
    if verdict.detail == NOT_AUDITED:
        return NOT_AUDITED
    return "failed" if verdict.stops else "over its limit"


def _judged(verdict: GateResult, value: float) -> str:
    return _unbroken(percent(value)) if verdict.key in _SHARES else figure(value)


def _budget_picture(lines: Sequence[BudgetLine]) -> Markup:
    rows = [(line.name, line.share, percent(line.share)) for line in lines]
    return svg.shares_of("budget-picture", "Share of the privacy budget that each event has", rows)


def _distances(quality: Quality) -> Markup:
    """Draw the distance of each column, on one scale."""
    rows = [
        (column.column, column.tvd, column.low, column.high, figure(column.tvd))
        for column in quality.columns
    ]
    maximum = max([column.high for column in quality.columns] + [0.1])
    title = f"Distance of each column to the source, with its interval, from 0 to {figure(maximum)}"
    return svg.intervals("distances-picture", title, rows, maximum)


def _agreements(quality: Quality) -> list[Markup]:
    """Draw the calibration of each target's class."""
    return [
        svg.agreement(
            f"target-{place}",
            f"Predicted and observed chance of {target.target} being {target.class_}",
            [(point.predicted, point.observed) for point in target.calibration],
        )
        for place, target in enumerate(quality.targets, start=1)
    ]


_MAX_BARS = 12  # of a picture of categories; the table beside it has more


@dataclass(frozen=True)
class ColumnCard:
    """A column of the data dictionary, or a test of a long table."""

    key: str
    profile: ColumnProfile
    is_test: bool
    kind: str
    summary: str
    facts: tuple[DictionaryLine, ...]
    picture: Markup
    left_out: int


@dataclass(frozen=True)
class TableSection:
    """One table of the report.

    Attributes:
        table: its declaration.
        profile: what it holds.
        words: how it hangs together with the others; nothing of a single table.
        cards: of its columns.
    """

    table: SyntheticTable
    profile: Profile
    words: tuple[str, ...]
    cards: tuple[ColumnCard, ...]


def sections_of(
    heading: ManifestHeader, profiles: tuple[Profile, ...], precision: Precision | None = None
) -> tuple[TableSection, ...]:
    """Prepare every table, in order.

    Args:
        heading: with the tables.
        profiles: what each holds.
        precision: of the counts of columns, if it is known.
    """
    tables = heading.tables.values()
    lines = () if precision is None else precision.of(COLUMN)
    errors = {line.column: line.standard_error or 0.0 for line in lines}
    return tuple(
        _section(place, table, profile, heading, errors)
        for place, (table, profile) in enumerate(zip(tables, profiles, strict=True), start=1)
    )


def _section(
    place: int,
    table: SyntheticTable,
    profile: Profile,
    heading: ManifestHeader,
    errors: Mapping[str, float],
) -> TableSection:
    key = f"table-{place}-column" if profile.table else "column"
    tests = [test is not None for _, test in table.variables()]
    cards = tuple(
        _card(f"{key}-{number}", one, is_test, errors.get(one.column.name))
        for number, (one, is_test) in enumerate(zip(profile.columns, tests, strict=True), start=1)
    )
    return TableSection(table, profile, words_of(table, heading.schema), cards)


def _card(key: str, profile: ColumnProfile, is_test: bool, error: float | None) -> ColumnCard:
    column = profile.column
    bins, left_out = profile.bins, 0
    if column.is_categorical and profile.rows:
        if len(bins) > _MAX_BARS:
            bins = tuple(sorted(bins, key=lambda item: -item.rows)[:_MAX_BARS])
            left_out = len(profile.bins) - len(bins)
        rows = [(b.label, b.rows / profile.rows, percent(b.rows / profile.rows)) for b in bins]
        picture = svg.shares_of(f"{key}-picture", f"Shares of the values of {column.name}", rows)
    elif profile.five:
        title = (
            f"Distribution of {column.name} in {len(bins)} ranges from {profile.five[0]} to "
            f"{profile.five[-1]}"
        )
        shares = [item.rows / profile.rows for item in bins]
        ends = bins[0].label.split(" to ")[0], bins[-1].label.split(" to ")[-1]
        picture = svg.histogram(f"{key}-picture", title, shares, *ends)
    else:
        picture = Markup("")
    return ColumnCard(
        key=key,
        profile=profile,
        is_test=is_test,
        kind=kind_of(column),
        summary=summary_of(profile),
        facts=facts_of(profile, error),
        picture=picture,
        left_out=left_out,
    )


_ROLES = {
    "target": "prediction target",
    "sensitive": "sensitive",
    "quasi_identifier": "could help someone recognise a person",
    "group": "divides people into groups",
    "time": "time",
    "event": "event",
}


@dataclass(frozen=True)
class DictionaryLine:
    """One line of a data dictionary."""

    name: str
    value: str


def facts_of(profile: ColumnProfile, error: float | None = None) -> tuple[DictionaryLine, ...]:
    """List what is declared of a column, and what its synthetic values are like.

    Args:
        profile: of the column.
        error: standard error of the count of one of its values, if it is known.
    """
    column, unit = profile.column, unit_of(profile.column)
    facts = []
    if unit:
        facts.append(DictionaryLine("Unit", unit))
    if column.minimum is not None and column.maximum is not None:
        ends = _bound(column.minimum, column), _bound(column.maximum, column)
        facts.append(DictionaryLine("Bounds", " to ".join(ends)))
    if relation := relation_of(column):
        facts.append(DictionaryLine("Relation", relation))
    if column.several is not None:
        facts.append(DictionaryLine("Cell", column.several.words))
    if column.is_categorical and not column.kind.is_truth:
        found = len(_found(column))
        words = f"{len(column.levels) - found} declared"
        facts.append(DictionaryLine("Categories", f"{words}, {found} found" if found else words))
    if column.codes is not None:
        facts.append(DictionaryLine("Codes", _codes(column, column.codes)))
    if column.bounds_basis is not None:
        facts.append(DictionaryLine("Basis of bounds", column.bounds_basis))
    if roles := [words for role, words in _ROLES.items() if role in column.roles]:
        facts.append(DictionaryLine("Role", ", ".join(roles)))
    facts.append(DictionaryLine("Missing", _missing(profile)))
    if error is not None:
        facts.append(DictionaryLine("Standard error of a count", quantity(error)))
    if profile.mean is not None:
        kind = column.kind
        mean = kind.text(round(profile.mean)) if kind.is_spelled else quantity(profile.mean)
        facts.append(DictionaryLine("Mean", mean))
    if profile.five:
        low, first, median, third, high = profile.five
        facts.append(DictionaryLine("Median", median))
        facts.append(DictionaryLine("Middle half", f"{first} to {third}"))
        facts.append(DictionaryLine("Range", f"{low} to {high}"))
    return tuple(facts)


def _found(column: Column) -> tuple[str, ...]:
    """Return the codes that the fit found; they are categories beside the declared ones."""
    return () if column.discovery is None else column.discovery.found or ()


def _codes(column: Column, codes: Codes) -> str:
    """Say where the codes of a column come from."""
    groups = f"{codes.system}, grouped by {codes.rollup}"
    if not column.discovers:
        return groups
    rest = f"every other code stands in its group ({groups})" if codes.system else "others are not"
    return f"listed are those that enough of the source has, counted with noise; {rest}"


def summary_of(profile: ColumnProfile) -> str:
    """Say in a few words what the values are like."""
    if profile.constant:
        return "one value only"
    if not profile.distinct:
        return "no values"
    if profile.five:
        unit = unit_of(profile.column)
        low, first, median, third, high = profile.five
        words = f"median {median}{' ' + unit if unit else ''}"
        return f"{words}, middle half {first} to {third}"
    maximum = max(profile.bins, key=lambda item: item.rows)
    share = percent(maximum.rows / profile.rows)
    values = "1 value" if profile.distinct == 1 else f"{profile.distinct} values"
    return f"{values}, most often {maximum.label} ({share})"


def _missing(profile: ColumnProfile) -> str:
    if profile.column.required:
        return "never (declared)"
    if not profile.rows:
        return "no rows"
    return percent(profile.missing / profile.rows)


def _bound(bound: Bound, column: Column) -> str:
    """Write a bound in full, as the figures beside it are."""
    kind = column.kind
    if kind.is_spelled:
        finest = MINUTE if kind.is_point and kind.step == MINUTE else 1
        return kind.text(kind.value(bound) // finest * finest)
    comma = "," if column.kind.is_quantity else ""
    text = f"{Decimal(repr(bound)):{comma}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


SHOWN = 10  # pairs and groups


@dataclass(frozen=True)
class PrecisionSection:
    """What the page says of precision.

    Attributes:
        error: standard error of a count of one column, in people.
        readable_from: number of people from which a count is known to within a tenth.
        fit: how well the model meets the counts; empty if the run does not say.
        columns: those whose typical code does not stand above its noise.
        pairs: the pairs that stand out most: both columns, and times their noise.
        unmeasured: what was not measured, a sentence; empty if all pairs were.
        small: declared groups that are too small to read.
        more_small: how many more of them there are.
        picture: how much stands above its noise.
    """

    error: float
    readable_from: int
    fit: str
    columns: tuple[str, ...]
    pairs: tuple[tuple[str, str, float], ...]
    unmeasured: str
    small: tuple[str, ...]
    more_small: int
    picture: Markup


def precision_section(precision: Precision) -> PrecisionSection:
    """Prepare the section.

    Args:
        precision: the lines of the file.
    """
    columns = sum(1 for _ in precision.of(COLUMN))
    first = next(precision.of(COLUMN))
    pairs = [line for line in precision.of(PAIR) if line.measured == CELLS]
    small = [line for line in precision.of(GROUP) if _is_small(line)]
    names = tuple(f"{line.column}: {line.group}" for line in small)
    return PrecisionSection(
        first.standard_error or 0.0,
        first.readable_from or 0,
        _fit(precision.of(FIT)),
        tuple(line.column for line in precision.of(COLUMN) if line.stands_out == "no"),
        tuple(
            (line.column, line.other, line.times_noise or 0.0)
            for line in pairs[:SHOWN]
            if line.stands_out == "yes"
        ),
        _unmeasured(precision, len(pairs), columns),
        names[:SHOWN],
        max(0, len(names) - SHOWN),
        _picture(precision, columns),
    )


def _is_small(line: PrecisionLine) -> bool:
    return (line.people or 0.0) < (line.readable_from or 0)


def _fit(lines: Iterable[PrecisionLine]) -> str:
    for line in lines:
        if line.cells:
            missed = counted(line.missed or 0, "measured cell")
            return f"The model misses {missed} of {line.cells:,} by more than 3 standard errors."
    return ""


def _all_pairs(columns: int) -> int:
    return columns * (columns - 1) // 2


def _unmeasured(precision: Precision, measured: int, columns: int) -> str:
    """Say of how many pairs the cells were not counted."""
    rest = _all_pairs(columns) - measured
    if not rest:
        return ""
    pairs = counted(rest, "pair")
    if any(line.measured == TREND for line in precision.of(PAIR)):
        return (
            f"Of {pairs} of columns, only trends were measured, and no cells: whether both rise "
            "together is known, and single combinations of values are not."
        )
    return (
        f"Nothing was measured of {pairs} of columns. The table shows their relation only as far "
        "as it follows from other pairs: draw no conclusion from it."
    )


def _picture(precision: Precision, columns: int) -> Markup:
    """Draw how many pairs and groups stand above their noise."""
    pairs = [line for line in precision.of(PAIR) if line.measured == CELLS]
    clear = sum(line.stands_out == "yes" for line in pairs)
    every = _all_pairs(columns)
    trend = any(line.measured == TREND for line in precision.of(PAIR))
    rest = "Pairs with a trend alone" if trend else "Pairs that were not measured"
    parts = [
        ("Pairs that stand above their noise", clear, every),
        ("Pairs within their noise", len(pairs) - clear, every),
        (rest, every - len(pairs), every),
    ]
    groups = list(precision.of(GROUP))
    small = sum(map(_is_small, groups))
    parts += [
        ("Groups that are large enough to read", len(groups) - small, len(groups)),
        ("Groups that are too small to read", small, len(groups)),
    ]
    rows = [
        (label, count / total, f"{count:,} of {total:,}") for label, count, total in parts if total
    ]
    title = "How many pairs of columns and groups stand above the noise"
    return svg.shares_of("precision-picture", title, rows)


YEAR = 365.25
LONG = 3 * YEAR  # days from which on time is shown in years
_WIDE, _BAR = 640.0, 20.0  # of the picture of patients, and of a patient's bar at least
_LANE = 5.0  # of a table's ticks within a bar, at least
_LETTER, _LONGEST = 8.0, 28  # width of a letter in a legend, and letters of a name there
_TOP, _BASE = 8.0, 140.0  # of a small picture
_TICKS = tuple(f"row-{number}" for number in range(1, 7))  # classes of the page, for tables in turn
_SYMBOLS = "◆■▲●✚★"
_POINTS = 20  # of a curve that are given as numbers

Place = Callable[[float], float]
_One = TypeVar("_One")


@dataclass(frozen=True)
class Picture:
    """A picture with its caption, and the same figures as a table."""

    picture: Markup
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class HistoryPictures:
    """All that the report shows of synthetic patients in time.

    Attributes:
        samples, counts, courses, curves: the pictures.
        lanes: whether ticks of several tables stand in lanes.
        values: how many values are numbers; the first of each table have a picture.
    """

    samples: Picture | None
    counts: tuple[Picture, ...]
    courses: tuple[Picture, ...]
    curves: tuple[Picture, ...]
    lanes: bool
    values: int


def history_pictures(histories: HistoryProfile) -> HistoryPictures:
    """Draw what synthetic patients of linked tables look like in time."""
    return HistoryPictures(
        _samples(histories) if histories.samples else None,
        tuple(
            _counts(f"rows-{place}", one, histories.noun)
            for place, one in _numbered(histories.counts)
        ),
        tuple(
            _course(f"course-{place}", one, histories)
            for place, one in _numbered(histories.courses)
        ),
        tuple(
            _curve(f"event-{place}", one, histories) for place, one in _numbered(histories.curves)
        ),
        len(histories.timed) > 1,
        histories.values,
    )


def _numbered(ones: Sequence[_One]) -> Iterator[tuple[int, _One]]:
    return enumerate(ones, start=1)


def _scale(low: float, high: float, start: float, stop: float) -> Place:
    """Return a function that places values from low to high between start and stop."""
    span = (high - low) or 1.0
    return lambda value: start + (stop - start) * (min(max(value, low), high) - low) / span


def _time(day: float, histories: HistoryProfile) -> str:
    """Name a day: in years where the window is long; or an hour or a minute.

    >>> whole = HistoryProfile(1, -365, 3000, (), (), (), (), ())
    >>> _time(731, whole), _time(-365, whole), _time(1500, whole)
    ('year 2', 'year -1', 'year 4.1')
    """
    if not _in_years(histories):
        return f"{histories.noun} {day:,.0f}"
    return f"year {round(day / YEAR, 1) + 0.0:g}"


def _in_years(histories: HistoryProfile) -> bool:
    return histories.noun == "day" and histories.last - histories.first > LONG


def _ticks(histories: HistoryProfile) -> list[float]:
    """Choose days for the axis: at most eight, at whole years or round days, 0 among them."""
    unit = YEAR if _in_years(histories) else 1.0
    steps = (step * ten * unit for ten in (1, 10, 100, 1000, 10_000) for step in (1, 2, 5))
    width = next(step for step in steps if (histories.last - histories.first) / step <= 7)
    first, last = -(-histories.first // width), int(histories.last // width)
    return [number * width for number in range(int(first), last + 1)]


def _samples(histories: HistoryProfile) -> Picture:
    """Draw a bar for each patient, with a tick for each row and a symbol for each event."""
    edge = 10.0 + 8 * max(len(str(one.key)) for one in histories.samples)
    x = _scale(histories.first, histories.last, edge, _WIDE - 8)
    names = [curve.event for curve in histories.curves]
    bar = max(_BAR, 5 + _LANE * len(histories.timed))
    content = Markup("")
    for place, one in enumerate(histories.samples):
        content += _patient(one, place * bar, bar - 5, edge, x, names)
    base = len(histories.samples) * bar + 4
    content += svg.line("axis", [(edge, base), (_WIDE - 8, base)])
    for day in _ticks(histories):
        name = _time(day, histories)
        half = _LETTER * len(name) / 2
        middle = min(max(x(day), half), _WIDE - half)  # so that the name is not cut
        content += svg.text_at(middle, base + 15, name, "middle")
    legend, words = _legend(histories.timed, names, base + 38)
    content += words
    title = f"{counted(len(histories.samples), 'synthetic patient')} with their rows and events"
    head = ("Patient", "Follow-up ends", *(f"Rows of {table}" for table in histories.timed))
    return Picture(
        svg.picture("samples-picture", title, legend + 8, content, _WIDE),
        "",
        (*head, "Events"),
        tuple(_sample_row(one, histories.noun) for one in histories.samples),
    )


def _legend(tables: Sequence[str], events: Sequence[str], base: float) -> tuple[float, Markup]:
    """Name the tables in the order of their ticks, and the events, in as many lines as they need.

    Returns:
        Where the last line stands, and the content.
    """
    content, left = Markup(""), 0.0
    marks = [(_TICKS[number % len(_TICKS)], name) for number, name in enumerate(tables)]
    marks += [(_SYMBOLS[number % len(_SYMBOLS)], name) for number, name in enumerate(events)]
    for mark, name in marks:
        name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        width = 26 + _LETTER * len(name)
        if left and left + width > _WIDE:
            base, left = base + 18, 0.0
        if mark in _TICKS:
            content += svg.line(mark, [(left + 4, base - 10), (left + 4, base)])
            content += svg.text_at(left + 11, base, name)
        else:
            content += svg.text_at(left, base, f"{mark} {name}")
        left += width
    return base, content


def _patient(
    one: SamplePatient, top: float, height: float, edge: float, x: Place, names: Sequence[str]
) -> Markup:
    start, stop = x(one.first), x(max(one.last, one.first))
    middle = top + 2 + height / 2
    content = svg.text_at(edge - 6, middle + 4, str(one.key), "end")
    content += svg.rect("track", start, top + 2, max(stop - start, 1.0), height)
    lane = height / max(1, len(one.rows))
    for number, days in enumerate(one.rows):
        y = top + 2 + number * lane
        for day in days:
            ends = [(x(day), y + 0.5), (x(day), y + lane - 0.5)]
            content += svg.line(_TICKS[number % len(_TICKS)], ends)
    for event, day in one.events:
        symbol = _SYMBOLS[names.index(event) % len(_SYMBOLS)]
        content += svg.text_at(x(day), middle + 5, symbol, "middle")
    return content


def _sample_row(one: SamplePatient, noun: str) -> tuple[str, ...]:
    at = "on" if noun == "day" else "at"
    events = "; ".join(f"{event} {at} {noun} {day:,.0f}" for event, day in one.events)
    rows = (f"{len(days):,}" for days in one.rows)
    return (str(one.key), f"{noun} {one.last:,.0f}", *rows, events or "none")


def _counts(key: str, one: RowCounts, noun: str) -> Picture:
    shares = [bar.rows / one.whole for bar in one.bins]
    first, last = one.bins[0].label, one.bins[-1].label
    if one.days:
        caption, unit, head = f"{one.table}: {noun}s to the next row", f"{noun}s", "Steps"
    else:
        caption, unit, head = f"{one.table}: rows per patient", "rows", "Patients"
    title = f"{caption}, shares"
    picture = svg.histogram(f"{key}-picture", title, shares, first, f"{last} {unit}")
    rows = tuple((bar.label, f"{bar.rows:,}", percent(bar.rows / one.whole)) for bar in one.bins)
    return Picture(picture, caption, (unit.capitalize(), head, "Share"), rows)


def _course(key: str, one: Course, histories: HistoryProfile) -> Picture:
    """Draw values of single patients, and quartiles of all."""
    seen = [value for points in one.lines for _, value in points]
    seen += [value for row in one.quartiles for value in row[1:4]]
    last = max((at for points in one.lines for at, _ in points), default=1.0)
    ends = (histories.first, histories.last) if one.timed else (1.0, last)
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    x, y = _scale(ends[0], ends[1], 44, svg.WIDTH - 4), _scale(low, high, _BASE, _TOP)
    content = Markup("")
    for points in one.lines:
        content += svg.line("thin", [(x(at), y(value)) for at, value in points])
    if len(one.quartiles) > 1:
        under = [(x(row[0]), y(row[1])) for row in one.quartiles]
        over = [(x(row[0]), y(row[3])) for row in one.quartiles]
        content += svg.line("quartiles", [*under, *over[::-1]])
        content += svg.line("median", [(x(row[0]), y(row[2])) for row in one.quartiles])
    content += _frame(figure(low), figure(high), [_when(at, one, histories) for at in ends])
    title = (
        f"{one.name} of {counted(len(one.lines), 'synthetic patient')}, and the quartiles of all"
    )
    caption = f"{one.table}: {one.name}{f' ({one.unit})' if one.unit else ''}"
    rows = tuple(
        (_when(at, one, histories), *(figure(value) for value in values), f"{count:,}")
        for at, *values, count in one.quartiles
    )
    head = ("About", "Lower quartile", "Median", "Upper quartile", "Rows")
    return Picture(svg.picture(f"{key}-picture", title, _BASE + 20, content), caption, head, rows)


def _when(at: float, one: Course, histories: HistoryProfile) -> str:
    return _time(at, histories) if one.timed else f"row {at:.0f}"


def _curve(key: str, one: EventCurve, histories: HistoryProfile) -> Picture:
    """Draw the share without an event as steps; the axis is cut below."""
    low = max(0.0, one.steps[-1][1] - 0.2 * (1 - one.steps[-1][1]) - 0.005)
    x = _scale(0, histories.last, 44, svg.WIDTH - 4)
    y = _scale(low, 1.0, _BASE, _TOP)
    points = [(x(0), y(1.0))]
    for (_, before), (day, share) in zip(one.steps, one.steps[1:], strict=False):
        points += [(x(day), y(before)), (x(day), y(share))]
    points.append((x(histories.last), y(one.steps[-1][1])))
    content = svg.line("median", points)
    ends = [_time(day, histories) for day in (0, histories.last)]
    content += _frame(percent(low), "100 %", ends)
    title = f"Share of synthetic patients without {one.event}, over time"
    caption = f"{one.event}: {one.happened:,} of {counted(one.patients, 'patient')}"
    rows = tuple((_time(day, histories), percent(share)) for day, share in _some(one.steps))
    picture = svg.picture(f"{key}-picture", title, _BASE + 20, content)
    return Picture(picture, caption, ("From", "Without it"), rows)


def _some(steps: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield steps of a curve, spread evenly, the first and the last one among them."""
    count = min(_POINTS, len(steps))
    places = {n * (len(steps) - 1) // max(count - 1, 1) for n in range(count)}
    return (steps[place] for place in sorted(places))


def _frame(low: str, high: str, ends: Sequence[str]) -> Markup:
    """Draw both axes of a small picture, with their ends."""
    content = svg.line("axis", [(44, _TOP), (44, _BASE), (svg.WIDTH - 4, _BASE)])
    content += svg.text_at(40, _TOP + 8, high, "end") + svg.text_at(40, _BASE, low, "end")
    return content + (
        svg.text_at(44, _BASE + 15, ends[0])
        + svg.text_at(svg.WIDTH - 4, _BASE + 15, ends[1], "end")
    )
