"""Memorisation: are people in the data repeated, or approached, more than others?

A smoke test, not a proof. Distances find generators that copy; they neither detect all leakage nor
bound any: a table may keep every row at a distance and still tell members from others (Yao et al.,
The DCR Delusion, arXiv 2505.01524; Ganev and De Cristofaro, The Inadequacy of Similarity-based
Privacy Metrics, arXiv 2312.05114). What counts is a success at people in the data beyond that at as
many people of a holdout: by equal rows, by nearly equal rows, by which side is nearer, by
unique combinations (`unique`), and at outliers (`outliers`). All tests count privacy units.

**Distance to the closest record**: are synthetic rows nearer to people in the data than to others?
Each synthetic row has a nearest row on the two sides together, and so a unit to which it is
nearest: let c_u rows be nearest to unit u. If the table says nothing about single people, then of a
unit of the data and one of the holdout, paired at random, a fair coin has decided which is which.
Hence the excess of rows that are nearer to the data is a sum of +-(c_u - c_v) over such pairs, with
independent fair signs, and its variance is the sum of (c_u - c_v)^2; that is at most sum(c_u^2) in
expectation, what single coins would give, and less because both sides are equal in number. Counted
by rows the share looks far more precise than it is, since all rows near a person fall with that
person's coin.

A sum of weighted signs exceeds z standard deviations with probability at most 3.18 times that of a
normal variable (Bentkus and Dzindzalieta, A tight Gaussian bound for weighted sums of Rademacher
random variables, Bernoulli 21, 2015), whatever the weights; the test uses that, so a few heavy
units raise no false alarm. A row that is equally near to both sides counts half for each, which
cancels, yet enters the variance: the test is then on the safe side.

**Outliers**: do synthetic rows lie nearer to unusual people in the data than to unusual others?
A generator that remembers somebody remembers first whom nobody resembles. A unit is as unusual as
its most unusual row: the one that lies farthest from the nearest row of a reference, of people who
are on neither side. The 5 % most unusual units of the two sides together are compared, by the
distance of that row to the synthetic table. Units that are in the reference themselves are left
out, and as many units of each side are taken; so who is unusual is decided in the same way for
both.

**Unique records**: does the synthetic table repeat what is known of people who are easy to find?
A person whose declared quasi-identifiers (say age, sex and postcode) nobody shares can be found in
another register. If a synthetic row has the same combination together with the same sensitive
values, whoever finds it reads off something about that person; by memory of the generator, or by
chance.

A unit is unique with a combination that no other unit of *both sides together* has. So
uniqueness does not depend on who is on which side: given the unique units, each is in the data as
by a fair coin, and Fisher's test of hits holds. Uniqueness within one's own side would bring in
pairs of people who share a combination across the sides, whose labels are opposite; and within the
source alone, people in the data would be rarer than the others by definition.

A unit with several rows is unique if one of them is, and hit if such a row is repeated. Cells are
equal if their codes are: a number of a long scale counts by its cell of the schema's grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats import (
    Attack,
    AttackSuccess,
    CombinedAttacks,
    Finding,
    MatchedGroup,
    MatchedGroups,
    People,
    PositiveControl,
    Power,
    Roc,
    Success,
    TableAttack,
    precise_percent,
)
from dpsynth.eval.attack_stats.people import MATCHED_ROWS
from dpsynth.eval.attack_stats.result import ALARM, SURE, SURELY
from dpsynth.eval.attack_stats.table_attack import BEFORE
from dpsynth.eval.core import (
    Estimate,
    Measure,
    PartResult,
    Rate,
    Tables,
    TableView,
    about,
    groups,
    jackknife_error,
)
from dpsynth.eval.distances import Neighbours, nearest, row_kinds
from dpsynth.schema import Schema

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
        CLOSER,
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


COIN_TAIL = 3.18  # of a sum of coins, over a normal tail
CLOSER_KEY, CLOSER = "memorization:closer", "Synthetic rows nearer to people in the data"


@dataclass(frozen=True, eq=False)
class ClosestRecord:
    """Weights of units: how many synthetic rows are nearest to each; a tie goes half to each side.

    Attributes:
        source: of the units in the data, in random order.
        holdout: of as many others, in random order.
    """

    source: Floats
    holdout: Floats

    @classmethod
    def of(cls, sides: MatchedGroups, source: Neighbours, holdout: Neighbours) -> ClosestRecord:
        """Give each synthetic row to the unit that it is nearest to."""
        near, far = source.squared[:, 0], holdout.squared[:, 0]
        won = np.where(near == far, 0.5, near < far)
        weights: list[Floats] = [
            np.bincount(side.unit[neighbours.rows[:, 0]], share, side.units).astype(float)
            for side, neighbours, share in (
                (sides.source, source, won),
                (sides.holdout, holdout, 1 - won),
            )
        ]
        return cls(weights[0], weights[1])

    @property
    def share(self) -> float:
        """Return the share of synthetic rows that are nearer to the data, ties half."""
        return float(self.source.sum() / self._rows)

    @property
    def error(self) -> float:
        """Return the share's standard error without memorisation; at least that of one row."""
        spread = ((self.source - self.holdout) ** 2).sum()
        return float(math.sqrt(max(spread, 1.0)) / (2 * self._rows))

    @property
    def estimate(self) -> Estimate:
        """Return the share with an interval that is robust to clusters: of pairs of units.

        The error is at least that of the heaviest unit's coin.
        """
        rest = self.source - self.share * (self.source + self.holdout)
        heaviest = max(self.source.max(), self.holdout.max())
        error = math.sqrt(max((rest**2).sum(), (heaviest / 2) ** 2)) / self._rows
        n = len(self.source) + len(self.holdout)
        return about(self.share, error, n, reference=0.5, minimum=0.0, maximum=1.0)

    @property
    def found(self) -> bool:
        """Tell whether more rows than chance allows are nearer to the data."""
        return self.chance < ALARM

    @property
    def chance(self) -> float:
        """Return how likely so many rows are nearer to the data without memorisation, at most."""
        from scipy.special import ndtr

        return min(1.0, float(COIN_TAIL * ndtr(-(self.share - 0.5) / self.error)))

    @property
    def _rows(self) -> float:
        return float(self.source.sum() + self.holdout.sum())

    def finding(self) -> Finding:
        """Say what was seen."""
        verb = "more than chance allows" if self.found else "no more than chance allows"
        sentence = (
            f"{precise_percent(self.share)} of synthetic rows lie nearer to people in the data "
            f"than to as many others (half of them would without memorisation): {verb}"
        )
        return Finding(CLOSER_KEY, CLOSER, self.found, sentence, self.chance)

    def power(self, people: int) -> Power:
        """Say which share of synthetic rows could be made from people in the data and go unseen.

        If a share f lies next to units that are compared, all of these are nearer, of the others
        half: the share of nearer rows is (1 + f) / 2. Rows made from units of the source that were
        not drawn are among the others.
        """
        from scipy.special import ndtri

        minimum = 2 * (float(ndtri(1 - ALARM / COIN_TAIL)) + float(ndtri(SURE))) * self.error
        minimum *= people / len(self.source)
        if minimum >= 1:
            return Power(
                CLOSER_KEY, None, "share", "no share of synthetic rows would have been seen"
            )
        sentence = (
            f"would have been seen {SURELY} if {precise_percent(minimum)} of synthetic rows "
            "were made from a person in the data each"
        )
        return Power(CLOSER_KEY, minimum, "share", sentence)


OUTLIER_SHARE = 0.05  # of units, that count as outliers
OUTLIERS_KEY, OUTLIERS = "memorization:outliers", "Unusual people"
OUTLIERS_MEANING = (
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
        return _no_outliers()
    known = reference.sample(MATCHED_ROWS, rng)
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
    top[ranked[: max(2, round(OUTLIER_SHARE * len(scores)))]] = True
    members = -pair[0].apart[top[: len(others)]]
    non_members = -pair[1].apart[top[len(others) :]]
    if not (len(members) and len(non_members)):
        return _no_outliers()
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
        OUTLIERS_KEY,
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
    measure = Measure("outliers", OUTLIERS, auc, 0.5, f"{OUTLIERS_MEANING} {smoke}")
    part = PartResult((measure,), {"outliers": details})
    return Attack(
        part, (Finding(OUTLIERS_KEY, OUTLIERS, roc.found, sentence, roc.chance),), (power,)
    )


def _no_outliers() -> Attack:
    note = "unusual people were not compared: there are too few of them"
    return Attack(PartResult((), {}, (note,)))


Places = tuple[int, ...]

MAX_SETS = 20  # of quasi-identifiers that are tried
UNIQUE_KEY, UNIQUE = "memorization:unique", "Unique combinations repeated"


@dataclass(frozen=True)
class _UniqueSet:
    """A set of quasi-identifiers, and how people fared who are unique on it."""

    columns: tuple[str, ...]
    success: Success


def unique(sides: MatchedGroups, rng: np.random.Generator, smoke: str) -> Attack:
    """Try all quasi-identifiers together, and each smaller set of two or more.

    Args:
        sides: who is compared.
        rng: which sets are tried where there are more than `MAX_SETS`.
        smoke: what every meaning ends with.
    """
    schema = sides.metric.codec.schema
    known = _places(schema, "quasi_identifier")
    if not known:
        return _no_unique("no quasi-identifier is declared, so unique records were not looked for")
    learned = _learned(schema, known)
    sets, capped = _identifier_sets(known, rng)
    names = sides.metric.codec.names
    tried = []
    for places in sets:
        success = _unique_success(sides, places, learned)
        if success is not None:
            tried.append(_UniqueSet(tuple(names[place] for place in places), success))
    if not tried:
        return _no_unique("nobody is unique on the declared quasi-identifiers, on both sides")
    details = [{"columns": list(one.columns), "success": one.success.to_dict()} for one in tried]
    notes = (
        (f"of the sets of quasi-identifiers, {len(sets)} were tried: all, and others drawn",)
        if capped
        else ()
    )
    extra = ", ".join(names[place] for place in learned)
    part = PartResult(_unique_measures(tried, len(known), extra, smoke), {"unique": details}, notes)
    combined = CombinedAttacks(
        tuple(AttackSuccess(", ".join(one.columns), one.success) for one in tried)
    )
    event = "a combination is repeated with what it would give away"
    return Attack(
        part, (combined.finding(UNIQUE_KEY, UNIQUE, event),), (combined.power(UNIQUE_KEY),)
    )


def _places(schema: Schema, role: str) -> Places:
    return tuple(at for at, column in enumerate(schema.modelled) if role in column.roles)


def _learned(schema: Schema, known: Places) -> Places:
    """Return what an attacker would learn: sensitive columns, else the target, else the rest."""
    for role in ("sensitive", "target"):
        places = tuple(place for place in _places(schema, role) if place not in known)
        if places:
            return places
    return tuple(place for place in range(len(schema.modelled)) if place not in known)


def _identifier_sets(known: Places, rng: np.random.Generator) -> tuple[list[Places], bool]:
    """Return the sets to try, all columns first; and whether there would be more."""
    columns = len(known)
    if 2**columns - columns - 1 <= MAX_SETS:
        sizes = range(columns, min(columns, 2) - 1, -1)
        return [chosen for size in sizes for chosen in combinations(known, size)], False
    sets = [known]
    while len(sets) < MAX_SETS:
        size = int(rng.integers(2, columns))
        chosen = tuple(known[at] for at in sorted(rng.choice(columns, size=size, replace=False)))
        if chosen not in sets:
            sets.append(chosen)
    return sets, True


def _unique_success(sides: MatchedGroups, known: Places, learned: Places) -> Success | None:
    """Count unique units of each side, and those of whom a row is repeated."""
    source, holdout = sides.source, sides.holdout
    codes = np.concatenate([source.view.codes, holdout.view.codes, sides.synthetic.codes])
    real = source.view.rows + holdout.view.rows
    unit = np.concatenate([source.unit, source.units + holdout.unit])
    kinds = row_kinds(codes[:, list(known)])[:real]
    owned = np.unique(np.stack([kinds, unit], axis=1), axis=0)[:, 0]
    alone = np.bincount(owned)[kinds] == 1
    whole = row_kinds(codes[:, list(known + learned)])
    hit = alone & np.isin(whole[:real], whole[real:])
    people, hits = np.unique(unit[alone]), np.unique(unit[hit])
    rates = []
    for inside in (True, False):
        here, struck = ((group < source.units) == inside for group in (people, hits))
        if not here.any():
            return None
        rates.append(Rate(int(struck.sum()), int(here.sum())))
    return Success(rates[0], rates[1])


def _unique_measures(
    tried: Sequence[_UniqueSet], known: int, extra: str, smoke: str
) -> tuple[Measure, ...]:
    """Return the figure for all quasi-identifiers together, if somebody is unique on them."""
    first = tried[0]
    if len(first.columns) != known:
        return ()
    meaning = (
        f"Of people whom nobody equals in {', '.join(first.columns)}: how much more often a "
        f"synthetic row repeats this together with {extra or 'nothing else'} for people "
        f"in the data than for others; 0 without memorisation. {smoke}"
    )
    return (Measure(f"unique:{known}", UNIQUE, first.success.excess, 0.0, meaning),)


def _no_unique(note: str) -> Attack:
    return Attack(PartResult((), {"unique": []}, (note,)))
