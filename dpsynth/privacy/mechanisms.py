"""Mechanisms on counts: noisy histograms of a cohort, with exact discrete noise.

Inputs are checked before any noise is drawn, and every value that leaves this module carries noise.

**How far a unit moves them.** A row adds its weight, a whole number from 0, to one cell of each
histogram. If the weights of a unit's rows add up to at most M, the unit moves each histogram by a
vector of non-negative whole numbers whose sum, and so whose L2 norm, is at most M, however many
rows it has. Nothing else is used by the bounds of `JointHistograms` and `ChosenHistograms` with
``unit_mass`` M. So a unit of k rows may give each of them floor(M / k). A weight of
floor(M / sqrt(k)) is NOT covered: k equal rows move one cell by about M sqrt(k). The number of rows
that weigh anything is capped by ``rows_per_unit`` all the same: accounting adds a little to delta
for every cell that a unit may move.

Rows of several series (laboratory tests, say) may be counted in one histogram whose cells name the
series, its *parts*: no cell is in two of them. If a unit's weights in part p add up to w_p, it
moves part p by an L2 norm of at most w_p, and the whole histogram by at most sqrt(sum_p w_p^2),
since the parts are different coordinates. That has to be at most M, and the histogram costs no more
than that of one series. So a unit with rows in s series, k of them in one, may give each of these k
floor(M / (k sqrt(s))): each of the s parts moves by M / sqrt(s) at most. The same weights in cells
that two series share are NOT covered: they move one cell by M sqrt(s).

What mechanisms ask of rows, and the checks of counts that came from elsewhere.

Rows are in memory (`CodedRows`), or they are counted where they lie (`CountedRows`): in shards on
a disk, by processes of this machine or of others, or in a warehouse. Exact counts are sums of
integers over units, so where they are added up makes no difference. The noise is added once, to
their sum, by the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms, JointHistograms
from dpsynth.privacy.payments import gaussian_noise


def joint_histograms(
    cohort: CodedRows | CountedRows,
    sizes: Sequence[int],
    event: JointHistograms,
    entropy: Entropy,
) -> list[NDArray[np.int64]]:
    """Noisy row counts of every column at once.

    Each real row adds 1, or its share of ``event.unit_mass``, to one cell of each column's
    histogram, so a unit moves the counts by at most ``event.mass`` in each histogram. Each cell
    gets its own discrete Gaussian noise of parameter ``event.sigma``; counts may come out negative.
    Masked rows never count, whatever their codes hold.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows]; or rows that are counted where
            they lie.
        sizes: number of codes of each column.
        event: what the plan paid for; one histogram per column.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] per column.

    Raises:
        InputError: if the cohort is not what the event accounts for; no noise has been drawn then.
    """
    counts = _count(cohort, sizes, event)
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, sum(sizes))])
    ends = np.cumsum(sizes)[:-1]
    return [count + part for count, part in zip(counts, np.split(noise, ends), strict=True)]


def chosen_histograms(
    cohort: CodedRows | CountedRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    sigmas: Sequence[float],
    event: ChosenHistograms,
    entropy: Entropy,
) -> list[NDArray[np.int64]]:
    """Noisy joint counts of chosen pairs of columns.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows]; or rows that are counted where
            they lie.
        sizes: number of codes of each column.
        pairs: the columns of each histogram; chosen without looking at the cohort.
        sigmas: the scale of each histogram's noise.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size of the first, size of the second] per pair.

    Raises:
        InputError: if the cohort, the pairs or the scales are not what the event accounts for; no
            noise has been drawn then.
    """
    counter, columns = _counter(cohort, sizes, event), range(len(sizes))
    if not all(i in columns and j in columns and i != j for i, j in pairs):
        raise InputError(f"event '{event.name}': a pair must name two columns of the cohort")
    if len(pairs) != len(sigmas) or (pairs and not event.covers(sigmas)):
        raise InputError(
            f"event '{event.name}' does not pay for these histograms: too many, or too little noise"
        )
    cells = [sizes[i] * sizes[j] for i, j in pairs]
    noises = gaussian_noise(event, entropy, [*zip(sigmas, cells, strict=True)])
    tables = []
    for (i, j), counts, noise in zip(pairs, counter(pairs), noises, strict=True):
        counts += noise
        tables.append(counts.reshape(sizes[i], sizes[j]))
    return tables


def _count(
    cohort: CodedRows | CountedRows, sizes: Sequence[int], event: JointHistograms
) -> list[NDArray[np.int64]]:
    """Exact counts, after all checks. They must not leave this module."""
    counter = _counter(cohort, sizes, event)
    if not len(sizes) == event.histograms:
        raise InputError(
            f"event '{event.name}' accounts for {event.histograms} histograms;"
            f" there are {len(sizes)} columns"
        )
    return list(counter([(column,) for column in range(len(sizes))]))


def _counter(
    cohort: CodedRows | CountedRows, sizes: Sequence[int], event: Histograms
) -> Callable[[Sequence[Histogram]], Iterable[NDArray[np.int64]]]:
    """Return what counts histograms, after all checks of rows in memory."""
    if isinstance(cohort, CountedRows):
        return lambda histograms: counts_of(cohort, histograms, sizes, event)
    rows, weights = checked_rows(cohort, sizes, event)
    return lambda histograms: _counted(rows, weights, histograms, sizes)


def exact_counts(
    cohort: CodedRows,
    histograms: Sequence[Histogram],
    sizes: Sequence[int],
    event: Histograms | UnitBound,
) -> list[NDArray[np.int64]]:
    """Count histograms of rows in memory, after all checks; private until noise is added.

    For what answers `CountedRows.counts` part by part: counts of parts are added up, and the noise
    is added once, to their sum.
    """
    return list(_counted(*checked_rows(cohort, sizes, event), histograms, sizes))


def _counted(
    rows: NDArray[Any],
    weights: NDArray[np.int64] | None,
    histograms: Sequence[Histogram],
    sizes: Sequence[int],
) -> Iterator[NDArray[np.int64]]:
    for first, *others in histograms:
        cells, size = rows[:, first], sizes[first]
        for column in others:
            cells = cells.astype(np.int64) * sizes[column] + rows[:, column]
            size *= sizes[column]
        yield _weighted_counts(cells, weights, size)


def checked_rows(
    cohort: CodedRows, sizes: Sequence[int], event: Histograms | UnitBound
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Real rows [rows, columns] and what each counts (None: 1), after all checks."""
    codes, mask = cohort.codes, cohort.mask
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if codes.ndim != 3 or mask.shape != codes.shape[:2]:
        raise InputError("a cohort has codes [units, rows, columns] and a mask [units, rows]")
    if mask.dtype != np.bool_ or codes.dtype.kind not in "iu":
        raise InputError("the codes of a cohort are integers and its mask is boolean")
    if codes.shape[1] > event.rows_per_unit:
        raise InputError(
            f"event '{event.name}' accounts for {event.rows_per_unit} rows per unit, but the cohort"
            " keeps more; read it again with the schema's max_rows"
        )
    if len(sizes) != codes.shape[2]:
        raise InputError(
            f"event '{event.name}': there are {codes.shape[2]} columns and {len(sizes)} sizes"
        )
    if any(size < 1 for size in sizes):
        raise InputError("every column needs at least one code")
    rows = codes[mask]
    if rows.size and ((rows < 0).any() or (rows.max(axis=0) >= np.asarray(sizes)).any()):
        raise InputError("the cohort holds a code outside its column; encode it with its schema")
    if event.unit_mass is None:
        return rows, None
    counts = mask.sum(axis=1, dtype=np.int64)
    share = event.unit_mass // np.maximum(counts, 1)
    return rows, np.broadcast_to(share[:, None], mask.shape)[mask]


def _weighted_counts(
    codes: NDArray[Any], weights: NDArray[np.int64] | None, size: int
) -> NDArray[np.int64]:
    """Exact counts of codes; sums of integers below 2^53 are exact in the floats of bincount."""
    counts = np.bincount(codes.astype(np.intp), weights=weights, minlength=size)
    return counts.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRows:
    """Rows that each add a whole weight to one cell of each histogram.

    Attributes:
        cells: the cell of each row, ``[rows]`` integers, for every histogram.
        units: the unit of each row, ``[rows]``, integers from 0.
        weights: what each row adds, ``[rows]``, integers from 0.
        parts: which part of every histogram the row is in, ``[rows]``, integers from 0; None where
            histograms have one part.
    """

    cells: tuple[NDArray[Any], ...]
    units: NDArray[np.int64]
    weights: NDArray[np.int64]
    parts: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "weighted rows")


def weighted_histograms(
    rows: WeightedRows,
    sizes: Sequence[int] | Sequence[Sequence[int]],
    sigmas: Sequence[float],
    event: Histograms,
    entropy: Entropy,
) -> list[NDArray[np.int64]]:
    """Count weights in every histogram, and add discrete Gaussian noise to every cell.

    Args:
        rows: each unit's weights add up to at most ``event.mass`` (where there are parts: the root
            of the sum of the squares of what they add up to in each), and at most
            ``event.rows_per_unit`` of them are above 0.
        sizes: number of cells of each histogram; with parts, of each part of each histogram, which
            lie end to end.
        sigmas: the scale of each histogram's noise; the event's own for `JointHistograms`.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] per histogram.

    Raises:
        InputError: rows, sizes or scales are not what the event accounts for; no noise has been
            drawn then.
    """
    widths = [[size] if isinstance(size, int | np.integer) else [*size] for size in sizes]
    _check_weighted(rows, widths, sigmas, event)
    together = [sum(own) for own in widths]
    counts = [
        _weighted_counts(cells, rows.weights, size)
        for cells, size in zip(rows.cells, together, strict=True)
    ]
    noises = gaussian_noise(event, entropy, [*zip(sigmas, together, strict=True)])
    return [count + noise for count, noise in zip(counts, noises, strict=True)]


def _check_weighted(
    rows: WeightedRows,
    widths: Sequence[Sequence[int]],
    sigmas: Sequence[float],
    event: Histograms,
) -> None:
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if not len(rows.cells) == len(widths) == len(sigmas):
        raise InputError(f"event '{event.name}': each histogram needs cells, a size and a scale")
    if isinstance(event, JointHistograms):
        paid = len(widths) == event.histograms and set(sigmas) == {event.sigma}
    else:
        paid = event.covers(sigmas)
    if not paid:
        raise InputError(
            f"event '{event.name}' does not pay for these histograms: too many, or too little noise"
        )
    parts = np.zeros(len(rows.units), dtype=np.int64) if rows.parts is None else rows.parts
    arrays = (*rows.cells, rows.units, rows.weights, parts)
    whole = all(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays)
    if not whole or len({len(array) for array in arrays}) > 1:
        raise InputError("cells, units, weights and parts are whole numbers, one for each row")
    count = 1 if rows.parts is None else max(map(len, widths), default=1)
    if any(len(own) != count for own in widths):
        raise InputError(f"event '{event.name}': each histogram needs a size for each part")
    if len(rows.units) == 0:
        return
    if min(rows.units.min(), rows.weights.min(), parts.min()) < 0 or parts.max() >= count:
        raise InputError("units, weights and parts are whole numbers from 0")
    for cells, own in zip(rows.cells, widths, strict=True):
        ends = np.cumsum(own)
        if (cells < (ends - own)[parts]).any() or (cells >= ends[parts]).any():
            raise InputError("a row has a cell outside its histogram, or its part of it")
    units = int(rows.units.max()) + 1
    in_part = _weighted_counts(rows.units * count + parts, rows.weights, units * count)
    exact = object if count * event.mass**2 >= 2**63 else np.int64
    squares = np.square(in_part.reshape(units, count).astype(exact)).sum(axis=1)
    if in_part.max() > event.mass or int(squares.max()) > event.mass**2:
        raise InputError(
            f"event '{event.name}' accounts for a mass of {event.mass} of each unit; a unit's rows "
            "weigh more"
        )
    if int(np.bincount(rows.units[rows.weights > 0], minlength=1).max()) > event.rows_per_unit:
        raise InputError(
            f"event '{event.name}' accounts for {event.rows_per_unit} rows of each unit; a unit "
            "has more"
        )


Histograms: TypeAlias = JointHistograms | ChosenHistograms
Histogram: TypeAlias = tuple[int, ...]
"""The columns of a histogram: one, or two."""


@dataclass(frozen=True)
class UnitBound:
    """How much a unit may add to counts: all that a process which only counts learns of an event.

    Attributes:
        name: of the event.
        rows_per_unit: as in the event.
        unit_mass: as in the event.
    """

    name: str
    rows_per_unit: int
    unit_mass: int | None

    decided: ClassVar[bool] = True

    @classmethod
    def of(cls, event: Histograms) -> UnitBound:
        """Leave out the noise.

        >>> UnitBound.of(JointHistograms("rows", 2, 3, 50.0))
        UnitBound(name='rows', rows_per_unit=3, unit_mass=None)
        """
        return cls(event.name, event.rows_per_unit, event.unit_mass)


class CodedRows(Protocol):
    """Rows as codes, grouped by privacy unit; rows beyond a unit's own are masked."""

    @property
    def codes(self) -> NDArray[Any]:
        """Codes, shape [units, rows, columns]."""
        ...

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows are real, shape [units, rows]."""
        ...


@runtime_checkable
class CountedRows(Protocol):
    """Rows grouped by privacy unit that are counted where they lie."""

    @property
    def columns(self) -> int:
        """How many columns there are."""
        ...

    @property
    def rows_per_unit(self) -> int:
        """How many rows a unit has at most."""
        ...

    def counts(
        self, histograms: Sequence[Histogram], sizes: Sequence[int], event: Histograms
    ) -> list[NDArray[np.int64]]:
        """Count histograms exactly, as `dpsynth.privacy.mechanisms.exact_counts` does.

        Only `counts_of` asks for them, and they are private until a mechanism has added noise.

        Args:
            histograms: of each, its columns.
            sizes: number of codes of each column; a row with another code is an error.
            event: a row counts 1, or floor(``event.unit_mass`` / r) for a unit of r rows.

        Returns:
            One int64 array of shape [product of sizes] per histogram, the last column's codes
            innermost.

        Raises:
            InputError: a row is not what the event accounts for.
        """
        ...


def counts_of(
    rows: CountedRows, histograms: Sequence[Histogram], sizes: Sequence[int], event: Histograms
) -> list[NDArray[np.int64]]:
    """Have histograms counted, and check what comes back; private until noise is added.

    Raises:
        InputError: the rows or the counts are not what the event accounts for.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if rows.rows_per_unit > event.rows_per_unit:
        raise InputError(
            f"event '{event.name}' accounts for {event.rows_per_unit} rows per unit, but these rows"
            " have more; read them again with the schema's max_rows"
        )
    if len(sizes) != rows.columns or any(size < 1 for size in sizes):
        raise InputError(
            f"event '{event.name}': each of {rows.columns} columns needs a size of at least 1"
        )
    if not histograms:
        return []
    counts = rows.counts(histograms, sizes, event)
    lengths = [(prod(sizes[column] for column in columns),) for columns in histograms]
    if [count.shape for count in counts] != lengths or any(
        count.dtype != np.int64 or (count < 0).any() for count in counts
    ):
        raise InputError(f"event '{event.name}': counts came back in another shape")
    if len({int(count.sum()) for count in counts}) != 1:  # every row enters every histogram once
        raise InputError(f"event '{event.name}': some of the counts lack rows")
    return counts
