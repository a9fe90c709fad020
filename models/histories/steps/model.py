"""What a fit keeps of the steps of one series: bins, mixture, and network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature
from dpsynth.models.dpsgd import arrays_of as network_arrays
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.conditional import correlation
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable
from dpsynth.models.histories.steps.distilled import restored_network
from dpsynth.models.histories.steps.gap_factors import GapCounts, GapFactors
from dpsynth.models.histories.steps.lines import Line
from dpsynth.models.histories.steps.table import Coarse, StepTable
from dpsynth.models.marginals import MergedBins, Products, Target

HOLDS = 2.0  # marks, in a run's arrays, a line on which values stay


@dataclass(frozen=True, eq=False)
class StepModel:
    """The steps of one series, learned.

    Attributes:
        table: of its steps.
        bins: of each column.
        products: the mixture over binned columns.
        factors: how much likelier some gaps are made.
        network: draws in its place, where many columns are drawn.
        released: what was released of the gaps; only during a fit.
        shares: released shares of pairs, from which a network learns; only while counts are read.
    """

    table: StepTable
    bins: tuple[MergedBins, ...]
    products: Products
    factors: GapFactors
    network: Network | None = None
    released: GapCounts | None = None
    shares: Target | None = None

    @cached_property
    def alike(self) -> tuple[float, ...]:
        """How far each value is like the one before; 0 for changes and for what has no order."""
        table, found = self.table, []
        values = len(table.series.values)
        pairs = zip(table.series.values, table.lines, strict=True)
        for place, (value, line) in enumerate(pairs):
            later = len(table.features) - values + place
            before = table.drawn - values + place
            both = (self.bins[before], self.bins[later])
            ordered = line is None and value.cells > 1
            found.append(correlation(self.products, (before, later), both) if ordered else 0.0)
        return tuple(found)


def arrays_of(models: Sequence[StepModel], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Give what was learned of a table's series as arrays of a run."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for place, model in enumerate(models):
        name = f"{prefix}.{place}"
        if model.network is not None:
            arrays |= network_arrays(model.network, f"{name}.network")
        if model.table.table.timed:
            arrays[f"{name}.gaps"] = model.factors.factors
        arrays[f"{name}.weights"] = model.products.weights
        arrays[f"{name}.tables"] = model.products.tables
        arrays[f"{name}.bin_of"] = np.concatenate([column.bin_of for column in model.bins])
        arrays[f"{name}.shares"] = np.concatenate([column.shares for column in model.bins])
        arrays[f"{name}.conditions"] = np.array(
            [coarse.column for coarse in model.table.conditions], dtype=np.int64
        )
        arrays[f"{name}.condition_bins"] = np.concatenate(
            [np.empty(0, dtype=np.int64), *(coarse.bin_of for coarse in model.table.conditions)]
        )
        arrays[f"{name}.lines"] = np.array(
            [
                [0.0, 0.0, 0.0, 0.0]
                if line is None
                else [HOLDS if line.holds else 1.0, line.intercept, line.slope, line.mean]
                for line in model.table.lines
            ]
        )
    return arrays


def restored(
    domain: HistoryDomain,
    table: HistoryTable,
    person: Sequence[Feature],
    arrays: Mapping[str, npt.NDArray[Any]],
    prefix: str,
) -> list[StepModel]:
    """Rebuild what `arrays_of` gave."""
    models = []
    for place, series in enumerate(table.series):
        name = f"{prefix}.{place}"
        columns = arrays[f"{name}.conditions"].tolist()
        ends = np.cumsum([person[column].size for column in columns])[:-1]
        parts = np.split(arrays[f"{name}.condition_bins"], ends) if columns else []
        conditions = tuple(Coarse(*pair) for pair in zip(columns, parts, strict=True))
        lines = tuple(
            Line(row[1], row[2], row[3], holds=row[0] == HOLDS) if row[0] else None
            for row in arrays[f"{name}.lines"].tolist()
        )
        step_table = StepTable(domain, table, series, conditions, lines)
        cuts = np.cumsum([feature.size for feature in step_table.features])[:-1]
        bins = tuple(
            MergedBins(bin_of, shares)
            for bin_of, shares in zip(
                np.split(arrays[f"{name}.bin_of"], cuts),
                np.split(arrays[f"{name}.shares"], cuts),
                strict=True,
            )
        )
        sizes = tuple(column.count for column in bins)
        products = Products(sizes, arrays[f"{name}.weights"], arrays[f"{name}.tables"])
        network = restored_network(sizes, step_table.drawn, arrays, f"{name}.network")
        factors = GapFactors.even(table.days)
        if f"{name}.gaps" in arrays:  # a run of an earlier version has none
            factors = GapFactors(table.days, arrays[f"{name}.gaps"])
        models.append(StepModel(step_table, bins, products, factors, network))
    return models
