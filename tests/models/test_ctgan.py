"""The parts of `ctgan` are what they say, and private rows reach its critic only.

All randomness is seeded: a test that passes once passes always. Fits run with few steps where what
is tested does not depend on their number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.models.dpsgd import PlainSgd, trainer_of
from dpsynth.models.dpsgd import trainer as training
from dpsynth.models.dpsgd.trainer import ReferenceSgd
from dpsynth.models.generators import (
    Critic,
    Ctgan,
    GeneratorNetwork,
    MarginalDistance,
    crossed,
    joined,
)
from dpsynth.models.generators.ctgan import FAKE, REAL, Ask
from dpsynth.models.marginals import Products, Target, measurement
from dpsynth.privacy import NonPrivatePlan, SeededEntropy

from ..support.toy_generators import (
    FEW_STEPS,
    TOY,
    assert_drawn_by,
    plan_for,
    settle_for,
    toy_cohort,
)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network and a handful of steps."""
    settle_for(monkeypatch, Ctgan, **FEW_STEPS[Ctgan])


@pytest.mark.usefixtures("few_steps")
def test_private_rows_reach_the_critic_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that private rows train is in the private optimizer; what is kept is not among it.

    With the private steps taken away (their draws and noise are), two different tables give the
    same generator from the same histograms.
    """
    networks: list[torch.nn.Module] = []

    class Watching(training.DpSgd):
        def __init__(self, network: torch.nn.Module, **settings: Any) -> None:
            super().__init__(network, **settings)
            networks.append(network)
            assert sum(p.numel() for p in network.parameters()) == self.flat.values.numel()
            assert not any(p.requires_grad for p in network.parameters())

        def clipped_sum(self, loss: Any, batch: Any, mask: Tensor) -> Tensor:
            return torch.zeros_like(self.flat.values)

    first: dict[str, Any] = {}

    def replayed(name: str, release: Any) -> Any:
        """Release, so that as much noise is drawn, and give what the first table's release gave."""

        def replay(*args: Any) -> Any:
            return first.setdefault(name, release(*args))

        return replay

    monkeypatch.setattr(training, "DpSgd", Watching)
    for name in ("joint_histograms", "chosen_histograms"):
        monkeypatch.setattr(measurement, name, replayed(name, getattr(measurement, name)))
    plan = plan_for(Ctgan)
    one, other = (
        Ctgan(TOY).fit(cohort, plan, SeededEntropy(3)) for cohort in (toy_cohort(1), toy_cohort(9))
    )
    assert [type(network) for network in networks] == [Critic, Critic]
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(other.arrays()[name], array, err_msg=name)
    mine = {p.data_ptr() for p in one.residual_.parameters()}
    assert mine.isdisjoint(p.data_ptr() for net in networks for p in net.parameters())


@pytest.mark.usefixtures("few_steps")
def test_a_fit_without_privacy_runs_to_its_end() -> None:
    reference = Ctgan(TOY).fit(toy_cohort(1), NonPrivatePlan(plan_for(Ctgan)), SeededEntropy(1))
    assert (reference.sample(50, np.random.default_rng(0)) < np.array(TOY.sizes)).all()


# The starting point -----------------------------------------------------------------------------

SIZES = (2, 3, 2)
ROWS = list(itertools.product(*(range(size) for size in SIZES)))


def products(seed: int = 0, components: int = 3) -> Products:
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(size), components) for size in SIZES]
    weights = rng.dirichlet(np.ones(components))
    return Products(SIZES, weights, np.concatenate(tables, axis=1).astype(np.float32))


def law_of(mixture: Products) -> dict[tuple[int, ...], float]:
    law = {}
    for row in ROWS:
        parts = [mixture.column(j)[:, code].astype(float) for j, code in enumerate(row)]
        law[row] = float((mixture.weights * np.prod(parts, axis=0)).sum())
    return law


def residual(mixture: Products, *, fixed: int = 0, noise: float = 0.0) -> GeneratorNetwork:
    """A generator network at its start, or with a last layer far from zero."""
    seed = torch.Generator().manual_seed(1)
    network = GeneratorNetwork(mixture, hidden=6, latent=2, fixed=fixed, generator=seed)
    with torch.no_grad():
        network.out.normal_(0.0, noise + 1e-12, generator=seed)
        network.out.mul_(float(noise > 0))
    return network


def every_ask(mixture: Products) -> Iterator[tuple[float, Ask]]:
    """Every condition and component with its chance, by the docstring of the generator."""
    for j, size in enumerate(SIZES):
        for k, code in itertools.product(range(len(mixture.weights)), range(size)):
            chance = mixture.weights[k] * mixture.column(j)[k, code] / len(SIZES)
            one = [torch.tensor([value]) for value in (k, j, code)]
            yield float(chance), Ask(*one, torch.zeros(1, 2))


def law_of_generator(network: GeneratorNetwork, mixture: Products) -> dict[tuple[int, ...], float]:
    law = dict.fromkeys(ROWS, 0.0)
    for chance, ask in every_ask(mixture):
        laws = network.laws(ask, mixture)[0].detach().double().numpy()
        columns = np.split(laws, np.cumsum(SIZES)[:-1])
        for row in ROWS:
            law[row] += chance * float(np.prod([c[v] for c, v in zip(columns, row, strict=True)]))
    return law


def test_the_generator_starts_with_the_law_of_the_mixture() -> None:
    """By enumeration of all conditions, components and rows; a trained one has another law."""
    mixture = products()
    expected, found = law_of(mixture), law_of_generator(residual(mixture), mixture)
    assert sum(found.values()) == pytest.approx(1.0)
    assert found == pytest.approx(expected, abs=1e-6)
    moved = law_of_generator(residual(mixture, noise=1.0), mixture)
    assert max(abs(moved[row] - expected[row]) for row in ROWS) > 0.01


@pytest.mark.parametrize("even", [True, False])
def test_draws_have_the_law_of_the_generator(even: bool) -> None:
    """All 12 rows of a generator far from its start; five standard errors of independent draws."""
    mixture, rows = products(), 40_000
    network = residual(mixture, noise=0.5)
    network.of_latent.data.zero_()  # so that the law can be enumerated
    law = law_of_generator(network, mixture)
    drawn = network.draw(mixture, rows, np.random.default_rng(2), even=even)
    assert_drawn_by(law, drawn)


def test_even_draws_are_closer_to_the_law_than_chance() -> None:
    mixture = products()
    network = residual(mixture)
    expected = np.array([law_of(mixture)[row] for row in ROWS])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for even, seed in itertools.product((True, False), range(20)):
        drawn = network.draw(mixture, 2000, np.random.default_rng(seed), even=even)
        shares = [(drawn == row).all(axis=1).mean() for row in ROWS]
        errors[even].append(float(np.abs(shares - expected).sum()))
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])


@pytest.mark.parametrize("even", [True, False])
def test_a_condition_holds_exactly(even: bool) -> None:
    mixture = products(components=5)
    network = residual(mixture, noise=3.0)
    ask = network.ask(mixture, 5000, np.random.default_rng(3), even=even)
    drawn = network.hard(network.laws(ask, mixture), np.random.default_rng(4))
    assert bool((drawn[torch.arange(5000), ask.column] == ask.code).all())
    assert torch.bincount(ask.column).min() > 1500


def test_weighing_by_a_fixed_column_tilts_the_law_exactly() -> None:
    """The tilted mixture, under the same network, has the generator's law times the factors."""
    mixture, factors = products(), np.array([1.0, 3.0])
    network = residual(mixture, fixed=1, noise=1.0)
    plain = law_of_generator(network, mixture)
    weighed = {row: share * factors[row[0]] for row, share in plain.items()}
    total = sum(weighed.values())
    law = law_of_generator(network, mixture.tilted(0, factors))
    assert law == pytest.approx({row: w / total for row, w in weighed.items()}, abs=1e-6)


# The distance to the pairs --------------------------------------------------------------------


def target_of(mixture: Products) -> Target:
    """The mixture's own columns and pairs, as if measured with a standard error of 0.01."""
    weighted = mixture.tables * mixture.weights[:, None]
    blocks = np.repeat(np.arange(len(SIZES)), SIZES)
    measured = blocks[:, None] < blocks[None, :]
    joint = weighted.T @ mixture.tables
    one = weighted.sum(axis=0)
    sd = np.where(measured, 0.01, np.inf)
    return Target(SIZES, one, np.full(len(one), 0.01), np.where(measured, joint, 0.0), sd)


def test_the_distance_is_zero_where_nothing_differs_and_grows_with_the_difference() -> None:
    mixture = products()
    distance, rng = MarginalDistance(target_of(mixture), mixture), np.random.default_rng(0)
    found = []
    for noise in (0.0, 0.1, 1.0):
        network = residual(mixture, noise=noise)
        ask = network.ask(mixture, 500, rng)
        found.append(float(distance.of(network.laws(ask, mixture), ask, network).detach()))
    assert found[0] == pytest.approx(0.0, abs=1e-6)
    assert found[0] < found[1] < found[2]


# The critic -----------------------------------------------------------------------------------


def test_crossed_rows_keep_the_columns_and_lose_what_ties_them() -> None:
    rng = np.random.default_rng(0)
    both = torch.from_numpy(np.repeat(rng.integers(0, 2, (20_000, 1)), 2, axis=1))
    mixed = crossed(both, both[torch.randperm(20_000, generator=torch.Generator())], rng)
    assert mixed.double().mean(0).tolist() == pytest.approx([0.5, 0.5], abs=0.02)
    # kept together with chance E[p^2 + (1 - p)^2] = 2/3, else equal by chance: 2/3 + 1/6
    assert float((mixed[:, 0] == mixed[:, 1]).double().mean()) == pytest.approx(5 / 6, abs=0.02)


def test_a_new_critic_has_no_opinion() -> None:
    critic = Critic(SIZES, 8, generator=torch.Generator().manual_seed(0))
    hot = critic.one_hot(torch.tensor(ROWS))
    assert hot.sum(1).tolist() == [3.0] * len(ROWS)
    assert bool((critic.score(hot, torch.zeros(len(ROWS), dtype=torch.int64)) == 0).all())


def test_without_privacy_generated_rows_are_kept_in_the_step() -> None:
    """The reference steps along the mean of the real and the generated gradient, too."""
    rng = np.random.default_rng(1)
    rows = torch.from_numpy(rng.integers(0, 2, (40, 2, 3)))
    plan = plan_for(Ctgan, replace(TOY, population=40))
    critics = [Critic(SIZES, 8, generator=torch.Generator().manual_seed(4)) for _ in range(2)]
    real = critics[0].batch(rows, REAL, rng)
    fake = critics[0].batch(rows[:, :1].flip(0), FAKE, rng)
    trainer = trainer_of(
        critics[0],
        NonPrivatePlan(plan),
        clipping_norm=1.0,
        population=40,
        learning_rate=0.1,
        anchor_weight=1.0,
        entropy=SeededEntropy(0),
        anchored_always=True,
    )
    assert isinstance(trainer, ReferenceSgd)
    weights = torch.rand(40, 2, generator=torch.Generator().manual_seed(5))
    trainer.step(critics[0].loss, real, weights, anchor=fake)
    one_row = tuple(part.flatten(0, 1)[:, None] for part in real)
    plain = PlainSgd(
        critics[1],
        learning_rate=0.1,
        steps=trainer.event.steps,
        schedule="cosine",
        optimizer="adam",
    )
    scale = trainer.expected_units / 40
    whole = torch.cat([weights.reshape(-1, 1), torch.full((40, 1), scale)])
    plain.step(critics[1].loss, joined(one_row, fake), whole, divisor=2 * trainer.expected_units)
    for first, second in zip(critics[0].parameters(), critics[1].parameters(), strict=True):
        assert torch.allclose(first, second, atol=1e-6)
    # no matter how the batch is laid out, the score moved
    assert bool((critics[0].scored.weight != 0).all())
