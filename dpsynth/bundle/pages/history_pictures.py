"""Pictures of synthetic patients in time, for the report: patients, rows, courses and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import counted, figure, percent
from dpsynth.bundle.gates import HistoryProfile
from dpsynth.bundle.gates.histories import Course, EventCurve, RowCounts, SamplePatient

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
        tuple(_counts(f"rows-{place}", one) for place, one in _numbered(histories.counts)),
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
    """Name a day: in years where the window is long.

    >>> whole = HistoryProfile(1, -365, 3000, (), (), (), (), ())
    >>> _time(731, whole), _time(-365, whole), _time(1500, whole)
    ('year 2', 'year -1', 'year 4.1')
    """
    if histories.last - histories.first <= LONG:
        return f"day {day:,.0f}"
    return f"year {round(day / YEAR, 1) + 0.0:g}"


def _ticks(histories: HistoryProfile) -> list[float]:
    """Choose days for the axis: at most eight, at whole years or round days, 0 among them."""
    unit = YEAR if histories.last - histories.first > LONG else 1.0
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
        tuple(_sample_row(one) for one in histories.samples),
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


def _sample_row(one: SamplePatient) -> tuple[str, ...]:
    events = "; ".join(f"{event} on day {day:,.0f}" for event, day in one.events)
    rows = (f"{len(days):,}" for days in one.rows)
    return (str(one.key), f"day {one.last:,.0f}", *rows, events or "none")


def _counts(key: str, one: RowCounts) -> Picture:
    shares = [bar.rows / one.whole for bar in one.bins]
    first, last = one.bins[0].label, one.bins[-1].label
    if one.days:
        caption, unit, noun = f"{one.table}: days to the next row", "days", "Steps"
    else:
        caption, unit, noun = f"{one.table}: rows per patient", "rows", "Patients"
    title = f"{caption}, shares"
    picture = svg.histogram(f"{key}-picture", title, shares, first, f"{last} {unit}")
    rows = tuple((bar.label, f"{bar.rows:,}", percent(bar.rows / one.whole)) for bar in one.bins)
    return Picture(picture, caption, (unit.capitalize(), noun, "Share"), rows)


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
