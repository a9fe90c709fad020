"""Singling out: can the synthetic table tell how to isolate one person in the data?

Singling out is the first of the three risks of the Article 29 Working Party (Opinion 05/2014 on
Anonymisation Techniques, section 2.2). The attacker reads the synthetic table alone and writes
descriptions that fit exactly one of its rows, by one column or by several (Giomi et al., A Unified
Framework for Quantifying Privacy Risk in Synthetic Data (Anonymeter), arXiv 2211.10459). Some of
them fit exactly one person by chance, also among people who were never in the data. Unlike there, a
description by several columns has as many as it needs to fit one row, and two more: with three or
four, hardly any fits one row of a long table, and most of those that do fit somebody by chance.

**Why the test is exact.** Descriptions depend on each other: many can isolate the same person, and
all come from one table, so they are no independent trials. Let m units of the source and m of the
holdout stand together, and call a unit isolated if some description fits it and none of the other
2m - 1. Who is isolated is decided by the descriptions and by the 2m units, not by which of them
were in the data. If the table leaks nothing, it says as much about the ones as about the others:
given it and the 2m units, each choice of m of them as "the data" is equally likely. So of k
isolated units, the number from the source is hypergeometric, however the descriptions depend on
each other, and Fisher's test of `Success` holds its level exactly. A description that fits people
of both sides, or several of one, says nothing about sides, and is left out of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.attack_stats import (
    Attack,
    AttackSuccess,
    CombinedAttacks,
    People,
    PositiveControl,
    Success,
    TableAttack,
    together,
)
from dpsynth.eval.core import Measure, PartResult, Rate, Tables, TableView, numbers

Ints = npt.NDArray[np.int64]
Step = Callable[[float], None]

PREDICATES = 2_000  # of a kind, at most
ATTEMPTS = 6_000  # to find descriptions by several columns
MIN_COLUMNS = 3  # columns of such a description
MORE = 2  # columns beyond those that leave one row
MAX_UNITS = 20_000  # of each side, at most
BATCH = 100  # descriptions between two reports of progress
MISSING = -1  # place of a number that is missing
TITLES = {"one": "Singling out by one column", "many": "Singling out by several columns"}
WHAT = {
    "one": "a value or a range of one column, unique in the synthetic table, fits nobody else",
    "many": "a description by several columns, unique in the synthetic table, fits nobody else",
}
MEANING = (
    "Share of people in the data whom a description that fits one synthetic row isolates among "
    "people in the data and as many others, beyond the share of others. A high value means that "
    "rows of the table point at people in the data; about 0 means that they point at anybody."
)


@dataclass(frozen=True)
class PredicateTerm:
    """What a description says of one column: that its value lies from ``low`` to ``high``."""

    column: int
    low: int
    high: int


Predicate = tuple[PredicateTerm, ...]


@dataclass(frozen=True, eq=False)
class Index:
    """A table by which the rows that fit a description are found quickly.

    Attributes:
        places: the cells of each column as whole numbers: a number's place on its lattice, or
            `MISSING`; a category's code.
        orders: the rows in the order of each column.
        ranked: the cells in that order.
    """

    places: tuple[Ints, ...]
    orders: tuple[Ints, ...]
    ranked: tuple[Ints, ...]

    @classmethod
    def of(cls, view: TableView, codec: Codec) -> Index:
        """Order all columns of a table."""
        places = []
        for number, column in enumerate(codec.schema.modelled):
            lattice = codec.lattice(column.name)
            if lattice is None:
                places.append(view.codes[:, number].astype(np.int64))
                continue
            values = numbers(view, column)
            missing = np.isnan(values)
            cells = lattice.positions(np.where(missing, 0.0, values))
            places.append(np.where(missing, MISSING, cells))
        orders = [np.argsort(cells, kind="stable") for cells in places]
        ranked = [cells[order] for cells, order in zip(places, orders, strict=True)]
        return cls(tuple(places), tuple(orders), tuple(ranked))

    def rows(self, predicate: Predicate) -> Ints:
        """Return the rows that fit all terms."""
        slices = [self._slice(term) for term in predicate]
        minimum = min(range(len(slices)), key=lambda k: slices[k][1] - slices[k][0])
        low, high = slices[minimum]
        rows = self.orders[predicate[minimum].column][low:high]
        for k, term in enumerate(predicate):
            if k != minimum and len(rows):
                rows = self.within(rows, term)
        return rows

    def within(self, rows: Ints, term: PredicateTerm) -> Ints:
        """Return those of some rows that fit a term."""
        cells = self.places[term.column][rows]
        return rows[(cells >= term.low) & (cells <= term.high)]

    def _slice(self, term: PredicateTerm) -> tuple[int, int]:
        ranked = self.ranked[term.column]
        low = int(np.searchsorted(ranked, term.low, side="left"))
        return low, int(np.searchsorted(ranked, term.high, side="right"))


def singling_out(
    tables: Tables,
    people: People,
    rng: np.random.Generator,
    progress: Step = lambda part: None,
) -> Attack:
    """Isolate people by descriptions that the synthetic table suggests.

    The source is used to see whom they isolate: as many units of it, at random, as there are of
    `People.others`. Success is counted in units, see the module's text.
    """
    if len(tables.codec.names) < 2:
        return Attack(PartResult(notes=("singling out needs two modelled columns: left out",)))
    table = Index.of(tables.synthetic, tables.codec)
    crowd, size = _crowd(tables, people, rng)
    measures, kinds, findings, powers, notes = [], [], [], [], []
    lone = by_one_column(table, tables.codec, rng)
    progress(0.1)
    joint = by_several_columns(table, tables.codec, rng, lambda part: progress(0.1 + 0.5 * part))
    for kind, predicates, place in (("one", lone, 0.6), ("many", joint, 0.8)):
        progress(place)
        if not predicates:
            notes.append(f"{TITLES[kind].lower()}: no description fits exactly one synthetic row")
            continue
        hits = isolated(predicates, Index.of(crowd, tables.codec), crowd.units)
        units = np.unique(hits[hits >= 0])
        caught = int((units < size).sum())
        success = Success(Rate(caught, size), Rate(len(units) - caught, size))
        key = f"singling_out:{kind}"
        measures.append(Measure(f"singling_out_{kind}", TITLES[kind], success.excess, 0.0, MEANING))
        findings.append(success.finding(key, TITLES[kind], WHAT[kind]))
        powers.append(CombinedAttacks((AttackSuccess(TITLES[kind], success),)).power(key))
        kinds.append(_described(kind, len(predicates), hits, success))
    part = PartResult(tuple(measures), {"kinds": kinds}, tuple(notes))
    return Attack(part, tuple(findings), tuple(powers))


def by_one_column(table: Index, codec: Codec, rng: np.random.Generator) -> list[Predicate]:
    """Write descriptions by one column that fit one row: a lone value, category or gap, an end.

    An end is "this or less" for the smallest number and "this or more" for the largest, if one row
    holds it.
    """
    lone: list[Predicate] = []
    ends: list[Predicate] = []
    for column, ranked in enumerate(table.ranked):
        values, counts = np.unique(ranked, return_counts=True)
        lone += [(PredicateTerm(column, int(v), int(v)),) for v in values[counts == 1]]
        present = values != MISSING
        if codec.cells[column] and present.any():
            values, counts = values[present], counts[present]
            if counts[0] == 1:
                ends.append((PredicateTerm(column, 0, int(values[0])),))
            if counts[-1] == 1:
                ends.append((PredicateTerm(column, int(values[-1]), np.iinfo(np.int64).max),))
    chosen = rng.permutation(len(lone))[: max(0, PREDICATES - len(ends))]
    return ends + [lone[k] for k in sorted(chosen)]


def by_several_columns(
    table: Index,
    codec: Codec,
    rng: np.random.Generator,
    progress: Step = lambda part: None,
) -> list[Predicate]:
    """Write descriptions of random rows by random columns that fit no other row.

    A category, or that a number is missing, stands as it is; a number above its column's median
    becomes "this or more", another "this or less". Columns are added until one row is left, and
    `MORE` beyond, so that the description seldom fits somebody by chance.
    """
    rows, columns = len(table.places[0]), len(table.places)
    middles = [_median(ranked) for ranked in table.ranked]
    predicates: dict[Predicate, None] = {}
    for attempt in range(ATTEMPTS):
        if len(predicates) == PREDICATES:
            break
        if attempt % BATCH == 0:
            progress(max(attempt / ATTEMPTS, len(predicates) / PREDICATES))
        row = int(rng.integers(rows))
        terms = [_outwards(table, codec, row, c, middles) for c in rng.permutation(columns)]
        needed = _needed(table, terms)
        if needed is not None:
            predicates[tuple(sorted(terms[: needed + MORE], key=lambda term: term.column))] = None
    return list(predicates)


def isolated(predicates: list[Predicate], crowd: Index, units: Ints) -> Ints:
    """Return for each description the one unit that it fits, or -1 if it fits none or several."""
    hits = np.full(len(predicates), -1, dtype=np.int64)
    for k, predicate in enumerate(predicates):
        rows = crowd.rows(predicate)
        if len(rows) and (units[rows] == units[rows[0]]).all():
            hits[k] = units[rows[0]]
    return hits


def _needed(table: Index, terms: list[PredicateTerm]) -> int | None:
    """Return how many of the terms, in their order, leave one row; None if all leave several."""
    rows = table.rows(tuple(terms[:MIN_COLUMNS]))
    for k, term in enumerate(terms[MIN_COLUMNS:]):
        if len(rows) == 1:
            return MIN_COLUMNS + k
        rows = table.within(rows, term)
    return len(terms) if len(rows) == 1 else None


def _outwards(
    table: Index, codec: Codec, row: int, column: int, middles: list[float]
) -> PredicateTerm:
    """Say of a row's cell what is said of it, away from the median."""
    cell = int(table.places[column][row])
    if not codec.cells[column] or cell == MISSING:
        return PredicateTerm(column, cell, cell)
    if cell > middles[column]:
        return PredicateTerm(column, cell, np.iinfo(np.int64).max)
    return PredicateTerm(column, 0, cell)


def _median(ranked: Ints) -> float:
    present = ranked[np.searchsorted(ranked, 0) :]
    return float(np.median(present)) if len(present) else 0.0


def _crowd(tables: Tables, people: People, rng: np.random.Generator) -> tuple[TableView, int]:
    """Put as many units of the source and of the holdout together.

    Returns:
        Their rows, with units numbered from 0, those of the source first; and the units of one
        side, where the numbers of the holdout's begin.
    """
    sides = (tables.source, people.others)
    size = min(MAX_UNITS, *(len(np.unique(side.units)) for side in sides))
    crowd = [_of_units(side, size, rng) for side in sides]
    crowd[1] = TableView(crowd[1].frame, crowd[1].codes, crowd[1].units + size)
    return together(*crowd), size


def _of_units(view: TableView, size: int, rng: np.random.Generator) -> TableView:
    """Return the rows of so many units, numbered from 0."""
    units, unit_of_row = np.unique(view.units, return_inverse=True)
    number = np.full(len(units), -1, dtype=np.int64)
    number[rng.choice(len(units), size=size, replace=False)] = np.arange(size)
    rows = np.flatnonzero(number[unit_of_row] >= 0)
    sample = view.take(rows)
    return TableView(sample.frame, sample.codes, number[unit_of_row[rows]])


def _described(kind: str, predicates: int, hits: Ints, success: Success) -> dict[str, Any]:
    """Give counts in JSON types; descriptions are counted, and never shown."""
    alone, size = hits[hits >= 0], success.members.runs
    return {
        "kind": kind,
        "title": TITLES[kind],
        "predicates": predicates,
        "isolating": {
            "source": int((alone < size).sum()),
            "holdout": int((alone >= size).sum()),
        },
        "success": success.to_dict(),
    }


ATTACK = TableAttack(
    "singling_out",
    "Singling out",
    "descriptions that fit one person",
    singling_out,
    (PositiveControl("repeated", "singling_out:many"),),
    reports_progress=True,
)
