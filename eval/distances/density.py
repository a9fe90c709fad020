"""How dense a table is around a record: Gaussian kernels on the schema's scale.

log of the mean of exp(-d^2 / (2 h^2)) over the table's rows, d the distance of
`eval.distances.metric`. An attack compares two of them, of the synthetic table and of people whom
the attacker knows (van Breugel et al., Membership Inference Attacks against Synthetic Data through
Overfitting Detection, arXiv 2302.12580, equation 2): where the first is high without the second, a
generator may have overfitted. Each has a width that suits its own table: known people are often
fewer than synthetic rows, and with too narrow a kernel their density would be noise.

In a table of many columns all rows lie about equally far apart, and a kernel as wide as half of the
nearest distance takes in a large part of the table: the density is then the same for everybody. So
the table's kernel is narrowed until it takes in few rows, by the effective number of rows of its
weights, (sum w)^2 / sum w^2 (Kish, Survey Sampling, 1965, section 11.7), as t-SNE sets its kernels
by a perplexity (van der Maaten and Hinton, JMLR 9, 2008).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.eval.distances.metric import Metric, Points
from dpsynth.eval.distances.nearest import Product, nearest

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTH = 0.5  # of the kernel, in median distances of known people to the table
SEEN = 10.0  # rows of the table that the kernel takes in around a known person, at most
PROBES = 100  # known people by whom the kernel is narrowed
HALVINGS = 12  # steps of the search, of which each halves what is open
MIN_WIDTH = 1e-2  # width where most of them are copied; below, single precision would show


def width_of(metric: Metric, known: Points, table: Points) -> float:
    """Return the kernel's width h, from people who are not attacked."""
    distances = np.sqrt(nearest(metric, known, table).squared[:, 0])
    width = max(MIN_WIDTH, WIDTH * float(np.median(distances)))
    return _narrowed(metric, known, table, width)


def _narrowed(metric: Metric, known: Points, table: Points, width: float) -> float:
    """Return the widest kernel up to ``width`` that takes in few enough rows at the median.

    Where more rows than that are equal, no kernel does, and the width stays.
    """
    probes = known.take(np.unique(np.linspace(0, known.rows - 1, PROBES).astype(np.int64)))
    apart = np.empty((probes.rows, table.rows), dtype=np.float32)
    for rows, columns, block in Product.of(metric, probes, table).blocks():
        apart[rows, columns] = block
    apart -= apart.min(axis=1, keepdims=True)

    def seen(tried: float) -> float:
        weights = np.exp(apart * np.float32(-0.5 / tried**2))
        effective = weights.sum(axis=1, dtype=float) ** 2 / (weights**2).sum(axis=1, dtype=float)
        return float(np.median(effective))

    if seen(width) <= SEEN or seen(MIN_WIDTH) > SEEN:
        return width
    low, high = MIN_WIDTH, width
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if seen(middle) <= SEEN else (low, middle)
    return low


def width_among(metric: Metric, known: Points, units: Ints) -> float:
    """Return the width for known people themselves: each one's distance is to another unit."""
    distances = np.sqrt(nearest(metric, known, known, 2, units).squared[:, 1])
    return max(MIN_WIDTH, WIDTH * float(np.median(distances)))


def log_density(metric: Metric, queries: Points, table: Points, width: float) -> Floats:
    """Return the log of a table's kernel density of this width around queries, up to a constant."""
    product = Product.of(metric, queries, table)
    scale = np.float32(0.5 / width**2)
    maximum = np.full(queries.rows, -np.inf)
    total = np.zeros(queries.rows)
    for rows, _, block in product.blocks():
        np.multiply(np.maximum(block, 0.0, out=block), -scale, out=block)
        here = np.maximum(maximum[rows], block.max(axis=1).astype(float))
        block -= here[:, None].astype(np.float32)
        np.exp(block, out=block)
        total[rows] = total[rows] * np.exp(maximum[rows] - here) + block.sum(axis=1, dtype=float)
        maximum[rows] = here
    return np.asarray(maximum + np.log(total) - np.log(table.rows))
