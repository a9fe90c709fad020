"""Pictures of an audit as specs: curves of attackers, leaks on one axis, distances, rates.

See `dpsynth.eval.report.fidelity_charts` for what a spec is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.report.fidelity_charts import Spec, points, rows, short, text
from dpsynth.eval.report.formatting import percent

MIN_RATE = 1e-5  # rate at which the axes of curves end at the latest
DASHES = ("solid", "dash", "dot", "dashdot")  # of curves, in turn, with the colours line-0 ...
FAR = 20.0  # times the other leaks: a claim beyond it is not drawn

_LINE: Spec = {"type": "scatter", "mode": "lines"}
_STILL = _LINE | {"hoverinfo": "skip"}


@dataclass(frozen=True)
class RocLine:
    """True against false positives of one attack.

    Attributes:
        name: of the attack.
        fpr: false positive rates, from few to all.
        tpr: true positive rates at them.
        least: one over the number of other people: no smaller rate can be seen.
    """

    name: str
    fpr: Sequence[float]
    tpr: Sequence[float]
    least: float


def curves(lines: Sequence[RocLine], ceiling: Mapping[str, Any] | None) -> Spec:
    """Draw curves with both axes logarithmic; what a claim rules out is shaded.

    A point without a false alarm stands at the left edge, and says so to the pointer.
    """
    low = max(MIN_RATE, min((curve.least for curve in lines), default=0.01))
    data: list[Spec] = []
    if ceiling is not None:
        x, y = _bound(ceiling, low)
        data.append(_STILL | {"x": x, "y": [1.0] * len(x), "line": {"width": 0}, "name": "top"})
        band = {"fill": "tonexty", "fillcolor": "$band", "line": {"color": "$ink", "width": 1.2}}
        data.append(_STILL | band | {"x": x, "y": y, "name": "most that the claim allows"})
    even = {"color": "$quiet", "dash": "dot", "width": 1}
    data.append(_STILL | {"x": [low, 1.0], "y": [low, 1.0], "line": even, "name": "guessing"})
    for place, curve in enumerate(lines):
        turn = place % len(DASHES)
        line = {"color": f"$line-{turn}", "dash": DASHES[turn], "width": 2.2}
        pairs = [(x, y) for x, y in zip(curve.fpr, curve.tpr, strict=True) if y >= low]
        trace = _LINE | {"x": [round(max(x, low), 7) for x, _ in pairs], "line": line}
        trace |= {"y": [round(y, 7) for _, y in pairs], "name": text(curve.name, 40)}
        trace |= {"text": [percent(x) for x, _ in pairs]}
        template = "%{y:.2%} of those in the data named<br>%{text} of others<extra>%{fullData.name}"
        data.append(trace | {"hovertemplate": f"{template}</extra>"})
    axis = _decades(low)
    titles = ("other people named wrongly", "people in the data named")
    x_axis, y_axis = (axis | {"title": {"text": title}} for title in titles)
    layout = {"xaxis": x_axis, "yaxis": y_axis | {"automargin": True}, "hovermode": "closest"}
    layout["margin"] = {"l": 46, "r": 30, "t": 8, "b": 46}  # room for the last label
    return {"data": data, "layout": layout}


def _bound(ceiling: Mapping[str, Any], low: float) -> tuple[list[float], list[float]]:
    """Return the curve that a claim allows, from the left edge to the right."""
    pairs = list(zip(ceiling["fpr"], ceiling["tpr"], strict=True))
    inside = [(x, y) for x, y in pairs if x > low] or [(1.0, 1.0)]
    (right, top), (left, bottom) = (
        inside[0],
        next((pair for pair in reversed(pairs) if pair[0] <= low), inside[0]),
    )
    slope = (top - bottom) / (right - left) if right > left else 0.0
    whole = [(low, bottom + slope * max(0.0, low - left)), *inside, (1.0, 1.0)]
    return [round(x, 7) for x, _ in whole], [round(max(y, low), 7) for _, y in whole]


def _decades(low: float) -> Spec:
    """Return a logarithmic axis of rates from ``low`` to 1, with room for the lines at its ends."""
    values = [10.0**power for power in range(math.ceil(math.log10(low) - 1e-9), 1)]
    names = [f"{100 * value:g} %" for value in values]
    ends = [math.log10(low) - 0.03, 0.03]
    axis: Spec = {"type": "log", "range": ends, "tickmode": "array", "zeroline": False}
    return axis | {"tickvals": values, "ticktext": names}


@dataclass(frozen=True)
class Leak:
    """What is known of epsilon through one attack.

    Attributes:
        name: of the attack.
        proved: epsilon is at least this; None if the attack proves no epsilon.
        seen: the least epsilon that would have been found; None if that is not known.
    """

    name: str
    proved: float | None
    seen: float | None


def leaks(claimed: float | None, attacks: Sequence[Leak]) -> Spec:
    """Draw epsilon as claimed, as proved by attacks, and as attacks would have seen it."""
    others = [value for one in attacks for value in (one.proved, one.seen) if value is not None]
    shows_claim = claimed is not None and claimed <= FAR * max([1.0, *others])
    names = [*(["Claimed"] if shows_claim else []), *(attack.name for attack in attacks)]
    first = 1 if shows_claim else 0
    data: list[Spec] = []
    shapes: list[Spec] = []
    proved = [(one.proved, y) for y, one in enumerate(attacks, first) if one.proved is not None]
    for value, y in proved:
        bar = {"color": "$synthetic", "width": 3}
        line = _STILL | {"x": [0, short([value])[0]], "y": [y, y], "line": bar}
        data.append(line | {"name": "proved"})
    some, none = ([pair for pair in proved if bool(pair[0]) is sign] for sign in (True, False))
    data.append(_marks("proved, at least", "triangle-right", "$synthetic", 13, some))
    data.append(_marks("nothing proved", "triangle-right-open", "$synthetic", 11, none))
    least = [(one.seen, y) for y, one in enumerate(attacks, first) if one.seen is not None]
    data.append(_marks("least leak that would have been seen", "square-open", "$line-2", 11, least))
    if shows_claim and claimed is not None:
        data.append(_marks("claimed: proof", "diamond", "$ink", 13, [(claimed, 0)]))
        line = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": claimed, "x1": claimed}
        shapes.append(line | {"line": {"color": "$ink", "dash": "dash", "width": 1.4}})
        others.append(claimed)
    top = max([0.5, *others])
    x = {"range": [-0.02 * top, 1.08 * top], "title": {"text": "epsilon"}, "nticks": 8}
    return {
        "data": [trace for trace in data if trace["x"]],
        "labels": [text(name, 60) for name in names],
        "layout": {
            "yaxis": rows([text(name, 24) for name in names]),
            "xaxis": x | {"zeroline": True},
            "hovermode": "closest",
            "shapes": shapes,
        },
    }


def _marks(
    name: str, symbol: str, colour: str, size: int, pairs: Sequence[tuple[float | None, float]]
) -> Spec:
    marker: Spec = {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2}}
    if not symbol.endswith("-open"):
        marker["line"] = {"width": 0}
    trace: Spec = {"type": "scatter", "mode": "markers", "name": name, "marker": marker}
    return trace | {"x": short([x for x, _ in pairs]), "y": [y for _, y in pairs]}


def distances(histogram: Mapping[str, Any]) -> Spec:
    """Draw how far synthetic rows are from people in the data and from others, as outlines."""
    data: list[Spec] = []
    for name, side, dash, width in (
        ("source", "to people in the data", "solid", 2.4),
        ("holdout", "to other people", "dot", 2.0),
    ):
        shares = short(histogram[name], 5)
        stroke = {"color": f"${name}", "dash": dash, "width": width, "shape": "hv"}
        trace = _LINE | {"x": short(histogram["edges"]), "y": [*shares, shares[-1]]}
        data.append(trace | {"name": side, "line": stroke})
    x = {"rangemode": "tozero", "title": {"text": "distance to the nearest person"}}
    y = {"tickformat": ".0%", "rangemode": "tozero", "nticks": 5}
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "hovermode": "x unified"}}


def successes(names: Sequence[str], attacks: Sequence[Mapping[str, Any]]) -> Spec:
    """Draw rates of success, people in the data above and other people below, with intervals."""
    data: list[Spec] = []
    for side, table, label, shift in (
        ("members", "source", "people in the data", -0.15),
        ("controls", "holdout", "other people", 0.15),
    ):
        rates = [one[side] for one in attacks]
        marks = points(table, short([rate["value"] for rate in rates], 6), [])
        marks |= {"y": [place + shift for place in range(len(rates))], "name": label}
        bars = {"type": "data", "symmetric": False, "color": f"${table}", "thickness": 1.8}
        bars |= {
            "array": short([max(0.0, one["high"] - one["value"]) for one in rates], 6),
            "arrayminus": short([max(0.0, one["value"] - one["low"]) for one in rates], 6),
        }
        data.append(marks | {"error_x": bars | {"width": 0}})
    ends = [float(attack[side]["high"]) for attack in attacks for side in ("members", "controls")]
    top = max([0.01, *ends])
    x = {"tickformat": "~%", "range": [-0.03 * top, 1.08 * top], "nticks": 5}
    return {
        "data": data,
        "labels": [text(name, 60) for name in names],
        "layout": {
            "yaxis": rows([text(name, 28) for name in names]),
            "xaxis": x | {"title": {"text": "success, with its interval of 95 %"}},
            "hovermode": "closest",
        },
    }
