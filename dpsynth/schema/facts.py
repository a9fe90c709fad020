"""The facts of one table, as values; `Schema` reads them from a document and writes them back."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError, Problem
from dpsynth.schema.column import REFUSE, Column, Declared, Dialect, PrivacyUnit
from dpsynth.schema.rules import Rule


@dataclass(frozen=True)
class Facts:
    """The public facts of one table.

    ``gaps`` lists what a draft leaves open, as it was read; it is not part of the facts.
    """

    name: str
    columns: tuple[Column, ...]
    unit: PrivacyUnit
    population: Declared
    rows: Declared
    dialect: Dialect = Dialect()
    rules: tuple[Rule, ...] = ()
    title: str | None = None
    description: str | None = None
    source: str | None = None
    draft: bool = False
    gaps: tuple[Problem, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        """Say which table it is about."""
        return short_repr(
            self, self.name, counted(len(self.columns), "column"), self.draft and "draft" or None
        )

    def column(self, name: str) -> Column:
        """Return the column of that name; an `InputError` says that there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"schema {self.name} has no column {name!r}")

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns of the synthetic table, in order: all but unit, order and drop."""
        return tuple(column for column in self.columns if column.modelled)

    @property
    def order_column(self) -> str | None:
        """The name of the column that orders the rows of a unit, if one is declared."""
        return next((column.name for column in self.columns if "order" in column.roles), None)

    @property
    def may_refuse(self) -> bool:
        """Whether a cell can stop a fit, because a column opts in to ``refuse``."""
        return any(REFUSE in (column.on_bad, column.on_unknown) for column in self.modelled)
