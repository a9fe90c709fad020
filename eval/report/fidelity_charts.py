"""Pictures of fidelity as specs of plotly: plain data, drawn by the page when it comes into view.

A spec is ``{"data": traces, "layout": layout}`` with three agreements that the page's script keeps:
a text that begins with "$" is a colour of the page (light, dark or print); ``labels``, if there,
are the full names of the positions 0, 1, ... for the pointer; what all pictures share (fonts,
margins, grid) is not in them. All text is escaped for plotly, which reads a little HTML.

Whatever is shown is an aggregate: no picture holds a person's row.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report.formatting import cut, shown

Spec = dict[str, Any]
Numbers = Sequence[float | None]
Matrix = Sequence[Numbers]

TICKS = 6  # labels along a numeric axis
ROOM = 36  # letters of them, on a phone


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
    ticks = max(2, min(TICKS, ROOM // (max(map(len, ends), default=0) + 2)))
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
