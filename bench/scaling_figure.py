"""Draw what scaling.py printed: seconds of the processor for each row, against the number of rows.

usage: scaling_figure.py LINES PICTURE, such as bench/scaling.jsonl docs/scaling.svg
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

STAGES = (("reading", "#0072B2", "o"), ("histograms", "#D55E00", "s"))
WORDS = {"reading": "reading, coding and capping", "histograms": "counting, with noise"}


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of single fits; that of the slope is left out."""
    found = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    return [line for line in found if "rows" in line]


def draw(lines: list[dict[str, Any]], path: Path) -> float:
    """Draw the cost of a row by stage and in all; return the slope of the whole, log on log."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dpsynth"
    import matplotlib.pyplot as plt

    rows = np.array([line["rows"] for line in lines], dtype=float)
    costs = {
        stage: np.array([line[f"{stage}_processor"] for line in lines]) / rows * 1e6
        for stage, *_ in STAGES
    }
    whole = np.sum([*costs.values()], axis=0)
    slope, start = np.polyfit(np.log(rows), np.log(whole), 1)
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for stage, colour, marker in STAGES:
        axes.plot(rows, costs[stage], color=colour, marker=marker, label=WORDS[stage])
    axes.plot(rows, whole, color="#000000", marker="*", label="both")
    line = np.exp(start) * rows**slope
    axes.plot(rows, line, color="#6b6b6b", linestyle=":", label=f"slope {slope:.2f}")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="microseconds a row")
    ticks = [2, 3, 5, 10, 20, 50]
    axes.set_yticks(ticks, labels=[str(tick) for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(2, max(ticks[3], 1.2 * float(whole.max())))
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return float(slope)


def main() -> None:
    """Draw, and print the slope."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=Path)
    parser.add_argument("picture", type=Path)
    chosen = parser.parse_args()
    print(f"slope {draw(lines_of(chosen.lines), chosen.picture):.3f}")


if __name__ == "__main__":
    main()
