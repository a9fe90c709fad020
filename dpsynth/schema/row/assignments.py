"""Whether a row can meet several rules at once: a search over the declared values of its columns.

Rules are cut into comparisons, one alternative of each ``or`` at a time. Comparisons of numbers and
times that are left (``x >= 3``, ``x < y``) are closed under taking the smaller of two solutions, so
raising each column to the least value that the others allow finds a solution if there is one
(Jeavons and Cooper, Tractable constraints on ordered domains, Artificial Intelligence 79, 1995).
Categories are narrowed as sets. The answer is exact, except where a search grows too large: then a
row counts as possible, so that nothing is refused that could be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpsynth._util.clock import read_clock
from dpsynth.schema.column import Column
from dpsynth.schema.lattice import Lattice, lattice_of
from dpsynth.schema.relations.interval import DAY
from dpsynth.schema.rule_parser import Comparison, Joined, Literal, Name, Tree
from dpsynth.schema.types import TYPES

MAX_NODES = 2_000  # alternatives of a search
MAX_RAISES = 2_000  # of one column
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class TooLarge(Exception):
    """A search has too many alternatives."""


@dataclass(frozen=True)
class Values:
    """The values that cells of an ordered column can have, ascending: numbers, or seconds."""

    listed: tuple[float, ...] = ()
    lattice: Lattice | None = None
    scale: int = 1

    @classmethod
    def of(cls, column: Column) -> Values:
        """Return those of a column of numbers or times, with bounds or with categories."""
        if column.is_categorical:
            return cls(tuple(sorted(float(level) for level in column.levels)))
        return cls((), lattice_of(column), DAY if column.kind.in_days else 1)

    def least(self, bound: float, *, strict: bool) -> float | None:
        """Return the least value that is not below a bound, or above it if strict."""
        if self.lattice is None:
            met = (one for one in self.listed if (one > bound if strict else one >= bound))
            return next(met, None)
        place = int(self.lattice.positions(np.array([max(bound / self.scale, -1e300)]))[0])
        for at in (place, place + 1):
            value = self._at(at)
            if value is not None and (value > bound if strict else value >= bound):
                return value
        return None

    @property
    def first(self) -> float:
        """The least of all."""
        return self.listed[0] if self.lattice is None else float(self._at(0) or 0.0)

    def _at(self, place: int) -> float | None:
        assert self.lattice is not None
        if place >= self.lattice.points:
            return None
        return float(self.lattice.values(np.array([place]))[0]) * self.scale


@dataclass(frozen=True)
class State:
    """What is known of a row so far.

    Attributes:
        low: least value that each ordered column can have.
        below: bounds from above: column, bound, and whether it is excluded.
        edges: ordered pairs of columns: the lower, the higher, and whether they differ.
        levels: categories that are left of each other column.
    """

    low: Mapping[str, float]
    levels: Mapping[str, frozenset[str]]
    below: tuple[tuple[str, float, bool], ...] = ()
    edges: tuple[tuple[str, str, bool], ...] = ()


@dataclass
class Search:
    """A search for a row of given columns that breaks none of some rules.

    Attributes:
        columns: of the schema, by name.
        filled: those that have a value; all others are missing.
    """

    columns: Mapping[str, Column]
    filled: frozenset[str]
    nodes: int = 0
    values: dict[str, Values] = field(default_factory=dict)

    def possible(self, trees: Iterable[Tree]) -> bool:
        """Tell whether a row breaks none of these rules; True where that takes too long to find."""
        levels = {}
        for name in self.filled:
            column = self.columns[name]
            if column.kind.is_text or column.kind.is_truth:
                levels[name] = frozenset(column.levels)
            else:
                self.values[name] = Values.of(column)
        low = {name: values.first for name, values in self.values.items()}
        try:
            return self._met(State(low, levels), [(tree, True) for tree in trees], [])
        except TooLarge:
            return True

    def _met(
        self,
        state: State,
        goals: Sequence[tuple[Tree, bool]],
        either: list[list[tuple[Tree, bool]]],
    ) -> bool:
        """Tell whether all goals, and one of each list of alternatives, can be met together."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge
        goals, either = list(goals), list(either)
        while goals:
            tree, wanted = goals.pop()
            if isinstance(tree, Comparison):
                found = self._compared(state, tree, wanted=wanted)
                if found is None:
                    return False
                if isinstance(found, list):
                    either.append(found)
                else:
                    state = found
                continue
            senses = [wanted] * len(tree.parts)
            if tree.word == "not":
                senses = [not wanted]
            elif tree.word == "implies":
                senses[0] = not wanted
            parts = list(zip(tree.parts, senses, strict=True))
            if tree.word == "not" or (tree.word == "and") == wanted:
                goals += parts
            else:
                either.append(parts)
        raised = self._raised(state)
        if raised is None:
            return False
        if not either:
            return True
        either.sort(key=len)
        return any(self._met(raised, [part], either[1:]) for part in either[0])

    def _compared(
        self, state: State, link: Comparison, *, wanted: bool
    ) -> State | list[tuple[Tree, bool]] | None:
        """Return the state with a comparison met, alternatives, or None if it cannot be."""
        left, sign, right = link.left, link.sign, link.right
        names = [side.text for side in (left, right) if isinstance(side, Name)]
        if not self.filled.issuperset(names):
            return state  # a missing value leaves it undecided, so that it breaks nothing
        if isinstance(left, Literal):
            left, sign, right = right, _TURNED[sign], left
        assert isinstance(left, Name)
        sign = sign if wanted else NEGATED[sign]
        if sign == "!=" and left.text in self.values:
            return [(Comparison(left, one, right), True) for one in ("<", ">")]
        if isinstance(right, Name):
            return self._between(state, left, sign, right)
        if left.text in state.levels:
            word = str(right.value).lower() if isinstance(right.value, bool) else str(right.value)
            kept = state.levels[left.text] & {word}
            kept = kept if sign == "==" else state.levels[left.text] - {word}
            return replace(state, levels={**state.levels, left.text: kept}) if kept else None
        return self._bounded(state, left.text, sign, _number(right, self.columns[left.text]))

    def _bounded(self, state: State, name: str, sign: str, bound: float) -> State | None:
        low, below = dict(state.low), list(state.below)
        if sign in (">", ">=", "=="):
            least = self.values[name].least(bound, strict=sign == ">")
            if least is None:
                return None
            low[name] = max(low[name], least)
        if sign in ("<", "<=", "=="):
            below.append((name, bound, sign == "<"))
        return replace(state, low=low, below=tuple(below))

    def _between(
        self, state: State, left: Name, sign: str, right: Name
    ) -> State | list[tuple[Tree, bool]]:
        if left.text in state.levels:
            both = sorted(state.levels[left.text] | state.levels[right.text])
            return [
                (
                    Joined(
                        "and",
                        (
                            Comparison(left, "==", Literal(level)),
                            Comparison(right, sign, Literal(level)),
                        ),
                    ),
                    True,
                )
                for level in both
            ]
        edges = list(state.edges)
        if sign in ("<", "<=", "=="):
            edges.append((left.text, right.text, sign == "<"))
        if sign in (">", ">=", "=="):
            edges.append((right.text, left.text, sign == ">"))
        return replace(state, edges=tuple(edges))

    def _raised(self, state: State) -> State | None:
        """Raise columns to the least values that the others allow; None if one cannot be."""
        low, raises = dict(state.low), 0
        if _strict_circle(state.edges):
            return None
        changed = True
        while changed:
            changed = False
            for first, second, strict in state.edges:
                if low[second] > low[first] or (low[second] == low[first] and not strict):
                    continue
                least = self.values[second].least(low[first], strict=strict)
                if least is None:
                    return None
                low[second], changed = least, True
                raises += 1
                if raises > MAX_RAISES:
                    raise TooLarge
        for name, bound, excluded in state.below:
            if low[name] > bound or (excluded and low[name] == bound):
                return None
        return replace(state, low=low)


def _strict_circle(edges: Sequence[tuple[str, str, bool]]) -> bool:
    """Tell whether columns that cannot be equal are ordered in a circle."""
    after: dict[str, set[str]] = {}
    for first, second, _ in edges:
        after.setdefault(first, set()).add(second)
    for first, second, strict in edges:
        if not strict:
            continue
        reached, waiting = {second}, [second]
        while waiting:
            for other in after.get(waiting.pop(), set()) - reached:
                reached.add(other)
                waiting.append(other)
        if first in reached:
            return True
    return False


def _number(literal: Literal, column: Column) -> float:
    """Return a value of a rule as cells of a column are compared: a number, or seconds."""
    if not isinstance(literal.value, str):
        return float(literal.value)
    if column.kind.is_clock:
        return read_clock(literal.value)
    read = TYPES["datetime"].read
    assert read is not None
    text = literal.value if len(literal.value) > len("2015-12-31") else f"{literal.value}T00:00:00"
    return read(text, None)
