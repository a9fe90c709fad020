"""How many rows of a table match a record on some of its columns: the attacker's counting queries.

Each query takes a random set of one to four columns; numbers match within the bins of a reference.
Counts in the synthetic table against counts among people whom the attacker knows, as log ratios,
are features for a classifier (Houssiau et al., TAPAS, arXiv 2211.06550, section 4: attacks from
random subsets of target queries).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import Bins, TableView

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

QUERIES = 200
WAYS = 4  # columns of a query, at most


def log_ratios(
    queries: TableView, table: TableView, known: TableView, codec: Codec, rng: np.random.Generator
) -> Floats:
    """Return log ratios of matching shares, ``[rows of queries, queries]``.

    Args:
        queries: records to match.
        table: the synthetic one.
        known: people whom the attacker knows; bins come from them.
        codec: the schema's codes.
        rng: of the columns.
    """
    bins = Bins.of(known.codes, codec)
    cut = [bins.cut(view.codes) for view in (queries, table, known)]
    ratios = []
    for columns in column_sets(len(bins.sizes), rng):
        keys = [_keys(part, bins, columns) for part in cut]
        shares = [(_matches(keys[0], keys[at]) + 0.5) / (len(keys[at]) + 1.0) for at in (1, 2)]
        ratios.append(np.log(shares[0]) - np.log(shares[1]))
    return np.stack(ratios, axis=1)


def column_sets(columns: int, rng: np.random.Generator, count: int = QUERIES) -> list[Ints]:
    """Draw sets of columns, of one to four each; the same set may come twice."""
    ways = rng.integers(1, min(WAYS, columns) + 1, count)
    return [np.sort(rng.choice(columns, size=way, replace=False)) for way in ways]


def _keys(cut: npt.NDArray[np.uint16], bins: Bins, columns: Ints) -> Ints:
    keys = np.zeros(cut.shape[1], dtype=np.int64)
    for column in columns:
        keys = keys * bins.sizes[column] + cut[column]
    return keys


def _matches(keys: Ints, among: Ints) -> Floats:
    """Count equal keys."""
    values, counts = np.unique(among, return_counts=True)
    place = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    return np.where(values[place] == keys, counts[place], 0).astype(float)
