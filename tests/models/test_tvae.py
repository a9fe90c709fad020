"""`tvae` has a latent vector that carries relations, and its loss and draws are what it says.

All randomness is seeded: a test that passes once passes always.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from dpsynth.encoding.cohort import Cohort
from dpsynth.eval.fidelity.summary import tvd
from dpsynth.models import training_settings
from dpsynth.models.base import Domain, Feature
from dpsynth.models.dpsgd import trainer
from dpsynth.models.dpsgd.layers import Activations
from dpsynth.models.dpsgd.unit_gradients import UnitGradients, packs
from dpsynth.models.generators import warm_started
from dpsynth.models.generators.tvae import Tvae
from dpsynth.models.generators.tvae_network import Network, Shape
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS, Preset
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.privacy.events import PoissonSgd
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan

UNITS = 2000
TOY = Domain(
    (Feature("group", 4, 0), Feature("value", 41, 40), Feature("flag", 2, 0)),
    population=UNITS,
    max_rows=1,
)
BUDGET = PrivacyBudget(epsilon=10.0, delta=1e-6)
SMALL = Shape(bins=(2, 3, 2), hidden=8, latent=1)
ROWS = list(itertools.product(*(range(count) for count in SMALL.bins)))
NO_LEADERS: tuple[tuple[int, ...], ...] = ((), (), ())
LEADERS = ((), (0,), (1, 0))


def toy_cohort(seed: int) -> Cohort:
    """2000 units; ``value`` lies within a few cells of 10 group + 5; ``flag`` is a fair coin."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, UNITS, p=[0.4, 0.3, 0.2, 0.1])
    value = np.clip(np.rint(10 * group + 5 + rng.normal(0, 1.5, UNITS)), 0, 39)
    codes = np.stack([group, value, rng.integers(0, 2, UNITS)], axis=-1)
    return Cohort(codes.astype(np.uint16)[:, None, :], np.ones((UNITS, 1), dtype=bool))


def plan_for(domain: Domain = TOY) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, Tvae(domain).shares(BUDGET))


def settle_for(monkeypatch: pytest.MonkeyPatch, **settings: int) -> None:
    """Replace settings of the network and its training, and make batches of free rows small."""
    shipped = training_settings.variational_training
    monkeypatch.setattr(
        training_settings, "variational_training", lambda *size: shipped(*size) | settings
    )
    monkeypatch.setattr(warm_started, "WARM_BATCH", 50)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network and a handful of steps."""
    settle_for(monkeypatch, hidden=8, latent=2, warm_steps=3, steps=7)


@pytest.fixture(scope="module")
def fitted() -> Tvae:
    """The settings of a user; only the batches of free rows are smaller, for the time it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm_started, "WARM_BATCH", 250)
        return Tvae(TOY).fit(toy_cohort(1), plan_for(), SeededEntropy(2))


def coarse(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
    """Cut ``value`` into runs of four cells; missing keeps its own."""
    cut = codes.astype(np.int64)
    cut[:, 1] //= 4
    return cut


# The generator --------------------------------------------------------------------------------


def test_a_strong_relation_is_learned(fitted: Tvae) -> None:
    """Columns that are drawn on their own would have a distance of more than 0.6."""
    source = coarse(toy_cohort(1).codes[:, 0])
    drawn = coarse(fitted.sample(20_000, np.random.default_rng(3)))
    assert tvd(source, drawn, (0, 1)) < 0.25
    assert max(tvd(source, drawn, (j,)) for j in range(3)) < 0.1


@pytest.mark.parametrize("even", [True, False])
def test_samples_are_codes_of_the_domain(fitted: Tvae, even: bool) -> None:
    drawn = fitted.sample(5000, np.random.default_rng(5), even=even)
    assert drawn.shape == (5000, 3) and drawn.dtype == np.uint16
    assert (drawn < np.array(TOY.sizes)).all()


def test_restored_it_samples_bit_for_bit_the_same(fitted: Tvae) -> None:
    config = json.loads(json.dumps(fitted.config()))
    arrays = {name: array.copy() for name, array in fitted.arrays().items()}
    again = Tvae.restore(TOY, config, arrays)
    first, second = (model.sample(3000, np.random.default_rng(8)) for model in (fitted, again))
    np.testing.assert_array_equal(first, second)
    assert again.config() == fitted.config()
    assert all(np.isfinite(array).all() for array in arrays.values())


@pytest.mark.usefixtures("few_steps")
def test_the_plan_is_used_up_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, counted = plan_for(), {"steps": 0, "draws": 0}

    class Counting(trainer.DpSgd):
        def sample_batch(self, units: int) -> npt.NDArray[np.int64]:
            counted["draws"] += 1
            return super().sample_batch(units)

        def step(self, *args: Any, **kwargs: Any) -> None:
            counted["steps"] += 1
            assert self.event == plan.event(STEPS)
            super().step(*args, **kwargs)

    monkeypatch.setattr(trainer, "DpSgd", Counting)
    Tvae(TOY).fit(toy_cohort(1), plan, SeededEntropy(0))
    assert counted == {"steps": 7, "draws": 7}
    assert {event.name for event in plan.events} == {ONE_WAY, PAIRS, STEPS}


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_fit_of_nothing_ends_like_any_other(max_rows: int) -> None:
    """An empty cohort must not tell itself apart by failing."""
    domain = replace(TOY, max_rows=max_rows)
    nothing = Cohort(
        np.zeros((0, max_rows, 3), dtype=np.uint16), np.zeros((0, max_rows), dtype=bool)
    )
    drawn = (
        Tvae(domain)
        .fit(nothing, plan_for(domain), SeededEntropy(11))
        .sample(50, np.random.default_rng(0))
    )
    assert (drawn < np.array(TOY.sizes)).all()


def test_units_of_several_rows_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of three rows are in group 1, others in group 0; of the rows, 3/4 are of group 1.

    So the hidden column must depend on the latent vector, and its weights must reach the others.
    """
    settle_for(monkeypatch, hidden=32, latent=4, warm_steps=800, steps=100)
    domain = replace(TOY, max_rows=3, population=600)
    many = np.arange(600) % 2 == 1
    codes = np.zeros((600, 3, 3), dtype=np.uint16)
    codes[many] = [1, 20, 1]
    mask = np.ones((600, 3), dtype=bool)
    mask[~many, 1:] = False
    codes[~mask] = [3, 39, 0]
    model = Tvae(domain).fit(Cohort(codes, mask), plan_for(domain), SeededEntropy(10))
    drawn = model.sample(4000, np.random.default_rng(11))
    assert (drawn[:, 0] == 1).mean() == pytest.approx(0.75, abs=0.06)
    assert (drawn[:, 0] == 3).mean() < 0.04
    assert ((drawn[:, 0] == 1) == (drawn[:, 2] == 1)).mean() > 0.9


@pytest.mark.parametrize("width", ["latent", "hidden"])
def test_settings_without_a_latent_path_are_another_generators(fitted: Tvae, width: str) -> None:
    config = json.loads(json.dumps(fitted.config()))
    config["preset"][width] = 0
    with pytest.raises(ValueError, match="latent vector and hidden layers"):
        Tvae.restore(TOY, config, fitted.arrays())


# The preset -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("population", [100, 20_000, 10**6])
@pytest.mark.parametrize("max_rows", [1, 5])
def test_shares_follow_the_preset(epsilon: float, population: int, max_rows: int) -> None:
    domain = replace(TOY, population=population, max_rows=max_rows)
    budget = PrivacyBudget(epsilon, 1e-6)
    preset = Preset.of("tvae", Tvae(domain).domain, budget)
    shares = {share.event.name: share for share in Tvae(domain).shares(budget)}
    assert list(shares) == [ONE_WAY, PAIRS, STEPS]
    assert shares[STEPS].fraction == preset.training
    steps = shares[STEPS].event
    assert isinstance(steps, PoissonSgd)
    assert (steps.sampling_rate, steps.steps) == (preset.sampling_rate, preset.steps)
    assert preset.latent > 0 and preset.hidden > 0


# The network ----------------------------------------------------------------------------------


def network_of(shape: Shape = SMALL, seed: int = 1) -> Network:
    """A network with weights far from zero in every layer."""
    network = Network(shape, generator=torch.Generator().manual_seed(seed))
    rng = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))
    return network


def law_of(network: Network, factors: tuple[float, ...] = (1.0, 1.0)) -> dict[Any, float]:
    """Probability of every row: the integral over the latent vector on a grid, in NumPy."""
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-0.5 * grid**2)
    density /= density.sum()
    arrays = {name: p.detach().double().numpy() for name, p in network.named_parameters()}
    hidden = np.tanh(grid[:, None] @ arrays["decode_in.weight"].T + arrays["decode_in.bias"])
    logits = hidden @ arrays["decode_out.weight"].T + arrays["decode_out.bias"]
    starts = np.concatenate([[0], np.cumsum(SMALL.bins)])
    blocks = [np.exp(logits[:, a:b]) for a, b in itertools.pairwise(starts)]
    laws = [block / block.sum(axis=1, keepdims=True) for block in blocks]
    law = {
        row: factors[row[0]]
        * float((density * np.prod([laws[j][:, c] for j, c in enumerate(row)], axis=0)).sum())
        for row in ROWS
    }
    return {row: share / sum(law.values()) for row, share in law.items()}


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("factors", [None, (1.0, 3.0)])
def test_the_law_of_draws_by_integration(even: bool, factors: tuple[float, ...] | None) -> None:
    """All 12 rows, also with the first column weighed: it pulls the latent vector along."""
    network, rows = network_of(), 100_000
    first = None if factors is None else np.array(factors)
    leaders = LEADERS if even else NO_LEADERS
    drawn = network.draw(rows, np.random.default_rng(2), leaders=leaders, first=first, even=even)
    law = law_of(network) if factors is None else law_of(network, factors)
    assert drawn.shape == (rows, 3) and sum(law.values()) == pytest.approx(1.0)
    for row, share in law.items():
        found = (drawn == row).all(axis=1).mean()
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / rows) + 1e-5, row


def test_the_latent_vector_relates_columns() -> None:
    network = network_of()
    with torch.no_grad():
        network.decode_out.weight.mul_(3)
    drawn = network.draw(50_000, np.random.default_rng(3), leaders=NO_LEADERS, even=False)
    rng = np.random.default_rng(4)
    shuffled = np.column_stack([rng.permutation(drawn[:, j]) for j in range(3)])
    assert tvd(drawn, shuffled, (1, 2)) > 0.05


def test_the_likelihood_bound_reaches_the_law() -> None:
    """With many draws the importance-weighted bound is the log-probability of the row."""
    network = network_of()
    with torch.no_grad():  # an encoder whose draws cover the latent space
        network.encode_out.weight.zero_()
        network.encode_out.bias.zero_()
    found = network.log_likelihood(torch.tensor(ROWS), np.random.default_rng(5), 20_000)
    expected = [math.log(share) for share in law_of(network).values()]
    np.testing.assert_allclose(found.numpy(), expected, atol=0.1)


def test_few_draws_bound_the_likelihood_from_below() -> None:
    network, rng = network_of(), np.random.default_rng(6)
    rows = torch.tensor(ROWS)
    one = np.mean([network.log_likelihood(rows, rng, 1).numpy() for _ in range(300)], axis=0)
    expected = np.log(list(law_of(network).values()))
    assert (one < expected + 0.05).all() and (one < expected - 0.05).any()


def test_the_loss_is_the_evidence_lower_bound_by_hand() -> None:
    """A decoder that ignores the latent vector: -log p(row) of independent columns, plus KL."""
    network = network_of(replace(SMALL, latent=3))
    with torch.no_grad():
        network.decode_out.weight.zero_()
        network.encode_out.weight.zero_()
        network.encode_out.bias.copy_(torch.tensor([0.5, -1.0, 0.0, 0.2, -0.3, 0.0]))
    mean, log_variance = np.array([0.5, -1.0, 0.0]), np.array([0.2, -0.3, 0.0])
    divergence = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).sum()
    logits = network.decode_out.bias.detach().double().numpy()
    starts = np.concatenate([[0], np.cumsum(SMALL.bins)])
    for row in ROWS:
        own = [logits[a:b] for a, b in itertools.pairwise(starts)]
        logs = [part[c] - np.log(np.exp(part).sum()) for part, c in zip(own, row, strict=True)]
        loss = network.loss(torch.tensor([[row]]), None)
        assert loss.shape == (1, 1)
        assert float(loss) == pytest.approx(divergence - sum(logs), abs=1e-4), row


def test_the_start_is_near_the_product_of_the_columns() -> None:
    network = Network(SMALL, generator=torch.Generator().manual_seed(1))
    shares = [np.array([0.9, 0.1]), np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.5])]
    network.start_at(shares)
    drawn = network.draw(100_000, np.random.default_rng(5), leaders=NO_LEADERS, even=False)
    for row in ROWS:
        by_hand = np.prod([column[code] for column, code in zip(shares, row, strict=True)])
        assert abs((drawn == row).all(axis=1).mean() - by_hand) < 0.03, row


def test_the_loss_of_a_row_does_not_depend_on_the_other_rows() -> None:
    """Neither those of the unit nor those of other units: the condition of per-unit clipping."""
    network = network_of()
    rng = np.random.default_rng(6)
    batch = torch.from_numpy(rng.integers(0, 2, (5, 3, 3)))
    other = torch.from_numpy(rng.integers(0, 2, (5, 3, 3)))
    other[2, 1] = batch[2, 1]
    losses = []
    for rows in (batch, other):
        network.noise = np.random.default_rng(7)  # the same latent noise for the same place
        losses.append(network.loss(rows, None))
    assert losses[0].shape == (5, 3)
    assert float(losses[0][2, 1]) == pytest.approx(float(losses[1][2, 1]), abs=1e-6)
    assert not torch.allclose(losses[0], losses[1])


@pytest.mark.parametrize("k", [1, 3])
def test_the_norms_of_units_are_those_of_their_own_gradients(k: int) -> None:
    """Through encoder, noise and decoder: against automatic differentiation, unit by unit."""
    network = network_of(replace(SMALL, latent=2))
    rows = torch.from_numpy(np.random.default_rng(8).integers(0, 2, (4, k, 3)))
    rows[1] = rows[1, :1]  # a unit of equal rows, whose gradients add up
    noise = np.random.default_rng(9).standard_normal((4 * k, 2)).astype(np.float32)

    class Given:
        """The same noise for a row wherever it is laid out."""

        def __init__(self, values: npt.NDArray[np.float32]) -> None:
            self.values = values

        def standard_normal(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[np.float32]:
            assert self.values.shape == shape
            return self.values

    network.noise = Given(noise)  # type: ignore[assignment]
    (pack,) = packs(rows, torch.ones(4, k), 1024)
    found = UnitGradients.of(network.loss, pack).norms()
    for unit in range(4):
        own = slice(unit * k, (unit + 1) * k)
        network.noise = Given(noise[own])  # type: ignore[assignment]
        assert float(found[unit]) == pytest.approx(gradient_norm(network, rows[unit]), rel=1e-4)


def gradient_norm(network: Network, rows: Tensor) -> float:
    """The norm of one unit's gradient by automatic differentiation."""
    parameters = list(network.parameters())
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        total = network.loss(rows[None], None).sum()
        grads = torch.autograd.grad(total, parameters)
    finally:
        for parameter in parameters:
            parameter.requires_grad_(False)
    return math.sqrt(sum(float(grad.double().square().sum()) for grad in grads))


def test_a_tape_sees_every_layer_once() -> None:
    tape = Activations()
    network = network_of()
    network.loss(torch.tensor([ROWS[:2]]), tape)
    assert len(tape.records) == 4 == len({id(record.layer) for record in tape.records})
