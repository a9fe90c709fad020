"""The bins in which tables are compared: the schema's codes, wide columns cut at the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec

Codes = npt.NDArray[np.integer]
Ints = npt.NDArray[np.int64]

BINS = 10
MAX_CATEGORIES = 100  # rarer categories of the source share one bin


def coarse(codes: Codes, edges: Sequence[npt.NDArray[np.integer] | None]) -> npt.NDArray[np.int64]:
    """Cut ordered columns at the given codes; leave columns without edges as they are."""
    columns = [
        codes[:, j] if cuts is None else np.searchsorted(cuts, codes[:, j], side="left")
        for j, cuts in enumerate(edges)
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def decile_edges(
    codes: Codes, cells: Sequence[int], bins: int = BINS
) -> list[npt.NDArray[np.integer] | None]:
    """Cut ordered columns of more than ``bins`` cells at the deciles of a reference table.

    Codes at or past ``cells`` (missing) keep a bin of their own, the last one.
    """
    edges: list[npt.NDArray[np.integer] | None] = []
    for j, count in enumerate(cells):
        present = codes[codes[:, j] < count, j]
        if count <= bins or len(present) == 0:
            edges.append(None)
            continue
        cuts = np.unique(np.quantile(present, np.linspace(0, 1, bins + 1)[1:-1]).astype(int))
        edges.append(np.append(cuts[cuts < count - 1], count - 1))
    return edges


@dataclass(frozen=True, eq=False)
class Bins:
    """One set of bins for all tables of a comparison.

    A numeric column of at most 10 codes keeps them, a wider one is cut at the deciles of the
    reference; a categorical column keeps its codes, but for those beyond the 99 commonest of the
    reference, which share a bin. What is missing has a bin of its own.

    Attributes:
        of_code: by column, the bin of each code.
        sizes: how many bins each column has.
    """

    of_code: tuple[Ints, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, reference: Codes, codec: Codec) -> Bins:
        """Cut by the codes ``[rows, columns]`` of a reference table."""
        of_code = []
        edges = decile_edges(reference, codec.cells)
        for j, (cuts, cells, size) in enumerate(zip(edges, codec.cells, codec.sizes, strict=True)):
            every = np.arange(size)
            if cells > BINS and cuts is None:  # the reference has no value: present or missing
                cuts = np.array([cells - 1])
            if cuts is not None:
                of_code.append(np.searchsorted(cuts, every, side="left").astype(np.int64))
            elif cells == 0 and size > MAX_CATEGORIES:
                missing = size - 1 if codec.schema.modelled[j].nullable else -1
                of_code.append(_pooled(np.bincount(reference[:, j], minlength=size), missing))
            else:
                of_code.append(every.astype(np.int64))
        return cls(tuple(of_code), tuple(int(bins.max()) + 1 for bins in of_code))

    def cut(self, codes: Codes) -> npt.NDArray[np.uint16]:
        """Return the bins ``[columns, rows]`` of codes ``[rows, columns]``."""
        bins = np.empty(codes.shape[::-1], dtype=np.uint16)
        for j, of_code in enumerate(self.of_code):
            bins[j] = of_code[codes[:, j]]
        return bins


def _pooled(counts: Ints, missing: int) -> Ints:
    """Number categories by how common they are; the rare ones share a bin, missing has its own."""
    if missing >= 0:
        counts = counts.copy()
        counts[missing] = counts.sum() + 1  # the first rank: never pooled
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, MAX_CATEGORIES - 1)
