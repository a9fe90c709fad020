"""Who plays in an attack: members, non-members, and the people that the attacker knows anyway.

Four sets of privacy units, no two of which share one: members and non-members, whom an attack has
to tell apart; a reference, which stands for the attacker's knowledge of the population; and fresh
people, who serve the negative controls only.

If each unit was put into the holdout by a coin of its own, as `dpsynth split` does, then among the
units that play, each is a member by a fair coin: non-members are taken from the holdout by coins,
and members from the source by coins whose chance makes up for the sizes of the two. As these sizes
are those that came out, the two sides are a little more alike in number than independent coins
would make them; a guess of as many "in" as "out" gains nothing by it. Bounds of epsilon rest on
that; units of the source that do not play are part of the data, as any others.

**Most exposed** are people unlike others, with rare values, or with many visits. An average hides
them, and they are the ones whom a release endangers first (Stadler, Oprisanu and Troncoso,
Synthetic Data: Anonymisation Groundhog Day, arXiv 2011.07018, section 5). Exposure is taken from
the person's own rows and from the reference, never from who is in the data.

**Matched groups** are people in the data and as many others, side by side with a synthetic table.
Units are the same in number on the two sides, since whoever has more of them is nearer to
everything. If source and holdout were dealt by chance, each unit is on the one side or on the other
as by a fair coin; and where the synthetic table says nothing about single people, it does not know
how the coins fell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.eval.attack_stats.result import Success
from dpsynth.eval.core import Bins, Rate, Tables, TableView
from dpsynth.eval.distances import Metric, Neighbours, Points, nearest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PLAYERS = 5_000  # of members and of non-members, about, at most
PARTS = (0.45, 0.35, 0.2)  # of the holdout: non-members, reference, fresh
MIN_UNITS = 60  # units on each side; with fewer, even leaking controls are not seen


@dataclass(frozen=True, eq=False)
class People:
    """The sets of an attack, as rows; all rows of a unit are in one set.

    Attributes:
        members: units of the source that play.
        non_members: units of the holdout that play.
        reference: other units of the holdout: what the attacker knows of the population.
        fresh: yet others, for negative controls.
        others: units of the holdout who are not fresh: non-members and reference together.
    """

    members: TableView
    non_members: TableView
    reference: TableView
    fresh: TableView
    others: TableView

    @classmethod
    def of(cls, tables: Tables, rng: np.random.Generator, *, players: int = PLAYERS) -> People:
        """Deal the units of source and holdout out.

        Raises:
            InputError: there is no holdout, or too few units to attack.
        """
        holdout = tables.holdout
        if holdout is None:
            raise InputError(
                "an attack needs people who are not in the data: name a holdout; `dpsynth split` "
                "makes one before a fit"
            )
        inside, outside = np.unique(tables.source.units), np.unique(holdout.units)
        playing = min(1.0, players / (PARTS[0] * len(outside)), len(inside) / len(outside))
        fate = rng.random(len(outside))
        non_members = fate < PARTS[0] * playing
        fresh = fate >= 1 - PARTS[2]
        chance = PARTS[0] * playing * len(outside) / len(inside)
        members = inside[rng.random(len(inside)) < chance]
        sets = (members, outside[non_members], outside[~non_members & ~fresh], outside[fresh])
        if min(len(members), int(non_members.sum()), len(sets[2])) < MIN_UNITS:
            raise InputError(
                "there are too few people to attack: source and holdout need about "
                f"{round(2 * MIN_UNITS / PARTS[1])} units each at least"
            )
        return cls(
            _rows(tables.source, sets[0]),
            _rows(holdout, sets[1]),
            _rows(holdout, sets[2]),
            _rows(holdout, sets[3]),
            _rows(holdout, outside[~fresh]),
        )

    def __post_init__(self) -> None:
        """Refuse sets that share a unit."""
        views = (self.members, self.non_members, self.reference, self.fresh)
        units = np.concatenate([np.unique(view.units) for view in views])
        if len(np.unique(units)) != len(units):
            raise InputError("members, non-members, reference and fresh people share a unit")


def _rows(view: TableView, units: Ints) -> TableView:
    return view.take(np.flatnonzero(np.isin(view.units, units)))


def by_unit(view: TableView, values: Floats) -> tuple[Ints, Floats]:
    """Return the units of a view and the mean of a figure over each one's rows."""
    units, unit_of_row, rows = np.unique(view.units, return_inverse=True, return_counts=True)
    return units, np.bincount(unit_of_row, weights=values) / rows


Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Targets:
    """Some members and some non-members of an attack, in one table.

    Attributes:
        view: one row of each person.
        members: how many of the rows, the first ones, are of people in the data.
    """

    view: TableView
    members: int

    @classmethod
    def of(cls, people: People, maximum: int, rng: np.random.Generator) -> Targets:
        """Draw so many people of each side at most, and one row of each, all at random."""
        members, non_members = (
            one_row_each(view, maximum, rng) for view in (people.members, people.non_members)
        )
        return cls(together(members, non_members), members.rows)

    def success(self, hits: Bools) -> Success:
        """Count hits, one for each row, on both sides."""
        sides = hits[: self.members], hits[self.members :]
        members, non_members = (Rate(int(side.sum()), len(side)) for side in sides)
        return Success(members, non_members)


def one_row_each(view: TableView, maximum: int, rng: np.random.Generator) -> TableView:
    """Return one random row of each unit, of so many random units at most."""
    order = rng.permutation(view.rows)
    _, firsts = np.unique(view.units[order], return_index=True)
    return view.take(order[rng.permutation(firsts)[:maximum]])


def together(first: TableView, second: TableView) -> TableView:
    """Return the rows of two tables as one; units keep their numbers."""
    frame = pd.concat([first.frame, second.frame], ignore_index=True)
    codes = np.concatenate([first.codes, second.codes])
    return TableView(frame, codes, np.concatenate([first.units, second.units]))


EXPOSED_SHARE = 0.1  # of the people, who are the most exposed ones
MIN_GROUP = 20  # of a group; fewer say nothing


@dataclass(frozen=True, eq=False)
class ExposureGroup:
    """A part of the people that are attacked.

    Attributes:
        key: ``everyone``, ``outliers``, ``rare`` or ``visits``.
        title: a few words for people.
        belongs: whether each unit is in it, units in order of their numbers ``[units]``.
    """

    key: str
    title: str
    belongs: Bools


def groups_of(
    players: TableView, reference: TableView, codec: Codec, metric: Metric
) -> list[ExposureGroup]:
    """Return everyone, and the most exposed tenth in each sense that the table allows."""
    apart = nearest(metric, metric.points(players), metric.points(reference)).squared[:, 0]
    units, distance = by_unit(players, np.sqrt(apart))
    candidates = [
        ExposureGroup("everyone", "everyone", np.ones(len(units), dtype=bool)),
        _top("outliers", "people unlike others", distance),
        _top(
            "rare",
            "people with rare values",
            -by_unit(players, _commonness(players, reference, codec))[1],
        ),
    ]
    rows = np.unique(players.units, return_counts=True)[1].astype(float)
    if rows.max() > 1:
        candidates.append(_top("visits", "people with most rows", rows))
    some = [group for group in candidates[1:] if not group.belongs.all()]
    return [candidates[0], *(group for group in some if group.belongs.sum() >= MIN_GROUP)]


def _top(key: str, title: str, exposure: Floats) -> ExposureGroup:
    """Take those above the quantile, or, where many are equal, those at it too."""
    cut = float(np.quantile(exposure, 1 - EXPOSED_SHARE))
    belongs = exposure > cut
    if belongs.sum() < MIN_GROUP:
        belongs = exposure >= cut
    return ExposureGroup(key, title, belongs)


def _commonness(players: TableView, reference: TableView, codec: Codec) -> Floats:
    """Return, for each row, the reference's share of its rarest value, in logs."""
    bins = Bins.of(reference.codes, codec)
    mine, theirs = bins.cut(players.codes), bins.cut(reference.codes)
    minimum = np.full(players.rows, np.inf)
    for place, size in enumerate(bins.sizes):
        counts = np.bincount(theirs[place], minlength=size)
        minimum = np.minimum(minimum, (counts[mine[place]] + 0.5) / (reference.rows + 1))
    return np.asarray(np.log(minimum))


MATCHED_ROWS = 100_000  # of the synthetic table, and of each side, about


@dataclass(frozen=True, eq=False)
class MatchedGroup:
    """Rows of some units.

    Attributes:
        view: the rows.
        points: the same, for distances.
        unit: of each row, numbered from 0 in random order ``[rows]``.
        units: how many.
    """

    view: TableView
    points: Points
    unit: Ints
    units: int

    def hit(self, rows: Bools) -> Rate:
        """Count the units of which some row is hit."""
        return Rate(len(np.unique(self.unit[rows])), self.units)


@dataclass(frozen=True, eq=False)
class MatchedGroups:
    """What is compared.

    Attributes:
        metric: the distance.
        synthetic: rows to be judged; a sample of a large table.
        points: the same, for distances.
        source: units of the data.
        holdout: as many other units.
    """

    metric: Metric
    synthetic: TableView
    points: Points
    source: MatchedGroup
    holdout: MatchedGroup

    @classmethod
    def of(cls, tables: Tables, others: TableView, rng: np.random.Generator) -> MatchedGroups:
        """Draw as many units of the source as of others; fewer of both where rows are many."""
        metric = Metric.of(tables.codec)
        views = (tables.source, others)
        units = [np.unique(view.units) for view in views]
        rows_of_unit = sum(view.rows for view in views) / sum(map(len, units))
        count = min(*map(len, units), max(1, int(MATCHED_ROWS / rows_of_unit)))
        sides = []
        for view, every in zip(views, units, strict=True):
            sample = view.take(np.flatnonzero(np.isin(view.units, _some(every, count, rng))))
            unit = rng.permutation(count)[np.unique(sample.units, return_inverse=True)[1]]
            sides.append(MatchedGroup(sample, metric.points(sample), unit, count))
        synthetic = tables.synthetic.sample(MATCHED_ROWS, rng)
        return cls(metric, synthetic, metric.points(synthetic), sides[0], sides[1])

    @property
    def units(self) -> int:
        """Return how many there are on each side."""
        return self.source.units

    def from_synthetic(self, side: MatchedGroup) -> Neighbours:
        """Return of each synthetic row the nearest rows of two different units of a side."""
        return nearest(self.metric, self.points, side.points, 2, side.unit)

    def to_synthetic(self, side: MatchedGroup) -> Floats:
        """Return the squared distance of each row of a side to the nearest synthetic row."""
        return nearest(self.metric, side.points, self.points).squared[:, 0]

    def success(self, source: Bools, holdout: Bools) -> Success:
        """Compare units by rows that are hit."""
        return Success(self.source.hit(source), self.holdout.hit(holdout))


def _some(units: Ints, count: int, rng: np.random.Generator) -> Ints:
    return units if count == len(units) else rng.choice(units, size=count, replace=False)
