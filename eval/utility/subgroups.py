"""Subgroups: are small groups kept as well as large ones, and which is kept worst?

One product of indicators holds every two-way table of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    Bins,
    Levels,
    Measure,
    PartResult,
    Tables,
    TableView,
    about,
    groups,
    jackknife_error,
    levels_of,
)
from dpsynth.eval.utility.tstr import ModelTrial, trials

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MIN_ROWS = 50  # of a level, in source and synthetic table
FOLDS = 10


@dataclass(frozen=True, eq=False)
class SubgroupTables:
    """The tables of one comparison: all of the source, the others with as many rows each."""

    source: TableView
    synthetic: TableView
    chance: TableView
    holdout: TableView | None

    @classmethod
    def of(cls, tables: Tables, rng: np.random.Generator) -> SubgroupTables:
        """Draw ``tables.size`` rows of synthetic table and holdout, and a bootstrap."""
        rows = tables.size
        holdout = None if tables.holdout is None else tables.holdout.sample(rows, rng)
        synthetic = tables.synthetic.sample(rows, rng)
        return cls(tables.source, synthetic, tables.source.bootstrap(rows, rng), holdout)


class SubgroupComparison:
    """One group's levels compared on all other columns, in the bins of the whole source."""

    def __init__(self, levels: Levels, sides: SubgroupTables, bins: Bins) -> None:
        """Take a group."""
        self.levels = levels
        self.sides = sides
        others = [j for j in range(len(bins.sizes)) if j != levels.place]
        self._sizes = [bins.sizes[j] for j in others]
        self._cut = {n: bins.cut(v.codes)[others] for n, v in vars(sides).items() if v is not None}
        self.rows = {n: levels.of_rows(v) for n, v in vars(sides).items() if v is not None}

    def counts(self, side: str, level: int, rows: Ints | None = None) -> Floats:
        """Count pairs of bins of a level's rows, or of some of them."""
        places = np.flatnonzero(self.rows[side] == level) if rows is None else rows
        return pair_counts(self._cut[side][:, places], self._sizes)

    def enough(self, side: str, level: int) -> bool:
        """Whether the level has rows enough for metrics in a table."""
        return int((self.rows[side] == level).sum()) >= MIN_ROWS

    def distances(self, level: int) -> dict[str, float | None]:
        """Return ``tvd1``, ``tvd2`` and ``chance_tvd2`` of a level; None without rows enough."""
        if not self._sizes or not all(self.enough(side, level) for side in ("source", "synthetic")):
            return {"tvd1": None, "tvd2": None, "chance_tvd2": None}
        real = self.counts("source", level)
        one_way, two_way = mean_tvds(real, self.counts("synthetic", level), self._sizes)
        chance = None
        if (self.rows["chance"] == level).any():
            chance = mean_tvds(real, self.counts("chance", level), self._sizes)[1]
        return {"tvd1": one_way, "tvd2": two_way, "chance_tvd2": chance}

    def reference(self, level: int) -> float | None:
        """Return the distance of pairs between source and holdout of a level."""
        if "holdout" not in self.rows or not self.enough("holdout", level):
            return None
        real, holdout = (self.counts(side, level) for side in ("source", "holdout"))
        return mean_tvds(real, holdout, self._sizes)[1]

    def error(self, level: int, rng: np.random.Generator) -> float:
        """Return the standard error of the distance of pairs: jackknife over groups of units."""
        sides = []
        for side in ("source", "synthetic"):
            view: TableView = vars(self.sides)[side]
            places = np.flatnonzero(self.rows[side] == level)
            dealt = groups(view.units[places], FOLDS, rng)
            parts = [self.counts(side, level, places[dealt == fold]) for fold in range(FOLDS)]
            sides.append((sum(parts), parts))
        (real, of_real), (synthetic, of_made) = sides
        spared = [
            mean_tvds(real - a, synthetic - b, self._sizes)[1] or 0.0
            for a, b in zip(of_real, of_made, strict=True)
            if (real - a).any() and (synthetic - b).any()
        ]
        return jackknife_error(spared) if spared else 0.0


def subgroups(
    tables: Tables, rng: np.random.Generator, *, tried: Sequence[ModelTrial] | None = None
) -> PartResult:
    """Compare each level of every column of role group: size, distances, and usefulness.

    Distances are means over the other columns, and their pairs, in the bins of `Bins.of` the whole
    source. The worst level is the one whose distance of pairs exceeds the most what chance makes of
    two samples of its sizes; for a target, the one where training on synthetic rows costs the most.

    Args:
        tables: what is compared.
        rng: draws samples.
        tried: the trials of the usefulness part, if there are any already; else they are made.
    """
    by = levels_of(tables.codec, "group")
    if not by:
        note = "no column is declared as a group: give one the role group to see its levels apart"
        return PartResult(details={"subgroups": []}, notes=(note,))
    notes: list[str] = []
    if tried is None:
        tried, trial_notes = trials(tables, rng)
        notes += trial_notes
    boosting = [trial for trial in tried if trial.model == "boosting"]
    sides = SubgroupTables.of(tables, rng)
    bins = Bins.of(tables.source.codes, tables.codec)
    comparisons = [SubgroupComparison(levels, sides, bins) for levels in by]
    entries = [
        _entry(tables, compared, level, boosting)
        for compared in comparisons
        for level in range(len(compared.levels.names))
    ]
    places = [(c, level) for c in comparisons for level in range(len(c.levels.names))]
    measures = [_worst_distance(entries, places, rng)]
    measures += [_worst_use(entries, places, trial, rng) for trial in boosting]
    small = sum(entry["tvd1"] is None for entry in entries)
    if small:
        notes.append(
            f"{small} of {len(entries)} levels have fewer than {MIN_ROWS} rows of the source or "
            "among the compared synthetic rows: they are counted, without distances"
        )
    notes.append(f"levels are compared among {tables.size} synthetic rows")
    known = tuple(measure for measure in measures if measure is not None)
    return PartResult(known, {"subgroups": entries}, tuple(notes))


def _entry(
    tables: Tables, compared: SubgroupComparison, level: int, boosting: Sequence[ModelTrial]
) -> dict[str, Any]:
    """Return what the page shows of a level."""
    levels = compared.levels
    name = levels.names[level]
    sizes = [
        None if view is None else int((levels.of_rows(view) == level).sum())
        for view in (tables.source, tables.synthetic, tables.holdout)
    ]
    real, synthetic, holdout = sizes
    assert real is not None and synthetic is not None
    tstr = {}
    for trial in boosting:
        quality = trial.quality(np.flatnonzero(levels.of_rows(trial.test) == level))
        rows = len(quality.truth)
        measurable = rows >= MIN_ROWS and quality.possible
        value, trtr, _ = quality.of() if measurable else (None, None, None)
        tstr[trial.task.name] = {"value": _rounded(value), "trtr": _rounded(trtr), "n": rows}
    return {
        "column": levels.column.name,
        "level": name,
        "title": f"{levels.title}: {name}",
        "n_source": real,
        "n_synthetic": synthetic,
        "n_holdout": holdout,
        "share_source": _rounded(real / tables.source.rows),
        "share_synthetic": _rounded(synthetic / tables.synthetic.rows),
        **{key: _rounded(value) for key, value in compared.distances(level).items()},
        "tstr": tstr,
        "worst": False,
    }


def _worst_distance(
    entries: list[dict[str, Any]],
    places: list[tuple[SubgroupComparison, int]],
    rng: np.random.Generator,
) -> Measure | None:
    """Find the level that is kept worst, mark it, and measure it."""
    measured = [k for k, entry in enumerate(entries) if entry["tvd2"] is not None]
    if not measured:
        return None

    def excess(k: int) -> float:
        return _excess(entries[k]["tvd2"], entries[k]["chance_tvd2"], *places[k])

    worst = max(measured, key=excess)
    entry, (compared, level) = entries[worst], places[worst]
    entry["worst"] = True
    rows = int((compared.rows["synthetic"] == level).sum())
    estimate = about(
        entry["tvd2"], compared.error(level, rng), rows,
        reference=compared.reference(level), chance=entry["chance_tvd2"], minimum=0.0, maximum=1.0,
    )  # fmt: skip
    return Measure(
        "subgroup_worst_tvd2",
        "Distance of pairs of columns in the group kept worst",
        estimate,
        0.0,
        "Mean total variation distance of pairs of columns among the rows of one group, the one "
        "whose distance exceeds the most what chance makes of a group of its size. Here it is: "
        f"{entry['title']}.",
    )


def _worst_use(
    entries: list[dict[str, Any]],
    places: list[tuple[SubgroupComparison, int]],
    trial: ModelTrial,
    rng: np.random.Generator,
) -> Measure | None:
    """Find the level where training on synthetic rows costs a target the most, and measure it."""
    name = trial.task.name
    measured = [k for k, entry in enumerate(entries) if entry["tstr"][name]["value"] is not None]
    if not measured:
        return None

    def loss(k: int) -> float:
        figures = entries[k]["tstr"][name]
        return float(figures["trtr"] - figures["value"])

    worst = max(measured, key=loss)
    compared, level = places[worst]
    rows = np.flatnonzero(compared.levels.of_rows(trial.test) == level)
    quality = trial.quality(rows)
    figure = "AUC" if quality.classes else "R2"
    return Measure(
        f"subgroup_worst_tstr:{name}",
        f"{figure} of boosting trained on synthetic rows, {trial.task.title}, in the group that "
        "loses most",
        quality.estimates(rng)["tstr"],
        1.0,
        f"{figure} on real rows of one group, the one where a model that learned from synthetic "
        "rows falls most behind the same model that learned from the source. Here it is: "
        f"{entries[worst]['title']}.",
    )


def _excess(
    distance: float, chance: float | None, compared: SubgroupComparison, level: int
) -> float:
    """Return by how much a distance exceeds what two samples of the level's sizes would show.

    A bootstrap of n rows differs from the m rows it is drawn from by an error of variance 1/n, an
    independent sample by one of 1/n + 1/m; distances grow with its root.
    """
    sizes = [int((compared.rows[side] == level).sum()) for side in ("synthetic", "source")]
    return distance - (chance or 0.0) * float(np.sqrt(1 + sizes[0] / sizes[1]))


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


Codes = npt.NDArray[np.uint16]

PAIR_ROWS = 4096  # rows whose indicators are held at a time


def pair_counts(bins: Codes, sizes: Sequence[int]) -> Floats:
    """Count rows by every pair of bins ``[cells, cells]``, where cells are all columns' bins.

    Args:
        bins: ``[columns, rows]``.
        sizes: how many bins each column has.
    """
    cells = int(sum(sizes))
    starts = np.cumsum([0, *sizes[:-1]])
    counts = np.zeros((cells, cells))
    for first in range(0, bins.shape[1], PAIR_ROWS):
        places = bins[:, first : first + PAIR_ROWS].T + starts
        hot = np.zeros((len(places), cells), dtype=np.float32)
        np.put_along_axis(hot, places, 1, axis=1)
        counts += hot.T @ hot  # whole numbers below 2^24: exact
    return counts


def mean_tvds(a: Floats, b: Floats, sizes: Sequence[int]) -> tuple[float, float | None]:
    """Return the mean total variation distance of columns, and of pairs of columns.

    Args:
        a: `pair_counts` of one table with rows.
        b: of the other.
        sizes: how many bins each column has; pairs of fewer than two columns are None.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    rows_a, rows_b = a[: sizes[0], : sizes[0]].sum(), b[: sizes[0], : sizes[0]].sum()
    apart = np.abs(a / rows_a - b / rows_b)
    blocks = np.add.reduceat(np.add.reduceat(apart, starts, axis=0), starts, axis=1) / 2
    pairs = blocks[np.triu_indices(len(sizes), 1)]
    return float(np.diag(blocks).mean()), float(pairs.mean()) if len(pairs) else None
