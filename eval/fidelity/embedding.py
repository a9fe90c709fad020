"""A map of the rows in two dimensions, as shares of squares and never as points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import DesignMatrix, PartResult, Tables, plain

Floats = npt.NDArray[np.float64]

SQUARES = 40  # along each axis
MAX_ROWS = 20_000
MAX_CELLS = 10_000_000  # of one matrix
EDGE = 0.001  # share of the source beyond the map at each side; drawn into its outermost squares


def embedding(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Project both tables on the first two principal components of the source.

    Rows are those of a `DesignMatrix` of the source; those beyond the map are in its outermost
    squares. Shares are listed by square along y, then along x, as a heat map takes them.
    """
    design = DesignMatrix.of(tables.source, tables.codec)
    nothing = {"embedding": None}
    if len(design.terms) < 2 or tables.source.rows < 3:
        return PartResult((), nothing, ("the table is too small for an embedding",))
    rows = max(1000, min(MAX_ROWS, MAX_CELLS // len(design.terms)))
    real = design.matrix(tables.source.sample(rows, rng))
    centre = real.mean(axis=0)
    real = real - centre
    axes, explained = _components(real)
    if len(explained) < 2 or explained[1] <= 0:
        return PartResult((), nothing, ("the source has no two directions for an embedding",))
    synthetic = design.matrix(tables.synthetic.sample(rows, rng)) - centre
    at = {"source": real @ axes, "synthetic": synthetic @ axes}
    edges = [_edges(at["source"][:, k]) for k in (0, 1)]
    details = {"x": plain(edges[0]), "y": plain(edges[1])}
    for name, places in at.items():
        inside = [np.clip(places[:, k], edges[k][0], edges[k][-1]) for k in (0, 1)]
        counts = np.histogram2d(inside[0], inside[1], bins=edges)[0]
        details[name] = plain(counts.T / len(places))
    details["explained"] = plain(explained)
    return PartResult((), {"embedding": details})


def _components(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the first two principal axes ``[terms, 2]`` and their shares of the variance."""
    from sklearn.utils.extmath import randomized_svd

    total = float((matrix**2).sum())
    if total <= 0:
        return np.zeros((matrix.shape[1], 0)), np.zeros(0)
    _, sizes, axes = randomized_svd(matrix, 2, n_iter=5, random_state=0)
    shares = sizes**2 / total
    return np.asarray(axes.T), np.where(shares > 1e-9, shares, 0.0)


def _edges(places: Floats) -> Floats:
    """Return the edges of the squares along one axis."""
    low, high = np.quantile(places, (EDGE, 1 - EDGE))
    if high <= low:
        low, high = places.min(), places.max()
    return np.linspace(low, max(high, low + 1e-9), SQUARES + 1)
