"""Outliers: do synthetic rows lie nearer to unusual people in the data than to unusual others?

A generator that remembers somebody remembers first whom nobody resembles. A unit is as unusual as
its most unusual row: the one that lies farthest from the nearest row of a reference, of people who
are on neither side. The 5 % most unusual units of the two sides together are compared, by the
distance of that row to the synthetic table. Units that are in the reference themselves are left
out, and as many units of each side are taken; so who is unusual is decided in the same way for
both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats import Attack, Finding, MatchedGroup, MatchedGroups, Power, Roc
from dpsynth.eval.attack_stats.matched_groups import MAX_ROWS
from dpsynth.eval.attack_stats.result import SURELY
from dpsynth.eval.core import Measure, PartResult, TableView
from dpsynth.eval.distances import nearest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SHARE = 0.05  # of units, that count as outliers
KEY, TITLE = "memorization:outliers", "Unusual people"
MEANING = (
    "The chance that a synthetic row lies nearer to an unusual person in the data than to an "
    "equally unusual other person; 0.5 without memorisation, above it the table remembers people "
    "whom nobody resembles."
)


@dataclass(frozen=True, eq=False)
class _Unusual:
    """Units with their most unusual row: how unusual it is, how far from the synthetic table."""

    unusual: Floats
    apart: Floats


def outliers(
    sides: MatchedGroups,
    reference: TableView,
    source: Floats,
    holdout: Floats,
    rng: np.random.Generator,
    smoke: str,
) -> Attack:
    """Compare the unusual units of the two sides.

    Args:
        sides: who is compared.
        reference: rows of other people.
        source: the squared distance of each of the source side's rows to the synthetic table.
        holdout: the same of the holdout's side.
        rng: which units of the source play, and who of equally unusual ones is taken.
        smoke: what every meaning ends with.
    """
    outside = np.flatnonzero(~np.isin(sides.holdout.view.units, reference.units))
    others = np.unique(sides.holdout.unit[outside])
    chosen = rng.choice(sides.source.units, size=len(others), replace=False)
    inside = np.flatnonzero(np.isin(sides.source.unit, chosen))
    if not len(others):
        return _left_out()
    known = reference.sample(MAX_ROWS, rng)
    pair = [
        _unusual(sides, side, rows, known, apart)
        for side, rows, apart in (
            (sides.source, inside, source),
            (sides.holdout, outside, holdout),
        )
    ]
    scores = np.concatenate([one.unusual for one in pair])
    ranked = np.lexsort((rng.random(len(scores)), -scores))
    top = np.zeros(len(scores), dtype=bool)
    top[ranked[: max(2, round(SHARE * len(scores)))]] = True
    members = -pair[0].apart[top[: len(others)]]
    non_members = -pair[1].apart[top[len(others) :]]
    if not (len(members) and len(non_members)):
        return _left_out()
    return _told(Roc(members, non_members), smoke)


def _unusual(
    sides: MatchedGroups, side: MatchedGroup, rows: Ints, known: TableView, apart: Floats
) -> _Unusual:
    """Find the most unusual row of each unit."""
    metric = sides.metric
    scores = nearest(metric, side.points.take(rows), metric.points(known)).squared[:, 0]
    order = np.lexsort((apart[rows], -scores, side.unit[rows]))
    first = order[np.unique(side.unit[rows][order], return_index=True)[1]]
    return _Unusual(np.sqrt(scores[first]), np.sqrt(apart[rows][first]))


def _told(roc: Roc, smoke: str) -> Attack:
    """Say what the curve says."""
    auc = roc.auc
    verb = "nearer than chance allows" if roc.found else "no nearer than chance allows"
    sentence = (
        f"synthetic rows lie {verb} to {len(roc.members)} unusual people in the data, compared "
        f"with {len(roc.non_members)} unusual others (AUC {auc.value:.3f})"
    )
    minimum = roc.least()
    power = Power(
        KEY,
        minimum if minimum < 1 else None,
        "auc",
        f"would have been seen {SURELY} if the AUC were {minimum:.3f}"
        if minimum < 1
        else "no AUC would have been seen",
    )
    details = {
        "units": {"source": len(roc.members), "holdout": len(roc.non_members)},
        "auc": auc.to_dict(),
    }
    measure = Measure("outliers", TITLE, auc, 0.5, f"{MEANING} {smoke}")
    part = PartResult((measure,), {"outliers": details})
    return Attack(part, (Finding(KEY, TITLE, roc.found, sentence, roc.chance),), (power,))


def _left_out() -> Attack:
    note = "unusual people were not compared: there are too few of them"
    return Attack(PartResult((), {}, (note,)))
