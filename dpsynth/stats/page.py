"""Statistics as a page of one file: each table with its intervals, and what the noise is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

from dpsynth._util.formatting import figure, figure_at_most, percent
from dpsynth._util.html import environment
from dpsynth._util.svg import intervals
from dpsynth.certificate import Certificate, protected, readings
from dpsynth.privacy import (
    Event,
    KeyCounts,
    LaplaceCounts,
    RowSums,
    StaySums,
    noise_of_periods,
    units_of,
)
from dpsynth.schema import AnySchema
from dpsynth.stats.pictures import curves_of
from dpsynth.stats.results import Result

MAX_ROWS = 60
MAX_DRAWN = 30
_VALUES = ("count", "variance", "mean", "value")
_BESIDE = ("number", "own weight", "mean", "sd", "sd: lower", "sd: upper")  # figures beside them


@dataclass(frozen=True)
class _Cell:
    words: str
    number: bool


def statistics_page(
    schema: AnySchema,
    certificate: Certificate,
    confidence: float,
    stamps: Sequence[str],
    results: Sequence[Result],
) -> str:
    """Return the page of statistics as HTML; it holds what their files hold, and nothing else.

    Args:
        schema: of the table, or of linked ones.
        certificate: of the statistics.
        confidence: of their intervals.
        stamps: reasons why they may not be released.
        results: their tables.
    """
    events = {event.name: event for event in certificate.events}
    return rendered(
        "statistics.html",
        certificate,
        stamps,
        title=schema.title or schema.name,
        confidence=f"{100 * confidence:g} %",
        results=[_section(events, one, place) for place, one in enumerate(results)],
    )


def rendered(
    template: str, certificate: Certificate, stamps: Sequence[str], **values: object
) -> str:
    """Render a page of something that was answered, with what it means for one person.

    Args:
        template: its name.
        certificate: of the answers.
        stamps: reasons why they may not be released.
        values: what the template needs besides.
    """
    shared = {
        "who": units_of(certificate.unit),
        "epsilon": f"{certificate.epsilon:g}",
        "delta": f"{certificate.delta:g}",
        "stamps": ", ".join(stamps),
        "protected": protected(certificate.unit, certificate.tables),
        "readings": readings(certificate),
    }
    return _environment().get_template(template).render(shared | values)


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
    return intervals(f"s{place}", name, rows, largest)


def _cell(cell: Any) -> _Cell:
    if isinstance(cell, float):
        return _Cell(_words(cell), number=True)
    return _Cell(str(cell), number=isinstance(cell, int))


def _words(value: float) -> str:
    """Write numbers of a column alike: whole from 100 on, and with their digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else figure(value)


@cache
def _environment() -> Environment:
    pages = environment("dpsynth.stats")
    pages.filters |= {"bound": figure_at_most, "figure": figure}
    return pages
