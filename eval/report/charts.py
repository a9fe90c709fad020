"""Pictures of a report as specs of plotly: plain data, drawn by the page when it comes into view.

A spec is ``{"data": traces, "layout": layout}`` with three agreements that the page's script keeps:
a text that begins with "$" is a colour of the page (light, dark or print); ``labels``, if there,
are the full names of the positions 0, 1, ... for the pointer; what all pictures share (fonts,
margins, grid) is not in them. All text is escaped for plotly, which reads a little HTML.

Whatever is shown is an aggregate: no picture holds a person's row. A line of one patient is always
of a synthetic one; real patients are shown as shares, curves and quantiles only.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.report.formatting import cut, percent, shown

Spec = dict[str, Any]
Numbers = Sequence[float | None]
Matrix = Sequence[Numbers]

TICKS = 6  # labels along a numeric axis
LETTERS = 36  # letters of them, on a phone


def text(label: object, maximum: int = 22) -> str:
    """Give a label of plotly: short, and with nothing in it that plotly would read as HTML."""
    return html.escape(cut(label, maximum), quote=False)


def short(numbers: Numbers, places: int = 4) -> list[float | None]:
    """Round to so many decimals, so that the page stays small."""
    return [None if one is None else round(float(one), places) for one in numbers]


def distribution(column: Mapping[str, Any]) -> Spec:
    """Draw a column: source as bars, synthetic table and holdout on them."""
    return (_bins if column["kind"] == "numeric" else _categories)(column)


def _bins(column: Mapping[str, Any]) -> Spec:
    labels, count = column["bins"], len(column["bins"])
    line: Spec = {"mode": "lines", "type": "scatter"}
    data: list[Spec] = []
    if column.get("source") is not None:
        bar: Spec = {"type": "bar", "name": "source", "y": short(column["source"]), "width": 1}
        data.append(bar | {"marker": {"color": "$source-fill", "line": {"width": 0}}})
    for name, dash, width in (("synthetic", "solid", 2.2), ("holdout", "dot", 1.6)):
        if column.get(name) is not None:
            stroke = {"color": f"${name}", "dash": dash, "width": width, "shape": "hvh"}
            data.append(line | {"name": name, "y": short(column[name]), "line": stroke})
    ends = [edge(label) for label in labels]
    ticks = max(2, min(TICKS, LETTERS // (max(map(len, ends), default=0) + 2)))
    places = list(range(0, count, max(1, -(-count // ticks))))
    x = {"tickmode": "array", "tickvals": places, "range": [-0.5, count - 0.5], "tickangle": 0}
    x["ticktext"] = [text(ends[place], 10) for place in places]
    y = {"tickformat": ".0%", "rangemode": "tozero", "nticks": 5}
    return {
        "data": data,
        "labels": [text(label, 40) for label in labels],
        "layout": {"xaxis": x, "yaxis": y, "hovermode": "x unified", "bargap": 0},
    }


def edge(label: str) -> str:
    """Give the lower end of a bin's label, for a short axis.

    >>> edge("[18, 22)"), edge("18 to 22"), edge("up to 17"), edge("2019-01-01 to 2019-02-01")
    ('18', '18', '≤17', '2019-01-01')
    """
    inner = shown(label).strip("[]() ")
    if inner.startswith("up to "):
        return f"≤{inner.removeprefix('up to ')}"
    for mark in (" to ", ", ", "–", " - ", ".."):
        if mark in inner:
            return inner.split(mark)[0].strip()
    return inner


def _categories(column: Mapping[str, Any]) -> Spec:
    count = len(column["bins"])
    y = list(range(count))
    data: list[Spec] = []
    if column.get("source") is not None:
        bar: Spec = {"type": "bar", "orientation": "h", "name": "source", "y": y, "width": 0.72}
        data.append(bar | {"x": short(column["source"]), "marker": {"color": "$source-fill"}})
    for name in ("holdout", "synthetic"):
        if column.get(name) is not None:
            data.append(points(name, short(column[name]), y))
    return {
        "data": data,
        "labels": [text(label, 60) for label in column["bins"]],
        "layout": {
            "yaxis": rows([text(label, 18) for label in column["bins"]]),
            "xaxis": {"tickformat": ".0%", "rangemode": "tozero", "nticks": 4},
            "hovermode": "y unified",
        },
    }


def rows(names: Sequence[str]) -> Spec:
    """Return an axis of named lines, the first on top."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": [len(names) - 0.4, -0.6],
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
    }


def points(name: str, x: Numbers, y: Sequence[float]) -> Spec:
    """Return marks of a table in its shape: square, circle or open diamond."""
    shape = {"source": "square", "synthetic": "circle", "holdout": "diamond-open"}[name]
    marker = {"symbol": shape, "size": 9, "color": f"${name}", "line": {"width": 1.6}}
    if name != "holdout":
        marker["line"] = {"width": 0}
    trace = {"type": "scatter", "mode": "markers", "name": name, "marker": marker}
    return trace | {"x": list(x), "y": list(y)}


def matrix(
    names: Sequence[str], values: Matrix, *, scale: str, low: float, high: float, places: int = 3
) -> Spec:
    """Draw a matrix over pairs of columns; scale "$sequential" or "$diverging"."""
    whole = [html.escape(shown(name), quote=False) for name in names]
    small = 10 if len(names) <= 25 else 8
    axis = {"type": "category", "tickmode": "array", "tickvals": whole, "showgrid": False}
    axis |= {"ticktext": [text(name, 16) for name in names], "tickfont": {"size": small}}
    trace: Spec = {
        "type": "heatmap",
        "x": whole,
        "y": whole,
        "z": [short(r, places) for r in values],
    }
    trace |= {"colorscale": scale, "zmin": round(low, 4), "zmax": round(high, 4), "xgap": 1}
    trace |= {"ygap": 1, "hoverongaps": False, "hovertemplate": "%{y}<br>%{x}<br>%{z}"}
    return {
        "data": [trace | {"colorbar": {"thickness": 10, "len": 0.9, "outlinewidth": 0}}],
        "layout": {
            "xaxis": axis | {"tickangle": -60, "automargin": True},
            "yaxis": axis | {"autorange": "reversed", "automargin": True},
        },
        "zoom": True,
    }


def difference(source: Matrix, synthetic: Matrix) -> list[list[float | None]]:
    """Return synthetic minus source, cell by cell; nothing where either has nothing."""
    return [
        [None if a is None or b is None else b - a for a, b in zip(*pair, strict=True)]
        for pair in zip(source, synthetic, strict=True)
    ]


def reach(values: Matrix, minimum: float = 0.05) -> float:
    """Return the largest absolute value of a matrix, or ``least`` where that is more."""
    return max([minimum, *(abs(one) for row in values for one in row if one is not None)])


def density(x: Numbers, y: Numbers, shares: Matrix, maximum: float, axes: Sequence[str]) -> Spec:
    """Draw a histogram of two dimensions; root shares, so that thin parts are seen."""
    roots = [[None if not one else round(float(one) ** 0.5, 4) for one in row] for row in shares]
    trace: Spec = {"type": "heatmap", "x": short(x, 3), "y": short(y, 3), "z": roots}
    trace |= {"colorscale": "$sequential", "zmin": 0, "zmax": round(maximum**0.5, 4)}
    trace |= {"showscale": False, "hoverinfo": "skip"}
    return {
        "data": [trace],
        "layout": {
            "xaxis": {"title": {"text": axes[0]}, "zeroline": False},
            "yaxis": {"title": {"text": axes[1]}, "zeroline": False},
            "plot_bgcolor": "$map",
        },
    }


def error_quantiles(queries: Mapping[str, Any]) -> Spec:
    """Draw quantiles of the errors of counting queries, by table."""
    levels = list(queries["error_quantiles"]["synthetic"])
    data = []
    for name in ("holdout", "synthetic"):
        if (errors := queries["error_quantiles"].get(name)) is not None:
            data.append(points(name, short(list(errors.values()), 6), range(len(levels))))
    if (errors := queries["error_quantiles"].get("chance")) is not None:
        marker = {"symbol": "line-ns-open", "size": 15, "color": "$ink", "line": {"width": 2}}
        trace = {"type": "scatter", "mode": "markers", "name": "by chance", "marker": marker}
        data.insert(0, trace | {"x": short(list(errors.values()), 6), "y": [*range(len(levels))]})
    return {
        "data": data,
        "labels": [quantile(level) for level in levels],
        "layout": {
            "yaxis": rows([quantile(level) for level in levels]),
            "xaxis": {"rangemode": "tozero", "title": {"text": "error, share of rows"}},
            "hovermode": "y unified",
        },
    }


def quantile(level: str) -> str:
    """Say a quantile.

    >>> quantile("0.5"), quantile("0.99"), quantile("1")
    ('median', '99 of 100', 'worst')
    """
    names = {"0.5": "median", "1": "worst", "1.0": "worst"}
    return names.get(level, f"{100 * float(level):g} of 100")


def ranking(names: Sequence[str], values: Numbers) -> Spec:
    """Draw one figure of each of some columns as bars."""
    y = list(range(len(names)))
    bar = {"type": "bar", "orientation": "h", "x": short(values), "y": y, "width": 0.6}
    return {
        "data": [bar | {"name": "importance", "marker": {"color": "$synthetic"}}],
        "labels": [text(name, 60) for name in names],
        "layout": {
            "yaxis": rows([text(name) for name in names]),
            "xaxis": {"rangemode": "tozero", "title": {"text": "importance"}},
            "hovermode": "y unified",
        },
    }


MIN_RATE = 1e-5  # rate at which the axes of curves end at the latest
DASHES = ("solid", "dash", "dot", "dashdot")  # of curves, in turn, with the colours line-0 ...
FAR_CLAIM = 20.0  # times the other leaks: a claim beyond it is not drawn

_CURVE: Spec = {"type": "scatter", "mode": "lines"}
_STILL = _CURVE | {"hoverinfo": "skip"}


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
        trace = _CURVE | {"x": [round(max(x, low), 7) for x, _ in pairs], "line": line}
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
    shows_claim = claimed is not None and claimed <= FAR_CLAIM * max([1.0, *others])
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
        trace = _CURVE | {"x": short(histogram["edges"]), "y": [*shares, shares[-1]]}
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


FAR_RATIO = 50.0  # ratios beyond it, or below its inverse, are off the picture

_EVEN = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False} | {
    "line": {"color": "$quiet", "dash": "dot", "width": 1}
}
# A model's lines: trained on the synthetic table, trained on the source.
_MODEL_LINES: dict[str, Spec] = {
    "synthetic": {"color": "$synthetic", "width": 2.4, "dash": "solid"},
    "source": {"color": "$source", "width": 2, "dash": "dash"},
}


def roc(curves: Mapping[str, Any]) -> Spec:
    """Draw the trade of false against true positives of two models."""
    data: list[Spec] = [_EVEN | {"x": [0, 1], "y": [0, 1]}]
    for name in ("source", "synthetic"):
        if (curve := curves.get(name)) is not None:
            line: Spec = {"type": "scatter", "mode": "lines", "name": f"trained on {name}"}
            line |= {"x": short(curve["fpr"]), "y": short(curve["tpr"]), "line": _MODEL_LINES[name]}
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
            line |= {"x": short([b["predicted"] for b in part]), "line": _MODEL_LINES[name]}
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
    low, high = (
        math.log10(min(max(end, 1 / FAR_RATIO), FAR_RATIO)) for end in (min(numbers), max(numbers))
    )
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
            line = _MODEL_LINES[name] | {"shape": "hv"}
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


YEAR = 365.25
LONG = 3 * YEAR  # days from which on time is shown in years
SYMBOLS = ("diamond", "square", "triangle-up", "x", "star", "pentagon", "hexagon", "cross")
HISTORY_TICKS = 7
LANES = 0.7  # of the distance between two patients, for the rows of all tables
ROOMY = 4  # tables whose ticks have room in a line of the usual height


def line_height(whole: Mapping[str, Any]) -> int:
    """Return the height of a sample patient's line, in pixels: each table has room."""
    tables = {row.get("table", row["title"]) for one in whole["samples"] for row in one["rows"]}
    return max(26, 6 * len(tables))


def histogram(labels: Sequence[str], sides: Mapping[str, Any]) -> Spec:
    """Draw shares of bins of each cohort, up to the last bin that any of them has."""
    known = [side for side in sides.values() if side]
    used = max(
        (place + 1 for side in known for place, share in enumerate(side) if share), default=1
    )
    cut = {name: None if side is None else side[:used] for name, side in sides.items()}
    spec = distribution({"kind": "numeric", "bins": list(labels[:used]), **cut})
    ticks = list(range(0, used, max(1, -(-used // HISTORY_TICKS))))
    names = [text(_start(labels[place]) if used > 6 else labels[place], 10) for place in ticks]
    spec["layout"]["xaxis"] |= {"tickvals": ticks, "ticktext": names}
    return spec


def _start(label: str) -> str:
    """Give the lower end of a bin, with its unit.

    >>> _start("6–9 mo"), _start("8–10"), _start("same day")
    ('6 mo', '8', 'same day')
    """
    first, mark, rest = label.partition("–")
    unit = rest.partition(" ")[2]
    return f"{first} {unit}".strip() if mark else first


def days(values: Sequence[float], whole: Mapping[str, Any]) -> list[float | None]:
    """Return days in the unit of the axis."""
    return short([value / YEAR if in_years(whole) else value for value in values], 3)


def in_years(whole: Mapping[str, Any]) -> bool:
    """Say whether the window is so long that time is shown in years."""
    return bool(whole["last"] - whole["first"] > LONG)


def axis(whole: Mapping[str, Any], *, timed: bool) -> Spec:
    """Return the axis of time, or of the number of a row."""
    if not timed:
        title = {"text": "row of the patient"}
        return {"title": title, "rangemode": "tozero", "tick0": 0, "tickformat": "d", "nticks": 8}
    unit = "years" if in_years(whole) else "days"
    return {"title": {"text": f"{unit} since day 0"}, "zeroline": True}


def followed(whole: Mapping[str, Any]) -> Spec:
    """Draw sample patients, a line each: follow-up, rows as strokes, events as marks.

    The rows of each table have a lane of their own within the line, whatever their test is.
    """
    samples = whole["samples"]
    timed = whole["timed"]
    strokes: dict[str, tuple[list[Any], list[Any]]] = {}
    marks: dict[str, tuple[list[Any], list[Any]]] = {}
    data: list[Spec] = []
    for place, one in enumerate(samples):
        at = [x for series in one["rows"] for x in series["at"]]
        first, last = min([0, *at]), one["end"] if timed else max([0, *at])
        x = days([first, max(last, first)], whole) if timed else [first, last]
        data.append(
            {"type": "scatter", "mode": "lines", "x": x, "y": [place, place], "hoverinfo": "skip",
             "line": {"color": "$rule", "width": 6}, "showlegend": False}
        )  # fmt: skip
        for series in one["rows"]:
            xs, ys = strokes.setdefault(series.get("table", series["title"]), ([], []))
            xs += days(series["at"], whole) if timed else series["at"]
            ys += [place] * len(series["at"])
        for event in one["events"]:
            xs, ys = marks.setdefault(event["event"], ([], []))
            xs += days([event["day"]], whole)
            ys.append(place)
    for number, (name, (xs, ys)) in enumerate(strokes.items()):
        apart = min(0.18, LANES / max(1, len(strokes) - 1))
        shift = apart * (number - (len(strokes) - 1) / 2)
        colour = f"$line-{(0, 2, 3)[number % 3]}"
        size = 6 if len(strokes) <= ROOMY else 4
        mark = {"symbol": "line-ns-open", "size": size, "color": colour, "line": {"width": 1.5}}
        data.append(_row_marks(name, xs, [y + shift for y in ys], mark))
    for number, (name, (xs, ys)) in enumerate(marks.items()):
        symbol = SYMBOLS[number % len(SYMBOLS)] + ("-open" if number >= len(SYMBOLS) else "")
        mark = {"symbol": symbol, "size": 9, "color": "$holdout", "line": {"width": 1.5}}
        data.append(_row_marks(name, xs, ys, mark))
    legend = {"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0, "font": {"size": 11}}
    layout: Spec = {"yaxis": rows([text(one["label"], 26) for one in samples])}
    layout |= {"xaxis": axis(whole, timed=timed), "hovermode": "closest", "legend": legend}
    margin = {"l": 46, "r": 14, "t": 8, "b": 110}
    return {"data": data, "layout": layout | {"showlegend": True, "margin": margin}}


def _row_marks(name: str, x: Sequence[Any], y: Sequence[float], marker: Spec) -> Spec:
    trace: Spec = {"type": "scatter", "mode": "markers", "name": text(name, 30), "x": list(x)}
    return trace | {"y": list(y), "marker": marker, "showlegend": True}


def telling(names: Sequence[str], values: Sequence[float]) -> Spec:
    """Draw how much each trait helps to tell histories apart; names begin alike, so are long."""
    spec = ranking(names, values)
    spec["layout"]["yaxis"] = rows([text(name, 48) for name in names])
    return spec


def courses(entry: Mapping[str, Any], whole: Mapping[str, Any], real: Any = None) -> Spec:
    """Draw values of synthetic patients as lines, and quantiles of real ones as a band."""
    timed = entry["timed"]

    def x(values: Sequence[float]) -> list[Any]:
        return days(values, whole) if timed else list(values)

    data: list[Spec] = []
    for line in entry["lines"]:
        thin = {"color": "$synthetic", "width": 0.8}
        data.append(
            {"type": "scatter", "mode": "lines+markers", "x": x(line["x"]), "y": line["y"],
             "line": thin, "marker": {"size": 3, "color": "$synthetic"}, "opacity": 0.45,
             "connectgaps": True, "hoverinfo": "skip"}
        )  # fmt: skip
    for name, band in (("source", real), ("synthetic", entry.get("band"))):
        if band:
            data += _band(name, band, x(band["x"]), filled=name == "source")
    y = {"title": {"text": text(entry["unit"] or entry["column"], 20)}, "nticks": 6}
    layout = {"xaxis": axis(whole, timed=timed), "yaxis": y, "hovermode": "x unified"}
    return {"data": data, "layout": layout}


def _band(name: str, band: Mapping[str, Any], x: Sequence[Any], *, filled: bool) -> list[Spec]:
    line = {"type": "scatter", "mode": "lines", "x": list(x)}
    data: list[Spec] = []
    if filled:
        none = {"color": f"${name}", "width": 0}
        data.append(line | {"y": band["low"], "line": none, "name": "low", "hoverinfo": "skip"})
        fill = {"fill": "tonexty", "fillcolor": "$band", "name": "8 of 10", "hoverinfo": "skip"}
        data.append(line | {"y": band["high"], "line": none} | fill)
    dash = "dash" if name == "source" else "solid"
    stroke = {"color": f"${name}", "width": 2.6, "dash": dash}
    return [*data, line | {"y": band["middle"], "line": stroke, "name": f"{name}, median"}]
