"""Numbers of a patient over time: a level, a memory, and the released distribution of all values.

A value is known by its normal score: its place in the released distribution of all values of its
series (each patient counts once, however many she has). With z_it the score of patient i at time t,

    z_it = m_i + f_i d_it,

m_i her level (the mean of her scores, a column of the table of patients), f_i the spread of her
scores around it, and d_it a path of mean 0 and variance 1 within her rows: the sum of
processes with memories of some days and of noise without memory. Three releases say what they are
(F is `FEW_TESTS`, or the number of tests that there are, if fewer):

- **values**: each of a patient's k values of one of s series weighs
  floor(M / (k sqrt(max(s, F)))) in the histogram of its series;
- **tests**: a patient adds floor(M / sqrt(max(s, F))) to a cell of each of three
  histograms, for each of s series: her level; at which share of the occasions it is taken; and, by
  the number of her values (`CLASSES`), their spread;
- **memory**: for each series and each class of days apart in which a patient has a pair of values,
  w = floor(M / sqrt(c)) for her c such classes; the mean q of (d_s - d_t)^2 / `MOST` over her
  pairs, at most 1, is split: floor(w q) to one cell and w less that to another.

In each, what a patient adds has an L2 norm of at most M in each histogram, since series (and
classes of days) are parts of it (`dpsynth.privacy.mechanisms`). Spread and d_it are functions of
her own rows. From the memory follows the semivariogram of d by days apart (Matheron 1963,
"Principles of geostatistics"), to which memories are fitted by least squares. Taking out own means
and spreads bends it, of drawn histories as of real ones: so memories are moved until drawn
histories have the released one.

Drawn scores are mapped by their ranks onto the released distribution: whatever was drawn, all
values of a series have that distribution, and none walks away from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.domain import HistoryTable
from dpsynth.models.histories.latent.patients import is_number
from dpsynth.models.histories.row_grains import weight_of
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CLASSES = (2, 4, 10)  # numbers of values, from which on spreads have a distribution of their own
SPREADS, WIDEST = 25, 2.5  # cells of a spread, and the largest
LAGS = 8  # classes of days apart
MEMORIES, TAUS = 2, 16  # of a number, and among how many days they are looked for
APART = (1, 2, 4, 8, 16)  # rows by which the values of a pair are apart
SEVERAL = 4  # values of a patient, from which on deviations from their own mean tell a memory
MOST = 4.0  # of half a squared difference of d
FLAT = 1e-9
LEAST = 0.02  # variance of deviations
STEP = 0.7  # of what drawn histories lack, that is asked for at a look


def lag_edges(table: HistoryTable) -> Ints:
    """Return the days apart at which classes begin: 0, 1, then by equal ratios."""
    longest = max(table.longest, 2)
    return np.unique([0, *np.rint(np.geomspace(1, longest, LAGS)).astype(np.int64)[:-1]])


@dataclass(frozen=True, eq=False)
class Deviations:
    """What one number of a series says of its patients, without their levels.

    Attributes:
        patients: with several values, ``[patients]``.
        counts: of their values.
        spreads: standard deviation of their scores.
        pairs: patient (a place among ``patients``), class of days apart, and squared difference.
    """

    patients: Ints
    counts: Ints
    spreads: Floats
    pairs: tuple[Ints, Ints, Floats]

    @classmethod
    def of(cls, rows: SeriesRows, value: int, scores: Floats, edges: Ints) -> Deviations:
        """Read them off rows; nothing but a patient's own rows is used."""
        has = np.flatnonzero(rows.values[:, value] < len(scores))
        owner, first, counts = np.unique(rows.patients[has], return_index=True, return_counts=True)
        several = counts > 1
        kept = np.repeat(several, counts)
        has = has[kept]
        owner, counts = owner[several], counts[several]
        place = np.repeat(np.arange(len(owner)), counts)
        z = scores[rows.values[has, value]]
        mean = np.bincount(place, z, minlength=len(owner)) / counts
        z = z - mean[place]
        squares = np.bincount(place, z**2, minlength=len(owner))
        spreads = np.sqrt(squares / np.maximum(counts - 1, 1))
        d = z / np.maximum(spreads, 1e-6)[place]
        days = rows.days[has]
        parts: list[tuple[Ints, Ints, Floats]] = []
        for apart in APART:
            same = np.flatnonzero(place[apart:] == place[: max(len(place) - apart, 0)])
            same = same[counts[place[same]] >= SEVERAL]
            lag = np.searchsorted(edges, days[same + apart] - days[same], side="right") - 1
            half = np.minimum((d[same + apart] - d[same]) ** 2 / 2, MOST)
            parts.append((place[same], lag, half))
        pairs = tuple(np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(owner, counts, spreads, pairs)  # type: ignore[arg-type]


def numbers_of(table: HistoryTable) -> list[tuple[int, int]]:
    """Return (series, value) of each number of a table: the parts of its histograms."""
    return [
        (series, value)
        for series, one in enumerate(table.series)
        for value, feature in enumerate(one.values)
        if is_number(feature)
    ]


def spread_cells(one: Deviations) -> Ints:
    """Return the cell of each patient's spread, by the class of her number of values."""
    cells = np.clip(one.spreads / WIDEST * SPREADS, 0, SPREADS - 1).astype(np.int64)
    return cells + SPREADS * class_of(one.counts)


def class_of(counts: Ints) -> Ints:
    """Return the class of each number of values."""
    return np.maximum(np.searchsorted(CLASSES, counts, side="right") - 1, 0)


def memory_rows(found: Sequence[Deviations], patients: int, mass: int) -> WeightedRows:
    """Lay out the split weights of pairs: a part for each class of days of each number."""
    owners, parts, means = [], [], []
    for place, one in enumerate(found):
        who, lag, half = one.pairs
        key = who * (LAGS + 1) + lag
        sums = np.bincount(key, half, minlength=len(one.patients) * (LAGS + 1))
        counts = np.bincount(key, minlength=len(sums))
        has = np.flatnonzero(counts)
        owners.append(one.patients[has // (LAGS + 1)])
        parts.append(place * (LAGS + 1) + has % (LAGS + 1))
        means.append(sums[has] / counts[has] / MOST)
    owner, part, mean = (np.concatenate(one) for one in (owners, parts, means))
    shared = np.bincount(owner, minlength=patients)
    weights = weight_of(shared[owner], np.ones(len(owner), dtype=np.int64), mass)
    hit = np.floor(weights * mean).astype(np.int64)
    cells = np.concatenate([2 * part, 2 * part + 1])
    return WeightedRows(
        (cells,),
        np.concatenate([owner, owner]),
        np.concatenate([hit, weights - hit]),
        np.concatenate([part, part]),
    )


@dataclass(frozen=True, eq=False)
class Course:
    """How one number of a series goes over time.

    Attributes:
        shares: of all codes of the value, the loose ones last, as released.
        cells: how many of them are ordered.
        spreads: shares of the cells of spreads by class, ``[classes, cells]``.
        parts: of the variance of d with each memory; the rest is noise, ``[MEMORIES]``.
        taus: days of each memory.
        scale: of spreads, so that levels and deviations have a variance of 1 together.
    """

    shares: Floats
    cells: int
    spreads: Floats
    parts: Floats
    taus: Floats
    scale: float = 1.0

    def scaled(self, rows: SeriesRows, levels: Floats, rng: np.random.Generator) -> Course:
        """Find the scale of spreads on drawn rows.

        Args:
            rows: patients and days, in order.
            levels: of each patient.
            rng: of the draws.
        """
        owner, counts = np.unique(rows.patients, return_counts=True)
        left = max(1.0 - float(np.var(levels[owner])), LEAST)
        spreads = self._spreads(counts, rng) / self.scale
        drawn = float(np.mean(spreads**2 * (counts - 1) / counts))
        return replace(self, scale=float(np.sqrt(left / max(drawn, LEAST))))

    def draw(
        self, rows: SeriesRows, levels: Floats, paths: Floats, rng: np.random.Generator
    ) -> Ints:
        """Draw the codes of all rows of a series.

        Args:
            rows: patients and days, in order.
            levels: of each patient.
            paths: of `paths`.
            rng: of the draws.
        """
        owner, place, counts = np.unique(rows.patients, return_inverse=True, return_counts=True)
        mean = np.bincount(place, paths) / counts
        d = paths - mean[place]
        sd = np.sqrt(np.bincount(place, d**2) / np.maximum(counts - 1, 1))
        spreads = self._spreads(counts, rng)
        z = levels[owner][place] + (spreads / np.maximum(sd, 1e-6))[place] * d
        order = np.argsort(z, kind="stable")
        weight = 1.0 / counts[place[order]]
        ranks = np.empty(len(z))
        ranks[order] = (np.cumsum(weight) - weight / 2) / max(weight.sum(), FLAT)
        ordered = self.shares[: self.cells]
        ends = np.cumsum(ordered) / max(ordered.sum(), FLAT)
        codes = np.minimum(np.searchsorted(ends, ranks, side="right"), self.cells - 1)
        missing = self.shares[self.cells :]
        if missing.sum() > FLAT:
            lost = np.flatnonzero(rng.random(len(codes)) < missing.sum() / self.shares.sum())
            codes[lost] = self.cells + rng.choice(
                len(missing), len(lost), p=missing / missing.sum()
            )
        return codes

    def _spreads(self, counts: Ints, rng: np.random.Generator) -> Floats:
        which = class_of(counts)
        points = rng.random(len(counts))
        ends = np.cumsum(self.spreads, axis=1)
        cells = np.zeros(len(counts), dtype=np.int64)
        for one in range(len(CLASSES)):
            mine = which == one
            cells[mine] = np.searchsorted(ends[one], points[mine] * ends[one, -1], side="right")
        cells = np.minimum(cells, SPREADS - 1)
        return np.asarray((cells + rng.random(len(cells))) * WIDEST / SPREADS * self.scale)


def paths(
    rows: SeriesRows, courses: Sequence[Course], root: Floats, rng: np.random.Generator
) -> Floats:
    """Draw d of some numbers at each time, before it is centred: ``[times, numbers]``.

    Each has unit variance and its own memory; what is new at one time is correlated.

    Args:
        rows: patients and days, in order.
        courses: of the numbers.
        root: of the correlation of what is new, ``[numbers, numbers]``.
        rng: of the draws.
    """
    times = len(rows.patients)
    new = np.ones(times, dtype=bool)
    new[1:] = np.diff(rows.patients) != 0
    gaps = np.zeros(times)
    gaps[1:] = np.diff(rows.days)
    index = np.arange(times) - np.maximum.accumulate(np.where(new, np.arange(times), 0))
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index)) if times else np.zeros(0, dtype=np.int64)
    parts = np.array([one.parts for one in courses])
    d = rng.standard_normal((times, len(courses))) @ root.T * np.sqrt(1 - parts.sum(axis=1))
    for part, tau in zip(parts.T, np.array([one.taus for one in courses]).T, strict=True):
        if not part.any():
            continue
        keep = np.where(new[:, None], 0.0, np.exp(-np.maximum(gaps, 0)[:, None] / tau))
        x = rng.standard_normal((times, len(courses))) @ root.T * np.sqrt(1 - keep**2)
        for start, end in zip(ends, ends[1:], strict=False):
            here = order[start:end]
            x[here] += keep[here] * x[here - 1]
        d += np.sqrt(part) * x
    return np.asarray(d)


@dataclass(frozen=True, eq=False)
class Memory:
    """A semivariogram that the paths of a number have to have.

    Attributes:
        wanted: of each class of days apart, as released, ``[classes]``.
        asked: of the paths; own means and spreads, which are taken out of both, bend it.
        weights: of the classes.
        lags: days of each class.
    """

    wanted: Floats
    asked: Floats
    weights: Floats
    lags: Floats

    def fitted(self) -> tuple[Floats, Floats]:
        """Return the part of the variance, and the days, of each memory.

        The semivariogram of noise and of processes with memories of tau days is a sum of 1 and of
        1 - exp(-lag / tau), with weights of at least 0 (nested structures: Journel and Huijbregts
        1978, "Mining geostatistics").
        """
        grid = np.geomspace(0.3, 4 * max(self.lags[-1], 1.0), TAUS)
        shapes = 1 - np.exp(-self.lags[:, None] / grid)
        best = (np.inf, np.zeros(MEMORIES + 1), np.ones(MEMORIES))
        for chosen in combinations(range(TAUS), MEMORIES):
            basis = np.column_stack([np.ones(len(self.lags)), shapes[:, chosen]])
            found, error = nnls(basis * self.weights[:, None], self.asked * self.weights)
            if error < best[0]:
                best = (error, found, grid[[*chosen]])
        _, found, taus = best
        return found[1:] / max(float(found.sum()), FLAT), taus

    def moved(self, counts: Floats) -> Memory:
        """Ask for more where drawn histories have less; ``counts`` are theirs."""
        seen = semivariogram(counts, 0.0, 0.0)
        off = np.where(counts.sum(axis=1) > 0, self.wanted - seen, 0.0)
        return replace(self, asked=np.maximum(self.asked + STEP * off, LEAST))


def semivariogram(counts: Floats, sigma: float, usual: Floats | float = 1.0) -> Floats:
    """Return half the mean squared difference of d in each class of days apart, ``[classes]``.

    Args:
        counts: what pairs added to both cells of each class, ``[classes, 2]``.
        sigma: noise of a count.
        usual: what it is where noise hides it.
    """
    hit, whole = np.maximum(counts[:, 0], 0.0), np.maximum(counts.sum(axis=1), 0.0)
    return np.asarray((hit * MOST + sigma * usual) / (whole + sigma + FLAT))


def shares_of_spreads(counts: Floats, sigma: float) -> Floats:
    """Return shares of spreads by class, of each series drawn towards all series together.

    Args:
        counts: ``[series, classes, cells]``.
        sigma: noise of a count.
    """
    pooled = np.maximum(counts.sum(axis=0), 0.0) + FLAT
    pooled = pooled / pooled.sum(axis=1, keepdims=True)
    smooth = counts + sigma * np.sqrt(SPREADS) * 2 * pooled
    smooth = np.maximum(smooth, 0.0) + FLAT
    return np.asarray(smooth / smooth.sum(axis=2, keepdims=True))
