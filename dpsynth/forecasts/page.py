"""A forecast as a page of one file, and as a folder of that page and ``forecast.json``.

The page holds nothing private: all its figures are of simulated fits. It has no script, and asks no
network for anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from dpsynth._util.formatting import counted, figure, percent, quantity
from dpsynth._util.html import environment
from dpsynth._util.strict_json import written
from dpsynth._util.svg import intervals
from dpsynth.files import atomic_folder, check_vacant, check_writable
from dpsynth.forecasts.pictures import curve, pairs_map

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
