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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.eval.core import Tables, TableView

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
