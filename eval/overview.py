"""A first look at a synthetic table beside its source: internal, never released."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.codec import Codec
from dpsynth.eval.fidelity import coarse, decile_edges, mean_tvd
from dpsynth.schema import Schema


def overview(
    schema: Schema, source: pd.DataFrame, synthetic: pd.DataFrame
) -> dict[str, dict[str, float]]:
    """Measure one- and two-way total variation distance to the source, and a reference for each.

    The reference is the source with every column shuffled on its own: right columns, no relation
    between them. Its one-way distance is 0, so the one-way reference is a fresh bootstrap.
    """
    codec = Codec(schema)
    real, drawn = codec.encode(source), codec.encode(synthetic)
    cells = [
        0 if column.is_categorical else size - int(column.nullable)
        for column, size in zip(schema.modelled, codec.sizes, strict=True)
    ]
    edges = decile_edges(real, cells)
    real, drawn = coarse(real, edges), coarse(drawn, edges)
    rng = np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(real[:, j]) for j in range(real.shape[1])])
    return {
        "columns (one-way TVD)": {
            "value": mean_tvd(real, drawn, 1),
            "reference": mean_tvd(real, shuffled, 1),
        },
        "pairs of columns (two-way TVD)": {
            "value": mean_tvd(real, drawn, 2),
            "reference": mean_tvd(real, shuffled, 2),
        },
    }
