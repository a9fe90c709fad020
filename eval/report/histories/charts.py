"""Pictures of histories as specs: sample patients, courses, counts, gaps and curves.

See `dpsynth.eval.report.fidelity_charts` for what a spec is. A line of one patient is always of a
synthetic one; real patients are shown as shares, curves and quantiles only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report.fidelity_charts import Spec, distribution, ranking, rows, short, text

YEAR = 365.25
LONG = 3 * YEAR  # days from which on time is shown in years
SYMBOLS = ("diamond", "square", "triangle-up", "x", "star", "pentagon", "hexagon", "cross")
TICKS = 7
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
    ticks = list(range(0, used, max(1, -(-used // TICKS))))
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
        data.append(_marks(name, xs, [y + shift for y in ys], mark))
    for number, (name, (xs, ys)) in enumerate(marks.items()):
        symbol = SYMBOLS[number % len(SYMBOLS)] + ("-open" if number >= len(SYMBOLS) else "")
        mark = {"symbol": symbol, "size": 9, "color": "$holdout", "line": {"width": 1.5}}
        data.append(_marks(name, xs, ys, mark))
    legend = {"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0, "font": {"size": 11}}
    layout: Spec = {"yaxis": rows([text(one["label"], 26) for one in samples])}
    layout |= {"xaxis": axis(whole, timed=timed), "hovermode": "closest", "legend": legend}
    margin = {"l": 46, "r": 14, "t": 8, "b": 110}
    return {"data": data, "layout": layout | {"showlegend": True, "margin": margin}}


def _marks(name: str, x: Sequence[Any], y: Sequence[float], marker: Spec) -> Spec:
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
