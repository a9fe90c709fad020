"""Linkability: can two holders of parts of a record find each other through the synthetic table?

The second risk of the Article 29 Working Party (Opinion 05/2014 on Anonymisation Techniques,
section 2.2). One holder knows half of the columns of a person, another the other half; each looks
for the synthetic rows nearest to what is known. If both find the same row, they may take their
records for those of one person (Giomi et al., A Unified Framework for Quantifying Privacy Risk in
Synthetic Data (Anonymeter), arXiv 2211.10459). What succeeds as often for people who were never in
the data tells of the population, and is no leak.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    TableAttack,
    Targets,
)
from dpsynth.eval.core import Measure, PartResult, Tables, TableView
from dpsynth.eval.distances import Metric, nearest
from dpsynth.schema import Schema

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Halves = tuple[tuple[str, ...], tuple[str, ...]]

SPLITS = 3
NEIGHBOURS = (1, 10)  # nearest rows that each holder looks at
TARGETS = 1_500  # people on each side, at most
TITLE = "Linkability"
MEANING = (
    "Share of people in the data whose two half records lead to the same synthetic row, beyond "
    "the share of other people; by the way of splitting and searching that chance explains least. "
    "A high value means that the table serves as a key between two sources about one person."
)


def linkability(tables: Tables, people: People, rng: np.random.Generator) -> Attack:
    """Link the halves of people's records through their nearest synthetic rows.

    The columns are dealt into two halves, three times at random, with the quasi-identifiers shared
    out evenly. Each person plays with one random row. A link is made if one row is among the k
    nearest by both halves; with k = 1 and with k = 10. Of rows that are equally near, the search
    takes some, the same ones for everybody.
    """
    if len(tables.codec.names) < 2:
        return Attack(PartResult(notes=("linkability needs two modelled columns: left out",)))
    targets = Targets.of(people, TARGETS, rng)
    successes: list[AttackSuccess] = []
    splits: list[dict[str, Any]] = []
    for halves in _splits(tables.schema, rng):
        first, second = (
            _nearest(tables.codec, half, targets.view, tables.synthetic) for half in halves
        )
        for k in NEIGHBOURS:
            success = targets.success(_shared(first[:, :k], second[:, :k]))
            successes.append(AttackSuccess(_title(len(splits), k), success))
            splits.append(
                {
                    "first": list(halves[0]),
                    "second": list(halves[1]),
                    "neighbours": k,
                    "success": success.to_dict(),
                }
            )
    all_ways = CombinedAttacks(tuple(successes))
    finding = all_ways.finding(
        TITLE.lower(), TITLE, "two halves of a record lead to the same synthetic row"
    )
    measure = Measure("linkability", TITLE, all_ways.excess, 0.0, MEANING)
    power = all_ways.power("linkability")
    return Attack(PartResult((measure,), {"splits": splits}), (finding,), (power,))


def _splits(schema: Schema, rng: np.random.Generator) -> list[Halves]:
    """Deal the columns into different halves; fewer than `SPLITS` if there are no more."""
    first: list[str] = []
    rest: list[str] = []
    for column in schema.modelled:
        (first if "quasi_identifier" in column.roles else rest).append(column.name)
    splits: dict[frozenset[frozenset[str]], Halves] = {}
    for _ in range(10 * SPLITS):
        dealt = [*rng.permutation(first), *rng.permutation(rest)]
        halves = (_ordered(schema, dealt[::2]), _ordered(schema, dealt[1::2]))
        splits.setdefault(frozenset(map(frozenset, halves)), halves)
        if len(splits) == SPLITS:
            break
    return list(splits.values())


def _ordered(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(column.name for column in schema.modelled if column.name in names)


def _nearest(codec: Codec, known: Sequence[str], view: TableView, synthetic: TableView) -> Ints:
    """Return the synthetic rows nearest to each row of a view, by the known columns alone."""
    metric = Metric.of(codec, skip=set(codec.names) - set(known))
    return nearest(metric, metric.points(view), metric.points(synthetic), max(NEIGHBOURS)).rows


def _shared(first: Ints, second: Ints) -> Bools:
    """Tell where two lists of rows have one in common; -1 is none."""
    same = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
    return np.asarray(same.any(axis=(1, 2)))


def _title(before: int, k: int) -> str:
    """Name a way of linking, by how many were described before it."""
    rows = "the nearest row" if k == 1 else f"the {k} nearest rows"
    return f"{rows} by each half, split {before // len(NEIGHBOURS) + 1}"


ATTACK = TableAttack(
    "linkability",
    "Linkability",
    "links between two registers",
    linkability,
    (PositiveControl("repeated", "linkability"),),
)
