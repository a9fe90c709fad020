"""The pictures of a forecast, as SVG: curves on logarithmic axes, and a map of pairs of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from dpsynth._util.formatting import quantity
from dpsynth._util.svg import WIDTH, line, picture, place_text, rect, text_at

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
