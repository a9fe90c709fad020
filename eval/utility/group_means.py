"""Means of numbers by group: the first table that an analyst makes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    Levels,
    Measure,
    Tables,
    TableView,
    about,
    groups,
    jackknife_error,
    levels_of,
    numbers,
)
from dpsynth.eval.core.estimate import Z
from dpsynth.schema import Column

Floats = npt.NDArray[np.float64]

FOLDS = 20
MIN_ROWS = 10


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums of one table, by cell (a level and a column) and by group of units.

    Attributes:
        sums: of the numbers, ``[cells, groups]``.
        rows: how many numbers they are.
    """

    sums: Floats
    rows: Floats

    def means(self, without: int | None = None) -> Floats:
        """Return the mean of each cell, NaN where it has no row; perhaps without a group."""
        sums, rows = self.sums.sum(axis=1), self.rows.sum(axis=1)
        if without is not None:
            sums, rows = sums - self.sums[:, without], rows - self.rows[:, without]
        return np.asarray(np.where(rows > 0.5, sums / np.maximum(rows, 1), np.nan))

    def interval(self, cell: int) -> dict[str, float | int | None]:
        """Return a mean with its interval, by the jackknife, and its rows."""
        rows = int(self.rows[cell].sum())
        if rows == 0:
            return {"value": None, "low": None, "high": None, "n": 0}
        single = Cells(self.sums[cell : cell + 1], self.rows[cell : cell + 1])
        value = float(single.means()[0])
        spared = np.array([single.means(fold)[0] for fold in range(self.rows.shape[1])])
        half = Z * jackknife_error(spared) if np.isfinite(spared).all() else None
        return {
            "value": _rounded(value),
            "low": None if half is None else _rounded(value - half),
            "high": None if half is None else _rounded(value + half),
            "n": rows,
        }


def group_means(
    tables: Tables, rng: np.random.Generator
) -> tuple[Measure | None, list[dict[str, Any]], list[str]]:
    """Compare the mean of every numeric column in every level of the groups and targets.

    A difference is in standard deviations of the column in the source. Intervals are by a
    delete-a-group jackknife over units. Cells with fewer than ten rows of the source are left out.

    Returns:
        The measure, the entries of ``group_means`` in the details, and notes.
    """
    columns = [c for c in tables.schema.modelled if not c.is_categorical and c.kind.is_number]
    by = levels_of(tables.codec, "group", "target")
    names = [
        (levels, level, column)
        for levels in by
        for level in range(len(levels.names))
        for column in columns
        if column.name != levels.column.name
    ]
    if not names:
        return None, [], ["group means need a numeric column, and a column of role group or target"]
    source = _cells(tables.source, by, columns, rng)
    scale = _scales(tables.source, by, columns)
    cells = np.flatnonzero((source.rows.sum(axis=1) >= MIN_ROWS) & (scale > 0))
    synthetic = _cells(tables.synthetic.sample(tables.size, rng), by, columns, rng)
    both = cells[synthetic.rows[cells].sum(axis=1) >= MIN_ROWS]
    if not len(both):
        return None, [], ["no group has rows enough for means; left out"]

    def apart(other: Cells, fold: int | None = None) -> float:
        off = np.abs(source.means(fold) - other.means(fold))[both] / scale[both]
        finite = off[np.isfinite(off)]
        return float(finite.mean()) if len(finite) else float("nan")

    chance = _cells(tables.source.bootstrap(tables.size, rng), by, columns, rng)
    reference = None
    if tables.holdout is not None:
        holdout = _cells(tables.holdout.sample(tables.size, rng), by, columns, rng)
        reference = apart(holdout) if holdout.rows[both].any() else None
    spared = [value for fold in range(FOLDS) if math.isfinite(value := apart(synthetic, fold))]
    estimate = about(
        apart(synthetic), jackknife_error(spared) if spared else 0.0,
        min(tables.size, tables.source.rows),
        reference=reference, chance=apart(chance), minimum=0.0,
    )  # fmt: skip
    measure = Measure(
        "group_means",
        "Difference of group means",
        estimate,
        0.0,
        "Mean difference, in standard deviations, of numeric columns between source and synthetic "
        "rows of the same group; 0.1 is small, 0.5 would change what a table of groups says.",
    )
    return measure, _details(names, cells, source, synthetic), _notes(len(names), cells, both)


def _cells(
    view: TableView, by: list[Levels], columns: list[Column], rng: np.random.Generator
) -> Cells:
    """Add up every number by level and group of units; a column is no cell of its own bands."""
    dealt = groups(view.units, FOLDS, rng)
    values = {column.name: numbers(view, column) for column in columns}
    sums, rows = [], []
    for levels in by:
        level = levels.of_rows(view)
        blocks = []
        for column in columns:
            if column.name == levels.column.name:
                continue
            known = (level >= 0) & ~np.isnan(values[column.name])
            key = level[known] * FOLDS + dealt[known]
            size = len(levels.names) * FOLDS
            shape = (len(levels.names), 1, FOLDS)
            added = np.bincount(key, weights=values[column.name][known], minlength=size)
            blocks.append((added.reshape(shape), np.bincount(key, minlength=size).reshape(shape)))
        if blocks:
            sums.append(np.concatenate([b[0] for b in blocks], axis=1).reshape(-1, FOLDS))
            rows.append(np.concatenate([b[1] for b in blocks], axis=1).reshape(-1, FOLDS))
    return Cells(np.concatenate(sums), np.concatenate(rows).astype(float))


def _scales(view: TableView, by: list[Levels], columns: list[Column]) -> Floats:
    """Return the source's standard deviation of the column of each cell; 0 where constant."""
    deviation = {}
    for column in columns:
        values = numbers(view, column)
        values = values[~np.isnan(values)]
        deviation[column.name] = float(values.std()) if len(values) else 0.0
    return np.array(
        [
            deviation[column.name]
            for levels in by
            for _ in levels.names
            for column in columns
            if column.name != levels.column.name
        ]
    )


def _details(
    names: list[tuple[Levels, int, Column]],
    cells: npt.NDArray[np.int64],
    source: Cells,
    synthetic: Cells,
) -> list[dict[str, Any]]:
    return [
        {
            "group": names[cell][0].column.name,
            "level": names[cell][0].names[names[cell][1]],
            "column": names[cell][2].name,
            "source": source.interval(int(cell)),
            "synthetic": synthetic.interval(int(cell)),
        }
        for cell in cells
    ]


def _notes(count: int, cells: npt.NDArray[np.int64], both: npt.NDArray[np.int64]) -> list[str]:
    notes = []
    if len(cells) < count:
        notes.append(
            f"{count - len(cells)} of {count} group means are left out: fewer than {MIN_ROWS} "
            "rows of the source, or a constant column"
        )
    if len(both) < len(cells):
        notes.append(
            f"{len(cells) - len(both)} group means have fewer than {MIN_ROWS} synthetic rows; "
            "left out of the mean difference"
        )
    return notes


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")
