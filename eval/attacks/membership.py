"""Membership inference from a synthetic table: was this patient among those it was made from?

The attacker has the synthetic table and people whom he knows (a reference), and scores patients:

- ``distance``: how near the nearest synthetic row is;
- ``density``: how dense the synthetic table is around the patient, against the reference (DOMIAS);
- ``queries``: how often the patient's values occur together, in a few hundred sets of columns,
  against the reference, weighed by a classifier (Houssiau et al., TAPAS, arXiv 2211.06550, section
  4: attacks from random subsets of target queries);
- ``ensemble``: a classifier on all of these.

Each query takes one to four columns; numbers match within the bins of the reference.

The classifiers learn from one half of the people, with their membership told, and are judged on the
other; a real attacker knows less, which errs on the side of finding. A patient's score is the mean
over his rows. Members, non-members and reference share no unit (`people`), and scales
come from the schema or from the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.attack_stats import (
    Attack,
    ExposureGroup,
    Finding,
    OneRun,
    People,
    PositiveControl,
    Power,
    Roc,
    TableAttack,
    audited,
    by_unit,
    ceiling,
    ceiling_auc,
    groups_of,
    together,
)
from dpsynth.eval.attack_stats.result import ALARM, ALARMS, SURELY
from dpsynth.eval.attack_stats.table_attack import BEFORE
from dpsynth.eval.core import Bins, Estimate, Measure, PartResult, Tables, TableView
from dpsynth.eval.distances import Metric, log_density, nearest, width_among, width_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

TITLES = {
    "distance": "Distance to the closest synthetic row",
    "density": "Density of the synthetic table around a patient, against the population",
    "queries": "Counts of a patient's values, weighed by a classifier",
    "ensemble": "All of these together",
}
ROWS = 100_000  # of the synthetic table, at most
KNOWN = 20_000  # rows of the reference, at most
DELTA = 1e-6  # at which the epsilon that an attack proves is stated where no claim names one
SMOOTH = 0.1  # inverse strength of the classifiers' penalty


@dataclass(frozen=True, eq=False)
class _Scores:
    """One attack's scores of the units that it is judged on."""

    key: str
    judged: Bools
    values: Floats


def membership(
    tables: Tables,
    people: People,
    rng: np.random.Generator,
    *,
    claim: tuple[float, float] | None = None,
) -> Attack:
    """Attack the membership of members and non-members.

    Args:
        tables: the synthetic table and the schema are used.
        people: who is attacked, and whom the attacker knows.
        rng: of subsamples, columns and halves.
        claim: (epsilon, delta) of the run, for what it allows at most.
    """
    synthetic = tables.synthetic.sample(ROWS, rng)
    known = people.reference.sample(KNOWN, rng)
    players = together(people.members, people.non_members)
    units = np.unique(players.units)
    inside = np.isin(units, people.members.units)
    metric = Metric.of(tables.codec)
    scores = _scored(players, synthetic, known, tables, metric, inside, rng)
    groups = groups_of(players, known, tables.codec, metric)
    delta = DELTA if claim is None else claim[1]
    order = rng.permutation(len(units))
    judgements = [_judged(score, groups, inside, order, delta) for score in scores]
    details: dict[str, Any] = {
        "members": int(inside.sum()),
        "strangers": int((~inside).sum()),
        "reference": len(np.unique(known.units)),
        "attacks": [attack for judgement in judgements for attack in judgement.shown],
        "ceiling": None if claim is None else _ceiling(*claim, len(units)),
    }
    note = (
        "the epsilon that a membership attack proves holds if the holdout was set aside by a coin "
        "for each patient, as `dpsynth split` does"
    )
    return Attack(
        PartResult(tuple(m for one in judgements for m in one.measures), details, (note,)),
        tuple(one.finding for one in judgements),
        tuple(one.power for one in judgements),
    )


def _scored(
    players: TableView,
    synthetic: TableView,
    known: TableView,
    tables: Tables,
    metric: Metric,
    inside: Bools,
    rng: np.random.Generator,
) -> list[_Scores]:
    """Score every unit by distance and density, and those of one half by the classifiers."""
    points, table, others = (metric.points(view) for view in (players, synthetic, known))
    apart = np.sqrt(nearest(metric, points, table).squared[:, 0])
    dense = log_density(metric, points, table, width_of(metric, others, table))
    dense -= log_density(metric, points, others, width_among(metric, others, known.units))
    ratios = log_ratios(players, synthetic, known, tables.codec, rng)
    whole = np.ones(len(inside), dtype=bool)
    distance, density = by_unit(players, -apart)[1], by_unit(players, dense)[1]
    features = np.stack([by_unit(players, column)[1] for column in ratios.T], axis=1)
    taught = rng.random(len(inside)) < 0.5
    every = np.column_stack([distance, density, features])
    return [
        _Scores("distance", whole, distance),
        _Scores("density", whole, density),
        _Scores("queries", ~taught, _learned(features, inside, taught)),
        _Scores("ensemble", ~taught, _learned(every, inside, taught)),
    ]


def _learned(features: Floats, inside: Bools, taught: Bools) -> Floats:
    """Teach a classifier on the units that are taught; return the log-odds of all, ``[units]``."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(inside[taught])) < 2:
        return np.zeros(len(inside))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=SMOOTH, max_iter=200))
    model.fit(features[taught], inside[taught])
    return np.asarray(model.decision_function(features), dtype=float)


@dataclass(frozen=True, eq=False)
class _Found:
    measures: tuple[Measure, ...]
    shown: Sequence[Mapping[str, Any]]
    finding: Finding
    power: Power


def _judged(
    scores: _Scores, groups: list[ExposureGroup], inside: Bools, order: Ints, delta: float
) -> _Found:
    """Judge one attack on everyone and on each exposed group.

    Units are taken in a random order: guesses break ties by it, and numbers of units tell the
    source from the holdout.
    """
    measures, entries, chances, worst = [], [], [], None
    for group in groups:
        here = order[(scores.judged & group.belongs)[order]]
        members, values = inside[here], scores.values[here]
        if not (members.any() and (~members).any()):
            continue
        roc = Roc(values[members], values[~members])
        everyone = group.key == "everyone"
        chances.append(roc.chance)
        bound = audited(values, members, delta) if everyone else None
        entries.append(
            {
                "key": scores.key,
                "title": TITLES[scores.key],
                "group": group.key,
                "group_title": group.title,
                "members": len(roc.members),
                "strangers": len(roc.non_members),
                **roc.to_dict(),
                "epsilon": None if bound is None else _bound(bound),
            }
        )
        measures.append(_area(scores.key, group, roc))
        if everyone and bound is not None:
            worst = roc
            measures += _rates(scores.key, roc, bound.epsilon)
    if worst is None:
        raise ValueError("an attack on nobody")
    chance = min(chances) * len(chances)
    return _Found(
        tuple(measures),
        entries,
        _finding(scores.key, entries, chance),
        _power(scores.key, worst, len(chances)),
    )


def _bound(bound: OneRun) -> dict[str, Any]:
    return {"value": bound.epsilon, "guesses": bound.guesses, "correct": bound.correct}


def _area(key: str, group: ExposureGroup, roc: Roc) -> Measure:
    everyone = group.key == "everyone"
    return Measure(
        f"auc:{key}" if everyone else f"auc:{key}:{group.key}",
        f"{TITLES[key]}: AUC, {group.title}",
        roc.auc,
        0.5,
        "How well the attack tells people in the data from other people: at 0.5 it guesses, at 1 "
        "it is never wrong.",
    )


def _rates(key: str, roc: Roc, epsilon: float) -> list[Measure]:
    true, _ = roc.at(ALARMS[-1])
    low, high = true.bounds(0.025)
    people = len(roc.members) + len(roc.non_members)
    return [
        Measure(
            f"tpr:{key}",
            f"{TITLES[key]}: people found at 1 % false alarms",
            Estimate(true.value, low, high, true.runs, reference=ALARMS[-1]),
            0.0,
            "Share of people in the data whom the attack names while it wrongly names one other "
            "person in a hundred; a guess would name as many.",
        ),
        Measure(
            f"epsilon:{key}",
            f"{TITLES[key]}: epsilon that it proves at least",
            Estimate(epsilon, None, None, people),
            0.0,
            "The release is not private for any smaller epsilon, with 95 % confidence.",
        ),
    ]


def _finding(key: str, entries: Sequence[Mapping[str, Any]], chance: float) -> Finding:
    top = max(entries, key=lambda entry: float(entry["auc"]["value"]))
    everyone = entries[0]["auc"]["value"]
    verdict = "more than chance allows" if chance < ALARM else "no more than chance allows"
    sentence = (
        f"AUC {everyone:.3f} for everyone, at most {top['auc']['value']:.3f} "
        f"({top['group_title']}): {verdict}"
    )
    return Finding(f"membership:{key}", TITLES[key], chance < ALARM, sentence, min(1.0, chance))


def _power(key: str, roc: Roc, tests: int) -> Power:
    minimum = roc.least(tests)
    if minimum >= 1:
        return Power(f"membership:{key}", None, "auc", "there are too few people to be sure of any")
    sentence = (
        f"would have been seen {SURELY} if it told people in the data from "
        f"others with an AUC of {minimum:.3f} or more"
    )
    return Power(f"membership:{key}", minimum, "auc", sentence)


def _ceiling(epsilon: float, delta: float, people: int) -> dict[str, Any]:
    grid = np.geomspace(1 / people, 1.0, 60)
    return {
        "epsilon": epsilon,
        "delta": delta,
        "auc": ceiling_auc(epsilon, delta),
        "rates": [
            {"fpr": alarm, "tpr": float(ceiling(epsilon, delta, np.array([alarm]))[0])}
            for alarm in ALARMS
        ],
        "roc": {
            "fpr": [float(f"{x:.4g}") for x in grid],
            "tpr": [float(f"{x:.4g}") for x in ceiling(epsilon, delta, grid)],
        },
    }


ATTACK = TableAttack(
    "membership",
    "Membership",
    "whether it can be told who was in the data",
    membership,
    (PositiveControl("jittered", "membership:density"),),
    BEFORE,
    uses_claim=True,
)


QUERIES = 200
WAYS = 4  # columns of a query, at most


def log_ratios(
    queries: TableView, table: TableView, known: TableView, codec: Codec, rng: np.random.Generator
) -> Floats:
    """Return log ratios of matching shares, ``[rows of queries, queries]``.

    Args:
        queries: records to match.
        table: the synthetic one.
        known: people whom the attacker knows; bins come from them.
        codec: the schema's codes.
        rng: of the columns.
    """
    bins = Bins.of(known.codes, codec)
    cut = [bins.cut(view.codes) for view in (queries, table, known)]
    ratios = []
    for columns in column_sets(len(bins.sizes), rng):
        keys = [_query_keys(part, bins, columns) for part in cut]
        shares = [(_matches(keys[0], keys[at]) + 0.5) / (len(keys[at]) + 1.0) for at in (1, 2)]
        ratios.append(np.log(shares[0]) - np.log(shares[1]))
    return np.stack(ratios, axis=1)


def column_sets(columns: int, rng: np.random.Generator, count: int = QUERIES) -> list[Ints]:
    """Draw sets of columns, of one to four each; the same set may come twice."""
    ways = rng.integers(1, min(WAYS, columns) + 1, count)
    return [np.sort(rng.choice(columns, size=way, replace=False)) for way in ways]


def _query_keys(cut: npt.NDArray[np.uint16], bins: Bins, columns: Ints) -> Ints:
    keys = np.zeros(cut.shape[1], dtype=np.int64)
    for column in columns:
        keys = keys * bins.sizes[column] + cut[column]
    return keys


def _matches(keys: Ints, among: Ints) -> Floats:
    """Count equal keys."""
    values, counts = np.unique(among, return_counts=True)
    place = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    return np.where(values[place] == keys, counts[place], 0).astype(float)
