"""Memorisation: are people in the data repeated, or approached, more than others?

A smoke test, not a proof. Distances find generators that copy; they neither detect all leakage nor
bound any: a table may keep every row at a distance and still tell members from others (Yao et al.,
The DCR Delusion, arXiv 2505.01524; Ganev and De Cristofaro, The Inadequacy of Similarity-based
Privacy Metrics, arXiv 2312.05114). What counts is a success at people in the data beyond that at as
many people of a holdout: by equal rows, by nearly equal rows, by which side is nearer, by
unique combinations (`unique`), and at outliers (`outliers`). All tests count privacy units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats import (
    Attack,
    MatchedGroups,
    People,
    PositiveControl,
    Success,
    TableAttack,
)
from dpsynth.eval.attack_stats.table_attack import BEFORE
from dpsynth.eval.attacks.nearest_record import TITLE, ClosestRecord
from dpsynth.eval.attacks.outliers import outliers
from dpsynth.eval.attacks.unique_records import unique
from dpsynth.eval.core import (
    Estimate,
    Measure,
    PartResult,
    Rate,
    Tables,
    about,
    groups,
    jackknife_error,
)
from dpsynth.eval.distances import Neighbours

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEAR = 0.02  # of each number's declared range, in the root of the mean square
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
BINS = 40
GROUPS = 20  # of units, for the jackknife
SMOKE = "A smoke test: distances neither detect nor bound what a table leaks."
NOTE = (
    "memorisation is a smoke test: distance metrics neither detect nor bound leakage (Yao et al., "
    "arXiv 2505.01524; Ganev and De Cristofaro, arXiv 2312.05114)"
)


def memorization(tables: Tables, people: People, rng: np.random.Generator) -> Attack:
    """Compare how a synthetic table lies to a sample of the source and to as many others.

    Args:
        tables: the synthetic table and the source.
        people: the others, and the reference by which people are unusual.
        rng: draws samples; the same generator gives the same answer.
    """
    sides = MatchedGroups.of(tables, people.others, rng)
    source, holdout = (sides.to_synthetic(side) for side in (sides.source, sides.holdout))
    parts = [
        _repeated(sides, source, holdout),
        _approached(sides, len(np.unique(tables.source.units)), rng),
        unique(sides, rng, SMOKE),
        outliers(sides, people.reference, source, holdout, rng, SMOKE),
    ]
    details: dict[str, Any] = {
        "units": sides.units,
        "rows": {
            "source": sides.source.view.rows,
            "holdout": sides.holdout.view.rows,
            "synthetic": sides.synthetic.rows,
        },
    }
    for attack in parts:
        details |= attack.part.details
    sampled = sides.synthetic.rows < tables.synthetic.rows
    notes = [NOTE]
    notes += [f"{sides.synthetic.rows} synthetic rows were drawn and judged"] if sampled else []
    notes += [note for attack in parts for note in attack.part.notes]
    return Attack(
        PartResult(
            tuple(m for attack in parts for m in attack.part.measures), details, tuple(notes)
        ),
        tuple(finding for attack in parts for finding in attack.findings),
        tuple(power for attack in parts for power in attack.powers),
    )


def _repeated(sides: MatchedGroups, source: Floats, holdout: Floats) -> Attack:
    """Count rows and units that a synthetic row equals, or nearly equals.

    Nearly: all categories are equal, and no number is there on one side only; the numbers together
    are within `NEAR` of their ranges. Without numeric columns that is equality.
    """
    numeric = len(sides.metric.numeric)
    limit = min(NEAR**2 * numeric * (1 + 1e-9), np.nextafter(1.0, 0.0))
    measures, details, findings, powers = [], [], [], []
    for key, maximum, words in (
        ("copies", 0.0, "equal to"),
        ("near", limit, "nearly equal to"),
    ):
        inside, outside = source <= maximum, holdout <= maximum
        rows = Success(_rate(inside), _rate(outside))
        units = sides.success(inside, outside)
        stem = "copies" if key == "copies" else "copies_near"
        for name, whose, success in (
            ("rows", "Rows", rows),
            ("units", "People with a row", units),
        ):
            title = f"{whose} {words} a synthetic row"
            measures.append(
                Measure(f"{stem}_{name}", title, success.excess, 0.0, _meaning(title, name))
            )
            details.append({"what": title, "success": success.to_dict()})
        title = f"People with a row {words} a synthetic row"
        event = f"some row is {words} a synthetic row"
        findings.append(units.finding(f"memorization:{key}", title, event))
        powers.append(units.power(f"memorization:{key}"))
    return Attack(PartResult(tuple(measures), {"copies": details}), tuple(findings), tuple(powers))


def _meaning(title: str, name: str) -> str:
    rows = (
        " Rows of one person count each, which makes the interval too narrow."
        if name == "rows"
        else ""
    )
    return (
        f"{title}: how much more often for people in the data than for as many others; 0 without "
        f"memorisation.{rows} {SMOKE}"
    )


def _rate(hit: npt.NDArray[np.bool_]) -> Rate:
    return Rate(int(hit.sum()), len(hit))


def _approached(sides: MatchedGroups, people: int, rng: np.random.Generator) -> Attack:
    """Compare the distances of synthetic rows to the two sides; ``people`` are in the data."""
    neighbours = [sides.from_synthetic(side) for side in (sides.source, sides.holdout)]
    apart = [np.sqrt(neighbour.squared[:, 0]) for neighbour in neighbours]
    ratios = [_ratios(one) for one in neighbours]
    closest = ClosestRecord.of(sides, neighbours[0], neighbours[1])
    share = Measure(
        "closer",
        TITLE,
        closest.estimate,
        0.5,
        "Share of synthetic rows whose nearest person in the data is nearer than the nearest of as "
        f"many others, ties half; above one half the table leans to the people in it. {SMOKE}",
    )
    median = float(np.median(ratios[1]))
    ratio = Measure(
        "distance_ratio",
        "Nearest over second nearest person",
        _median(ratios[0], sides.source.unit[neighbours[0].rows[:, 0]], median, rng),
        median,
        "Median over synthetic rows of the distance to the nearest person in the data over that to "
        "the second nearest, beside the same for as many others; far below the others' figure, "
        f"rows cling to single people. {SMOKE}",
    )
    details = {
        "distances": _levels(apart),
        "histogram": _histogram(apart),
        "ratios": _levels(ratios),
    }
    return Attack(
        PartResult((share, ratio), details), (closest.finding(),), (closest.power(people),)
    )


def _ratios(neighbours: Neighbours) -> Floats:
    """Return nearest over second nearest distance; 1 where both are 0."""
    near, next_one = np.sqrt(neighbours.squared).T
    ratios: Floats = np.divide(near, next_one, out=np.ones(len(near)), where=next_one > 0)
    return ratios


def _median(ratios: Floats, owners: Ints, reference: float, rng: np.random.Generator) -> Estimate:
    """Return the median ratio; its error by leaving out groups of the units that are nearest."""
    units = len(np.unique(owners))
    value = float(np.median(ratios))
    if units < 2:
        return Estimate(value, None, None, units, reference)
    seats = groups(owners, min(GROUPS, units), rng)
    parts = [float(np.median(ratios[seats != seat])) for seat in np.unique(seats)]
    error = jackknife_error(parts)
    return about(value, error, units, reference=reference, minimum=0.0, maximum=1.0)


def _levels(pair: list[Floats]) -> dict[str, Any]:
    """Give quantiles of the two sides."""
    return {
        "levels": list(LEVELS),
        "source": [_rounded(value) for value in np.quantile(pair[0], LEVELS)],
        "holdout": [_rounded(value) for value in np.quantile(pair[1], LEVELS)],
    }


def _histogram(pair: list[Floats]) -> dict[str, Any]:
    """Give the shares of rows by distance, in the same bins for both sides."""
    edges = np.linspace(0.0, max(float(one.max()) for one in pair) or 1.0, BINS + 1)
    shares = [np.histogram(one, bins=edges)[0] / len(one) for one in pair]
    return {
        "edges": [_rounded(edge) for edge in edges],
        "source": [_rounded(share) for share in shares[0]],
        "holdout": [_rounded(share) for share in shares[1]],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


ATTACK = TableAttack(
    "memorization",
    "Copies and near copies",
    "whether rows of people are repeated",
    memorization,
    (PositiveControl("copied", "memorization:copies"),),
    BEFORE,
)
