"""What was counted of linked tables and is used up within a fit: kept for one that goes on.

A run holds bins and mixtures. A fit needs more of what its events released: the days between rows,
to which gaps are calibrated in the end, and the grains, from which follows how numbers are rounded.
A fit that goes on after it was stopped takes both over from its checkpoint, and counts nothing
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.row_grains import Found
from dpsynth.models.histories.steps.gap_factors import GapCounts
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.marginals.grains import GrainCounts

Arrays = Mapping[str, npt.NDArray[Any]]
Models = Sequence[Sequence[StepModel]]

GAPS, GRAINS = "released.gaps", "released.grains"


def counts_of(models: Models, grains: Found) -> dict[str, npt.NDArray[Any]]:
    """Give the days between rows and the grains as arrays, by table and series.

    Args:
        models: of the series of each table.
        grains: by the place of the table, -1 for the table of patients, for each of its series.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    for place, of_table in enumerate(models):
        for series, model in enumerate(of_table):
            if (gaps := model.released) is not None:
                name = f"{GAPS}.{place}.{series}"
                arrays[name] = np.array([gaps.sigma, gaps.total, *gaps.counts])
    for place, of_series in grains.items():
        for series, found in enumerate(of_series):
            name = f"{GRAINS}.{place}.{series}"
            arrays[name] = np.array([found.sigma, found.mass, len(found.counts)])
            for column, counts in enumerate(found.counts):
                arrays[f"{name}.{column}"] = np.asarray(counts, dtype=np.float64)
    return arrays


def with_gaps(models: Models, arrays: Arrays) -> list[list[StepModel]]:
    """Return the models with the days between rows that `counts_of` gave."""

    def released(name: str) -> GapCounts | None:
        if name not in arrays:
            return None
        sigma, total, *counts = arrays[name].tolist()
        return GapCounts(np.array(counts), sigma, total)

    return [
        [
            replace(model, released=released(f"{GAPS}.{place}.{series}"))
            for series, model in enumerate(of_table)
        ]
        for place, of_table in enumerate(models)
    ]


def grains_of(arrays: Arrays) -> Found:
    """Return the grains that `counts_of` gave, in the order of tables and series."""
    found: Found = {}
    heads = [name.split(".")[2:] for name in arrays if name.startswith(f"{GRAINS}.")]
    for place, series in sorted((int(head[0]), int(head[1])) for head in heads if len(head) == 2):
        name = f"{GRAINS}.{place}.{series}"
        sigma, mass, columns = arrays[name].tolist()
        counts = tuple(arrays[f"{name}.{column}"] for column in range(int(columns)))
        found.setdefault(place, []).append(GrainCounts(counts, sigma, mass))
    return found
