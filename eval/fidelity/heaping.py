"""Heaping: numbers that people round, such as blood pressures at 120 or incomes at 50 000."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    absolute,
    numbers,
)
from dpsynth.schema import Column, Lattice

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COMMONEST = "most common value"
FACTORS = (5, 10, 50, 100, 500, 1000, 5000, 10_000)  # of the last digit that a column has
MAX_SHARE = 5  # a base divides the source's range at least so many times
EXCESS = 0.05  # of the share of multiples over that of an even spread
RATIO = 1.5  # of the two shares
SPIKE = 0.1  # share of the most common value from which it is compared
MIN_ROWS = 100  # with a value in the source
MIN_DISTINCT = 10  # values of a column, for its most common one to be called a heap
MEANING = (
    "Mean over the heaps of the source (multiples of a round number that are commoner than an even "
    "spread makes them, and very common single values) of the absolute difference of the share of "
    "values on the heap. A high value means that rounding habits are lost or exaggerated."
)


def heaping(sides: PairedTables) -> PartResult:
    """Compare the share of present values that lie on heaps; intervals by jackknife over units.

    Of each numeric column that is no time, at most one base and the most common value enter.
    """
    lattices = sides.tables.codec.lattice
    figures: list[JackknifeEstimate] = []
    details: list[dict[str, Any]] = []
    for column in sides.tables.schema.modelled:
        lattice = lattices(column.name)
        if lattice is None or not column.kind.is_plain:
            continue
        for name, base, target in _heaps(_ticks(sides.source, column, lattice), lattice):
            heap = partial(_on_heap, column=column, lattice=lattice, base=base, target=target)
            shares = sides.each(heap)
            figure = JackknifeEstimate.of(absolute, shares)
            if figure is not None:
                figures.append(figure)
            details.append({"column": column.name, "base": name, **shares.whole()})
    if not figures:
        return PartResult((), {"heaping": details}, ("no numeric column of the source is heaped",))
    estimate = JackknifeEstimate.mean(figures).estimate(sides.n)
    measure = Measure("heaping", "Difference of heaps", estimate, 0.0, MEANING)
    return PartResult((measure,), {"heaping": details})


def _ticks(side: PairedTable, column: Column, lattice: Lattice) -> Floats:
    """Return the values as whole multiples of the column's last digit; NaN where missing."""
    return np.rint(numbers(side.view, column) * 10.0**lattice.decimals)


def _heaps(ticks: Floats, lattice: Lattice) -> list[tuple[float | str, int, int]]:
    """Find the heaps of a column: name of the base, the base, and a tick on the heap."""
    present = ticks[~np.isnan(ticks)].astype(np.int64)
    if len(present) < MIN_ROWS:
        return []
    values, counts = np.unique(present, return_counts=True)
    mode = int(values[counts.argmax()])
    heaps: list[tuple[float | str, int, int]] = []
    base = _base(values, counts, mode, lattice)
    if base is not None:
        unit = base / 10**lattice.decimals
        heaps.append((int(unit) if unit == int(unit) else unit, base, 0))
    if len(values) > MIN_DISTINCT and counts.max() >= SPIKE * len(present):
        heaps.append((COMMONEST, 0, mode))
    return heaps


def _base(values: Ints, counts: Ints, mode: int, lattice: Lattice) -> int | None:
    """Return the base, in ticks, whose multiples exceed an even spread most; None if none does.

    The most common value and the declared bounds are left out of this search: one spike is no
    rounding, and what is out of bounds is read as the bound.
    """
    ends = (lattice.first, lattice.first + (lattice.points - 1) * lattice.stride)
    inner = ~np.isin(values, (mode, *ends))
    values, counts = values[inner], counts[inner]
    if not len(values):
        return None
    best, maximum = None, EXCESS
    for base in FACTORS:
        if base % lattice.stride or base <= lattice.stride:
            continue
        if int(values[-1]) - int(values[0]) < MAX_SHARE * base:
            continue
        share = counts[values % base == 0].sum() / counts.sum()
        even = lattice.stride / base
        if share >= RATIO * even and share - even > maximum + 1e-12:
            best, maximum = base, share - even
    return best


def _on_heap(side: PairedTable, column: Column, lattice: Lattice, base: int, target: int) -> Floats:
    ticks = _ticks(side, column, lattice)
    present = ~np.isnan(ticks)
    whole = np.where(present, ticks, 0).astype(np.int64)
    return side.shares(whole % base == 0 if base else whole == target, present)
