"""The distance of a mixture's fit, and its gradient as automatic differentiation finds it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.linalg import block_diag

from dpsynth.models.marginals import Distance, Information, Target, product_fit
from dpsynth.models.marginals.product_fit import ColumnShares
from dpsynth.models.marginals.product_mixture import ProductTarget

SIZES, COMPONENTS = (3, 2, 4), 7
KS = (2, 1, 3)  # scores of each column
TIE = 0.3


def target(*, products: bool) -> Target:
    rng = np.random.default_rng(0)
    width, starts = sum(SIZES), np.concatenate([[0], np.cumsum(SIZES)])
    sd = np.full((width, width), np.inf)
    sd[starts[0] : starts[1], starts[1] : starts[2]] = 0.02
    sd[starts[0] : starts[1], starts[2] : starts[3]] = 0.05
    one = rng.dirichlet(np.ones(width))
    whole = Target(SIZES, one, rng.uniform(0.01, 0.03, width), rng.random((width, width)), sd)
    scores = block_diag(
        *(rng.standard_normal((size, k)) for size, k in zip(SIZES, KS, strict=True))
    )
    column = np.repeat(np.arange(3), KS)
    upper = column[:, None] < column
    means = upper * rng.standard_normal(upper.shape)
    contrasts = ProductTarget(scores, means, upper * rng.uniform(50, 100, upper.shape))
    return replace(whole, products=contrasts) if products else whole


def slow(goal: Target, logits: torch.Tensor) -> torch.Tensor:
    """The same loss, cell by cell and pair by pair."""
    tables = torch.cat([part.softmax(1) for part in logits.split(list(SIZES), 1)], 1)
    width = len(goal.one)
    cells = np.isfinite(goal.pair_sd).sum() + width
    total = torch.zeros((), dtype=logits.dtype)
    for a in range(width):
        total = total + (tables[:, a].mean() - goal.one[a]) ** 2 / goal.one_sd[a] ** 2 / cells
        for b in np.flatnonzero(np.isfinite(goal.pair_sd[a])):
            gap = (tables[:, a] * tables[:, b]).mean() - goal.pairs[a, b]
            total = total + gap**2 / goal.pair_sd[a, b] ** 2 / cells
    if goal.products is not None:
        means = tables @ torch.tensor(goal.products.scores, dtype=logits.dtype)
        for i, j in np.argwhere(goal.products.weights):
            gap = (means[:, i] * means[:, j]).mean() - goal.products.means[i, j]
            total = total + gap**2 * goal.products.weights[i, j] / cells
    return total


def information(logits: torch.Tensor) -> torch.Tensor:
    tables = torch.cat([part.softmax(1) for part in logits.split(list(SIZES), 1)], 1)
    return (tables * (tables / tables.mean(0)).log()).sum() / COMPONENTS


@pytest.mark.parametrize("sparse", [0.0, 1.0])
@pytest.mark.parametrize("products", [False, True])
def test_value_and_gradient_are_those_of_automatic_differentiation(
    products: bool, sparse: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From all cells, or from those that were measured alone."""
    monkeypatch.setattr(product_fit, "SPARSE", sparse)
    goal = target(products=products)
    logits = torch.randn(COMPONENTS, sum(SIZES), generator=torch.Generator().manual_seed(1))
    columns = ColumnShares(SIZES, COMPONENTS)
    tables = columns.normalised(logits)
    value, gradient = Distance(goal)(tables)
    apart = gradient.clone()
    Information(torch.tensor(TIE)).add_to(gradient, tables)
    exact = logits.double().requires_grad_()
    loss = slow(goal, exact)
    assert value == pytest.approx(loss.item(), rel=1e-5)
    (expected,) = torch.autograd.grad(loss, exact, retain_graph=True)
    torch.testing.assert_close(
        columns.through(tables, apart).double(), expected, rtol=1e-4, atol=1e-5
    )
    (expected,) = torch.autograd.grad(loss + TIE * information(exact), exact)
    found = columns.through(tables, gradient).double()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_logits_far_apart_make_shares() -> None:
    """The largest of each column is taken out before the exponential."""
    logits = torch.tensor([[500.0, 499.0, 0.0, -300.0, -300.0, 1.0, 1.0, 1.0, 1.0]])
    shares = ColumnShares(SIZES, 1).normalised(logits)
    parts = [part.sum().item() for part in shares.split(list(SIZES), 1)]
    assert parts == pytest.approx([1, 1, 1])
    assert shares[0, 3].item() == pytest.approx(0.5)
