"""A network's pairs of columns are moved until they meet what was counted, and no further.

Rows have a law that is known, and released shares are that law with noise of a known scale. All
randomness is seeded: a test that passes once passes always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from dpsynth.models.generators import pair_settling
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.pair_settling import settle_pairs
from dpsynth.models.marginals import Fitness, Pairs, Released

from ..support.toy_generators import randomised

BINS, SD = (3, 4, 2), 1e-3
LEADERS = ((), (0,), (1, 0))
ROWS = pair_settling.ROWS
NO_ORDER = [np.zeros(size, dtype=bool) for size in BINS]


@pytest.fixture(autouse=True)
def _rows_as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as many rows as a fit does."""
    monkeypatch.setattr(pair_settling, "ROWS", ROWS)


def law(seed: int = 1) -> np.ndarray:
    """A joint law of three columns, ``[3, 4, 2]``, in which the bins (0, 3) never meet."""
    shares = np.random.default_rng(seed).dirichlet(np.ones(24)).reshape(BINS)
    shares[0, 3] = 0.0
    return np.asarray(shares / shares.sum())


def counted(shares: np.ndarray, sd: float, seed: int = 2) -> Released:
    """Released shares of a law, with noise in its pairs."""
    noise = np.random.default_rng(seed)
    places = tuple(combinations(range(3), 2))
    tables = []
    for i, j in places:
        table = shares.sum(axis=3 - i - j)
        tables.append(table + sd * noise.standard_normal(table.shape))
    one = [shares.sum(axis=tuple({0, 1, 2} - {j})) for j in range(3)]
    pairs = Pairs(places, tuple(tables), (sd,) * len(places))
    return Released(BINS, np.concatenate(one), pairs)


def network_of(masked: int = 0) -> Network:
    """A network that knows nothing of the law."""
    network = Network(Shape(BINS, masked), generator=torch.Generator().manual_seed(1))
    randomised(network, 3)
    return network


def fitness_of(network: Network, released: Released) -> Fitness:
    """How rows that the network draws meet what was counted."""
    rows = network.draw(200_000, np.random.default_rng(5), leaders=LEADERS)
    return released.of_rows(rows)


@pytest.mark.parametrize("masked", [0, 6])
def test_no_measured_cell_is_missed_by_more_than_its_noise(masked: int) -> None:
    released, network = counted(law(), SD), network_of(masked)
    before = fitness_of(network, released)
    said = settle_pairs(network, released, NO_ORDER, LEADERS, np.random.default_rng(4))
    after = fitness_of(network, released)
    assert before.off > 15 and before.furthest > 50
    assert said.cells == after.cells == 26
    assert said.off == after.off == 0 and after.furthest < 3.5


def test_what_was_counted_empty_does_not_occur() -> None:
    """No row of the law is in bins 0 and 3; the noisy count says about none."""
    released, network = counted(law(), SD), network_of()
    settle_pairs(network, released, NO_ORDER, LEADERS, np.random.default_rng(4))
    rows = network.draw(100_000, np.random.default_rng(5), leaders=LEADERS)
    assert np.mean((rows[:, 0] == 0) & (rows[:, 1] == 3)) < SD


def test_neighbouring_bins_that_are_empty_together_are_emptied() -> None:
    """The network gives each of four 1.75 errors; all of them together have more than three."""
    sd, sizes = 0.002, (2, 8)
    truth = np.full(sizes, 0.08)
    truth[1, :4] = 0.0
    truth /= truth.sum()
    moved = 1.75 * sd * np.repeat([1.0, -1.0], 4)
    learned = truth + np.stack([-moved, moved])
    one = np.concatenate([truth.sum(axis=1), truth.sum(axis=0)])
    released = Released(sizes, one, Pairs(((0, 1),), (truth,), (sd,)))
    left = []
    for ordered in (False, True):
        network = Network(Shape(sizes, 0), generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            network.skip.weight[2:, :2] = torch.from_numpy(np.log(learned)).float().T
        kinds = [np.zeros(2, dtype=bool), np.full(8, ordered)]
        settle_pairs(network, released, kinds, ((), (0,)), np.random.default_rng(4))
        drawn = network.draw(100_000, np.random.default_rng(5), leaders=((), (0,)))
        left.append(np.mean((drawn[:, 0] == 1) & (drawn[:, 1] < 4)))
    assert left[0] > 0.013 and left[1] < 0.004


def test_what_is_within_the_noise_stays_as_it_was_learned() -> None:
    """Released shares are noise around what the network says already: weights do not move."""
    released, network = counted(law(), SD), network_of()
    settle_pairs(network, released, NO_ORDER, LEADERS, np.random.default_rng(4))
    before = network.skip.weight.detach().clone()
    settle_pairs(network, released, NO_ORDER, LEADERS, np.random.default_rng(6))
    assert torch.equal(before, network.skip.weight)


def test_a_pair_that_was_not_counted_moves_nothing() -> None:
    released = counted(law(), SD)
    first = Pairs(*(part[:1] for part in vars(released.pairs).values()))
    network, other = network_of(), network_of()
    settle_pairs(
        network, replace(released, pairs=first), NO_ORDER, LEADERS, np.random.default_rng(4)
    )
    last = network.offsets[2]
    assert torch.equal(network.skip.weight[last:], other.skip.weight[last:])


def test_counts_that_no_law_has_leave_the_columns_as_counted() -> None:
    """All cells of all pairs are counted at twice what there is."""
    released, network = counted(law(), SD), network_of()
    tables = tuple(2 * table for table in released.pairs.tables)
    doubled = replace(released, pairs=replace(released.pairs, tables=tables))
    said = settle_pairs(network, doubled, NO_ORDER, LEADERS, np.random.default_rng(4))
    assert said.off > 20
    assert_columns_as_counted(network, released)


def assert_columns_as_counted(network: Network, released: Released) -> None:
    """Each column is drawn as often as its released shares say."""
    drawn = network.draw(100_000, np.random.default_rng(5), leaders=LEADERS)
    for j, bins in enumerate(drawn.T):
        shares = np.bincount(bins, minlength=BINS[j]) / len(drawn)
        assert np.abs(shares - released.shares(j)).max() < 0.01


@pytest.mark.parametrize(
    "change", [lambda one: one, lambda one: replace(one, pairs=Pairs((), (), ()))]
)
def test_a_fit_that_goes_on_has_what_was_counted(change: Callable[[Released], Released]) -> None:
    released = change(counted(law(), SD))
    again = Released.restore(BINS, released.arrays())
    assert again is not None and again.sizes == released.sizes
    assert again.pairs.places == released.pairs.places
    assert again.pairs.sigmas == released.pairs.sigmas
    np.testing.assert_array_equal(again.one, released.one)
    for one, other in zip(again.pairs.tables, released.pairs.tables, strict=True):
        np.testing.assert_array_equal(one, other)
    assert Released.restore(BINS, {}) is None


def test_without_looks_columns_alone_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step beside which the whole is measured, by bench/settled_pairs.py."""
    monkeypatch.setattr(pair_settling, "LOOKS", 0)
    released, network = counted(law(), SD), network_of()
    before = network.skip.weight.detach().clone()
    settle_pairs(network, released, NO_ORDER, LEADERS, np.random.default_rng(4))
    assert torch.equal(before, network.skip.weight)
    assert_columns_as_counted(network, released)
