"""Noisy answers: what rows add is checked against the event, and only then noise is drawn.

The best k of several candidates by their scores; `choice_event` has what it costs.

Scores that are numbers of units are counted here, so that what a plan charges for units is not
counted in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.answer_events import (
    LaplaceCounts,
    LinkCounts,
    RowSums,
    StaySums,
    TeacherVotes,
    TopChoice,
)
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise, laplace_noise, noisy_top
from dpsynth.privacy.stay_filters import filter_weights, inverse_weights

Ints = NDArray[np.int64]
NOWHERE = -1
"""The cell of a row that adds nothing to a part."""


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What rows add: to which cell of each part, and how much.

    Attributes:
        units: the unit of each row, ``[rows]``, integers from 0.
        cells: the cell of each row in each part, ``[rows, parts]``; `NOWHERE` for none.
        values: what the row adds there, ``[rows, parts]`` whole numbers; None where each adds 1.
        like: how many units there are with just the rows of this row's unit, which stands for them
            all, ``[rows]``, the same in all its rows; None where each unit stands for itself.
    """

    units: Ints
    cells: Ints
    values: Ints | None = None
    like: Ints | None = None

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "what rows add to sums")


def row_sums(
    rows: Contributions, sizes: Sequence[int], event: RowSums, entropy: Entropy
) -> list[Ints]:
    """Add up what rows contribute, and discrete Gaussian noise to every cell.

    Args:
        rows: of the cohort, at most ``event.rows_per_unit`` of each unit.
        sizes: number of cells of each part.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] per part; negative sums may occur.

    Raises:
        InputError: rows or sizes are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> event = RowSums("by sex", 1, 1, largest=1, signed=False, once=False,
        ...                 shared=False, sigma=0.3)
        >>> rows = Contributions(np.arange(9), np.array([[0]] * 4 + [[1]] * 5))
        >>> [part.shape for part in row_sums(rows, [2], event, SeededEntropy(1))]
        [(2,)]
    """
    _check(rows, sizes, event)
    exact = [_sum(rows, part, size, once=event.once) for part, size in enumerate(sizes)]
    noises = gaussian_noise(event, entropy, [(event.sigma, size) for size in sizes])
    return [part + noise for part, noise in zip(exact, noises, strict=True)]


def laplace_counts(
    rows: Contributions, size: int, event: LaplaceCounts, entropy: Entropy
) -> list[Ints]:
    """Count rows or units in cells, and add discrete Laplace noise to every cell.

    Args:
        rows: of the cohort, at most ``event.rows_per_unit`` of each unit; each adds 1.
        size: number of cells.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array of shape [size] in a list, as `row_sums` gives it.

    Raises:
        InputError: rows or size are not what the event accounts for; no noise has been drawn then.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if rows.values is not None:
        raise InputError(f"event '{event.name}': a row adds 1 to a cell")
    _check(rows, [size], event.counted)
    exact = _sum(rows, 0, size, once=event.once)
    return [exact + laplace_noise(event, entropy, size)]


def _sum(rows: Contributions, part: int, size: int, *, once: bool) -> Ints:
    """Return the exact sums of one part; private until noise is added."""
    cells = rows.cells[:, part]
    here = cells != NOWHERE
    if once:
        return units_in_cells(rows, part, size)
    added = 1 if rows.values is None else rows.values[here, part]
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, cells[here], added if rows.like is None else added * rows.like[here])
    return total


def units_in_cells(rows: Contributions, part: int, size: int) -> Ints:
    """Return how many units there are in each cell of a part, each once; private.

    >>> cells, like = np.array([[2], [2], [1]]), np.array([5, 5, 1])
    >>> rows = Contributions(np.array([0, 0, 1]), cells, None, like)
    >>> units_in_cells(rows, 0, 3).tolist()
    [0, 1, 5]
    """
    cells = rows.cells[:, part]
    here = np.flatnonzero(cells != NOWHERE)
    pairs, first = np.unique(rows.units[here] * size + cells[here], return_index=True)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, pairs % size, 1 if rows.like is None else rows.like[here[first]])
    return total


def _check(rows: Contributions, sizes: Sequence[int], event: RowSums) -> None:
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    if len(sizes) != event.parts or any(size < 1 for size in sizes):
        raise InputError(f"{name} accounts for {event.parts} parts of at least one cell each")
    arrays = [rows.units, rows.cells, *([] if rows.values is None else [rows.values])]
    if any(array.dtype != np.int64 for array in arrays) or rows.units.ndim != 1:
        raise InputError(f"{name}: units, cells and values are whole numbers of 64 bits")
    shape = (len(rows.units), event.parts)
    if any(array.shape != shape for array in arrays[1:]):
        raise InputError(f"{name}: cells and values need a row each and a column for each part")
    if not len(rows.units):
        return
    if (rows.cells < NOWHERE).any() or (rows.cells >= np.asarray(sizes)).any():
        raise InputError(f"{name}: a row has a cell outside its part")
    if rows.units.min() < 0:
        raise InputError(f"{name}: units are whole numbers from 0")
    if rows.like is not None and not are_of_units(rows.like, rows.units):
        raise InputError(f"{name}: the units that one stands for are a whole number of each unit")
    if rows.values is not None:
        if event.once:
            raise InputError(f"{name}: a unit that counts once adds 1 to a cell")
        if max(int(rows.values.max()), -int(rows.values.min())) > event.largest:
            raise InputError(f"{name}: a row adds more than {event.largest}; clip it first")
        if not event.signed and rows.values.min() < 0:
            raise InputError(f"{name}: a row adds a negative number")
    if event.shared and _most_of_a_unit(rows) > event.largest:
        raise InputError(f"{name}: rows of a unit add more than {event.largest} to a part together")
    if int(np.unique(rows.units, return_counts=True)[1].max()) > event.rows_per_unit:
        raise InputError(
            f"{name} accounts for {event.rows_per_unit} rows of each unit; a unit has more"
        )


def are_of_units(like: Ints, units: Ints) -> bool:
    """Whether these are positive whole numbers, the same in all rows of a unit."""
    if like.dtype != np.int64 or like.shape != units.shape or like.min() < 1:
        return False
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    return bool((like == like[first][unit]).all())


def _most_of_a_unit(rows: Contributions) -> int:
    """Return the most that rows of one unit add to one part, in absolute terms."""
    added = np.abs(rows.values) if rows.values is not None else np.ones(rows.cells.shape, np.int64)
    added = np.where(rows.cells == NOWHERE, 0, added)
    _, unit = np.unique(rows.units, return_inverse=True)
    total = np.zeros((int(unit.max()) + 1, added.shape[1]), dtype=np.int64)
    np.add.at(total, unit, added)
    return int(total.max())


def most_units(rows: Contributions, size: int, event: TopChoice, entropy: Entropy) -> list[int]:
    """Name the candidates that most units have, best first; a unit counts once for each it has.

    Args:
        rows: the cell of each row; the first cells are the candidates.
        size: number of cells.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Raises:
        InputError: the rows are not what the event accounts for; no noise has been drawn then.
    """
    if rows.cells.shape != (len(rows.units), 1) or event.candidates > size:
        raise InputError(f"event '{event.name}' chooses among the cells of one part")
    return top_choice(units_in_cells(rows, 0, size)[: event.candidates], event, entropy)


def top_choice(scores: NDArray[np.int64], event: TopChoice, entropy: Entropy) -> list[int]:
    """Name the candidates with the largest noisy scores, best first.

    Args:
        scores: one for each candidate, ``[candidates]``.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Raises:
        InputError: the scores are not what the event accounts for; no noise has been drawn then.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    if scores.dtype != np.int64 or scores.shape != (event.candidates,):
        raise InputError(
            f"event '{event.name}' chooses among {event.candidates} whole-number scores"
        )
    return noisy_top(event, entropy, scores, event.chosen)


MAX_PAIRS = 50_000_000
"""Rows of candidate pairs: flows are counted in 32 bits."""


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """Candidate pairs of two registers; private.

    Attributes:
        first: the record of register A in each row, ``[rows]``, whole numbers from 0.
        second: that of register B, likewise.
        cells: whether the row is in each cell, ``[rows, cells]``; a pair is in those of any of its
            rows.
    """

    first: Ints
    second: Ints
    cells: NDArray[np.bool_]

    def __repr__(self) -> str:
        """Show no pair."""
        return short_repr(self, "candidate pairs")


def link_counts(links: Links, event: LinkCounts, entropy: Entropy) -> Ints:
    """Count the pairs of each cell, at most ``event.cap`` of each record, with noise.

    Args:
        links: candidate pairs.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        Noisy counts, ``[cells]``; negative ones may occur.

    Raises:
        InputError: the pairs are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> pairs = Links(np.array([0, 0, 1]), np.array([0, 1, 0]), np.ones((3, 1), bool))
        >>> link_counts(pairs, LinkCounts("pairs", 1, 1, 1, sigma=0.3), SeededEntropy(1)).shape
        (1,)
    """
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    if any(one.dtype != np.int64 or one.ndim != 1 for one in (links.first, links.second)):
        raise InputError(f"{name}: records are whole numbers of 64 bits")
    rows = len(links.first)
    if len(links.second) != rows or links.cells.shape != (rows, event.cells):
        raise InputError(f"{name} accounts for {event.cells} cells, and each row has two records")
    if links.cells.dtype != np.bool_ or rows > MAX_PAIRS:
        raise InputError(f"{name}: at most {MAX_PAIRS:,} rows, each in a cell or not")
    if rows and min(int(links.first.min()), int(links.second.min())) < 0:
        raise InputError(f"{name}: records are whole numbers from 0")
    sizes = [
        largest_matching(links.first[here], links.second[here], event.cap) for here in links.cells.T
    ]
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, event.cells)])
    return np.array(sizes, dtype=np.int64) + noise


def largest_matching(first: Ints, second: Ints, cap: int) -> int:
    """Return the size of a largest b-matching: the most pairs with at most ``cap`` of each record.

    Args:
        first: the record of one register in each row.
        second: that of the other.
        cap: in how many pairs a record counts, at most.

    >>> largest_matching(np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0]), cap=1)
    2
    """
    if not len(first):
        return 0
    (left, lefts), (right, rights) = _numbered(first), _numbered(second)
    pairs = np.unique(left * rights + right)  # a pair counts once
    left, right = pairs // rights, pairs % rights
    of_left, of_right = np.bincount(left, minlength=lefts), np.bincount(right, minlength=rights)
    if max(int(of_left.max()), int(of_right.max())) <= cap:
        return len(pairs)
    return _flow(left, right, of_left, of_right, cap)


def _flow(left: Ints, right: Ints, of_left: Ints, of_right: Ints, cap: int) -> int:
    """Return the largest flow: a source, records of A, those of B, a sink; a pair carries 1."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    source, sink = 0, len(of_left) + len(of_right) + 1
    a, b = 1 + np.arange(len(of_left)), 1 + len(of_left) + np.arange(len(of_right))
    tails = np.concatenate([np.full(len(a), source), 1 + left, b])
    heads = np.concatenate([a, 1 + len(of_left) + right, np.full(len(b), sink)])
    ends = np.minimum(of_left, cap), np.minimum(of_right, cap)
    room = np.concatenate([ends[0], np.ones(len(left), np.int64), ends[1]]).astype(np.int32)
    graph = csr_array(
        (room, (tails.astype(np.int32), heads.astype(np.int32))), (sink + 1, sink + 1)
    )
    return int(maximum_flow(graph, source, sink).flow_value)


def _numbered(records: Ints) -> tuple[Ints, int]:
    """Number records from 0, and say how many there are."""
    found, numbers = np.unique(records, return_inverse=True)
    return numbers.astype(np.int64), len(found)


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Stays:
    """Stays of units: the first and the last period that each covers, both included.

    Attributes:
        units: of each stay, ``[stays]``, integers from 0.
        groups: its group, ``[stays]``, integers from 0.
        first: its first period, ``[stays]``.
        last: its last period, ``[stays]``.
        like: how many units there are with just these stays, as of `Contributions`; None for one.
    """

    units: Ints
    groups: Ints
    first: Ints
    last: Ints
    like: Ints | None = None

    def __repr__(self) -> str:
        """Show no stay."""
        return short_repr(self, "stays of units")


def stay_sums(stays: Stays, groups: int, event: StaySums, entropy: Entropy) -> list[Ints]:
    """Count units in each period, filter the series of each group, and add noise to all numbers.

    Args:
        stays: at most ``event.stays_per_unit`` of each unit, of at most ``event.longest`` periods.
        groups: how many there are.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array, group by group, ``[groups * periods]``; `unfiltered` makes patients of it.

    Raises:
        InputError: stays are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> event = StaySums("beds", 5, longest=3, stays_per_unit=1, sigma=1e4)
        >>> stays = Stays(*np.array([[0, 1], [0, 0], [0, 1], [2, 1]]))
        >>> [noisy] = stay_sums(stays, 1, event, SeededEntropy(1))
        >>> (unfiltered(noisy, event).round() + 0).tolist()
        [[1.0, 2.0, 1.0, 0.0, 0.0]]
    """
    _check_stays(stays, groups, event)
    counts = _present(stays, groups, event.periods)
    weights = filter_weights(event.periods, event.longest)
    used = weights[: int(np.flatnonzero(weights)[-1]) + 1]
    exact = np.concatenate([np.convolve(one, used)[: event.periods] for one in counts])
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, exact.size)])
    return [exact + noise]


def unfiltered(noisy: Ints, event: StaySums) -> Floats:
    """Turn noisy numbers into units present, ``[groups, periods]``: post-processing."""
    weights = inverse_weights(event.periods, event.longest)
    series = noisy.astype(np.float64).reshape(-1, event.periods)
    return np.stack([np.convolve(one, weights)[: event.periods] for one in series])


def noise_of_periods(event: StaySums) -> Floats:
    """Return the standard deviation of the noise in each period, in units, ``[periods]``."""
    weights = inverse_weights(event.periods, event.longest)
    return np.asarray(event.sigma * np.sqrt(np.cumsum(weights**2)), dtype=np.float64)


def _present(stays: Stays, groups: int, periods: int) -> Ints:
    """Return how many units there are in each period, ``[groups, periods]``; private."""
    order = np.lexsort((stays.first, stays.groups, stays.units))
    group, first, last = stays.groups[order], stays.first[order], stays.last[order]
    pair = stays.units[order] * groups + group
    _, number = np.unique(pair, return_inverse=True)
    reach = np.maximum.accumulate(number * periods + last)  # of all that began before, or now
    begun = np.concatenate([[-1], reach[:-1]]) - number * periods
    first = np.maximum(first, begun + 1)  # what lies after the ends of earlier stays
    left = first <= last
    changes = np.zeros((groups, periods + 1), dtype=np.int64)
    each = 1 if stays.like is None else stays.like[order][left]
    np.add.at(changes, (group[left], first[left]), each)
    np.add.at(changes, (group[left], last[left] + 1), -each)
    return np.cumsum(changes, axis=1)[:, :periods]


def _check_stays(stays: Stays, groups: int, event: StaySums) -> None:
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    arrays = (stays.units, stays.groups, stays.first, stays.last)
    if any(one.dtype != np.int64 or one.shape != stays.units.shape for one in arrays):
        raise InputError(f"{name}: units, groups and periods are whole numbers, one of each stay")
    if stays.units.ndim != 1 or groups < 1:
        raise InputError(f"{name}: stays are a list, and there is a group at least")
    if not len(stays.units):
        return
    if stays.like is not None and not are_of_units(stays.like, stays.units):
        raise InputError(f"{name}: the units that one stands for are a whole number of each unit")
    if min(stays.units.min(), stays.groups.min(), stays.first.min()) < 0:
        raise InputError(f"{name}: units, groups and periods are numbers from 0")
    if stays.groups.max() >= groups or stays.last.max() >= event.periods:
        raise InputError(f"{name}: a stay has a group or a period outside the window")
    lengths = stays.last - stays.first + 1
    if lengths.min() < 1 or lengths.max() > event.longest:
        raise InputError(f"{name} accounts for stays of 1 to {event.longest} periods; cut them")
    if int(np.unique(stays.units, return_counts=True)[1].max()) > event.stays_per_unit:
        raise InputError(
            f"{name} accounts for {event.stays_per_unit} stays of each unit; a unit has more"
        )


ABSTAINS = -1
"""The vote of a teacher that names no class."""


def dealt(units: int, event: TeacherVotes, entropy: Entropy) -> Ints:
    """Deal units to teachers: each by a draw of its own, which no other unit has a part in.

    Teachers get about equally many, and now and then none. Equal parts of a shuffled list would be
    no better and not private: a unit more would move others to another teacher.

    Args:
        units: how many there are; private, like all that is returned.
        event: what the plan paid for.
        entropy: where the draws come from.

    Returns:
        The teacher of each unit, ``[units]``, from 0.
    """
    return entropy.integers(0, event.teachers, units)


def noisy_votes(votes: NDArray[np.signedinteger], event: TeacherVotes, entropy: Entropy) -> Ints:
    """Count the votes of each query for each class, and add discrete Gaussian noise to every count.

    Args:
        votes: the class that each teacher names for each query, ``[teachers, queries]`` whole
            numbers from 0, or `ABSTAINS`.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        Noisy counts, ``[queries, classes]``; negative ones may occur.

    Raises:
        InputError: the votes are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> event = TeacherVotes("labels", teachers=3, queries=2, classes=2, sigma=0.3)
        >>> votes = np.array([[0, 1], [0, 1], [0, ABSTAINS]])
        >>> noisy_votes(votes, event, SeededEntropy(1)).shape
        (2, 2)
    """
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    if votes.dtype.kind != "i" or votes.shape != (event.teachers, event.queries):
        raise InputError(
            f"{name} accounts for {event.teachers} teachers that vote once, in whole numbers, on "
            f"each of {event.queries} queries"
        )
    if votes.min() < ABSTAINS or votes.max() >= event.classes:
        raise InputError(f"{name}: a vote names none of its {event.classes} classes")
    counts = np.stack([(votes == place).sum(axis=0) for place in range(event.classes)], axis=1)
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, counts.size)])
    return counts.astype(np.int64) + noise.reshape(counts.shape)
