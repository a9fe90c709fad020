"""Pictures as inline SVG: static, small, coloured by the page's own classes, named for readers.

Every picture has ``role="img"`` and a title, which is what a screen reader says; the page gives the
same figures as a table. Coordinates are rounded to tenths, so that equal figures give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from dpsynth._util.formatting import shown

WIDTH = 320.0  # of every picture, in its own units; about as many pixels on a phone
_ROW = 30.0
_MAX_LABEL_LENGTH = 40  # letters of a label beside a figure


def picture(key: str, title: str, height: float, content: Markup, width: float = WIDTH) -> Markup:
    """Frame the content of a picture.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        height: in the units of the picture.
        content: elements.
        width: likewise.
    """
    return Markup(
        '<svg role="img" aria-labelledby="{0}" viewBox="0 0 {1} {2}"><title id="{0}">{3}</title>'
        "{4}</svg>"
    ).format(key, place_text(width), place_text(height), shown(title), content)


def histogram(key: str, title: str, shares: Sequence[float], low: str, high: str) -> Markup:
    """Draw upright bars, side by side; the ends of the axis are named.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        shares: heights of the bars; the highest fills the picture.
        low: name of the left end.
        high: name of the right end.
    """
    top, base = 6.0, 90.0
    largest = max(shares, default=0.0) or 1.0
    width = WIDTH / max(1, len(shares))
    gap = min(2.0, 0.15 * width)
    content = Markup("")
    for place, share in enumerate(shares):
        if share > 0:
            height = max((base - top) * share / largest, 1.0)  # what occurs is seen
            content += rect("mark", place * width + gap / 2, base - height, width - gap, height)
    content += Markup('<path class="axis" d="M0,{0}H{1}"/>').format(
        place_text(base), place_text(WIDTH)
    )
    content += text_at(0, base + 15, low) + text_at(WIDTH, base + 15, high, "end")
    return picture(key, title, base + 21, content)


def shares_of(key: str, title: str, rows: Sequence[tuple[str, float, str]]) -> Markup:
    """Draw one lying bar for each row, under its label.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        rows: label, share of the whole, and the share as text.
    """
    content = Markup("")
    for place, (label, share, words) in enumerate(rows):
        top = place * _ROW
        length = max(WIDTH * share, 1.0 if share > 0 else 0.0)
        content += text_at(0, top + 13, _short(label)) + text_at(WIDTH, top + 13, words, "end")
        content += rect("track", 0, top + 18, WIDTH, 7) + rect("mark", 0, top + 18, length, 7)
    return picture(key, title, len(rows) * _ROW, content)


def hundred(key: str, title: str, before: float, after: float) -> Markup:
    """Draw a hundred squares: so many are filled before, so many more afterwards at most.

    A part of a square counts as a whole one.
    """
    first = math.ceil(100 * before - 1e-9)
    last = max(first, math.ceil(100 * after - 1e-9))
    content = Markup("")
    for name, places in (
        ("before", range(first)),
        ("gained", range(first, last)),
        ("track", range(last, 100)),
    ):
        squares = "".join(f"M{12 * (n % 10) + 1},{12 * (n // 10) + 1}h10v10h-10z" for n in places)
        if squares:
            content += Markup('<path class="{}" d="{}"/>').format(name, squares)
    return picture(key, title, 121, content, 121)


def intervals(
    key: str, title: str, rows: Sequence[tuple[str, float, float, float, str]], maximum: float
) -> Markup:
    """Draw a dot and its interval for each row, on one axis from 0 to ``most``.

    Args:
        key: unique on the page.
        title: what it shows, in words.
        rows: label, value, low, high, and the value as text.
        maximum: right end of the axis.
    """
    content = Markup("")
    for place, (label, value, low, high, words) in enumerate(rows):
        top = place * _ROW
        x, left, right = (
            min(max(end / maximum, 0.0), 1.0) * (WIDTH - 8) + 4 for end in (value, low, high)
        )
        content += text_at(0, top + 13, _short(label)) + text_at(WIDTH, top + 13, words, "end")
        content += Markup('<path class="axis" d="M0,{0}H{1}"/>').format(
            place_text(top + 21), place_text(WIDTH)
        )
        content += rect("band", left, top + 18, max(right - left, 1.0), 6)
        content += Markup('<circle class="mark" cx="{}" cy="{}" r="4"/>').format(
            place_text(x), place_text(top + 21)
        )
    return picture(key, title, len(rows) * _ROW, content)


def agreement(key: str, title: str, points: Sequence[tuple[float, float]]) -> Markup:
    """Draw points (predicted, observed) in the unit square, with the line where both agree."""
    side, edge = 150.0, 14.0

    def x(value: float) -> float:
        return edge + min(max(value, 0.0), 1.0) * (side - edge - 4)

    def y(value: float) -> float:
        return side - x(value)

    content = Markup('<path class="axis" d="M{0},{1}H{2}M{0},{1}V{3}"/>').format(
        place_text(x(0)), place_text(y(0)), place_text(x(1)), place_text(y(1))
    )
    content += Markup('<path class="dashed" d="M{},{}L{},{}"/>').format(
        place_text(x(0)), place_text(y(0)), place_text(x(1)), place_text(y(1))
    )
    for predicted, observed in points:
        content += Markup('<circle class="mark" cx="{}" cy="{}" r="3.5"/>').format(
            place_text(x(predicted)), place_text(y(observed))
        )
    content += text_at(side / 2, side - 2, "predicted", "middle")
    content += Markup(
        '<text class="small" transform="translate(9,{}) rotate(-90)">{}</text>'
    ).format(place_text(side / 2 + 26), "observed")
    return picture(key, title, side, content, side)


def rect(name: str, x: float, y: float, width: float, height: float) -> Markup:
    """Draw a rectangle of a class of the page."""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        name, place_text(x), place_text(y), place_text(width), place_text(height)
    )


def text_at(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    """Write a text; its invisible characters are named."""
    where = "" if anchor == "start" else Markup(' text-anchor="{}"').format(anchor)
    return Markup('<text x="{}" y="{}"{}>{}</text>').format(
        place_text(x), place_text(y), where, escape(shown(text))
    )


def _short(label: str) -> str:
    """Leave out the middle of a long label: names of one kind differ at their ends.

    >>> _short("laboratory results of the ward, steps: days between rows")
    'laboratory results…s: days between rows'
    """
    if len(label) <= _MAX_LABEL_LENGTH:
        return label
    half = (_MAX_LABEL_LENGTH - 1) // 2
    return f"{label[:half].rstrip()}…{label[half - _MAX_LABEL_LENGTH + 1 :].lstrip()}"


def line(name: str, points: Sequence[tuple[float, float]]) -> Markup:
    """Draw a line of a class of the page through points."""
    steps = "L".join(f"{place_text(x)},{place_text(y)}" for x, y in points)
    return Markup('<path class="{}" d="M{}"/>').format(name, steps)


def place_text(value: float) -> str:
    """Write a coordinate: at most one decimal, and no minus zero."""
    return f"{round(value, 1) + 0.0:g}"
