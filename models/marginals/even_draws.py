"""Draws of a column that are spread over the rows more evenly than chance.

Independent draws add their own error to a table: a share p of n rows is off by sqrt(p (1 - p) / n),
and every pair of columns is off as well. None of it is needed, so a column is drawn in two ways
that leave each row its own law and take most of that error away:

- **Along an order.** Rows that are alike in the columns that lead lie side by side, and their laws
  are inverted at the points of a golden-ratio sequence (`even_points`): any stretch of the order
  gets its expected numbers of each bin, but for a few rows. It serves the first columns that lead.
- **With feedback.** Rows are drawn in parts, each half as large as what is left. After a part, the
  table of how many rows too many there are, by each bin of the columns that lead and each bin that
  was drawn, says how the laws of the next part are tilted to make up for it. The error that remains
  is that of the last parts, in all pairs at once.

**Why each row keeps its law.** Let V be the rows' indicators of the leading bins, ``[rows, D]``, P
their laws and Y what is drawn. With A = sum V' (Y - P) over the parts before, row i's law is tilted
to p (1 - t + p't), where t = v_i'M A is linear in A, and M depends on V and P alone. A tilt's mean
is 0 where A's is, and the next part adds V' (Y - P), whose mean is then 0 again: by induction every
row's mean is its law. M is as strong as it can be while tilts have a standard deviation of
`SPREAD`; the few beyond `MOST`, where a share would be negative, are cut off on both sides alike.
That is balanced sampling (Deville and Tille 2004, "Efficient balanced sampling: the cube method"),
with feedback in the place of exact equations, which would take a step for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shares = npt.NDArray[np.floating]

LEADERS = 12  # columns that lead a column, at most
ORDER = 2  # of them, by which rows are ordered
GOLDEN = (5**0.5 - 1) / 2
MIN_BITS = 14  # of a float among packed keys

LEAST_PART = 500  # rows: fewer leave a tilt too little to make up for
SEEN = 8_192  # rows of which it is read off how leading bins go together
SPREAD, MOST = 0.2, 0.5  # standard deviation of tilts, and where they are cut off
LEAST_RIDGE, MOST_RIDGE, HALVINGS = 1.0, 1e9, 20  # in rows


def draw_evenly(laws: Shares, leading: Ints, rng: np.random.Generator) -> Ints:
    """Draw a bin of each row from its law.

    Args:
        laws: of each row, up to a factor, ``[rows, bins]``.
        leading: bins of other columns of the rows, strongest first, ``[rows, columns]``; rows are
            in random order.
        rng: of the draws.

    Returns:
        Bins, ``[rows]``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> side = rng.integers(2, size=(4_000, 1))
        >>> bins = draw_evenly(np.where(side == 0, [0.2, 0.8], [0.5, 0.5]), side, rng)
        >>> [float(round(bins[side[:, 0] == one].mean(), 3)) for one in (0, 1)]
        [0.801, 0.499]
    """
    laws = laws / np.einsum("ij->i", laws)[:, None]  # quicker than a sum along short rows
    means = np.einsum("ij,j->i", laws, np.arange(laws.shape[1], dtype=laws.dtype))
    keys = [means, *leading[:, :ORDER].T[::-1]]
    if len(laws) < 2 * LEAST_PART or not leading.shape[1]:
        return places_at(laws, even_points(keys, rng))
    feedback = _Feedback(laws, leading)
    bins = np.empty(len(laws), dtype=np.int64)
    for part in _parts(len(laws)):
        points = even_points([key[part] for key in keys], rng)
        bins[part] = places_at(feedback.tilted(part), points)
        feedback.note(part, bins[part])
    return bins


def _parts(rows: int) -> Iterator[slice]:
    """Cut rows into parts, each half as large as what is left.

    >>> list(_parts(2_600))
    [slice(0, 1300, None), slice(1300, 1950, None), slice(1950, 2600, None)]
    """
    start = 0
    while rows - start >= 2 * LEAST_PART:
        middle = start + (rows - start) // 2
        yield slice(start, middle)
        start = middle
    yield slice(start, rows)


class _Feedback:
    """What was drawn too often, and laws that make up for it."""

    def __init__(self, laws: Shares, leading: Ints) -> None:
        self.laws = laws
        sizes = leading.max(axis=0) + 1
        places = leading + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.places, self.width = places.astype(np.int32), int(sizes.sum())
        seen = self._leading(slice(0, SEEN)).toarray()
        strengths, self.directions = np.linalg.eigh(seen.T @ seen / len(seen))
        self.strengths = np.maximum(strengths, 0.0)[:, None]
        self.cells = self.strengths * laws.mean(axis=0)
        self.apart = np.zeros((self.width, laws.shape[1]), dtype=laws.dtype)
        self.variance = np.zeros(self.cells.shape)

    def note(self, part: slice, bins: Ints) -> None:
        """Add up how many rows too many a part has, by leading bin and by bin."""
        extra = -self.laws[part]
        extra[np.arange(len(bins)), bins] += 1
        self.apart += self._leading(part).T @ extra
        self.variance += self.cells * len(bins)

    def tilted(self, part: slice) -> Shares:
        """Return laws of a part by which it makes up for the parts before, ``[rows, bins]``."""
        laws = self.laws[part]
        rows = self.cells * len(laws)
        ridge = _ridge(self.strengths * self.variance, rows)
        self.variance *= (ridge / (rows + ridge)) ** 2
        weights = self.directions @ (self.directions.T @ self.apart / (rows + ridge))
        tilts = np.clip(self._leading(part) @ weights, -MOST, MOST)
        shift = 1.0 + np.einsum("ij,ij->i", laws, tilts)
        return np.asarray(laws * (shift[:, None] - tilts))

    def _leading(self, part: slice) -> csr_array:
        """Return the indicators of a part's leading bins, ``[rows, width]``."""
        return indicators(self.places[part], self.width, self.laws.dtype)


def indicators(places: npt.NDArray[np.integer], width: int, dtype: npt.DTypeLike) -> csr_array:
    """Return rows of ones at their places, ``[rows, width]``.

    Args:
        places: of the bins of each row among those of all columns, ``[rows, columns]``.
        width: how many bins all columns have.
        dtype: of the ones.
    """
    rows, columns = places.shape
    starts = np.arange(rows + 1, dtype=places.dtype) * columns
    ones = np.ones(places.size, dtype=dtype)
    return csr_array((ones, places.ravel(), starts), shape=(rows, width))


def _ridge(spreads: Floats, rows: Floats) -> Floats:
    """Find how many rows are added to those of a bin, so that its tilts spread by `SPREAD` at most.

    Args:
        spreads: variance of the rows too many, as far as it enters a tilt, ``[D, bins]``.
        rows: that a part has to make up for them, ``[D, bins]``.

    Returns:
        Rows, at least `LEAST_RIDGE`, ``[bins]``.
    """
    low, high = np.full(rows.shape[1], LEAST_RIDGE), np.full(rows.shape[1], MOST_RIDGE)
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        enough = (spreads / (rows + middle) ** 2).sum(axis=0) <= SPREAD**2
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def places_at(laws: Shares, points: Floats) -> Ints:
    """Invert each row's distribution function, ``[rows, bins]`` up to a factor, at a point.

    >>> places_at(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([0.2, 0.3])).tolist()
    [0, 1]
    """
    ends = np.cumsum(laws, axis=1)
    passed = ends <= points[:, None] * ends[:, -1:]
    places = np.einsum("ij->i", passed.view(np.int8), dtype=np.int64)
    return np.asarray(np.minimum(places, laws.shape[1] - 1))


def even_points(keys: Sequence[npt.NDArray[Any]], rng: np.random.Generator) -> Floats:
    """Return points in [0, 1), low in discrepancy along the order of the keys (last key first).

    Ties are broken at random, for each column afresh: a shared order of ties would lock the draws
    of several columns together.

    Args:
        keys: non-negative integers, ordered exactly, or floats, ordered up to rounding; each
            ``[rows]``. Where they fit, all keys are packed into 64 bits, which are sorted ten
            times as fast as rows of keys.
        rng: of the first point and of ties.
    """
    count = len(keys[0])
    points = np.empty(count)
    packed = _packed(keys, rng)
    order = np.lexsort((rng.random(count), *keys)) if packed is None else np.argsort(packed)
    steps = np.arange(count) * GOLDEN + rng.random()
    points[order] = steps - np.floor(steps)
    return points


def _packed(
    keys: Sequence[npt.NDArray[Any]], rng: np.random.Generator
) -> npt.NDArray[np.uint64] | None:
    """Pack keys and random bits into one, the last key in the highest bits.

    Floats share with the random bits what the integers leave; None if that is too little.
    """
    exact = {i: int(key.max(initial=0)).bit_length() for i, key in enumerate(keys) if _whole(key)}
    spare = (64 - sum(exact.values())) // (1 + len(keys) - len(exact))
    if spare < MIN_BITS:
        return None
    bits = min(spare, 32)
    packed = rng.integers(0, 2**bits, len(keys[0]), dtype=np.uint32).astype(np.uint64)
    for i, key in enumerate(keys):  # upwards from the random bits
        part = key
        if i not in exact:
            low, high = part.min(initial=0.0), part.max(initial=1.0)
            part = (part - low) * ((2 ** min(spare, 32) - 1) / (high - low))
        packed |= part.astype(np.uint64) << np.uint64(bits)
        bits += exact.get(i, min(spare, 32))
    return packed


def _whole(key: npt.NDArray[Any]) -> bool:
    return key.dtype.kind in "iu"
