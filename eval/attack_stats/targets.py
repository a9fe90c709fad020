"""The people whom an attack aims at: one row of each, those in the data first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.attack_stats.people import People
from dpsynth.eval.attack_stats.success import Success
from dpsynth.eval.core import Rate, TableView

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
