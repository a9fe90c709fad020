"""A panel: lines with bands between two axes, as inline SVG with the classes of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dpsynth._util import svg

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
