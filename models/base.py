"""What a generator is: it names its events in public, learns from codes once, and emits codes.

A generator never sees a table. It is built from public facts (`Domain`), says which mechanisms it
will run on private rows (`shares`), gets the calibrated plan and the cohort in `fit`, and keeps
only what those mechanisms released (`config` and `arrays`, all post-processing of the plan).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr

if TYPE_CHECKING:
    from dpsynth.encoding import Codec, Cohort, Raised
    from dpsynth.privacy import Entropy, PrivacyBudget, Share
    from dpsynth.schema import Schema

Codes = npt.NDArray[np.uint16]
WIDE = 256  # ordered codes; a column of more is counted at several resolutions
BY_GROUP = 0  # in place of a width
REPEATS = 8  # counts of listed codes, of which there are many: each costs as much as a column does
VISITS = "\trows of the unit"  # a tab, which no schema accepts in a name

Progress = Callable[[str, float], None]


def silent(stage: str, fraction: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Feature:
    """One modelled column as codes: ``cells`` ordered codes first, then unordered ones.

    A numeric column of m cells has ``cells = m``; its missing code, if any, comes after them. A
    categorical column has ``cells = 0``: none of its codes has a neighbour. ``points`` says how
    many values each of the cells stands for; empty if one each. With ``groups``, the ordered codes
    are also counted in groups of so many. ``parents`` says in which group each of the other codes
    is, if they are also counted by group; empty if not. A ``target`` is what the schema says is
    predicted from the other columns. At ``landmarks``, ordered codes of another kind begin, such as
    the days after an origin: no bin has codes of both kinds. ``grains`` says of each of the cells
    how many values of each round unit it stands for, the coarsest unit first; empty for a column
    without such units. A column that is a gap above others has ``raised`` in its place: how codes
    of a row say the grain of the upper value. ``undeclared`` are the codes that stand for no value
    of the column's list or range: missing, and ``other`` where the schema does not list it. The
    last code of a ``nullable`` column stands for a missing cell. ``low`` is the lower bound of a
    number of linked tables in parts of its range, if it is above 0, and ``unlisted`` are codes of
    these tables that stand for no declared value.
    """

    name: str
    size: int
    cells: int
    points: tuple[int, ...] = ()
    groups: int = 0
    parents: tuple[int, ...] = ()
    target: bool = False
    landmarks: tuple[int, ...] = ()
    grains: tuple[tuple[int, ...], ...] = ()
    raised: Raised | None = None
    undeclared: tuple[int, ...] = ()
    nullable: bool = False
    low: float = 0.0
    unlisted: tuple[int, ...] = ()

    @property
    def units(self) -> int:
        """How many round units its values have; 0 for none."""
        if self.raised is not None:
            return self.raised.units
        return len(self.grains[0]) if self.grains else 0

    @property
    def levels(self) -> tuple[int, ...]:
        """Widths of the cells, in codes, at which the column is counted: coarsest first.

        `BY_GROUP` stands for the groups of unordered codes, which are counted one by one as often
        as `REPEATS` says: the mean of these counts has less noise.
        """
        if self.parents:
            return (BY_GROUP, *(1,) * REPEATS)
        if self.cells > WIDE:
            return (64, 8, 1)
        return (self.groups, 1) if self.groups else (1,)


@dataclass(frozen=True)
class Domain:
    """The public facts that a generator may use before it sees any row.

    Attributes:
        features: the columns, in the order in which a generator takes them.
        population: number of units.
        max_rows: of a unit.
        order: place in the table of each of them but the hidden one; empty where it is the same.
    """

    features: tuple[Feature, ...]
    population: int
    max_rows: int
    order: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """Name no feature."""
        return short_repr(self, counted(len(self.features), "feature"))

    @classmethod
    def of(cls, schema: Schema, codec: Codec) -> Self:
        """Read the domain off a schema and its codec; no data is involved."""
        targets = {column.name for column in schema.modelled if "target" in column.roles}
        grains = [() if one is None else tuple(map(tuple, one.by_code)) for one in codec.grains]
        columns = (codec.names, codec.sizes, codec.cells, codec.points, codec.parents)
        features = tuple(
            Feature(
                *(name, size, cells, points),
                parents=parents,
                target=name in targets,
                grains=own,
                raised=raised,
                undeclared=undeclared,
                nullable=nullable,
            )
            for name, size, cells, points, parents, own, raised, undeclared, nullable in zip(
                *(*columns, grains, codec.raised, codec.undeclared, codec.nullable), strict=True
            )
        )
        return cls(features, schema.population.value, schema.unit.max_rows)

    def with_visits(self) -> Self:
        """Put a hidden column first, a unit's number of rows, where units may have several."""
        if self.max_rows == 1 or self.hidden:
            return self
        visits = Feature(VISITS, self.max_rows, self.max_rows, (1,) * self.max_rows)
        return replace(self, features=(visits, *self.features))

    def ordered(self, order: Sequence[int]) -> Self:
        """Put columns that are in the table's order into another one, behind the hidden column.

        Args:
            order: their places in the table; empty to leave them as they are.
        """
        if not order:
            return self
        columns = self.features[self.hidden :]
        features = (*self.features[: self.hidden], *(columns[place] for place in order))
        return replace(self, features=features, order=tuple(order))

    def with_targets_last(self) -> Self:
        """Put targets behind all other columns, wherever the schema has them.

        Example:
            >>> ill, age = Feature("ill", 2, 0, target=True), Feature("age", 9, 9)
            >>> last = Domain((ill, age), population=1000, max_rows=1).with_targets_last()
            >>> [feature.name for feature in last.features], last.order, last.drawn
            (['age', 'ill'], (1, 0), (1, 0))
        """
        targets = [feature.target for feature in self.features[self.hidden :]]
        order = sorted(range(len(targets)), key=targets.__getitem__)
        return self if order == list(range(len(order))) else self.ordered(order)

    @property
    def hidden(self) -> int:
        """Number of hidden columns, 0 or 1."""
        return int(self.features[0].name == VISITS)

    @property
    def drawn(self) -> tuple[int, ...]:
        """Where each column of the table is among the features."""
        order = self.order or range(len(self.features) - self.hidden)
        return tuple(
            self.hidden + place for place in sorted(range(len(order)), key=order.__getitem__)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes per column."""
        return tuple(feature.size for feature in self.features)


class Law(Protocol):
    """Emits coded rows."""

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes."""


@runtime_checkable
class Weighed(Protocol):
    """A law whose rows are chosen among weighted proposals, of which some count little."""

    def effective(self, rows: int) -> float:
        """Return about how many effective proposals so many rows are chosen from."""


@runtime_checkable
class Conditional(Protocol):
    """A generator that can be kept to a condition without throwing rows away."""

    def given(self, allowed: Mapping[int, npt.NDArray[np.bool_]]) -> tuple[Law | None, float]:
        """Return its law under a condition, and the share of rows that meet it.

        Args:
            allowed: codes of some columns, by their place among those that are drawn. Rows may
                still hold other codes of the same bins, and have to be compared.

        Returns:
            None if no row can meet it.
        """


class Generator(Protocol):
    """Learns the distribution of coded rows under a plan; emits coded rows.

    One whose rows have a density also has ``log_prob(cohort)``, see `auditing.likelihood`; one that
    can be kept to a condition is `Conditional`.
    """

    name: ClassVar[str]
    domain: Domain

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name every mechanism that ``fit`` will run, a public function of domain and budget."""
        ...

    def fit(self, cohort: Cohort, plan: Any, entropy: Entropy, progress: Progress = silent) -> Self:
        """Run the plan's events on the cohort, each exactly once, and learn from what they gave.

        ``plan`` is a `PrivacyPlan`. A generator that is ``neural`` by its `GeneratorSpec` also
        takes a `NotPrivate`, and then runs the events without noise. Each takes an `ObservedPlan`,
        whose observer sees what the events release.
        """
        ...

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes from what was learned; reads nothing else.

        With ``even``, rows are spread more evenly than chance: every row has the law that was
        learned, but rows are not independent of each other. Without it they are.
        """
        ...

    def config(self) -> dict[str, Any]:
        """Describe the fitted generator in plain JSON values."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the learned arrays by name."""
        ...

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted generator from its ``config`` and ``arrays``."""
        ...
