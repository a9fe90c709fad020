"""What a table can carry, in words for a terminal: before any data is opened."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsynth._util.formatting import counted, percent

if TYPE_CHECKING:
    from dpsynth.synthesis import Capacity

SHOWN = 8  # columns that are named


def capacity_lines(found: Capacity) -> list[str]:
    """Lay out what is carried, what is lost, and what helps."""
    from dpsynth.synthesis.capacity import COLUMN_GATE, PAIR_GATE

    columns, noun = found.columns, found.noun
    lines = []
    if columns:
        of_patients = f" of the table of {noun}" if found.tests else ""
        lines += [
            f"carries     about {found.carried} of {counted(len(columns), 'column')}{of_patients} "
            f"well, with {found.population:,} {noun} and epsilon {found.epsilon:g}",
            f"            well: beyond chance, at most {percent(COLUMN_GATE)} of the rows have a "
            f"wrong value in the column, and {percent(PAIR_GATE)} in it and another column",
        ]
        if lost := [column.name for column in columns if not column.carried]:
            lines.append(f"            not well: {_named(lost)}")
        pair = f", and {percent(found.pairs)} in one of two columns" if len(columns) > 1 else ""
        lines.append(
            f"            expected on average: {percent(found.error)} of the rows have a wrong "
            f"value in a column{pair}"
        )
    lines.append(f"groups      a group of fewer than about {found.group:,} {noun} is mostly noise")
    if len(columns) > 1:
        lines += _relation_lines(found)
    for one in found.tests:
        words = f"off by about {one.error:.2g} standard deviations"
        verdict = "usable" if one.carried else "mostly noise"
        share = ""
        if one.tests > 1:
            share = (
                f"; {one.tests} numbers of rows share the weight of a patient, so one counts as "
                f"{one.weight:,.0f} {noun}, with noise of {one.noise:.2g}"
            )
        lines.append(f"values      in {one.table}, a mean is {words}: {verdict}{share}")
    if found.codes is not None:
        lines.append(
            f"codes       one of {found.codes.number:,} events and codes of rows (diagnoses, "
            f"drugs) that fewer than about {found.codes.group:,} {noun} have is mostly noise"
        )
    for place, remedy in enumerate(found.remedies):
        lines.append(f"{'' if place else 'helps':<11} {remedy.words}")
    lines.append(
        "            (computed from public facts and typical values; no data was read. --forecast "
        "simulates fits of a single table)"
    )
    return lines


def _relation_lines(found: Capacity) -> list[str]:
    """Say which relations between columns are lost."""
    from dpsynth.synthesis.capacity import STRONG

    weakest = sorted(column.weakest for column in found.columns)
    middle = weakest[len(weakest) // 2]
    if middle >= 1:
        return ["relations   between two columns are lost, except by chance"]
    lines = [
        "relations   between two typical columns are lost if their correlation (0 to 1) is below "
        f"about {math.ceil(100 * middle) / 100:g}"
    ]
    weak = [column.name for column in found.columns if column.weakest > STRONG]
    if weak:
        words = f"of these columns, even correlations of {STRONG:g} are lost: {_named(weak)}"
        lines.append(f"            {words}")
    return lines


def _named(names: list[str]) -> str:
    """List names, the first `SHOWN` of them."""
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
