"""What columns of a first row say of each other is where the weights of a step's row start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpsynth.models.histories import DistilledHistories
from dpsynth.models.histories.row_weights import TAKEN, FirstRows
from dpsynth.models.histories.steps import StepModel
from dpsynth.models.marginals import MergedBins

from ...support.wide_fits import VISITS, wide_fit

PATIENTS = 600
STAY, WARD, DRUG = range(3)


@pytest.fixture(scope="module")
def fitted() -> DistilledHistories:
    return wide_fit(PATIENTS)


def first_rows(fitted: DistilledHistories) -> FirstRows:
    assert fitted.network is not None
    return FirstRows(fitted.network, fitted.binning.columns)


def block(weights: np.ndarray, model: StepModel, later: int, before: int) -> np.ndarray:
    """The weights of one value on another, values by their places in a row."""
    offsets, drawn = model.products.offsets, len(model.bins) - 3
    own, other = drawn + later, drawn + before
    start = offsets[model.table.drawn]
    rows = slice(offsets[own] - start, offsets[own + 1] - start)
    return weights[rows, offsets[other] : offsets[other + 1]]


def test_weights_are_those_of_first_rows_code_by_code(fitted: DistilledHistories) -> None:
    (model,), (hidden,) = fitted.models[VISITS], fitted.person.hidden[VISITS]
    rows = first_rows(fitted)
    network, order = rows.persons.network, list(rows.persons.order)
    torch.manual_seed(3)
    with torch.no_grad():
        network.skip.weight.normal_()
    weights = rows.weights(model, hidden)
    own, known = (order.index(hidden.values[j]) for j in (DRUG, WARD))
    start = network.before
    whole = (
        network.skip.effective_weight()
        .detach()
        .numpy()[
            network.offsets[own] - start : network.offsets[own + 1] - start,
            network.offsets[known] : network.offsets[known + 1],
        ]
    )
    steps, firsts = model.bins[-3:], [rows.bins[j] for j in hidden.values]
    expected = whole[np.ix_(firsts[DRUG].bin_of[:2], firsts[WARD].bin_of[:4])]  # codes: one a bin
    expected = TAKEN * expected[:, np.argsort(steps[WARD].bin_of)][np.argsort(steps[DRUG].bin_of)]
    expected = expected - (expected @ steps[WARD].bin_shares)[:, None]
    expected = expected - steps[DRUG].bin_shares @ expected
    assert block(weights, model, DRUG, WARD) == pytest.approx(expected, abs=1e-5)


def test_only_columns_of_one_row_have_weights(fitted: DistilledHistories) -> None:
    """And each without its mean over the bins of either column."""
    (model,), (hidden,) = fitted.models[VISITS], fitted.person.hidden[VISITS]
    weights = first_rows(fitted).weights(model, hidden)
    assert model.network is not None and weights.shape == tuple(model.network.skip.weight.shape)
    assert np.abs(weights[:, : model.products.offsets[model.table.drawn]]).max() == 0
    for later in range(3):
        for before in range(3):
            own = block(weights, model, later, before)
            assert bool(np.abs(own).max() > 0) == (before < later)
            assert own @ model.bins[before - 3].bin_shares == pytest.approx(0, abs=1e-6)
            assert model.bins[later - 3].bin_shares @ own == pytest.approx(0, abs=1e-6)


def test_a_value_that_is_drawn_as_a_change_has_none(fitted: DistilledHistories) -> None:
    (model,), (hidden,) = fitted.models[VISITS], fitted.person.hidden[VISITS]
    lines = (None, object(), None)
    table = replace(model.table, lines=lines)  # type: ignore[arg-type]
    weights = first_rows(fitted).weights(replace(model, table=table), hidden)
    assert np.abs(block(weights, model, DRUG, STAY)).max() > 0
    assert np.abs(block(weights, model, DRUG, WARD)).max() == 0
    assert np.abs(block(weights, model, WARD, STAY)).max() == 0


def test_a_bin_of_several_codes_has_their_mean_by_share(fitted: DistilledHistories) -> None:
    (model,), (hidden,) = fitted.models[VISITS], fitted.person.hidden[VISITS]
    rows = first_rows(fitted)
    joined = MergedBins(np.array([0, 0, 1, 1], dtype=np.uint16), np.array([0.3, 0.1, 0.4, 0.2]))
    sizes = [*model.products.sizes[:-3], model.products.sizes[-3], 2, model.products.sizes[-1]]
    tables = np.concatenate([np.full((1, size), 1 / size) for size in sizes], axis=1)
    products = type(model.products)(tuple(sizes), np.ones(1), tables.astype(np.float32))
    merged = replace(
        model, bins=(*model.bins[:-2], joined, model.bins[-1]), products=products, network=None
    )
    found = block(rows.weights(merged, hidden), merged, DRUG, WARD)
    network, order = rows.persons.network, list(rows.persons.order)
    own, known = (order.index(hidden.values[j]) for j in (DRUG, WARD))
    whole = (
        network.skip.effective_weight()
        .detach()
        .numpy()[
            network.offsets[own] - network.before : network.offsets[own + 1] - network.before,
            network.offsets[known] : network.offsets[known + 1],
        ]
    )
    codes = whole[:, rows.bins[hidden.values[WARD]].bin_of[:4]]
    means = np.column_stack([codes[:, :2] @ [0.75, 0.25], codes[:, 2:] @ [2 / 3, 1 / 3]])
    drugs = rows.bins[hidden.values[DRUG]].bin_of[:2][np.argsort(model.bins[-1].bin_of)]
    contrast = TAKEN * np.diff(means[drugs], axis=1)
    contrast = contrast - model.bins[-1].bin_shares @ contrast
    assert np.diff(found, axis=1) == pytest.approx(contrast, abs=1e-4)
