"""Public facts of linked tables, as a generator of histories sees them, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models import Checkpoints, Feature, Progress
from dpsynth.models.histories.grids import Grid, RatioGrid, TimeGrid

if TYPE_CHECKING:
    from dpsynth.encoding import Histories, Roundings
    from dpsynth.privacy import Entropy, PrivacyBudget, Share

Ints = npt.NDArray[np.int64]

COARSE = 16  # codes of a value up to which it is drawn as it stands, not as a change

WIDE = 8  # values of a row from which on a step draws many columns


@dataclass(frozen=True)
class Series:
    """Rows of one kind that a patient has in order: a wide table, or one test of a long one.

    Attributes:
        name: of the table, with the test in a long one.
        values: the columns of a row.
        max_rows: of a patient; a public cap.
    """

    name: str
    values: tuple[Feature, ...]
    max_rows: int

    @cached_property
    def counts(self) -> Grid:
        """Codes of a patient's number of rows."""
        return Grid.of_counts(self.max_rows)


@dataclass(frozen=True)
class Inside:
    """Rows lie on days of rows of another table.

    Attributes:
        table: place of that table.
        length: place of its value that says how many days a row lasts.
        days: that each code of this value stands for, at least; 0 where it does not say.
    """

    table: int
    length: int
    days: tuple[int, ...]


@dataclass(frozen=True)
class HistoryTable:
    """One table of repeated rows.

    All series of a table have the same number of values, so that they are measured together.

    Attributes:
        name: of the table.
        series: one for a wide table, one for each test of a long table.
        timed: whether rows have a day; otherwise they are only ordered.
        longest: days that two consecutive rows of a patient may lie apart at most.
        changes: whether each value is drawn as its change from the patient's level.
        inside: on days of which rows its own lie; None where that is not declared.
        due: days on which rows are due; empty where that is not declared.
        within: days that a row lies off a due day at most.
        exactly: rows of each patient; None where numbers differ. Where days are due, the rows are
            those that are due up to the end of follow-up.
        cumulative: places of the values that never fall from row to row, with the ranks of their
            codes; -1 for a code of no value, which is not compared.
    """

    name: str
    series: tuple[Series, ...]
    timed: bool
    longest: int
    changes: tuple[bool, ...]
    inside: Inside | None = None
    due: tuple[int, ...] = ()
    within: int = 0
    exactly: int | None = None
    cumulative: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def __post_init__(self) -> None:
        """Refuse series that do not match.

        Raises:
            ValueError: they differ in their number of values.
        """
        if not self.series or {len(one.values) for one in self.series} != {len(self.changes)}:
            raise ValueError("all series of a table have the same number of values")

    def changes_of(self, series: Series) -> tuple[bool, ...]:
        """Say which values of a series are drawn as changes: none without an order."""
        pairs = zip(series.values, self.changes, strict=True)
        return tuple(change and value.cells > 1 for value, change in pairs)

    @property
    def is_wide(self) -> bool:
        """Whether many columns are drawn at each step."""
        return len(self.changes) >= WIDE

    @property
    def gaps(self) -> RatioGrid:
        """Codes of the days between two rows."""
        return RatioGrid()

    @cached_property
    def days(self) -> Grid:
        """Cells of the days between two rows."""
        return Grid.of_gaps(self.longest)

    @cached_property
    def paces(self) -> Grid:
        """Codes of the mean days between a patient's rows."""
        return Grid.of_paces(self.longest)


@dataclass(frozen=True, eq=False)
class FollowUp:
    """The last day of each patient's follow-up, as a baseline column says it.

    Attributes:
        column: its place in the baseline.
        days: the day that each of its codes stands for, ``[codes]``.
        status: place of the baseline column that says how follow-up ended, such as by death; None
            if none does.
        event: place of the event that ends follow-up, on its last day; None without.
    """

    column: int
    days: Ints
    status: int | None = None
    event: int | None = None

    def days_of(self, codes: Ints) -> Ints:
        """Return the last day of each patient."""
        return self.days[codes]


@dataclass(frozen=True)
class Excluded:
    """Patients of some categories never have an event, or a code in their rows.

    Attributes:
        column: place of the baseline column.
        codes: of it, that never go with the fact.
        event: place of the event; -1 where it is about a code of rows.
        table: place of the table of rows; -1 where it is about an event.
        value: place of the column among the values of its rows.
        code: of this column.
    """

    column: int
    codes: tuple[int, ...]
    event: int = -1
    table: int = -1
    value: int = -1
    code: int = -1


@dataclass(frozen=True)
class HistoryDomain:
    """Linked tables of patients.

    Attributes:
        baseline: columns of the table of patients.
        events: names of what can happen to a patient once, on a day.
        tables: of repeated rows.
        first: first day of the window, relative to each patient's origin; at most 0.
        last: last day of the window; at least 0.
        population: public number of patients.
        end: which baseline column is the last day of follow-up; None if the window's end is.
        implies: places of events whose patients have another one by then: (event, the other one,
            whether it is always on the same day).
        excluded: which patients never have an event or a code, by the rules of the schema.
    """

    baseline: tuple[Feature, ...]
    events: tuple[str, ...]
    tables: tuple[HistoryTable, ...]
    first: int
    last: int
    population: int
    end: FollowUp | None = None
    implies: tuple[tuple[int, int, bool], ...] = ()
    excluded: tuple[Excluded, ...] = ()

    @cached_property
    def days(self) -> TimeGrid:
        """Codes of a patient's days."""
        return TimeGrid(self.first, self.last)


def drawn_as_changes(feature: Feature, *, wide: bool) -> bool:
    """Say, from public facts, whether a value is drawn as its change from the patient's level.

    A measurement is: a binned level loses how alike a patient's values are. A few codes, or the
    counts and categories of a wide row, are drawn as they stand, beside the row before.
    """
    return feature.cells > (16 * COARSE if wide else COARSE)


class HistoryGenerator(Protocol):
    """Learns the histories of patients under a plan; emits histories.

    As `dpsynth.models.Generator`, of linked tables. ``rounding`` says how numbers are rounded, if
    a fit has released that.
    """

    name: ClassVar[str]
    domain: HistoryDomain
    rounding: Roundings | None

    def __init__(self, domain: HistoryDomain) -> None:
        """Build an unfitted generator from public facts."""

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name every mechanism that ``fit`` will run."""
        ...

    def fit(
        self,
        histories: Histories,
        plan: Any,
        entropy: Entropy,
        progress: Progress = ...,
        checkpoints: Checkpoints = ...,
    ) -> Self:
        """Run the plan's events on the histories, each once, and learn from what they released."""
        ...

    def sample(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Histories:
        """Draw so many patients with all their rows; reads nothing but what was learned."""
        ...

    def config(self) -> dict[str, Any]:
        """Describe the fitted generator in plain JSON values."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the learned arrays by name."""
        ...

    @classmethod
    def restore(
        cls,
        domain: HistoryDomain,
        config: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Rebuild a fitted generator from its ``config`` and ``arrays``."""
        ...
