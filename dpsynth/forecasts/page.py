"""A forecast as a page of one file, and as a folder of that page and ``forecast.json``.

The page holds nothing private: all its figures are of simulated fits. It has no script, and asks no
network for anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from dpsynth._util.formatting import counted, figure, percent, quantity
from dpsynth._util.html import environment
from dpsynth._util.strict_json import written
from dpsynth._util.svg import WIDTH, intervals, line, picture, place_text, rect, text_at
from dpsynth.files import atomic_folder, check_vacant, check_writable

DOCUMENT, PAGE = "forecast.json", "forecast.html"
SHOWN_PAIRS = 10
MAX_MAPPED = 60  # columns of the map of pairs
WAYS = {"1": "one column", "2": "two columns", "3": "three columns"}
FIT = {"columns": 0.03, "pairs": 0.06}
"""Up to which distance an evaluation calls a table fit (docs/evaluation.md, "The answer")."""


def check_folder(folder: str | Path | None) -> None:
    """Refuse a folder that is there, before the time of a forecast is spent.

    Raises:
        InputError: it is in the way, or cannot be written.
    """
    if folder is not None:
        check_writable(folder)
        check_vacant(folder)


def write_forecast(folder: str | Path, document: Mapping[str, Any]) -> None:
    """Write a forecast as a document and as a page, whole or not at all."""
    with atomic_folder(folder) as temporary:
        (temporary / DOCUMENT).write_bytes(written(dict(document)))
        (temporary / PAGE).write_text(forecast_page(document), encoding="utf-8")


def forecast_page(document: Mapping[str, Any]) -> str:
    """Return the page of a forecast as HTML."""
    names = [column["name"] for column in document["columns"]["each"]]
    places = {name: place for place, name in enumerate(names)}
    pairs = document["pairs"]["each"]
    errors = {
        (places[first], places[second]): pair["expected"]
        for pair in pairs
        for first, second in [pair["columns"]]
    }
    mapped = None
    if errors and len(names) <= MAX_MAPPED:
        mapped = pairs_map("pairs-map", "Expected error of each pair of columns", names, errors)
    return (
        _environment()
        .get_template("forecast.html")
        .render(
            document=document,
            columns=_columns(document),
            worst_pairs=sorted(pairs, key=lambda pair: -pair["expected"])[:SHOWN_PAIRS],
            mapped=mapped,
            curves=_curves(document),
            of=error_words(document["error_of"]),
            ways=WAYS,
            fit=FIT,
        )
    )


def error_words(of: str) -> str:
    """Say what a wanted error is of."""
    words = {"pairs": "mean over pairs of columns", "columns": "mean over columns"}
    return words.get(of, f"column {of}")


def wanted_sentences(document: Mapping[str, Any]) -> list[str]:
    """Say which epsilon and which population would reach the wanted error; nothing if none is."""
    wanted = document["wanted"]
    if wanted is None:
        return []
    error = figure(wanted["error"])
    epsilon, units = wanted["epsilon"], wanted["population"]
    budget = f"delta {figure(document['delta'])}"
    if epsilon["reached"]:
        first = (
            f"Epsilon {epsilon['value']:g} with this population is expected to reach {error} "
            f"({figure(round(epsilon['expected'], 4))})."
        )
    else:
        first = (
            f"No epsilon up to {epsilon['value']:g} is expected to reach {error} with this "
            f"population: the error there is {figure(round(epsilon['expected'], 4))}."
        )
    if units["reached"]:
        second = (
            f"A population of {units['value']:,} at epsilon {document['epsilon']:g} is expected to "
            f"reach it ({figure(round(units['expected'], 4))})."
        )
    else:
        second = (
            f"No population below 1 over {budget} reaches it at epsilon {document['epsilon']:g}: "
            f"with {units['value']:,} the error is {figure(round(units['expected'], 4))}."
        )
    return [first, second]


def source_words(document: Mapping[str, Any]) -> str:
    """Say which rows a forecast was made from."""
    if document["like"] is not None:
        return f"rows drawn from the earlier release {document['like']}"
    return "rows drawn from public facts under three assumptions: typical, even and narrow"


def _columns(document: Mapping[str, Any]) -> Any:
    each = sorted(document["columns"]["each"], key=lambda column: -column["expected"])
    most = max((column["high"] for column in each), default=0.0) or 1.0
    rows = [
        (
            column["name"],
            column["expected"],
            column["low"],
            column["high"],
            f"{column['expected']:.4f}",
        )
        for column in each
    ]
    return intervals("columns-picture", "Expected error of each column", rows, most)


def _curves(document: Mapping[str, Any]) -> list[Any]:
    wanted = document["wanted"]
    error = None if wanted is None else wanted["error"]
    found = []
    for key, axis, title in (
        ("by_epsilon", "epsilon", "Error against epsilon, with this population"),
        ("by_population", "population", "Error against the population, at this epsilon"),
    ):
        points = [(float(point[axis]), point["error"]) for point in document[key]]
        if len(points) > 1:
            here = float(document[axis])
            found.append((title, curve(key, title, points, here, error, axis), points, axis))
    return found


@cache
def _environment() -> Environment:
    templates = environment(__package__)
    templates.filters |= {
        "error": lambda value: f"{value:.4f}",
        "figure": figure,
        "percent": percent,
        "quantity": quantity,
    }
    templates.globals |= {
        "counted": counted,
        "wanted_sentences": wanted_sentences,
        "source_words": source_words,
    }
    return templates


Points = Sequence[tuple[float, float]]

HEIGHT = 190.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 12.0, 14.0, 34.0
LEVELS = 5  # shades of the map of pairs
CELL = 14.0
MAX_NAME = 18  # letters of a column beside the map


def curve(
    key: str, title: str, points: Points, here: float, wanted: float | None, axis: str
) -> Markup:
    """Draw errors against epsilon or the population; both axes are logarithmic.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        points: places and errors, by place.
        here: the place that was asked for.
        wanted: an error, drawn as a dashed line; None if none is wanted.
        axis: what places are.
    """
    errors = [max(error, 1e-6) for _, error in points]
    ends = [*errors, *([wanted] if wanted else [])]
    x_low, x_high = math.log10(points[0][0]), math.log10(points[-1][0])
    y_low, y_high = math.log10(min(ends) / 1.3), math.log10(max(ends) * 1.3)

    def x(place: float) -> float:
        part = (math.log10(place) - x_low) / max(x_high - x_low, 1e-9)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(error: float) -> float:
        part = (math.log10(error) - y_low) / (y_high - y_low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    content = Markup("")
    for tick in _ticks(10**y_low, 10**y_high):
        content += line("grid", [(LEFT, y(tick)), (WIDTH - RIGHT, y(tick))])
        content += text_at(LEFT - 5, y(tick) + 4, quantity(tick), "end")
    for tick in _ticks(points[0][0], points[-1][0]):
        content += line("axis", [(x(tick), HEIGHT - BOTTOM), (x(tick), HEIGHT - BOTTOM + 4)])
        content += text_at(x(tick), HEIGHT - BOTTOM + 16, quantity(tick), "middle")
    content += line("axis", [(LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM)])
    if wanted is not None:
        content += line("dashed", [(LEFT, y(wanted)), (WIDTH - RIGHT, y(wanted))])
        content += text_at(WIDTH - RIGHT, y(wanted) - 4, f"wanted {quantity(wanted)}", "end")
    content += line("line", [(x(place), y(error)) for place, error in zip_errors(points)])
    for place, error in zip_errors(points):
        name = "here" if place == here else "mark"
        radius = 5.5 if place == here else 3.5
        content += Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(
            name, place_text(x(place)), place_text(y(error)), radius
        )
    content += text_at((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, axis, "middle")
    return picture(key, title, HEIGHT, content)


def zip_errors(points: Points) -> list[tuple[float, float]]:
    """Return the points, with errors that have a logarithm."""
    return [(place, max(error, 1e-6)) for place, error in points]


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two ends: 1, 2 and 5 times powers of ten, at most about six."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**p for p in powers for f in factors]
        inside = [float(f"{tick:.6g}") for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(inside) <= 6:
            break
    return inside


def pairs_map(
    key: str, title: str, names: Sequence[str], errors: Mapping[tuple[int, int], float]
) -> tuple[Markup, list[float], float]:
    """Draw the error of each pair of columns as a shade.

    Returns:
        The picture, the upper ends of the shades, and how wide the picture is, in letters.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        names: of the columns.
        errors: by the places of the columns, the lower one first.
    """
    most = max(errors.values(), default=0.0) or 1.0
    ends = [most * (level + 1) / LEVELS for level in range(LEVELS)]
    room = 6.6 * min(MAX_NAME, max(len(name) for name in names)) + 8
    side = len(names) * CELL
    content = Markup("")
    for j, name in enumerate(names):
        short = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
        content += text_at(room - 5, j * CELL + CELL - 3, short, "end")
        for i in range(j):
            error = errors.get((i, j))
            if error is None:
                continue
            level = min(LEVELS - 1, int(LEVELS * error / most))
            content += rect(
                f"shade{level}", room + i * CELL + 0.5, j * CELL + 0.5, CELL - 1, CELL - 1
            )
    return picture(key, title, side, content, room + side), ends, round((room + side) / 12, 1)
