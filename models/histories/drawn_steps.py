"""Steps of patients that a generator draws itself, binned as those that were counted.

A network of a wide table's steps learns on them (`steps.log_linear`): after the first round, it
draws what is known before its own next step. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.beginnings import Beginnings
from dpsynth.models.histories.chain import draw_series
from dpsynth.models.histories.persons import Hidden
from dpsynth.models.histories.row_weights import FirstRows
from dpsynth.models.histories.steps.log_linear import ROWS, Expected, fitted_network
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.pairs import StepPlaces
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.models.marginals import Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PATIENTS = 50_000
"""Patients drawn, about, on whose steps a network learns; fewer where the population is smaller."""


def with_networks(
    models: Sequence[StepModel],
    starts: Sequence[Beginnings],
    hidden: Sequence[Hidden],
    codes: Ints,
    rows: FirstRows,
    rng: np.random.Generator,
) -> list[StepModel]:
    """Give the steps of a table's series networks, if pairs of them were released for one.

    Args:
        models: of the steps of each series.
        starts: how the series of drawn patients begin.
        hidden: where their first rows are in the person table.
        codes: of these patients in the person table, ``[patients, columns]``.
        rows: first rows, which say about how columns of a row go together.
        rng: of the draws.
    """
    return [
        model
        if model.shares is None
        else _with_network(model, model.shares, start, codes, rows.weights(model, place), rng)
        for model, start, place in zip(models, starts, hidden, strict=True)
    ]


def _with_network(
    model: StepModel,
    shares: Target,
    start: Beginnings,
    codes: Ints,
    weights: Floats,
    rng: np.random.Generator,
) -> StepModel:
    def drawn(network: Network) -> Ints:
        steps, counted = drawn_steps(replace(model, network=network), start, codes, rng)
        return by_weight(steps, counted, rng) if len(steps) else steps

    expected = Expected.of(model.table, StepPlaces.of(model.table), weights)
    network = fitted_network(model.products, shares, model.bins, expected, drawn, rng)
    return replace(model, network=network, shares=None)


def by_weight(
    steps: Ints, weights: npt.NDArray[np.integer | np.floating], rng: np.random.Generator
) -> Ints:
    """Choose `ROWS` of some steps, each as often as it weighs, ``[rows, columns]``."""
    return steps[rng.choice(len(steps), ROWS, p=weights / weights.sum())]


def drawn_steps(
    model: StepModel, start: Beginnings, codes: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw all rows of a series; return its steps, and what each of them weighs when counted.

    Args:
        model: of the steps.
        start: how the series begins, of each patient.
        codes: of the patients in the person table.
        rng: of the draws.

    Returns:
        Bins ``[steps, columns]``, and weights ``[steps]``.
    """
    table = replace(model.table.table, series=(model.table.series,))
    rows = TableRows.of(table, (draw_series(model, start, rng),), codes, start.ends)
    (steps,) = rows.coded([model.table])
    columns = [column.coarsen(steps[:, j]) for j, column in enumerate(model.bins)]
    return np.column_stack(columns).astype(np.int64), rows.weights[0]
