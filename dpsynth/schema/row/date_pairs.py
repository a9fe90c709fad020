"""Two dates with a rule about their order, and no interval between them.

Each date is then modelled by itself, in bins of many days, and only its order to the other is kept.
The gap between them comes out far too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.schema.lattice import lattice_of
from dpsynth.schema.rule_parser import Comparison, Joined, Name, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpsynth.schema.column import Column
    from dpsynth.schema.facts import Facts

TYPICAL_BINS = 8  # of a date in a mixture of 8 000 patients (bench/intervals.py)
DAY = 86_400  # seconds


@dataclass(frozen=True)
class DatePair:
    """A date, a later one, and about how many days a bin of the later one spans."""

    first: str
    last: str
    days: int

    @property
    def warning(self) -> str:
        """Say what will happen, and the line to add."""
        return (
            f"column '{self.last}': a rule orders it after '{self.first}', but it is not declared "
            f"as an interval. Both dates are modelled in bins of about {self.days} days each, so "
            "the time between them comes out wrong, and its mean can be several times too long. "
            "Remove minimum and maximum of the column and add, with a longest gap from your "
            f"protocol: dpsynth: {{after: {self.first}, longest: ..., bounds_basis: ...}}"
        )


def date_pairs(schema: Facts) -> list[DatePair]:
    """List the pairs of dates that a rule orders and that no chain of intervals joins."""
    columns = {column.name: column for column in schema.modelled}
    pairs: dict[frozenset[str], DatePair] = {}
    for rule in schema.rules:
        for first, last in ordered(rule.tree):
            both = [columns.get(name) for name in (first, last)]
            if any(c is None or not c.kind.is_time or c.is_categorical for c in both):
                continue
            if _origin(first, columns) != _origin(last, columns):
                days = _bin_days(columns[last])
                pairs.setdefault(frozenset((first, last)), DatePair(first, last, days))
    return list(pairs.values())


def ordered(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the pairs of columns that the comparisons of a rule order, the earlier first."""
    if isinstance(tree, Joined):
        for part in tree.parts:
            yield from ordered(part)
    elif isinstance(tree, Comparison) and isinstance(tree.left, Name):
        if isinstance(tree.right, Name) and tree.sign in ("<", "<=", ">", ">="):
            pair = tree.left.text, tree.right.text
            yield pair if tree.sign.startswith("<") else (pair[1], pair[0])


def _origin(name: str, columns: dict[str, Column]) -> str:
    """Return the date that a chain of intervals begins at."""
    while (interval := columns[name].interval) is not None:
        name = interval.base
    return name


def _bin_days(column: Column) -> int:
    lattice = lattice_of(column)
    span = lattice.points * lattice.stride / (1 if column.kind.in_days else DAY)
    return max(1, round(span / TYPICAL_BINS))
