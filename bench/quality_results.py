"""The results file of quality.py: one JSON object a line, appended whole, and means over seeds.

A line's key is (table, unit, model, epsilon, delta, seed) for a fit and (table, "floor", name) for
a floor; the other entries are the scorer's measures, seconds and the commit of the code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[Any, ...]
Line = dict[str, Any]
Group = tuple[str, str, str, float]
"""Table, unit, model, epsilon: what a mean over seeds stands for."""

SCORES = ("tvd1", "tvd2", "tvd3", "tstr_hgb", "c2st_auc")
SECONDS = ("fit_s", "sample_s")
GAP = "tstr_gap"
"""Real to real less synthetic to real: AUROC lost by training on synthetic rows."""

TRAIN_TEST = "train-test"
BOOTSTRAP = "bootstrap"
CEILING = "ceiling"
"""In the place of a generator's name: the real rows as the bins of a fit leave them."""


@dataclass(frozen=True)
class Mean:
    """The mean of a measure over seeds and half its range, zero where there is one seed."""

    value: float
    half_range: float

    @classmethod
    def of(cls, values: list[float]) -> Mean:
        """Average at least one value."""
        return cls(sum(values) / len(values), (max(values) - min(values)) / 2)


@dataclass(frozen=True)
class Cell:
    """What the seeds of one group say.

    Attributes:
        seeds: how many fits there are.
        means: by measure, over those of the fits that hold it.
        chosen: the generators that ran, one unless ``auto`` changed its mind.
    """

    seeds: int
    means: dict[str, Mean]
    chosen: tuple[str, ...]


def key_of(line: Line) -> Key:
    """Return a line's key in a form that can be looked up."""
    return tuple(line["key"])


def read_lines(path: Path) -> list[Line]:
    """Read the results; the last line of a key counts.

    A line cut short by a killed run is left out, and so is one that does not name the code that
    made it: its fit is due again.
    """
    found: dict[Key, Line] = {}
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if isinstance(line, dict) and "key" in line and "commit" in line:
            found[key_of(line)] = line
    return list(found.values())


def append_line(path: Path, line: Line) -> None:
    """Add a line in one write, on a line of its own even where the last one was cut short."""
    data = (json.dumps(line) + "\n").encode()
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            data = b"\n" + data
        os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def summary(lines: Iterable[Line], *, delta: float) -> dict[Group, Cell]:
    """Average the fits of one delta over their seeds, by table, unit, model and epsilon."""
    fits: dict[Group, list[Line]] = {}
    for line in lines:
        if line["key"][1] != "floor" and line["key"][4] == delta:
            table, unit, model, epsilon = line["key"][:4]
            fits.setdefault((table, unit, model, float(epsilon)), []).append(line)
    return {group: _cell(fits[group]) for group in sorted(fits)}


def floors(lines: Iterable[Line]) -> dict[tuple[str, str], dict[str, float]]:
    """Return the measures of real rows by (table, floor).

    A bootstrap's line holds both floors: the scorer adds the distances of the test split, and what
    a classifier of real training rows reaches there, to every table that it scores.
    """
    found = {}
    for line in lines:
        if line["key"][1] == "floor":
            table = line["key"][0]
            found[table, BOOTSTRAP] = _measures(line)
            names = {"tvd1": "floor_tvd1", "tvd2": "floor_tvd2", "tvd3": "floor_tvd3"}
            names["tstr_hgb"] = "trtr_hgb"
            found[table, TRAIN_TEST] = {
                name: line[source] for name, source in names.items() if source in line
            }
    return found


def _measures(line: Mapping[str, Any]) -> dict[str, float]:
    values = {name: line[name] for name in (*SCORES, *SECONDS, "trtr_hgb") if name in line}
    if "tstr_hgb" in values and "trtr_hgb" in values:
        values[GAP] = values["trtr_hgb"] - values["tstr_hgb"]
    return values


def _cell(lines: list[Line]) -> Cell:
    measures = [_measures(line) for line in lines]
    names = dict.fromkeys(name for fit in measures for name in fit)
    means = {name: Mean.of([fit[name] for fit in measures if name in fit]) for name in names}
    chosen = sorted({line.get("model", line["key"][2]) for line in lines})
    return Cell(len(lines), means, tuple(chosen))
