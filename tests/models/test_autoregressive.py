"""The network of `autoregressive`: its law, its loss and its draws are what it says.

All randomness is seeded: a test that passes once passes always.
"""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from dpsynth.encoding import Cohort
from dpsynth.models import Preset
from dpsynth.models.generators import Autoregressive
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.privacy import SeededEntropy

from ..support.toy_generators import (
    BUDGET,
    FEW_STEPS,
    TOY,
    assert_drawn_by,
    plan_for,
    randomised,
    settle_for,
)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network and a handful of steps."""
    settle_for(monkeypatch, Autoregressive, **FEW_STEPS[Autoregressive])


@pytest.mark.usefixtures("few_steps")
def test_constant_columns_are_fitted_like_any_others() -> None:
    """All columns become one bin, no gradient is left: the steps run and count all the same."""
    same = Cohort(np.ones((300, 1, 3), dtype=np.uint16), np.ones((300, 1), dtype=bool))
    model = Autoregressive(TOY).fit(same, plan_for(Autoregressive), SeededEntropy(12))
    drawn = model.sample(200, np.random.default_rng(0))
    assert (drawn == 1).mean() > 0.9


@pytest.mark.usefixtures("few_steps")
def test_units_may_have_hundreds_of_rows() -> None:
    """The hidden number of rows is then a wide column itself."""
    domain = replace(TOY, max_rows=300)
    codes = np.zeros((40, 300, 3), dtype=np.uint16)
    mask = np.arange(300) < np.linspace(1, 300, 40)[:, None]
    plan = plan_for(Autoregressive, domain)
    drawn = (
        Autoregressive(domain)
        .fit(Cohort(codes, mask), plan, SeededEntropy(13))
        .sample(50, np.random.default_rng(0))
    )
    assert drawn.shape == (50, 3)


def test_the_preset_is_a_function_of_public_facts() -> None:
    assert list(inspect.signature(Preset.of).parameters) == ["model", "domain", "budget"]
    assert list(inspect.signature(Autoregressive.__init__).parameters) == ["self", "domain"]
    assert list(inspect.signature(Autoregressive.shares).parameters) == ["self", "budget"]
    assert Preset.of("autoregressive", TOY, BUDGET) == Preset.of(
        "autoregressive", replace(TOY), replace(BUDGET)
    )


SMALL = Shape(bins=(2, 3, 2), masked=5)
NO_LEADERS: tuple[tuple[int, ...], ...] = ((), (), ())
LEADERS = ((), (0,), (1, 0))
ROWS = list(itertools.product(*(range(count) for count in SMALL.bins)))


def network_of(shape: Shape, seed: int = 1) -> Network:
    """A network with weights far from zero in every layer."""
    network = Network(shape, generator=torch.Generator().manual_seed(seed))
    randomised(network, seed + 1)
    return network


def autoregressive(masked: int = 5) -> Network:
    return network_of(replace(SMALL, masked=masked))


def log_law(network: Network) -> dict[tuple[int, ...], float]:
    """Log probability of every row, column by column, in plain NumPy.

    Column j takes the part of the linear map, and of the hidden layer, that columns before it feed:
    the codes from column j on are set to zero, so that a hole in a mask would show.
    """
    starts = np.concatenate([[0], np.cumsum(SMALL.bins)])
    arrays = {name: p.detach().double().numpy() for name, p in network.named_parameters()}
    law = {}
    for row in ROWS:
        total = 0.0
        for j, code in enumerate(row):
            hot = np.zeros(starts[-1])
            hot[[starts[i] + row[i] for i in range(j)]] = 1.0
            own = slice(starts[j], starts[j + 1])
            logits = arrays["skip.bias"][own] + arrays["skip.weight"][own] @ hot
            if network.shape.masked:
                groups = (
                    network.units
                )  # unit of group g sees columns before g, feeds columns from g
                sees = groups[:, None] > np.repeat(np.arange(3), SMALL.bins)[None, :]
                units = np.tanh(
                    arrays["masked_in.bias"] + (arrays["masked_in.weight"] * sees) @ hot
                )
                fed = groups <= j
                logits = logits + arrays["masked_out.bias"][own]
                logits = logits + arrays["masked_out.weight"][own][:, fed] @ units[fed]
            total += logits[code] - np.log(np.exp(logits).sum())
        law[row] = total
    return law


@pytest.mark.parametrize("masked", [0, 5])
@pytest.mark.parametrize("even", [False, True])
def test_the_law_of_draws_by_enumeration(masked: int, even: bool) -> None:
    """All 12 rows, five standard errors of independent draws; even ones keep closer."""
    network, rows = autoregressive(masked), 100_000
    leaders = LEADERS if even else NO_LEADERS
    drawn = network.draw(rows, np.random.default_rng(2), leaders=leaders, even=even)
    law = {row: np.exp(value) for row, value in log_law(network).items()}
    assert sum(law.values()) == pytest.approx(1.0)
    assert_drawn_by(law, drawn)


def test_even_draws_are_closer_to_the_law_than_chance() -> None:
    network, rows = autoregressive(), 2000
    expected = np.exp([log_law(network)[row] for row in ROWS])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for even, seed in itertools.product((True, False), range(20)):
        drawn = network.draw(rows, np.random.default_rng(seed), leaders=LEADERS, even=even)
        shares = [(drawn == row).all(axis=1).mean() for row in ROWS]
        errors[even].append(float(np.abs(np.array(shares) - expected).sum()))
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])


@pytest.mark.parametrize("masked", [0, 5])
def test_draws_after_known_columns_can_be_even_too(masked: int) -> None:
    """The law given the first column, and closer to it than chance."""
    network, rows = autoregressive(masked), 2000
    law = {row: np.exp(value) for row, value in log_law(network).items()}
    first = {bin_: sum(share for row, share in law.items() if row[0] == bin_) for bin_ in (0, 1)}
    given = np.repeat([[0], [1]], rows // 2, axis=0)
    expected = np.array([law[row] / first[row[0]] / 2 for row in ROWS])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for even, seed in itertools.product((True, False), range(20)):
        rng, leaders = np.random.default_rng(seed), LEADERS if even else None
        drawn = np.column_stack([given, network.draw_after(given, rng, leaders=leaders)])
        shares = np.array([(drawn == row).all(axis=1).mean() for row in ROWS])
        errors[even].append(float(np.abs(shares - expected).sum()))
    assert np.mean(errors[False]) < 0.08
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])


def test_the_first_column_can_be_weighed() -> None:
    """Factors 1 and 3 on its bins: P(1) / P(0) grows threefold, the rest given it stays."""
    network, rows = autoregressive(), 100_000
    law = {row: np.exp(value) for row, value in log_law(network).items()}
    weighed = {row: share * (1, 3)[row[0]] for row, share in law.items()}
    total = sum(weighed.values())
    drawn = network.draw(
        rows, np.random.default_rng(3), leaders=LEADERS, first=np.array([1.0, 3.0]), even=False
    )
    assert_drawn_by({row: share / total for row, share in weighed.items()}, drawn)


@pytest.mark.parametrize("masked", [0, 5])
def test_the_loss_by_enumeration(masked: int) -> None:
    network = autoregressive(masked)
    for row, log_share in log_law(network).items():
        loss = network.loss(torch.tensor([[row]]), None)
        assert loss.shape == (1, 1)
        assert float(loss) == pytest.approx(-log_share, abs=1e-4), row


def test_the_start_is_the_product_of_the_columns() -> None:
    network = Network(SMALL, generator=torch.Generator().manual_seed(1))
    shares = [np.array([0.9, 0.1]), np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.5])]
    network.start_at(shares)
    drawn = network.draw(100_000, np.random.default_rng(5), leaders=NO_LEADERS, even=False)
    for row in ROWS:
        by_hand = np.prod([column[code] for column, code in zip(shares, row, strict=True)])
        share = (drawn == row).all(axis=1).mean()
        assert abs(share - by_hand) < 5 * np.sqrt(by_hand / 100_000), row


def test_the_loss_of_a_row_does_not_depend_on_the_other_rows() -> None:
    """Neither those of the unit nor those of other units: the condition of per-unit clipping."""
    network = network_of(SMALL)
    rng = np.random.default_rng(6)
    batch = torch.from_numpy(rng.integers(0, 2, (5, 3, 3)))
    other = torch.from_numpy(rng.integers(0, 2, (5, 3, 3)))
    other[2, 1] = batch[2, 1]
    losses = [network.loss(rows, None) for rows in (batch, other)]
    assert losses[0].shape == (5, 3)
    assert float(losses[0][2, 1]) == pytest.approx(float(losses[1][2, 1]), abs=1e-6)
    assert not torch.allclose(losses[0], losses[1])


def test_no_column_sees_itself_or_a_later_one() -> None:
    """A change of one-hot column j moves the logits of later columns only, all of them."""
    network = autoregressive()
    starts = np.concatenate([[0], np.cumsum(SMALL.bins)])

    def logits(hot: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(network.masked_in(hot))
        return network.skip(hot) + network.masked_out(hidden)

    base = torch.zeros(1, 7)
    for column in range(3):
        moved = base.clone()
        moved[0, starts[column]] = 1.0
        change = (logits(moved) - logits(base)).detach().abs()[0]
        assert float(change[: starts[column + 1]].sum()) == 0
        assert column == 2 or float(change[starts[column + 1] :].min()) > 0


def test_one_hot_puts_each_column_in_its_own_place() -> None:
    hot = autoregressive().one_hot(torch.tensor([[1, 2, 0], [0, 0, 1]]))
    assert hot.tolist() == [[0, 1, 0, 0, 1, 1, 0], [1, 0, 1, 0, 0, 0, 1]]


@pytest.mark.parametrize("even", [False, True])
def test_draws_stay_within_the_codes_at_the_extremes(even: bool) -> None:
    """Logits so far apart that one code has all the mass in float32."""
    network = network_of(replace(SMALL, masked=0))
    with torch.no_grad():
        network.skip.weight.zero_()
        network.skip.bias.copy_(torch.tensor([90.0, -90, -90, -90, 90, -90, 90]))
    drawn = network.draw(1000, np.random.default_rng(8), leaders=LEADERS, even=even)
    assert (drawn == [0, 2, 1]).all()
