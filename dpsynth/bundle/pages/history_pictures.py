"""Pictures of synthetic patients in time, for the report: patients, rows, courses and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import counted, figure, percent
from dpsynth.bundle.gates import HistoryProfile
from dpsynth.bundle.gates.event_curves import EventCurve
from dpsynth.bundle.gates.histories import Course, SamplePatient
from dpsynth.bundle.gates.row_counts import RowCounts

YEAR = 365.25
LONG = 3 * YEAR  # days from which on time is shown in years
_WIDE, _BAR = 640.0, 20.0  # of the picture of patients
_TOP, _BASE = 8.0, 140.0  # of a small picture
_TICKS = ("row-1", "row-2", "row-3", "row-4")  # classes of the page, for tables in turn
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
    """All that the report shows of synthetic patients in time."""

    samples: Picture | None
    counts: tuple[Picture, ...]
    courses: tuple[Picture, ...]
    curves: tuple[Picture, ...]


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
    )


def _numbered(ones: Sequence[_One]) -> Iterator[tuple[int, _One]]:
    return enumerate(ones, start=1)


def _scale(low: float, high: float, start: float, stop: float) -> Place:
    """Return a function that places values from low to high between start and stop."""
    span = (high - low) or 1.0
    return lambda value: start + (stop - start) * (min(max(value, low), high) - low) / span


def _time(day: float, histories: HistoryProfile) -> str:
    """Name a day: in years where the window is long.

    >>> _time(731, HistoryProfile(1, 0, 3000, (), (), (), (), ()))
    'year 2'
    """
    if histories.last - histories.first <= LONG:
        return f"day {day:,.0f}"
    return f"year {day / YEAR:.3g}"


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
    content = Markup("")
    for place, one in enumerate(histories.samples):
        content += _patient(one, place * _BAR, edge, x, names)
    base = len(histories.samples) * _BAR + 4
    content += svg.line("axis", [(edge, base), (_WIDE - 8, base)])
    for day in _ticks(histories):
        content += svg.text_at(max(x(day), 22), base + 15, _time(day, histories), "middle")
    legend, left = base + 38, 0.0
    for number, table in enumerate(histories.timed):
        content += svg.line(_TICKS[number % 4], [(left + 4, legend - 10), (left + 4, legend)])
        content += svg.text_at(left + 11, legend, table)
        left += 26 + 7 * len(table)
    for number, name in enumerate(names):
        symbol = _SYMBOLS[number % len(_SYMBOLS)]
        if left + 26 + 7 * len(name) > _WIDE:
            legend, left = legend + 18, 0.0
        content += svg.text_at(left, legend, f"{symbol} {name}")
        left += 26 + 7 * len(name)
    title = f"{counted(len(histories.samples), 'synthetic patient')} with their rows and events"
    head = ("Patient", "Follow-up ends", *(f"Rows of {table}" for table in histories.timed))
    return Picture(
        svg.picture("samples-picture", title, legend + 8, content, _WIDE),
        "",
        (*head, "Events"),
        tuple(_sample_row(one) for one in histories.samples),
    )


def _patient(one: SamplePatient, top: float, edge: float, x: Place, names: Sequence[str]) -> Markup:
    start, stop = x(one.first), x(max(one.last, one.first))
    content = svg.text_at(edge - 6, top + 13, str(one.key), "end")
    content += svg.rect("track", start, top + 2, max(stop - start, 1.0), _BAR - 5)
    lane = (_BAR - 5) / max(1, len(one.rows))
    for number, days in enumerate(one.rows):
        y = top + 2 + number * lane
        for day in days:
            ends = [(x(day), y + 0.5), (x(day), y + lane - 0.5)]
            content += svg.line(_TICKS[number % 4], ends)
    for event, day in one.events:
        symbol = _SYMBOLS[names.index(event) % len(_SYMBOLS)]
        content += svg.text_at(x(day), top + 14, symbol, "middle")
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
