"""Shadow models: what tables of generators trained with and without somebody say about him.

A generator is trained many times on other random people each time, and each of a few targets is
put in by a fair coin of his own. Classifiers learn from one half of the tables what his presence
looks like, and are judged on the other half (Stadler, Oprisanu and Troncoso,
Synthetic Data: Anonymisation Groundhog Day, arXiv 2011.07018, section 4; features from counts of
the target's values as in Houssiau et al., TAPAS, arXiv 2211.06550, section 4). Targets are people
who are most exposed: unlike others, with rare values, with many visits.

Coins of several targets in one fit, and of several fits, are one audit in one run. Let a release be
all judged tables together, and a record be a target in one fit. A record touches one table only,
and that table is (epsilon, delta)-private for him; so the release is, for each record, by parallel
composition: what `one_run` asks for, with targets times fits canaries, each with a
fair coin of its own. Who else is in a fit, and what the classifiers learned from the other half,
does not depend on these coins. Nor may anything else that the tables show but through the private
fit: the declared size is not to count who is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack, Finding, Power, Roc, audited, groups_of
from dpsynth.eval.attack_stats.result import SURELY
from dpsynth.eval.attacks.membership import WAYS, column_sets
from dpsynth.eval.core import (
    Bins,
    Estimate,
    Measure,
    PartResult,
    Tables,
    TableView,
    about,
    jackknife_error,
)
from dpsynth.eval.distances import Metric, Points, nearest

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TITLE = "Shadow models"
WHOLE = 20  # columns whose mean is a feature of the whole table, at most
SMOOTH = 0.01  # inverse strength of the classifiers' penalty
TELLING = WAYS + 2  # features, the last ones, that each sum up much
WEIGHT = 5.0  # of these: they are penalised less by its square


@dataclass(frozen=True, eq=False)
class ShadowSight:
    """What an attacker looks at in each table: the same for all tables.

    Attributes:
        metric: of distances.
        bins: in which values match.
        columns: sets of columns on which rows are to match a target's.
        points: the targets' rows, for distances.
        cut: bins of the targets' rows ``[columns, rows]``.
        target: whose row each is, from 0 ``[rows]``.
    """

    metric: Metric
    bins: Bins
    columns: tuple[Ints, ...]
    points: Points
    cut: npt.NDArray[np.uint16]
    target: Ints

    @classmethod
    def of(cls, tables: Tables, units: Ints, rng: np.random.Generator) -> ShadowSight:
        """Take the rows of targets, bins of source and holdout, and random sets of columns."""
        assert tables.holdout is not None  # `Exposed` refuses that
        metric = Metric.of(tables.codec)
        bins = Bins.of(np.concatenate([tables.source.codes, tables.holdout.codes]), tables.codec)
        columns = tuple(column_sets(len(bins.sizes), rng))
        rows = np.flatnonzero(np.isin(tables.source.units, units))
        view = tables.source.take(rows)
        target = np.argmax(view.units[:, None] == units, axis=1)
        return cls(metric, bins, columns, metric.points(view), bins.cut(view.codes), target)

    @property
    def width(self) -> int:
        """How many features a target has."""
        return min(WHOLE, len(self.bins.sizes)) + len(self.columns) + TELLING

    def features(self, table: TableView) -> Floats:
        """Return what a table says about each target, ``[targets, features]``.

        Means of the whole table; log shares of rows that match the target's on each set of columns;
        and last, those that each sum up much: means of these shares by the number of columns, and
        the mean and least distance of the target's rows to the nearest row.
        """
        cut, shares = self.bins.cut(table.codes), []
        for columns in self.columns:
            sizes = tuple(self.bins.sizes[column] for column in columns)
            keys = np.ravel_multi_index(tuple(cut[columns].astype(np.int64)), sizes)
            mine = np.ravel_multi_index(tuple(self.cut[columns].astype(np.int64)), sizes)
            matching = (keys == mine[:, None]).sum(axis=1)
            shares.append(np.log((matching + 0.5) / (len(keys) + 1)))
        squared = nearest(self.metric, self.points, self.metric.points(table)).squared[:, 0]
        by_row, apart = np.stack(shares, axis=1), np.sqrt(squared)
        ways = np.array([len(columns) for columns in self.columns])
        vectors = []
        for target in range(int(self.target.max()) + 1):
            of_target = self.target == target
            mean = by_row[of_target].mean(axis=0)
            parts = [mean[ways == way].mean() if way in ways else 0.0 for way in range(1, WAYS + 1)]
            ends = [apart[of_target].mean(), apart[of_target].min()]
            vectors.append(np.concatenate([cut.mean(axis=1)[:WHOLE], mean, parts, ends]))
        return np.stack(vectors)


@dataclass(frozen=True, eq=False)
class Shadow:
    """One fit, and what its table says.

    Attributes:
        number: of the fit; even ones teach, odd ones are judged.
        included: who of the targets was in, ``[targets]``.
        features: see `ShadowSight.features`.
    """

    number: int
    included: Bools
    features: Floats


def shadow_attack(
    shadows: Sequence[Shadow],
    groups: Sequence[str],
    delta: float,
    *,
    minutes: float,
    notes: Sequence[str] = (),
) -> Attack:
    """Teach classifiers on half of the fits, and judge them on the other.

    Each target has a classifier of his own, and all share one, which learns from more and knows
    less; their scores are added. They are put on one scale for each target, over the judged fits
    and blind to the coins; then all are judged together. If nothing leaks, the coins are
    independent of all scores, however these depend on each other, and the rank test holds.

    Args:
        shadows: the fits, all with the same targets.
        groups: why each target was chosen.
        delta: at which epsilon is bounded.
        minutes: that the fits took.
        notes: about the fits.
    """
    taught = [shadow for shadow in shadows if shadow.number % 2 == 0]
    judged = [one for one in shadows if one.number % 2 == 1]
    coins, included = (np.stack([one.included for one in half]) for half in (taught, judged))
    scores = _scored(*_scaled(taught, judged), coins)
    if included.all() or not included.any():
        note = "shadow models: by chance no target was out, or none in; more fits are needed"
        return Attack(PartResult(notes=(*notes, note)))
    roc = Roc(scores[included], scores[~included])
    bound = audited(scores.ravel(), included.ravel(), delta)
    area = _area(roc, scores, included)
    details: dict[str, Any] = {
        "targets": len(groups),
        "models": len(shadows),
        **roc.to_dict(),
        "auc": area.to_dict(),
        "epsilon": bound.epsilon,
        "guesses": bound.guesses,
        "correct": bound.correct,
        "minutes": float(f"{minutes:.3g}"),
        "each": _each(groups, scores, included),
    }
    measure = Measure(
        "shadows_auc",
        f"{TITLE}: AUC",
        area,
        0.5,
        "How well tables of generators that were trained with a person can be told from tables of "
        "those that were trained without: at 0.5 one guesses, at 1 one is never wrong.",
    )
    return Attack(
        PartResult((measure,), details, tuple(notes)), (_finding(roc, details),), (_power(roc),)
    )


def _scaled(taught: Sequence[Shadow], judged: Sequence[Shadow]) -> tuple[Floats, Floats]:
    """Return features of both halves ``[fits, targets, features]``, each target on its own scale.

    The scale is that of the taught half; what does not vary there says nothing.
    """
    known, tested = (np.stack([one.features for one in half]) for half in (taught, judged))
    mean, spread = known.mean(axis=0), known.std(axis=0)
    varies = spread > 1e-9
    factor = varies / np.where(varies, spread, 1.0)
    factor[:, -TELLING:] *= WEIGHT
    return (known - mean) * factor, (tested - mean) * factor


def _scored(known: Floats, tested: Floats, coins: Bools) -> Floats:
    """Return the scores of the judged half, ``[fits, targets]``."""
    targets, width = known.shape[1:]
    shared = _odds(known.reshape(-1, width), coins.ravel(), tested.reshape(-1, width))
    scores = [
        _level(shared.reshape(-1, targets)[:, at])
        + _level(_odds(known[:, at], coins[:, at], tested[:, at]))
        for at in range(targets)
    ]
    return np.stack([_level(score) for score in scores], axis=1)


def _odds(known: Floats, coins: Bools, tested: Floats) -> Floats:
    """Teach a classifier; return its log-odds for others."""
    from sklearn.linear_model import LogisticRegression

    if coins.all() or not coins.any():
        return np.zeros(len(tested))
    model = LogisticRegression(C=SMOOTH, max_iter=500).fit(known, coins)
    return np.asarray(model.decision_function(tested), dtype=float)


def _level(scores: Floats) -> Floats:
    """Give scores mean 0 and spread 1; equal ones are 0."""
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def _area(roc: Roc, scores: Floats, included: Bools) -> Estimate:
    """Return the area; its interval allows for targets of one fit being alike.

    The wider of DeLong's interval and a jackknife over fits.
    """
    parts = []
    for fit in range(len(scores)):
        rest, coins = np.delete(scores, fit, axis=0), np.delete(included, fit, axis=0)
        if coins.any() and not coins.all():
            parts.append(Roc(rest[coins], rest[~coins]).auc.value)
    plain = roc.auc
    wide = about(plain.value, jackknife_error(parts), plain.n, minimum=0.0, maximum=1.0)
    ends = [one for one in (plain.low, plain.high, wide.low, wide.high) if one is not None]
    return Estimate(plain.value, min(ends), max(ends), plain.n, reference=0.5)


def _each(groups: Sequence[str], scores: Floats, included: Bools) -> list[dict[str, Any]]:
    """Return the area of each target alone; None where it was in or out of all judged fits."""
    entries = []
    for at, title in enumerate(groups):
        mine, coins = scores[:, at], included[:, at]
        both = coins.any() and not coins.all()
        area = Roc(mine[coins], mine[~coins]).auc.to_dict() if both else None
        entries.append({"group_title": title, "auc": area})
    return entries


def _finding(roc: Roc, details: dict[str, Any]) -> Finding:
    verdict = "more than chance allows" if roc.found else "no more than chance allows"
    sentence = (
        f"AUC {roc.auc.value:.3f} for {details['targets']} exposed people and {details['models']} "
        f"trained generators: {verdict}"
    )
    return Finding("shadows", TITLE, roc.found, sentence, roc.chance)


def _power(roc: Roc) -> Power:
    minimum = roc.least()
    if minimum >= 1:
        return Power("shadows", None, "auc", "no area is sure to be seen with so few fits")
    sentence = (
        f"would have been seen {SURELY} if tables told who was in the data "
        f"with an AUC of {minimum:.3f} or more"
    )
    return Power("shadows", minimum, "auc", sentence)


CANDIDATES = 5_000  # people of the source among whom targets are sought
KNOWN = 20_000  # rows of the holdout that they are held against


@dataclass(frozen=True, eq=False)
class Exposed:
    """The targets.

    Attributes:
        units: their numbers ``[targets]``.
        groups: why each was chosen, in a few words.
    """

    units: Ints
    groups: tuple[str, ...]

    @classmethod
    def of(cls, tables: Tables, count: int, rng: np.random.Generator) -> Exposed:
        """Choose people of the source: in turn of each group, a random one of its most exposed.

        Those are the most exposed tenth of the most exposed tenth, where there are enough people.

        Raises:
            InputError: there is no holdout, or fewer people than targets.
        """
        if tables.holdout is None:
            raise InputError(
                "shadow models are trained on other people too: name a holdout; `dpsynth split` "
                "makes one before a fit"
            )
        everyone = np.unique(tables.source.units)
        if not 1 <= count <= len(everyone):
            raise InputError(
                f"targets must be 1 to {len(everyone)}, the units of the source, not {count}"
            )
        some = rng.permutation(everyone)[: max(count, CANDIDATES)]
        known = tables.holdout.sample(KNOWN, rng)
        groups = _most_exposed(tables, np.sort(some), known)
        turns = zip_longest(
            *([(title, unit) for unit in rng.permutation(units)] for title, units in groups.items())
        )
        picks = [one for turn in turns for one in turn if one is not None]
        picks += [("everyone", unit) for unit in some]  # where groups are too small
        chosen: dict[int, str] = {}
        for title, unit in picks:
            if len(chosen) < count:
                chosen.setdefault(int(unit), title)
        return cls(np.array(list(chosen), dtype=np.int64), tuple(chosen.values()))


def _most_exposed(tables: Tables, units: Ints, known: TableView) -> dict[str, Ints]:
    """Return the most exposed of some units of the source, by group."""
    metric = Metric.of(tables.codec)

    def tenths(units: Ints) -> dict[str, tuple[str, Ints]]:
        view = tables.source.take(np.flatnonzero(np.isin(tables.source.units, units)))
        exposed = groups_of(view, known, tables.codec, metric)
        return {one.key: (one.title, units[one.belongs]) for one in exposed[1:]}

    groups = {}
    for key, (title, top) in tenths(units).items():
        groups[title] = tenths(top).get(key, (title, top))[1]
    return groups
