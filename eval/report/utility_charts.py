"""Pictures of what models and analysts find, and of several tables side by side, as specs.

See `dpsynth.eval.report.fidelity_charts` for what a spec is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report.fidelity_charts import Spec, points, rows, short, text

FAR = 50.0  # ratios beyond it, or below its inverse, are off the picture

_EVEN = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False} | {
    "line": {"color": "$quiet", "dash": "dot", "width": 1}
}
# A model's lines: trained on the synthetic table, trained on the source.
_LINES: dict[str, Spec] = {
    "synthetic": {"color": "$synthetic", "width": 2.4, "dash": "solid"},
    "source": {"color": "$source", "width": 2, "dash": "dash"},
}


def roc(curves: Mapping[str, Any]) -> Spec:
    """Draw the trade of false against true positives of two models."""
    data: list[Spec] = [_EVEN | {"x": [0, 1], "y": [0, 1]}]
    for name in ("source", "synthetic"):
        if (curve := curves.get(name)) is not None:
            line: Spec = {"type": "scatter", "mode": "lines", "name": f"trained on {name}"}
            line |= {"x": short(curve["fpr"]), "y": short(curve["tpr"]), "line": _LINES[name]}
            data.append(line)
    x = {"range": [0, 1], "title": {"text": "false positive rate"}, "tickformat": ".1f"}
    y = {"range": [0, 1.02], "title": {"text": "true positive rate"}, "tickformat": ".1f"}
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "hovermode": "closest"}}


def calibration(bins: Mapping[str, Any]) -> Spec:
    """Draw what was observed against what two models predicted."""
    every = [b for name in ("source", "synthetic") for b in bins.get(name) or []]
    numbers = [b[side] for b in every for side in ("predicted", "observed")]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    data: list[Spec] = [_EVEN | {"x": [low, high], "y": [low, high]}]
    for name in ("source", "synthetic"):
        if part := bins.get(name):
            marks = points(name, [], [])["marker"] | {"size": 7}
            line: Spec = {"type": "scatter", "mode": "lines+markers", "name": f"trained on {name}"}
            line |= {"x": short([b["predicted"] for b in part]), "line": _LINES[name]}
            line |= {"y": short([b["observed"] for b in part]), "marker": marks}
            data.append(line)
    x, y = {"title": {"text": "predicted"}}, {"title": {"text": "observed"}}
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "hovermode": "closest"}}


def importances(terms: Sequence[Mapping[str, Any]]) -> Spec:
    """Draw how much each column matters to two models."""
    y = list(range(len(terms)))
    bar = {"type": "bar", "orientation": "h", "name": "source", "width": 0.72, "y": y}
    bar |= {"x": short([one["source"] for one in terms]), "marker": {"color": "$source-fill"}}
    return {
        "data": [bar, points("synthetic", short([one["synthetic"] for one in terms]), y)],
        "labels": [text(term["column"], 60) for term in terms],
        "layout": {
            "yaxis": rows([text(one["column"]) for one in terms]),
            "xaxis": {"title": {"text": "permutation importance"}},
            "hovermode": "y unified",
        },
    }


def forest(terms: Sequence[Mapping[str, Any]], title: str) -> Spec:
    """Draw ratios with intervals: source above, synthetic table below, a pair for each term."""
    data: list[Spec] = []
    numbers: list[float] = [1.0]
    for name, shift in (("source", -0.17), ("synthetic", 0.17)):
        ones = [(y, t[name]) for y, t in enumerate(terms) if (t.get(name) or {}).get("value")]
        marks = points(name, short([one["value"] for _, one in ones]), [y + shift for y, _ in ones])
        data.append(marks | {"error_x": _bars([one for _, one in ones], f"${name}")})
        numbers += [one[end] for _, one in ones for end in ("value", "low", "high") if one.get(end)]
    low, high = (math.log10(min(max(end, 1 / FAR), FAR)) for end in (min(numbers), max(numbers)))
    room = 0.05 + 0.03 * (high - low)
    x: Spec = {"type": "log", "range": [low - room, high + room], "title": {"text": title}}
    x |= {"dtick": "D2" if high - low < 2 else 1, "tickformat": "~g"}
    none = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1}
    none |= {"line": {"color": "$quiet", "dash": "dot", "width": 1}}
    layout = {"yaxis": rows([text(term["term"], 26) for term in terms]), "xaxis": x}
    return {
        "data": data,
        "labels": [text(term["term"], 60) for term in terms],
        "layout": layout | {"hovermode": "closest", "shapes": [none]},
    }


def _gap(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else round(max(0.0, high - low), 4)


def survival(curve: Mapping[str, Any], time: str) -> Spec:
    """Draw the share without the event against time, with the interval of the source."""
    x = short(curve["times"])
    step = {"type": "scatter", "mode": "lines", "x": x}
    data: list[Spec] = []
    if curve.get("source_low") and curve.get("source_high"):
        none = {"color": "$source", "width": 0, "shape": "hv"}
        band = step | {"line": none, "hoverinfo": "skip"}
        data.append(band | {"y": short(curve["source_low"]), "name": "low"})
        filled = {"fill": "tonexty", "fillcolor": "$band", "name": "interval"}
        data.append(band | filled | {"y": short(curve["source_high"])})
    for name in ("source", "synthetic"):
        if curve.get(name):
            line = _LINES[name] | {"shape": "hv"}
            data.append(step | {"y": short(curve[name]), "name": name, "line": line})
    y = {"range": [0, 1.02], "tickformat": ".0%", "title": {"text": "without event"}}
    axis = {"title": {"text": text(time, 40)}, "rangemode": "tozero"}
    return {"data": data, "layout": {"xaxis": axis, "yaxis": y, "hovermode": "x unified"}}


def candidates(names: Sequence[str], ones: Sequence[Mapping[str, Any] | None]) -> Spec:
    """Draw one measure of several tables with intervals, each one's holdout as an open diamond."""
    known = [(y, one) for y, one in enumerate(ones) if one is not None]
    references = [(y, one["reference"]) for y, one in known if one.get("reference") is not None]
    lines = [y for y, _ in known]
    marks = points("synthetic", short([one["value"] for _, one in known], 5), lines)
    data = [marks | {"error_x": _bars([one for _, one in known]), "name": "table"}]
    if references:
        places, values = zip(*references, strict=True)
        diamonds = points("holdout", short(values, 5), places)
        data.insert(0, diamonds | {"name": "reference"})
    layout = {"yaxis": rows([text(name, 20) for name in names]), "xaxis": {"nticks": 5}}
    labels = [text(name, 60) for name in names]
    return {"data": data, "labels": labels, "layout": layout | {"hovermode": "y unified"}}


def against_epsilon(
    lines: Mapping[str, Sequence[tuple[float, str, Mapping[str, Any]]]],
) -> Spec:
    """Draw one measure against epsilon, a line for each model: (epsilon, name, estimate)."""
    data: list[Spec] = []
    dashes, shapes = ("solid", "dash", "dot", "dashdot"), ("circle", "square", "diamond", "x")
    for place, (model, runs) in enumerate(lines.items()):
        turn = place % len(dashes)
        line: Spec = {"type": "scatter", "mode": "lines+markers", "name": text(model)}
        line |= {"x": [one[0] for one in runs], "text": [text(one[1], 40) for one in runs]}
        line |= {"y": short([one[2]["value"] for one in runs], 5), "showlegend": True}
        line |= {"error_y": _bars([one[2] for one in runs], f"$line-{turn}")}
        line["line"] = {"color": f"$line-{turn}", "dash": dashes[turn], "width": 2}
        line["marker"] = {"color": f"$line-{turn}", "symbol": shapes[turn], "size": 8}
        data.append(line)
    values = sorted({one[0] for runs in lines.values() for one in runs})
    x = {"type": "log", "title": {"text": "epsilon"}, "tickmode": "array", "tickvals": values}
    x["ticktext"] = [f"{value:g}" for value in values]
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    layout = {"xaxis": x, "yaxis": {"nticks": 5}, "showlegend": len(lines) > 1, "legend": legend}
    references = [run[2].get("reference") for runs in lines.values() for run in runs]
    if known := [reference for reference in references if reference is not None]:
        ends = [values[0], values[-1]]
        dots = {"type": "scatter", "mode": "lines", "name": "reference", "showlegend": False}
        dots |= {"x": ends, "y": short([sum(known) / len(known)] * 2, 5)}
        data.insert(0, dots | {"line": {"color": "$holdout", "dash": "dot", "width": 1.8}})
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def _bars(ones: Sequence[Mapping[str, Any]], colour: str = "$synthetic") -> Spec:
    """Return intervals as bars on both sides of a mark."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [_gap(one["value"], one.get("high")) for one in ones],
        "arrayminus": [_gap(one.get("low"), one["value"]) for one in ones],
        "color": colour,
        "thickness": 1.8,
        "width": 0,
    }
