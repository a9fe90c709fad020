"""Interactions: products of two columns' axes, what they move, and what a score says of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.models.dpsgd import PlainSgd, arrays_of
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.networks.crossing import learn_crosses
from dpsynth.models.histories.networks.score import Score
from dpsynth.models.histories.networks.scoring import NoisyScore
from dpsynth.models.histories.networks.step_networks import StepNetworks
from dpsynth.models.histories.persons import PersonNetwork
from dpsynth.models.histories.persons import crosses as place
from dpsynth.models.histories.persons.crosses import FURTHEST, Crosses
from dpsynth.models.marginals import MergedBins, Products

from ...support.private_sums import one_private_step

SIZES, GIVEN, BEFORE = (4, 3, 2, 3), 2, 3
PRODUCTS = 3
ROWS = 20_000


def shares() -> list[np.ndarray]:
    return [np.random.default_rng(k).dirichlet(np.full(size, 5.0)) for k, size in enumerate(SIZES)]


def network(seed: int = 1) -> Network:
    found = Network(Shape(SIZES, 0, GIVEN), generator=torch.Generator().manual_seed(0))
    found.skip.weight.normal_(0.0, 0.8, generator=torch.Generator().manual_seed(seed))
    return found


def crossed(own: Network) -> Crosses:
    return Crosses.of(own, BEFORE, shares())


def scored(own: Network, crosses: Crosses) -> Score:
    bins = [MergedBins(np.arange(k, dtype=np.uint16), np.full(k, 1 / k)) for k in SIZES]
    return Score.of(own, bins, SIZES, crosses)


def rows_of(own: Network, crosses: Crosses, number: int = ROWS, seed: int = 2) -> np.ndarray:
    """Rows that a network draws with what products say."""
    rng = np.random.default_rng(seed)
    alone = shares()
    rows = np.zeros((number, len(SIZES)), dtype=np.int64)
    for j in range(GIVEN):
        rows[:, j] = rng.choice(SIZES[j], number, p=alone[j])
    rows[:, GIVEN:] = own.draw_after(rows[:, :GIVEN], rng)
    pull = crosses.pull(own.one_hot(torch.from_numpy(rows)), len(own.skip.bias))
    rows[:, BEFORE:] = own.draw_after(rows[:, :BEFORE], rng, pull=pull)
    return rows


def test_an_axis_says_where_bins_stand_by_what_they_say_of_the_last_column() -> None:
    own, alone = network(), shares()
    axes = crossed(own).axes.numpy()
    weights = own.skip.effective_weight().detach().numpy()[-SIZES[-1] :]
    for column, axis in enumerate(axes):
        inside = slice(own.offsets[column], own.offsets[column + 1])
        assert np.abs(np.delete(axis, np.arange(inside.start, inside.stop))).max(initial=0) == 0
        assert axis[inside] @ alone[column] == pytest.approx(0, abs=1e-5)
        assert axis[inside] ** 2 @ alone[column] == pytest.approx(1, abs=1e-4)
    block = weights[:, own.offsets[2] : own.offsets[3]]  # of two bins: their difference is all
    assert np.ptp(axes[2][own.offsets[2] : own.offsets[3]]) > 0 and np.ptp(block) > 0


def test_a_rare_bin_does_not_stand_far_out() -> None:
    own, alone = network(), shares()
    alone[0] = np.array([0.4, 0.4, 0.1999, 0.0001])
    own.skip.weight[:, 3] *= 100
    axes = Crosses.of(own, BEFORE, alone).axes
    assert float(axes.abs().max()) == FURTHEST


def test_the_columns_that_say_most_have_an_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "COLUMNS", 2)
    own = network()
    own.skip.weight[:, own.offsets[1] : own.offsets[2]] *= 1e-3
    axes = crossed(own).axes
    assert len(axes) == 2 and float(axes[:, own.offsets[1] : own.offsets[2]].abs().sum()) == 0


def test_products_are_of_two_axes_each() -> None:
    own = network()
    crosses, rows = crossed(own), rows_of(own, crossed(own), 50)
    places = [crosses.axes[j, own.offsets[j] + torch.from_numpy(rows[:, j])] for j in range(BEFORE)]
    expected = torch.stack([one * other for one, other in combinations(places, 2)], dim=1)
    hot = own.one_hot(torch.from_numpy(rows))
    assert crosses.products == PRODUCTS
    assert torch.allclose(crosses.of_rows(hot), expected, atol=1e-5)
    rows[:, BEFORE:] = 0  # what is yet to be drawn plays no part
    assert torch.equal(crosses.of_rows(own.one_hot(torch.from_numpy(rows))), crosses.of_rows(hot))


def test_only_the_last_column_moves_and_all_comes_back_from_arrays() -> None:
    own = network()
    crosses = crossed(own)
    crosses.weight.data.normal_(generator=torch.Generator().manual_seed(3))
    hot = own.one_hot(torch.from_numpy(rows_of(own, crosses, 50)))
    pull = crosses.pull(hot, len(own.skip.bias))
    assert pull.shape == (50, SIZES[2] + SIZES[3])
    assert float(pull[:, : SIZES[2]].abs().max()) == 0 < float(pull[:, SIZES[2] :].abs().min())
    arrays = arrays_of(crosses, "some.crosses")
    again = Crosses.restore(arrays, "some.crosses")
    assert again is not None and torch.equal(again.pull(hot, 5), pull)
    assert Crosses.restore(arrays, "others") is None


def by_hand(own: Network, crosses: Crosses, rows: Tensor) -> Tensor:
    """The mean over rows of (y - p) times each product."""
    hot = own.one_hot(rows)
    expected = own.logits(hot)[:, -SIZES[-1] :].softmax(dim=1)
    return (hot[:, -SIZES[-1] :] - expected).T @ crosses.of_rows(hot) / len(rows)


def test_a_score_has_products_beside_sums() -> None:
    own = network()
    crosses = crossed(own)
    score, rows = scored(own, crosses), torch.from_numpy(rows_of(network(5), crosses, 300))
    trainer = PlainSgd(score, learning_rate=1.0, steps=2, schedule="constant", optimizer="sgd")
    before = score.loss(rows[:, None], None)
    for _ in range(2):
        trainer.step(score.loss, rows[:, None], torch.ones(len(rows), 1))
    assert torch.allclose(score.loss(rows[:, None], None), before), "it stands where it stood"
    assert torch.allclose(before[:, 0], own.loss(rows[:, None], None)[:, 0], atol=1e-5)
    noisy = NoisyScore.of(score, noise=0.1, steps=2, mass=0.5)
    assert noisy.together == pytest.approx(by_hand(own, crosses, rows).numpy() / 0.5, abs=1e-5)
    assert noisy.weights.shape == (SIZES[2] + SIZES[3], sum(SIZES))


@pytest.mark.parametrize("rows", [1, 7])
def test_a_patient_moves_sums_and_products_by_c_together(rows: int) -> None:
    """One clipping of both: not one for each."""
    own = network()
    crosses = crossed(own)
    networks = StepNetworks([scored(own, crosses)])
    trainer = one_private_step(networks, 0.01)
    patient = torch.from_numpy(rows_of(network(5), crosses, rows)).int()[None]
    weights = torch.full((1, rows, 1), rows**-0.5)
    moved = trainer.clipped_sum(networks.loss, (patient, weights), torch.ones(1, rows))
    assert float(moved.norm()) == pytest.approx(0.01, rel=1e-3)


def learned(noise: float) -> tuple[Network, Crosses, np.ndarray]:
    """A network after a score of rows in which two columns say together more than their sum."""
    own, truth = network(), network()
    truth_crosses, crosses = crossed(truth), crossed(own)
    truth_crosses.weight.data[:, 0] = torch.tensor([0.8, -0.4, -0.4])
    real = rows_of(truth, truth_crosses)
    score = scored(own, crosses)
    rng = np.random.default_rng(4)
    exact = by_hand(own, crosses, torch.from_numpy(real)).numpy()
    together = exact + noise * rng.standard_normal(exact.shape)
    noisy = NoisyScore(np.zeros((0, 0)), np.zeros(0), together, noise)
    learn_crosses(own, crosses, score, noisy, rows_of(own, crosses, seed=5))
    return own, crosses, real


def together(own: Network, crosses: Crosses, rows: np.ndarray) -> np.ndarray:
    """The mean of each product beside each bin of the last column."""
    hot = own.one_hot(torch.from_numpy(rows))
    return np.asarray(hot[:, -SIZES[-1] :].T @ crosses.of_rows(hot) / len(rows))


def test_a_clear_score_is_followed_and_sums_say_what_they_said() -> None:
    own, crosses, real = learned(1e-4)
    drawn = rows_of(own, crosses, seed=6)
    expected = together(own, crosses, real)
    assert together(own, crosses, drawn) == pytest.approx(expected, abs=0.02)
    plain = rows_of(network(), crossed(network()), seed=7)
    assert np.abs(together(own, crosses, plain) - expected).max() > 0.06
    for column in range(BEFORE):
        joint = [
            np.histogram2d(rows[:, column], rows[:, -1], [SIZES[column], SIZES[-1]])[0] / ROWS
            for rows in (plain, drawn)
        ]
        assert joint[0] == pytest.approx(joint[1], abs=0.015), "as the sums had it"


def test_noise_alone_is_not_followed() -> None:
    _, crosses, _ = learned(0.5)
    assert float(crosses.weight.detach().abs().max()) < 0.05


def test_whether_there_is_a_row_at_all_has_no_axis() -> None:
    """Without a row, all columns of the first one say so: their axes would be one and the same."""
    sizes = (3, 4, 4, 3)  # the last bin of a first row: there is none
    rng = np.random.default_rng(1)
    tables = [rng.dirichlet(np.ones(k), 5) for k in sizes]
    products = Products(sizes, np.full(5, 0.2), np.concatenate(tables, axis=1).astype(np.float32))
    own = Network(Shape(sizes, 0, 1), generator=torch.Generator().manual_seed(0))
    own.skip.weight.normal_(0.0, 0.1, generator=torch.Generator().manual_seed(1))
    for column in (1, 2):
        own.skip.weight[-3, own.offsets[column + 1] - 1] = 20.0

    class Person:
        numbers_of_wide = {1: None}  # noqa: RUF012

    bins = [MergedBins(np.arange(k, dtype=np.uint16), np.full(k, 1 / k)) for k in (3, 3, 4, 4)]
    persons = PersonNetwork((0, 2, 3, 1), products, own)
    given = persons.with_crosses(Person(), bins)  # type: ignore[arg-type]
    assert given.crosses is not None and persons.crosses is None
    axes = given.crosses.axes
    assert float(axes[1, own.offsets[2] - 1].abs()) < 2
    whole = Crosses.of(own, 3, products.shares).axes
    assert float(whole[1, own.offsets[2] - 1].abs()) > float(
        whole[1, 3 : own.offsets[2] - 1].abs().max()
    )
    assert given.with_crosses(Person(), bins) is given  # type: ignore[arg-type]


def test_columns_that_say_nothing_have_no_axis() -> None:
    """Of two bins, none and some, only whether there is a row can be said: nothing is crossed."""
    sizes = (3, 4, 4, 2)
    tables = [np.random.default_rng(1).dirichlet(np.ones(k), 5) for k in sizes]
    products = Products(sizes, np.full(5, 0.2), np.concatenate(tables, axis=1).astype(np.float32))
    own = Network(Shape(sizes, 0, 1), generator=torch.Generator().manual_seed(0))
    own.skip.weight.normal_(generator=torch.Generator().manual_seed(1))

    class Person:
        numbers_of_wide = {1: None}  # noqa: RUF012

    bins = [MergedBins(np.arange(k, dtype=np.uint16), np.full(k, 1 / k)) for k in (3, 2, 4, 4)]
    persons = PersonNetwork((0, 2, 3, 1), products, own)
    assert persons.with_crosses(Person(), bins) is persons  # type: ignore[arg-type]


def test_numbers_of_one_table_say_nothing_of_those_of_another() -> None:
    """The logits of a column may all move by the same: only what moves them apart has an axis."""
    own = Network(Shape((4, 3, 2, 3), 0, 1), generator=torch.Generator().manual_seed(0))
    own.skip.weight.normal_(0.0, 0.5, generator=torch.Generator().manual_seed(1))
    alone = [np.full(k, 1 / k) for k in (4, 3, 2, 3)]
    before = Crosses.of(own, 2, alone).axes
    own.skip.weight[-5:-3, :7] += 3.0 * torch.arange(7)  # both bins of one number, by all columns
    assert torch.allclose(Crosses.of(own, 2, alone).axes, before, atol=1e-4)
