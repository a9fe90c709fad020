"""The picture of quality.py's results: error against epsilon, a row a table, a column a measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quality_results import (
    BOOTSTRAP,
    CEILING,
    GAP,
    TRAIN_TEST,
    Cell,
    Group,
    Line,
    floors,
    summary,
)

from dpsynth.models.registry import AUTO, NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# colours of Okabe and Ito (2008), which colour-blind readers tell apart; with shapes as well
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#56B4E9", "v"),
    ("#E69F00", "X"),
)
AUTO_STYLE = ("#000000", "*")
GREY = "#6b6b6b"
CEILING_STYLE = (GREY, "P")
TELL = "c2st_excess"
COLUMNS = {
    "tvd2": ("Pairs of columns", "TVD2"),
    "tvd3": ("Triples of columns", "TVD3"),
    GAP: ("Usefulness lost", "TSTR below real to real"),
    TELL: ("Told from real", "C2ST above .5"),
}
LEAST = {GAP: 1e-3, TELL: 3e-3}  # what is lower, or negative, is drawn here: axes are logarithmic
PEERS_TABLE = ("cardio", "row")
ORDER = ("cardio", "diabetes130", "brfss2015")


def styles(models: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Give each generator a colour and a marker, the same whichever others were measured."""
    known = sorted({*NAMES, *models} - {AUTO, CEILING})
    looks = {model: STYLES[i % len(STYLES)] for i, model in enumerate(known)}
    looks |= {CEILING: CEILING_STYLE, AUTO: AUTO_STYLE}
    return {model: looks[model] for model in looks if model in set(models)}


def error(measures: Mapping[str, float], measure: str) -> float | None:
    """Return what a panel shows of a line of measures, no less than its axis can; None if absent.

    Args:
        measures: by the scorer's names, with `GAP` or with both AUROC that it is made of.
        measure: a key of `COLUMNS`.
    """
    if measure == TELL:
        value = measures["c2st_auc"] - 0.5 if "c2st_auc" in measures else None
    else:
        value = measures.get(measure)
    return None if value is None else max(value, LEAST.get(measure, 1e-4))


def peer_slots(peers: list[dict[str, str]]) -> list[tuple[int, dict[str, str], float]]:
    """Number the peers with a finite epsilon and set those of equal epsilon side by side.

    Returns:
        The number that a package's points share, its row, and where it stands on the epsilon axis:
        one alone a little aside, so that it does not cover the generators.
    """
    finite = [row for row in peers if math.isfinite(float(row["epsilon"]))]
    numbers = {name: i + 1 for i, name in enumerate(dict.fromkeys(row["peer"] for row in finite))}
    slots = []
    for epsilon in dict.fromkeys(row["epsilon"] for row in finite):
        same = [row for row in finite if row["epsilon"] == epsilon]
        width = min(0.31, 0.06 * (len(same) - 1))  # in powers of ten, either side
        for i, row in enumerate(same):
            shift = 0.06 if len(same) == 1 else width * (2 * i / (len(same) - 1) - 1)
            slots.append((numbers[row["peer"]], row, float(epsilon) * 10**shift))
    return slots


def _look(model: str) -> dict[str, Any]:
    """Return what a line looks like besides its colour and marker: ``auto`` lies over another."""
    return {
        "markersize": 9 if model == AUTO else 5.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.7,
        "linestyle": (0, (1, 1.5)) if model == AUTO else "-",
        "linewidth": 1.7,
    }


def _lines(axes: Axes, cells: Mapping[Group, Cell], case: tuple[str, str], measure: str) -> None:
    looks = styles({group[2] for group in cells})
    for model, (colour, marker) in looks.items():
        found = sorted((g[3], cells[g]) for g in cells if (g[0], g[1], g[2]) == (*case, model))
        points = []
        for epsilon, cell in found:
            means = {name: mean.value for name, mean in cell.means.items()}
            value = error(means, measure)
            if value is not None:
                source = "c2st_auc" if measure == TELL else measure
                points.append((epsilon, value, cell.means[source].half_range))
        if not points:
            continue
        x, y, half = zip(*points, strict=True)
        minimum = LEAST.get(measure, 1e-4)
        down = [v - max(v - h, minimum) for v, h in zip(y, half, strict=True)]
        axes.errorbar(
            x,
            y,
            yerr=[down, half],
            color=colour,
            marker=marker,
            elinewidth=1.2,
            zorder=4 if model == AUTO else 3,
            **_look(model),
        )


def _peers(axes: Axes, peers: list[dict[str, str]], real: float | None, measure: str) -> None:
    for label, row, epsilon in peer_slots(peers):
        measures = {name: float(row[name]) for name in ("tvd2", "tvd3", "c2st_auc")}
        if real is not None:
            measures[GAP] = real - float(row["tstr_hgb"])
        value = error(measures, measure)
        if value is None:
            continue
        axes.plot(epsilon, value, "o", markersize=8.6, color="#e9e9e9", mec=GREY, mew=0.6, zorder=5)
        axes.annotate(
            str(label),
            (epsilon, value),
            ha="center",
            va="center_baseline",
            fontsize=7,
            color="#303030",
            zorder=6,
        )


def draw(lines: list[Line], peers: list[dict[str, str]], path: Path, *, delta: float) -> None:
    """Write the picture as SVG; equal results give equal bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dpsynth"
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    cells, real = summary(lines, delta=delta), floors(lines)
    cases = sorted({group[:2] for group in cells}, key=_rank)
    epsilons = sorted({group[3] for group in cells})
    peers = peers if PEERS_TABLE in cases else []
    beside = [place for _, _, place in peer_slots(peers)]
    settings: dict[str, Any] = {
        "font.size": 10,
        "font.family": "DejaVu Sans",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#555555",
        "xtick.color": "#333333",
        "ytick.color": "#333333",
    }
    with plt.rc_context(settings):
        height, head, foot = 2.15 * len(cases), 0.75, 1.75
        total = height + head + foot
        figure, grid = plt.subplots(
            len(cases),
            len(COLUMNS),
            figsize=(10.5, total),
            sharex=True,
            sharey="col",
            squeeze=False,
        )
        figure.subplots_adjust(
            left=0.105,
            right=0.985,
            top=1 - head / total,
            bottom=foot / total,
            wspace=0.3,
            hspace=0.2,
        )
        for row, case in enumerate(cases):
            for column, (measure, names) in enumerate(COLUMNS.items()):
                axes = grid[row][column]
                axes.set_xscale("log")
                axes.set_yscale("log")
                for floor, dashes in ((TRAIN_TEST, (0, (5, 3))), (BOOTSTRAP, (0, (1, 2)))):
                    values = real.get((case[0], floor), {})
                    value = error(values, measure)
                    if value is not None and value > LEAST.get(measure, 0):
                        axes.axhline(value, color="#333333", linestyle=dashes, linewidth=1.1)
                if case == PEERS_TABLE:
                    trained = real.get((case[0], TRAIN_TEST), {}).get("tstr_hgb")
                    _peers(axes, peers, trained, measure)
                _lines(axes, cells, case, measure)
                axes.grid(axis="y", color="#e9e9e9", linewidth=0.8)
                axes.set_axisbelow(True)
                axes.set_xlim(epsilons[0] / 1.35, max(epsilons[-1], *beside, 1.0) * 1.35)
                axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
                axes.xaxis.set_minor_locator(NullLocator())
                axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
                axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".lstrip("0")))
                axes.yaxis.set_minor_formatter(NullFormatter())
                axes.tick_params(labelleft=True, labelsize=9)
                if row == 0:
                    axes.set_title(f"{names[0]}\n", fontsize=11, fontweight="bold", loc="left")
                    axes.text(0, 1.04, names[1], transform=axes.transAxes, fontsize=9.5, color=GREY)
                if row == len(cases) - 1:
                    axes.set_xlabel("epsilon")
            grid[row][0].set_ylabel(f"{case[0]}\n{case[1]}s as units", fontsize=10.5, labelpad=8)

        looks = styles({group[2] for group in cells})
        handles = [
            Line2D([], [], color=colour, marker=marker, label=name, **_look(name))
            for name, (colour, marker) in looks.items()
        ]
        handles += [
            Line2D([], [], color="#333333", linestyle=(0, (5, 3)), label="real test rows"),
            Line2D([], [], color="#333333", linestyle=(0, (1, 2)), label="bootstrap"),
        ]
        figure.legend(
            handles=handles,
            loc="lower center",
            bbox_to_anchor=(0.545, (foot - 0.92) / total),
            ncols=len(handles),
            frameon=False,
            columnspacing=1.5,
            handlelength=2.6,
        )
        if peers:
            _key(figure, peers, (foot - 1.0) / total, 0.19 / total)
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {"Date": None, "Creator": None, "Title": "Error against epsilon"}
        figure.savefig(path, format="svg", metadata=about, facecolor="white")
        plt.close(figure)


def _key(figure: Any, peers: list[dict[str, str]], top: float, step: float) -> None:
    """Name the numbered packages below the panels, in three columns."""
    named = {label: row["peer"] for label, row, _ in peer_slots(peers)}
    figure.text(
        0.105,
        top,
        "Other packages on cardio at epsilon 3 (side by side) and 1:",
        fontsize=9.5,
        color=GREY,
        va="top",
    )
    deep = math.ceil(len(named) / 3)
    for i, (label, name) in enumerate(sorted(named.items())):
        x, y = 0.105 + 0.3 * (i // deep), top - step * (1.15 + i % deep)
        figure.text(x, y, f"{label}  {name}", fontsize=9, color="#303030", va="top")


def _rank(case: tuple[str, str]) -> tuple[int, str, bool]:
    table, unit = case
    return (ORDER.index(table) if table in ORDER else len(ORDER), table, unit == "patient")
