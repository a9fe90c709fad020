"""Patients of two tables of visits as units of a private step, before anything is learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpsynth.encoding import Histories
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories import HistoryDomain
from dpsynth.models.histories.networks.patient_units import PatientUnits
from dpsynth.models.histories.networks.step_networks import StepNetworks
from dpsynth.models.histories.settings import empty_step_table
from dpsynth.models.histories.steps import StepModel
from dpsynth.models.histories.steps.gap_factors import GapFactors
from dpsynth.models.marginals import MergedBins, Products
from dpsynth.privacy import SeededEntropy

from .made_histories import domain_of, hostile
from .private_steps import private

C = 0.01
PATIENTS = 60


def two_tables() -> HistoryDomain:
    """The made-up tables with their visits twice."""
    domain = domain_of(PATIENTS)
    visits = domain.tables[1]
    return replace(domain, tables=(visits, replace(visits, name="stays")))


def both(histories: Histories) -> Histories:
    visits = histories.rows[1]
    return replace(histories, rows=(visits, visits))


def models_of(domain: HistoryDomain) -> list[tuple[int, StepModel]]:
    """Each table's steps as they are before anything is learned: a bin for each code."""
    models = []
    for place, table in enumerate(domain.tables):
        steps = replace(empty_step_table(domain, table, 0), conditions=())
        bins = tuple(
            MergedBins(np.arange(feature.size), np.full(feature.size, 1 / feature.size))
            for feature in steps.features
        )
        sizes = tuple(column.count for column in bins)
        tables = np.concatenate([np.full(size, 1 / size) for size in sizes])[None]
        products = Products(sizes, np.ones(1), tables.astype(np.float32))
        shape = Shape(sizes, 8, steps.drawn)
        network = Network(shape, generator=torch.Generator().manual_seed(place))
        with torch.no_grad():
            network.masked_out.weight.normal_(generator=torch.Generator().manual_seed(place))
        even = GapFactors.even(table.days)
        models.append((place, StepModel(steps, bins, products, even, network)))
    return models


DOMAIN = two_tables()
MODELS = models_of(DOMAIN)


def units_of(histories: Histories) -> PatientUnits:
    return PatientUnits.of(histories, DOMAIN, MODELS, SeededEntropy(3))


def networks() -> StepNetworks:
    return StepNetworks([model.network for _, model in models_of(DOMAIN)])  # type: ignore[misc]


def last(units: PatientUnits) -> tuple[Any, Tensor]:
    return units.batch(np.array([len(units) - 1]))


def moved(batch: Any, mask: Tensor, network: Any = None) -> float:
    """The norm of what the units of a batch add to the sum of a private step."""
    network = network or networks()
    trainer: DpSgd = private(network, clipping_norm=C, population=20, optimizer="adam")
    return float(trainer.clipped_sum(network.loss, batch, mask).norm())


def with_thirty_rows(alike: bool) -> Histories:
    """One patient of 30 rows in each table."""
    return both(hostile(30, alike, seed=1))
