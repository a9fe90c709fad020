"""What a declared target asks of a model: a class against the rest, or a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Tables, TableView, numbers
from dpsynth.schema import Column

Floats = npt.NDArray[np.float64]

MIN_SHARE = 0.01  # of the source's known rows, for a class that is asked for


@dataclass(frozen=True)
class Task:
    """One column that a model has to foretell from the columns that are no targets.

    Attributes:
        column: the target.
        place: where its codes stand.
        level: the code of the class that is told from all others; None for a numeric target.
        skip: columns that are no predictors: every column of role target.
    """

    column: Column
    place: int
    level: int | None
    skip: frozenset[str]

    @property
    def name(self) -> str:
        """The target's name."""
        return self.column.name

    @property
    def title(self) -> str:
        """The target's name for people."""
        return self.column.title or self.column.name

    @property
    def kind(self) -> str:
        """Whether a class or a number is asked for."""
        return "regression" if self.level is None else "classification"

    @property
    def label(self) -> str | None:
        """The declared label of the class; None for a numeric target."""
        if self.level is None:
            return None
        value = self.column.levels[self.level]
        return self.column.labels.get(value, value)

    def truth(self, view: TableView) -> Floats:
        """Return 1 for the class and 0 for the rest, or the numbers; NaN where missing."""
        if self.level is None:
            return numbers(view, self.column)
        codes = view.codes[:, self.place]
        known = codes < len(self.column.levels)
        return np.where(known, (codes == self.level).astype(float), np.nan)

    def known(self, view: TableView) -> TableView:
        """Return the rows whose target is not missing."""
        rows = np.flatnonzero(~np.isnan(self.truth(view)))
        return view if len(rows) == view.rows else view.take(rows)


def tasks(tables: Tables) -> tuple[list[Task], list[str]]:
    """Read what the schema's targets ask for, and say which of them cannot be asked.

    For a column of two declared categories (a boolean: true) the class is the last declared one,
    else the rarest that at least 1 % of the source's known rows have.
    """
    modelled = tables.schema.modelled
    skip = frozenset(column.name for column in modelled if "target" in column.roles)
    if not skip:
        return [], ["no column is declared as a target: give one the role target to see how models "
                    "that learn from the synthetic table do on real rows"]  # fmt: skip
    if len(skip) == len(modelled):
        return [], ["every column is a target: there is nothing to foretell them from"]
    result: list[Task] = []
    notes: list[str] = []
    for place, column in enumerate(modelled):
        if column.name not in skip:
            continue
        if column.is_categorical:
            level = _level(column, tables.source.codes[:, place])
            if level is None:
                notes.append(f"{column.name}: no row of the source has a value; left out")
            else:
                result.append(Task(column, place, level, skip))
        elif column.kind.is_number:
            result.append(Task(column, place, None, skip))
        else:
            notes.append(f"{column.name}: a target that is a {column.type} is left out")
    return result, notes


def _level(column: Column, codes: npt.NDArray[np.uint16]) -> int | None:
    """Choose the class of a categorical target."""
    counts = np.bincount(codes, minlength=len(column.levels))[: len(column.levels)]
    if counts.sum() == 0:
        return None
    if column.categories is not None and len(column.categories) == 2:
        return 1
    often = np.flatnonzero(counts >= MIN_SHARE * counts.sum())
    return int(often[counts[often].argmin()])
