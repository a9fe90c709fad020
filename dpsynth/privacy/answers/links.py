"""Linked pairs counted by largest b-matchings, with noise; `links_event` has what that costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.answers.links_event import LinkCounts
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise

Ints = NDArray[np.int64]
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
