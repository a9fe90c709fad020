"""Pages of answers, of one file: tables with their intervals, what the noise is, and curves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import figure, figure_at_most, percent
from dpsynth._util.html import environment
from dpsynth.certificate import Certificate, attack_conditions, protected, readings
from dpsynth.privacy import (
    Event,
    KeyCounts,
    LaplaceCounts,
    RowSums,
    StaySums,
    noise_of_periods,
    units_of,
)
from dpsynth.stats.answer_request import AnswerRequest, Result
from dpsynth.stats.axes import MISSING

MAX_ROWS = 60
MAX_DRAWN = 30
_VALUES = ("count", "variance", "mean", "value")
_BESIDE = ("number", "own weight", "mean", "sd", "sd: lower", "sd: upper")  # figures beside them
MAX_PANELS = 6
_POINTS = 360  # of a line; more are drawn as means of neighbours
_MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T[0-9]{2}:00)?)?)?")
_LEAST_MOMENTS = 6
_OF_COUNTS = ("count", "lower", "upper", "smooth", "smooth: lower", "smooth: upper")


@dataclass(frozen=True)
class _Shown:
    words: str
    number: bool


def rendered(
    request: AnswerRequest,
    certificate: Certificate | None,
    stamps: Sequence[str],
    values: Mapping[str, object],
) -> str:
    """Render the page of answers, with what they mean for one person; it holds what files hold.

    Args:
        request: what was asked.
        certificate: of the answers; None where no ledger was charged for them.
        stamps: reasons why they may not be released.
        values: what the template needs besides.
    """
    shared: dict[str, object] = {
        "kind": request.kind.title,
        "title": request.title,
        "stamps": ", ".join(stamps),
    }
    if certificate is not None:
        shared |= {
            "who": units_of(certificate.unit),
            "epsilon": f"{certificate.epsilon:g}",
            "delta": f"{certificate.delta:g}",
            "protected": protected(certificate.unit, certificate.tables),
            "readings": readings(certificate),
            "attack_conditions": attack_conditions(certificate.unit),
        }
    return _environment().get_template(request.kind.template).render(shared | dict(values))


@cache
def _environment() -> Environment:
    pages = environment("dpsynth.stats")
    pages.filters |= {"bound": figure_at_most, "figure": figure}
    return pages


def sections_of(events: Mapping[str, Event], results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return what the page of statistics shows of each table."""
    return [_section(events, one, place) for place, one in enumerate(results)]


def _section(events: Mapping[str, Event], result: Result, place: int) -> dict[str, Any]:
    table = result.table
    shown = table.head(MAX_ROWS)
    curves, undrawn = curves_of(result.name, table, f"s{place}")
    return {
        "name": result.name,
        "noise": _noise(events, result),
        "curves": curves,
        "undrawn": undrawn,
        "picture": None if curves else _picture(result.name, table, place),
        "columns": list(table.columns),
        "rows": [[_cell(cell) for cell in row] for row in shown.to_numpy().tolist()],
        "more": len(table) - len(shown),
    }


def _noise(events: Mapping[str, Event], result: Result) -> str:
    """Say how much noise each figure has."""
    sds = [
        figure(event.sigma / event.largest)
        for name, event in events.items()
        if isinstance(event, RowSums) and name in (result.name, f"{result.name}: numbers")
    ]
    words = f"Discrete Gaussian noise, standard deviation {sds[0]} on each count." if sds else ""
    words += "".join(
        f"Discrete Laplace noise, standard deviation {figure(event.sd)} on each count."
        for name, event in events.items()
        if isinstance(event, LaplaceCounts) and name == result.name
    )
    words += "".join(
        f"Only those with a noisy count of {event.threshold:,} or more are listed, with noise of "
        f"standard deviation {figure(event.sigma)}; intervals allow for that."
        for name, event in events.items()
        if isinstance(event, KeyCounts) and name == result.name
    )
    event = events.get(result.name)
    if isinstance(event, StaySums):
        sd = figure(float(noise_of_periods(event)[-1]))
        words = f"Noise of standard deviation {sd} or less on each number, alike in neighbours."
    if "smooth" in result.table:
        words += (
            " In pictures, the strong line is the smooth one with its interval, and the thin one "
            "is that of the noisy numbers."
        )
    if result.gain > 0.005:
        words += f" Agreement with the other tables cuts its variance by {percent(result.gain)}."
    if result.facts:
        words += f" Test: {', '.join(f'{name} {value:g}' for name, value in result.facts.items())}."
    return words.strip()


def _picture(name: str, table: pd.DataFrame, place: int) -> Markup | None:
    """Draw the intervals of a table whose values are numbers from 0."""
    value = next((label for label in _VALUES if label in table), None)
    if value is None or not 1 < len(table) <= MAX_DRAWN:
        return None
    numbers = table[[value, "lower", "upper"]]
    if not all(pd.api.types.is_numeric_dtype(kind) for kind in numbers.dtypes):
        return None
    largest = float(numbers.max().max())
    if largest <= 0 or float(numbers["lower"].min()) < 0:
        return None
    labels = [column for column in table.columns if column not in (*numbers.columns, *_BESIDE)]
    words = [", ".join(_cell(cell).words for cell in row) for row in table[labels].to_numpy()]
    middle, low, high = (numbers[label].astype(float).tolist() for label in numbers.columns)
    rows = list(zip(words, middle, low, high, map(_words, middle), strict=True))
    return svg.intervals(f"s{place}", name, rows, largest)


def _cell(cell: Any) -> _Shown:
    if isinstance(cell, float):
        return _Shown(_words(cell), number=True)
    return _Shown(str(cell), number=isinstance(cell, int))


def _words(value: float) -> str:
    """Write numbers of a column alike: whole from 100 on, and with their digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else figure(value)


@dataclass(frozen=True)
class Drawn:
    """A picture with its caption."""

    caption: str
    picture: Markup


@dataclass(frozen=True)
class _Group:
    name: str
    rows: pd.DataFrame


def curves_of(name: str, table: pd.DataFrame, key: str) -> tuple[list[Drawn], int]:
    """Draw the curves of a table.

    Args:
        name: of the statistic.
        table: its result.
        key: unique on the page; panels add their number.

    Returns:
        Pictures, none where the table holds no curve, and how many groups are not drawn.
    """
    if {"before", "event", "share"} <= set(table):
        return _incidence(name, table, key)
    if {"before", "survival"} <= set(table):
        return _survival(name, table, key)
    if "count" in table and (time := _time(table)) is not None:
        return _series(name, table, key, time)
    return [], 0


def _groups(table: pd.DataFrame, columns: Sequence[str]) -> list[_Group]:
    """Split a table by columns, in its own order."""
    if not columns:
        return [_Group("", table)]
    found = table.groupby(list(columns), sort=False)
    return [_Group(", ".join(map(str, label)), rows) for label, rows in found]


def _survival(name: str, table: pd.DataFrame, key: str) -> tuple[list[Drawn], int]:
    """Draw all groups in one panel, or a panel each where they are many."""
    columns = list(table.columns[: table.columns.get_loc("before")])
    groups = _groups(table, columns)
    together = [groups] if len(groups) <= MAX_LINES else [[group] for group in groups]
    pictures = []
    for number, chosen in enumerate(together[:MAX_PANELS]):
        curves = [_falling(group, "survival", 1.0) for group in chosen]
        words = f"Survival of {_several(chosen)}"
        pictures.append(_by_cut(f"{key}-{number}", name, words, curves, table))
    return pictures, max(0, len(together) - MAX_PANELS)


def _incidence(name: str, table: pd.DataFrame, key: str) -> tuple[list[Drawn], int]:
    """Draw a panel for each group, with a line for each event; survival is what is left of it."""
    columns = list(table.columns[: table.columns.get_loc("event")])
    groups = _groups(table, columns)
    pictures = []
    for number, group in enumerate(groups[:MAX_PANELS]):
        kinds = _groups(group.rows, ["event"])[:-1]
        for part in range(0, len(kinds), MAX_LINES):
            curves = [_falling(one, "share", 0.0) for one in kinds[part : part + MAX_LINES]]
            words = f"Incidence of {_several(kinds[part : part + MAX_LINES])}"
            words += f": {group.name}" if group.name else ""
            pictures.append(_by_cut(f"{key}-{number}-{part}", name, words, curves, table))
    return pictures, max(0, len(groups) - MAX_PANELS)


def _falling(group: _Group, column: str, begin: float) -> Curve:
    """Return a curve by cuts; before the first one is what all begin with."""
    rows = group.rows
    cuts = rows["before"].astype(float).tolist()
    first = 0.0 if cuts[0] > 0 else cuts[0] - (cuts[-1] - cuts[0] or 1.0) / max(1, len(cuts) - 1)
    values = [[begin, *rows[label].astype(float).tolist()] for label in (column, "lower", "upper")]
    return Curve(group.name, [first, *cuts], *values)


def _by_cut(key: str, name: str, words: str, curves: Sequence[Curve], table: pd.DataFrame) -> Drawn:
    cuts = table["before"].drop_duplicates().astype(float).tolist()
    step = -(-len(cuts) // 8)
    ticks = [(cut, f"{cut:g}") for cut in cuts[step - 1 :: step]]
    highest = max(max(curve.high) for curve in curves)
    maximum = next((one for one in (0.1, 0.25, 0.5) if highest <= one), 1.0)
    picture = panel(key, f"{name}: {words}", curves, ticks, maximum, before="before", percent=True)
    return Drawn(words, picture)


def _time(table: pd.DataFrame) -> str | None:
    """Find the column of periods."""
    for column in table.columns[: table.columns.get_loc("count")]:
        labels = [label for label in table[column].drop_duplicates() if label != MISSING]
        if len(labels) >= _LEAST_MOMENTS and all(
            isinstance(label, str) and _MOMENT.fullmatch(label) for label in labels
        ):
            return str(column)
    return None


def _series(name: str, table: pd.DataFrame, key: str, time: str) -> tuple[list[Drawn], int]:
    """Draw a panel for each group, on one scale."""
    table = table[table[time] != MISSING]
    columns = [column for column in table.columns if column not in (time, *_OF_COUNTS)]
    groups, smooth = _groups(table, columns), "smooth" in table
    labels = table[time].drop_duplicates().tolist()
    width = -(-len(labels) // _POINTS)
    curves = [_line(group, width, smooth=smooth) for group in groups]
    tops = [max(*curve.high, *(curve.raw or [0.0])) for curve in curves]
    maximum = max(*tops, 1.0)
    starts = list(range(0, len(labels), width))
    places = sorted({0, len(starts) // 3, 2 * len(starts) // 3, len(starts) - 1})
    ticks = [(float(place), labels[starts[place]]) for place in places]
    pictures = []
    for number, (group, curve) in enumerate(zip(groups[:MAX_PANELS], curves, strict=False)):
        words = f"{labels[0]} to {labels[-1]}" + (f": {group.name}" if group.name else "")
        words += f"; each point is the mean of {width} periods" if width > 1 else ""
        picture = panel(f"{key}-{number}", f"{name}: {words}", [curve], ticks, maximum)
        pictures.append(Drawn(words, picture))
    return pictures, max(0, len(groups) - MAX_PANELS)


def _line(group: _Group, width: int, *, smooth: bool) -> Curve:
    rows = group.rows
    names = ("smooth", "smooth: lower", "smooth: upper") if smooth else ("count", "lower", "upper")
    middle, low, high, raw = (_means(rows[column], width) for column in (*names, "count"))
    x = [float(place) for place in range(len(middle))]
    return Curve("", x, middle, low, high, raw if smooth else None)


def _means(column: pd.Series[float], width: int) -> list[float]:
    """Return means of so many neighbours; the last one may be of fewer."""
    values = column.to_numpy(dtype=float)
    starts = np.arange(0, len(values), width)
    counts = np.diff(np.append(starts, len(values)))
    return [float(value) for value in np.add.reduceat(values, starts) / counts]


def _several(groups: Sequence[_Group]) -> str:
    return " and ".join(group.name for group in groups) or "all"


WIDTH = 480.0
MAX_LINES = 4  # that colours and dashes tell apart
_TOP, _BASE, _LEFT, _RIGHT = 10.0, 170.0, 44.0, WIDTH - 8
_LETTER = 6.2  # width of one in a legend, about


@dataclass(frozen=True)
class Curve:
    """A line with its band.

    Attributes:
        name: for the legend; empty where there is one line alone.
        x: of its points.
        middle: of the line.
        low: lower end of the band.
        high: upper end of the band.
        raw: noisy numbers behind the line, drawn thin; None where the line is of them.
    """

    name: str
    x: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    raw: Sequence[float] | None = None


def panel(
    key: str,
    title: str,
    curves: Sequence[Curve],
    ticks: Sequence[tuple[float, str]],
    maximum: float,
    *,
    before: str = "",
    percent: bool = False,
) -> Markup:
    """Draw curves on one pair of axes; heights go from 0 to the maximum.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        curves: at most `MAX_LINES`.
        ticks: places on the axis of x, with their words.
        maximum: top of the axis of y; what lies above it is cut.
        before: a word before those of the ticks.
        percent: whether heights are shares.
    """
    first, last = (pick(x for curve in curves for x in curve.x) for pick in (min, max))
    span = (last - first) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        height = min(max(y / maximum, 0.0), 1.0)
        return _LEFT + (_RIGHT - _LEFT) * (x - first) / span, _BASE - (_BASE - _TOP) * height

    content = Markup("")
    for height in _heights(maximum):
        _, y = place(first, height)
        content += svg.line("axis" if height == 0 else "grid", [(_LEFT, y), (_RIGHT, y)])
        words = f"{100 * height:.0f} %" if percent else f"{height:,.10g}"
        content += svg.text_at(_LEFT - 5, y + 4, words, "end")
    for number, curve in enumerate(curves, 1):
        edge = [place(x, y) for x, y in zip(curve.x, curve.high, strict=True)]
        edge += [place(x, y) for x, y in zip(curve.x, curve.low, strict=True)][::-1]
        content += svg.line(f"area-{number}", [*edge, edge[0]])
    for number, curve in enumerate(curves, 1):
        if curve.raw is not None:
            points = [place(x, y) for x, y in zip(curve.x, curve.raw, strict=True)]
            content += svg.line(f"raw-{number}", points)
        points = [place(x, y) for x, y in zip(curve.x, curve.middle, strict=True)]
        content += svg.line(f"line-{number}", points)
    content += svg.text_at(_LEFT - 5, _BASE + 16, before, "end") if before else Markup("")
    for x, words in ticks:
        left, _ = place(x, 0)
        anchor = "start" if left < _LEFT + 20 else "end" if left > _RIGHT - 20 else "middle"
        content += svg.line("axis", [(left, _BASE), (left, _BASE + 4)])
        content += svg.text_at(left, _BASE + 16, words, anchor)
    legend, height = _legend(curves)
    return svg.picture(key, title, height, content + legend, WIDTH)


def _heights(maximum: float) -> list[float]:
    """Return 0 and round heights up to a maximum: two to five of them.

    >>> _heights(1.0), _heights(870)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 200.0, 400.0, 600.0, 800.0])
    """
    if maximum == 1.0:
        return [0.0, 0.25, 0.5, 0.75, 1.0]
    unit = 10.0 ** math.floor(math.log10(maximum))
    step = next(part * unit for part in (0.2, 0.5, 1.0, 2.0) if maximum / (part * unit) < 6)
    return [step * n for n in range(int(maximum / step * (1 + 1e-12)) + 1)]


def _legend(curves: Sequence[Curve]) -> tuple[Markup, float]:
    """Name the lines below the axis, and say how high the whole picture is."""
    content, left, top = Markup(""), _LEFT, _BASE + 38
    if not any(curve.name for curve in curves):
        return content, _BASE + 22
    for number, curve in enumerate(curves, 1):
        width = 36 + _LETTER * len(curve.name)
        if left > _LEFT and left + width > WIDTH:
            left, top = _LEFT, top + 18
        content += svg.line(f"line-{number}", [(left, top - 4), (left + 22, top - 4)])
        content += svg.text_at(left + 27, top, curve.name)
        left += width + 10
    return content, top + 6
