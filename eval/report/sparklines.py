"""Small pictures within a line of text or a table: marks on a scale, drawn without a script.

The same shapes mean the same everywhere: a filled circle is the synthetic table, a square the
source, an open diamond the holdout, a stroke what chance makes. The figures stand beside them in
words, so that the pictures are hidden from screen readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

WIDTH, HEIGHT, EDGE = 220.0, 22.0, 8.0
TALL = 56.0  # height of a small histogram
_MIDDLE = HEIGHT / 2


def score(entry: Mapping[str, Any], reach: float | None = None) -> Markup:
    """Draw an estimate between its references; the best value is the strong stroke, to the left.

    The scale runs from the best value to the farthest mark, so a circle that is far to the right
    of the diamond is much worse than a holdout. ``reach`` is the distance from best at which the
    scale ends, where several pictures share one.
    """
    best = float(entry["best"])
    marks = [entry.get(name) for name in ("value", "low", "high", "reference", "chance")]
    away = [float(mark) - best for mark in marks if mark is not None]
    turn = -1.0 if sum(away) < 0 else 1.0  # where better is more, the scale is turned round
    away = [turn * distance for distance in away]
    start, end = min(0.0, *away), max(0.0, *away, reach or 0.0)
    span = (end - start) or 1.0

    def x(mark: float) -> float:
        return EDGE + (turn * (mark - best) - start) / span * (WIDTH - 2 * EDGE)

    parts = [_line("base", EDGE, WIDTH - EDGE), _stroke("best", x(best), HEIGHT / 2 - 1)]
    if entry.get("chance") is not None:
        parts.append(_stroke("chance", x(float(entry["chance"])), 6))
    if entry.get("low") is not None and entry.get("high") is not None:
        parts.append(_line("range", x(float(entry["low"])), x(float(entry["high"]))))
    if entry.get("reference") is not None:
        parts.append(_diamond(x(float(entry["reference"]))))
    parts.append(_circle(x(float(entry["value"]))))
    return _picture(parts)


def shares(
    source: float | None,
    synthetic: float | None,
    holdout: float | None = None,
    *,
    maximum: float,
    minimum: float = 0.0,
) -> Markup:
    """Draw a figure of each table on a scale from ``minimum`` to ``maximum``."""
    x = _scale(minimum, maximum)
    parts = [_line("base", EDGE, WIDTH - EDGE)]
    if source is not None and synthetic is not None:
        parts.append(_line("between", x(source), x(synthetic)))
    if source is not None:
        parts.append(_square(x(source)))
    if holdout is not None:
        parts.append(_diamond(x(holdout)))
    if synthetic is not None:
        parts.append(_circle(x(synthetic)))
    return _picture(parts)


def intervals(
    source: Mapping[str, Any], synthetic: Mapping[str, Any], *, minimum: float, maximum: float
) -> Markup:
    """Draw two estimates with their intervals, one above the other, on one scale."""
    x = _scale(minimum, maximum)
    parts = []
    for entry, name, y in ((source, "source", 6.0), (synthetic, "synthetic", 16.0)):
        if entry.get("value") is None:
            continue
        if entry.get("low") is not None and entry.get("high") is not None:
            parts.append(_line(f"of-{name}", x(float(entry["low"])), x(float(entry["high"])), y))
        mark = _square if name == "source" else _circle
        parts.append(mark(x(float(entry["value"])), y))
    return _picture(parts)


def _scale(minimum: float, maximum: float) -> Callable[[float], float]:
    """Return where a figure lies on a scale; what is beyond an end lies on it."""
    span = (maximum - minimum) or 1.0
    return lambda mark: EDGE + min(1.0, max(0.0, (mark - minimum) / span)) * (WIDTH - 2 * EDGE)


def _picture(parts: list[str]) -> Markup:
    body = "".join(parts)
    return Markup(
        f'<svg class="strip" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" aria-hidden="true" '
        f'focusable="false">{body}</svg>'
    )


def _line(kind: str, start: float, end: float, y: float = _MIDDLE) -> str:
    return f'<path class="{kind}" d="M{start:.1f},{y:.1f}H{end:.1f}"/>'


def _stroke(kind: str, x: float, half: float) -> str:
    return f'<path class="{kind}" d="M{x:.1f},{_MIDDLE - half:.1f}V{_MIDDLE + half:.1f}"/>'


def _circle(x: float, y: float = _MIDDLE) -> str:
    return f'<circle class="synthetic" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def _square(x: float, y: float = _MIDDLE) -> str:
    return f'<rect class="source" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'


def _diamond(x: float) -> str:
    return f'<path class="holdout" d="M{x - 6:.1f},{_MIDDLE:.1f}l6,-6l6,6l-6,6z"/>'


def outline(source: Sequence[float], synthetic: Sequence[float], *, joined: bool) -> Markup:
    """Draw shares of two tables: bars of the source, and a line (or circles) of the synthetic one.

    ``joined`` draws the synthetic shares as one line, as the bins of a number lie side by side.
    """
    count, top = max(1, len(source)), max([*source, *synthetic, 1e-9])
    step, room = (WIDTH - 2 * EDGE) / count, TALL - 2 * 4.0

    def height(share: float) -> float:
        return TALL - 4.0 - room * share / top

    bars = [
        f'<rect class="source-fill" x="{EDGE + step * place + 0.5:.1f}" y="{height(share):.1f}" '
        f'width="{max(1.0, step - 1):.1f}" height="{TALL - 4.0 - height(share):.1f}"/>'
        for place, share in enumerate(source)
    ]
    middles = [(EDGE + step * (place + 0.5), height(s)) for place, s in enumerate(synthetic)]
    if joined:
        points = "L".join(f"{x:.1f},{y:.1f}" for x, y in middles)
        marks = [f'<path class="line-synthetic" d="M{points}"/>']
    else:
        marks = [_circle(x, y) for x, y in middles]
    return Markup(
        f'<svg class="strip tall" viewBox="0 0 {WIDTH:.0f} {TALL:.0f}" aria-hidden="true" '
        f'focusable="false">{_line("base", EDGE, WIDTH - EDGE, TALL - 4.0)}'
        f"{''.join([*bars, *marks])}</svg>"
    )
