"""Effects on a declared target: how much likelier it is in each group, and in which direction.

A risk ratio compares the risk of the target's class in a group with that of all other rows: in one
level of a column against the other levels, and in the upper half of a number against its lower
half. Each side gets one row more of the overall risk, so that every ratio is finite.

With log risk ratios x of the source and y of another table over all groups, and the variance v of
x (delta method; Rothman, Greenland and Lash, Modern Epidemiology, 2008, chapter 14):

- `effects` is the slope sum(x y / v) / sum(x^2 / v): 1 if effects are as strong as in the source,
  0 if they are lost;
- `signs` is the share of groups with the other sign, among those whose ratio in the source is
  clear: |x| > .2, and an interval of 95 % without 1.

Without clear effects in the source there is nothing to keep: the slope needs a mean of x^2 / v of
at least 4, so that at most a quarter of it is chance, and signs need 10 groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    Variants,
    bin_label,
    plain,
)
from dpsynth.eval.core.estimate import Z
from dpsynth.eval.utility.task import Task

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MIN_GROUP = 100  # rows of the source on each side of a ratio
CLEAR = 0.2  # least |log risk ratio| whose sign counts
MIN_SIGNAL = 4.0  # mean of x^2 / v over groups: below it, too much of the ratios is chance
MIN_CLEAR = 10  # groups with a clear ratio, from which a share of signs is told
SHOWN = 40  # groups that are listed, the clearest in the source first

SLOPE = (
    "Slope of the log risk ratios of the synthetic table on those of the source, over all groups "
    "of all other columns, each weighed by its precision: below 1, effects are too weak; above 1, "
    "too strong."
)
SIGNS = (
    "Of the groups with a clear risk ratio in the source: share in which the synthetic table says "
    "the opposite, that a risk is lower where it is higher."
)


class _Split(NamedTuple):
    """Two groups of rows of one column: bins of the one, and of the other."""

    column: int
    label: str
    group: Bools
    others: Bools


def effects(
    sides: PairedTables, task: Task
) -> tuple[list[Measure], dict[str, Any] | None, list[str]]:
    """Compare the risk ratios of one class of a target between the tables.

    Args:
        sides: what is compared.
        task: the class; columns that are targets themselves give no groups.

    Returns:
        The slope and the share of wrong signs, each with an interval by jackknife over units; the
        entry of ``effects`` in the details; and notes.
    """
    splits = _splits(sides, task)
    if not splits:
        note = f"{task.name}: no group of at least {MIN_GROUP} rows to compare risks in; left out"
        return [], None, [note]
    logs = [[_log_ratios(side, task, split) for split in splits] for side in sides.every]
    values = sides.variants([np.stack([log for log, _ in one], axis=1) for one in logs])
    errors = [np.sqrt([float(variance[0]) for _, variance in one]) for one in logs]
    weights, clear = errors[0] ** -2, _is_clear(values.source[0], errors[0])
    title = f"{task.title}: {task.label}"
    slope = JackknifeEstimate.of(
        lambda x, y: (weights * x * y).sum(axis=1) / (weights * x * x).sum(axis=1), values
    )
    measures, notes = list[Measure](), list[str]()
    if slope is not None and (weights * values.source[0] ** 2).mean() >= MIN_SIGNAL:
        estimate = slope.estimate(sides.n, minimum=-np.inf, maximum=np.inf)
        key, name = f"effects:{task.name}", f"Size of effects, {title}"
        measures.append(Measure(key, name, estimate, 1.0, SLOPE))
    else:
        notes.append(f"{task.name}: risk ratios of the source are mostly chance; no slope of them")
    if clear.sum() >= MIN_CLEAR:
        wrong = JackknifeEstimate.of(lambda x, y: (x * y < 0).mean(axis=1), _only(values, clear))
        assert wrong is not None  # of groups that exist
        key, name = f"signs:{task.name}", f"Effects with the wrong sign, {title}"
        measures.append(Measure(key, name, wrong.estimate(sides.n), 0.0, SIGNS))
    else:
        notes.append(
            f"{task.name}: fewer than {MIN_CLEAR} groups have a clear risk ratio in the source, so "
            "signs are not counted"
        )
    return measures, _details(sides, task, splits, values, errors), notes


def _only(values: Variants, places: Bools) -> Variants:
    """Keep some groups."""
    source, synthetic, holdout, chance = values
    rest = None if holdout is None else holdout[:, places]
    return Variants(source[:, places], synthetic[:, places], rest, chance[:, places])


def _is_clear(logs: Floats, errors: Floats) -> Bools:
    return np.asarray((np.abs(logs) > CLEAR) & (np.abs(logs) > Z * errors))


def _splits(sides: PairedTables, task: Task) -> list[_Split]:
    """Divide the rows with a known outcome, by each column, into a group and others."""
    known = task.truth(sides.source.view) >= 0  # NaN where the outcome is missing
    splits = []
    for j, column in enumerate(sides.tables.schema.modelled):
        if column.name in task.skip:
            continue
        size = sides.bins.sizes[j]
        counts = np.bincount(sides.source.bins[j][known], minlength=size)
        codes = np.arange(size)
        if column.is_categorical:
            levels = np.flatnonzero(counts)
            levels = levels[1:] if len(levels) == 2 else levels  # the other one is its mirror
            both = [(codes == code, codes != code) for code in levels]
            labels = [bin_label(sides, j, int(code)) for code in levels]
        else:
            present = codes < size - 1 if column.nullable else codes < size
            shares = counts[present].cumsum() / max(counts[present].sum(), 1)
            first = 1 + int(np.argmin(np.abs(shares - 0.5)))  # bin of the upper half
            both = [(present & (codes >= first), present & (codes < first))]
            labels = ["upper half"]
        for label, (group, others) in zip(labels, both, strict=True):
            if min(counts[group].sum(), counts[others].sum()) >= MIN_GROUP:
                splits.append(_Split(j, label, group, others))
    return splits


def _log_ratios(side: PairedTable, task: Task, split: _Split) -> tuple[Floats, Floats]:
    """Return the log risk ratio and its variance ``[variants]``."""
    truth = task.truth(side.view)
    where = split.group[side.bins[split.column]], split.others[side.bins[split.column]]
    rows = [side.sizes(np.flatnonzero(part & ~np.isnan(truth))) for part in where]
    hits = [side.sizes(np.flatnonzero(part & (truth == 1))) for part in where]
    overall = (sum(hits) + 0.5) / (sum(rows) + 1)
    risks = [(hit + overall) / (row + 1) for hit, row in zip(hits, rows, strict=True)]
    parts = [(1 - risk) / ((row + 1) * risk) for risk, row in zip(risks, rows, strict=True)]
    return np.asarray(np.log(risks[0] / risks[1])), np.asarray(sum(parts))


def _details(
    sides: PairedTables, task: Task, splits: list[_Split], values: Variants, errors: list[Floats]
) -> dict[str, Any]:
    """List the groups whose ratio is clearest in the source, with the interval of each table."""
    order = np.argsort(-np.abs(values.source[0]) / errors[0], kind="stable")[:SHOWN]
    tables = {"source": (values.source, errors[0]), "synthetic": (values.synthetic, errors[1])}
    if values.holdout is not None:
        tables["holdout"] = values.holdout, errors[2]
    groups = []
    for k in order.tolist():
        column = sides.tables.schema.modelled[splits[k].column]
        entry: dict[str, Any] = {"column": column.name, "group": splits[k].label}
        for name, (logs, sd) in tables.items():
            middle, half = logs[0, k], Z * sd[k]
            ends = np.exp([middle, middle - half, middle + half])
            entry[name] = dict(zip(("value", "low", "high"), plain(ends), strict=True))
        groups.append(entry)
    return {"target": task.name, "class": task.label, "groups": groups, "compared": len(splits)}
