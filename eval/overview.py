"""A first look at a synthetic table beside its source: internal, never released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core import coarse, decile_edges
from dpsynth.eval.fidelity import mean_tvd
from dpsynth.schema import Schema


@dataclass(frozen=True)
class Score:
    """A distance to the source, between two references.

    Attributes:
        value: of the synthetic table.
        floor: of a bootstrap of the source: what chance alone makes.
        ceiling: of the source with each column shuffled on its own: no relation is left.
    """

    value: float
    floor: float
    ceiling: float


def overview(schema: Schema, source: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, Score]:
    """Measure one- and two-way total variation distance of a synthetic table to its source.

    Numeric columns are cut at the source's deciles; a missing value is a category of its own.
    """
    codec = Codec(schema)
    real, synthetic_codes = codec.encode(source), codec.encode(synthetic)
    edges = decile_edges(real, codec.cells)
    ways = {"columns, one by one": 1, "pairs of columns": 2}
    return _scores(coarse(real, edges), coarse(synthetic_codes, edges), ways)


def _scores(
    real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64], ways: dict[str, int]
) -> dict[str, Score]:
    rng = np.random.default_rng(0)
    again = real[rng.integers(len(real), size=len(real))]
    shuffled = np.column_stack([rng.permutation(real[:, j]) for j in range(real.shape[1])])
    return {
        name: Score(*(mean_tvd(real, table, way) for table in (synthetic, again, shuffled)))
        for name, way in ways.items()
    }
