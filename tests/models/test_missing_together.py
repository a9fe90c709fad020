"""Columns that are missing together are drawn so, where released pairs tell it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature
from dpsynth.models.generators import Autoregressive
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.distilled import Distilled
from dpsynth.models.generators.missing_together import MissingLinks
from dpsynth.models.generators.pair_settling import settle_pairs
from dpsynth.models.marginals import Pairs, Released
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.short_training import shorten_training

SD = 0.01
LAST = {place: 2 for place in range(4)}  # bins 0 and 1 hold values
UNITS = 6_000
BUDGET = PrivacyBudget(epsilon=6.0, delta=1e-6)
LABS = tuple(
    Feature(name, 5, 4, undeclared=(4,), nullable=True) for name in ("na", "k", "crp", "height")
)
WARD = Feature("ward", 3, 0)


def codes(rows: int, seed: int = 0) -> np.ndarray:
    """A panel of two, a wider one that has both and a third, and one that is independent."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(3, size=rows)
    panel = rng.random(rows) < 0.15 + 0.1 * ward
    wide = panel | (rng.random(rows) < 0.3)
    alone = rng.random(rows) < 0.2
    values = rng.integers(4, size=(rows, 4))
    missing = np.stack([panel, panel, wide, alone], axis=1)
    return np.column_stack([np.where(missing, 4, values), ward])


def released(table: np.ndarray, sd: float = SD, without: tuple[Any, ...] = ()) -> Released:
    """Shares of rows of three bins each, the last one for missing, with noise on pairs."""
    rng, columns = np.random.default_rng(1), table.shape[1]
    one = [np.bincount(table[:, j], minlength=3) / len(table) for j in range(columns)]
    places = [
        (i, j) for i in range(columns) for j in range(i + 1, columns) if (i, j) not in without
    ]
    tables = [np.zeros((3, 3)) for _ in places]
    for (i, j), counts in zip(places, tables, strict=True):
        np.add.at(counts, (table[:, i], table[:, j]), 1 / len(table))
        counts += sd * rng.standard_normal((3, 3))
    pairs = Pairs(tuple(places), tuple(tables), (sd,) * len(places))
    shares = np.concatenate(one)
    return Released((3,) * columns, shares, pairs, one_sd=np.full(len(shares), sd))


def table() -> np.ndarray:
    return np.minimum(np.asarray(codes(20_000)[:, :4]), 4) // 2


def links(**more: Any) -> np.ndarray:
    return MissingLinks.of(released(table(), **more), LAST).implied & ~np.eye(4, dtype=bool)


KNOWN = [[0, 1], [0, 2], [1, 0], [1, 2]]


def test_links_are_told_in_their_direction() -> None:
    assert np.argwhere(links()).tolist() == KNOWN


def test_links_follow_through_a_pair_that_was_not_measured() -> None:
    assert np.argwhere(links(without=((1, 2),))).tolist() == KNOWN


def test_what_noise_hides_is_not_linked() -> None:
    assert not links(sd=0.2).any()


def test_columns_that_are_mostly_missing_together_are_not_linked() -> None:
    """In one row of twenty, the second value is there alone."""
    rows = table()
    rows[:1000, 1] = 2 - rows[:1000, 0]
    rows[:1000, 0] = np.where(rows[:1000, 1] == 2, 0, 2)
    found = MissingLinks.of(released(rows, sd=0.005), LAST).implied
    assert not found[0, 1] and not found[1, 0]


def test_a_refuted_link_is_not_made_through_others() -> None:
    """Each step is within the noise, and both together are seen not to hold."""
    shares = np.array([0.30, 0.33, 0.36])
    pairs, tables = ((0, 1), (0, 2), (1, 2)), []
    both = {(0, 1): 0.277, (1, 2): 0.305, (0, 2): 0.25}
    for i, j in pairs:
        own = both[i, j]
        tables.append(
            np.array([[1 - shares[i] - shares[j] + own, shares[j] - own], [shares[i] - own, own]])
        )
    counts = Released(
        (2, 2, 2),
        np.ravel([[1 - share, share] for share in shares]),
        Pairs(pairs, tuple(tables), (0.01,) * 3),
    )
    found = MissingLinks.of(counts, {0: 1, 1: 1, 2: 1}).implied
    assert not found[0, 2] and (found[0, 1] or found[1, 2])


def test_shares_that_differ_refute_a_link_whose_pair_was_not_measured() -> None:
    """Ten nested columns, of which neighbours were measured: each link holds one way, if at all."""
    shares = np.linspace(0.20, 0.38, 10)
    tables = tuple(
        np.array([[1 - q, q - p], [0.0, p]]) for p, q in zip(shares[:-1], shares[1:], strict=True)
    )
    pairs = Pairs(tuple((j, j + 1) for j in range(9)), tables, (0.01,) * 9)
    one = np.ravel([[1 - share, share] for share in shares])
    counts = Released((2,) * 10, one, pairs, one_sd=np.full(20, 1e-3))
    found = MissingLinks.of(counts, dict.fromkeys(range(10), 1))
    assert (found.implied == np.triu(np.ones((10, 10), dtype=bool))).all()
    np.testing.assert_allclose(found.agreed(counts).one, one)


def test_a_fit_is_judged_by_what_was_counted() -> None:
    """Not by the counts that were made to agree with the links."""
    counts, network = released(table()), Network(Shape((3,) * 4, 0), generator=torch.Generator())
    wrong = replace(counts, one=np.tile([0.2, 0.2, 0.6], 4))
    rng, ordered = np.random.default_rng(1), [np.array([True, True, False])] * 4
    leaders = [[]] * 4
    aimed = settle_pairs(network, wrong, ordered, leaders, rng, counted=counts)
    assert aimed.off > 0 and aimed.cells == 54


def test_counts_agree_with_the_links() -> None:
    """No share is lost, linked columns have the same share, and impossible cells are empty."""
    counts = released(table())
    moved = replace(counts, one=counts.one + np.tile([-0.002, 0, 0.002, 0.001, 0, -0.001], 2))
    found = MissingLinks.of(moved, LAST).agreed(moved)
    for place in range(4):
        assert found.shares(place).sum() == pytest.approx(1.0)
    assert found.shares(0)[2] == found.shares(1)[2] <= found.shares(2)[2]
    first = found.pairs.tables[found.pairs.places.index((0, 2))]
    assert first[2].tolist() == [0.0, 0.0, found.shares(0)[2]]
    assert first[:2, 2].max() > 0.05  # missing alone where that is possible
    last = found.pairs.tables[found.pairs.places.index((0, 3))]
    assert np.array_equal(last, moved.pairs.tables[moved.pairs.places.index((0, 3))])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 1, 3, 0)])
def test_a_network_draws_no_impossible_pattern(order: tuple[int, ...]) -> None:
    """Whichever of the linked columns is drawn first."""
    counts = released(table()[:, order])
    network = Network(Shape((3,) * 4, 8), generator=torch.Generator().manual_seed(0))
    network.start_at([counts.shares(place) for place in range(4)])
    MissingLinks.of(counts, LAST).join(network)
    drawn = network.draw(5_000, np.random.default_rng(2), leaders=((),) * 4)
    missing = (drawn == 2)[:, np.argsort(order)]
    assert (missing[:, 0] == missing[:, 1]).all()
    assert not (missing[:, 0] & ~missing[:, 2]).any()
    assert (missing[:, 2] & ~missing[:, 0]).any() or order[0] == 2
    assert 0 < missing[:, 3].mean() < 1


def domain(max_rows: int) -> Domain:
    return Domain((*LABS, WARD), UNITS, max_rows)


@cache
def fitted(kind: type[Any], max_rows: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        shorten_training(patch)
        unfitted = kind(domain(max_rows))
        plan = PrivacyPlan.calibrate(BUDGET, unfitted.shares(BUDGET))
        rows = codes(UNITS * max_rows).reshape(UNITS, max_rows, 5)
        mask = (
            np.arange(max_rows) < np.random.default_rng(3).integers(1, max_rows + 1, UNITS)[:, None]
        )
        cohort = Cohort(np.where(mask[..., None], rows, 0).astype(np.uint16), mask)
        return unfitted.fit(cohort, plan, SeededEntropy(2))


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("kind", [Distilled, Autoregressive])
def test_fits_draw_the_patterns_that_there_are(kind: type[Any], max_rows: int) -> None:
    """And their shares are those of the source."""
    missing = fitted(kind, max_rows).sample(20_000, np.random.default_rng(4))[:, :4] == 4
    assert (missing[:, 0] == missing[:, 1]).all()
    assert not (missing[:, 0] & ~missing[:, 2]).any()
    source = (codes(200_000)[:, :4] == 4).mean(axis=0)
    assert missing.mean(axis=0) == pytest.approx(source, abs=0.03)


def test_links_hold_under_conditions() -> None:
    allowed = {1: np.arange(5) == 4}
    law, share = fitted(Distilled, 1).given(allowed)
    assert share == pytest.approx((codes(200_000)[:, 1] == 4).mean(), abs=0.03)
    missing = law.sample(1_000, np.random.default_rng(5))[:, :4] == 4
    assert missing[:, :3].all() and not missing[:, 3].all()
