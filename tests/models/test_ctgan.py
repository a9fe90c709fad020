"""`ctgan` learns a relation under differential privacy, and its parts are what they say.

All randomness is seeded: a test that passes once passes always. Fits run with few steps where what
is tested does not depend on their number.
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from dpsynth.encoding.cohort import Cohort
from dpsynth.errors import InputError
from dpsynth.eval.fidelity.summary import mean_tvd, tvd
from dpsynth.models import training_settings
from dpsynth.models.base import Domain, Feature
from dpsynth.models.dpsgd import trainer as training
from dpsynth.models.dpsgd.optimizer import PlainSgd
from dpsynth.models.dpsgd.trainer import ReferenceSgd
from dpsynth.models.generators import ctgan, ctgan_trainer
from dpsynth.models.generators.ctgan import Ctgan
from dpsynth.models.generators.ctgan_critic import FAKE, REAL, Critic, crossed, joined
from dpsynth.models.generators.ctgan_distance import MarginalDistance
from dpsynth.models.generators.ctgan_network import Ask, GeneratorNetwork
from dpsynth.models.generators.independent import Independent
from dpsynth.models.marginals import measurement
from dpsynth.models.marginals.product_mixture import Products, Target
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS, Preset
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan
from dpsynth.privacy.plan_variants import NonPrivatePlan

UNITS = 2000
TOY = Domain(
    (Feature("group", 4, 0), Feature("value", 41, 40), Feature("flag", 2, 0)),
    population=UNITS,
    max_rows=1,
)
BUDGET = PrivacyBudget(epsilon=10.0, delta=1e-6)


def toy_cohort(seed: int) -> Cohort:
    """2000 units; ``value`` lies within a few cells of 10 group + 5, or is missing; ``flag`` is
    a fair coin."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, UNITS, p=[0.4, 0.3, 0.2, 0.1])
    value = np.clip(np.rint(10 * group + 5 + rng.normal(0, 1.5, UNITS)), 0, 39)
    value[rng.random(UNITS) < 0.05] = 40
    codes = np.stack([group, value, rng.integers(0, 2, UNITS)], axis=-1)
    return Cohort(codes.astype(np.uint16)[:, None, :], np.ones((UNITS, 1), dtype=bool))


def plan_for(model: type[Ctgan] | type[Independent], domain: Domain = TOY) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, model(domain).shares(BUDGET))


def make_batches_small(patch: pytest.MonkeyPatch, rows: int) -> None:
    patch.setattr(ctgan, "WARM_BATCH", rows)
    patch.setattr(ctgan, "FAKES", rows)
    patch.setattr(ctgan_trainer, "BATCH", rows)


@pytest.fixture(scope="module")
def fitted() -> Ctgan:
    """The settings of a user; only the batches of free rows are smaller, for the time it takes."""
    with pytest.MonkeyPatch.context() as patch:
        make_batches_small(patch, 300)
        return Ctgan(TOY).fit(toy_cohort(1), plan_for(Ctgan), SeededEntropy(2))


def settle_for(monkeypatch: pytest.MonkeyPatch, **settings: int) -> None:
    """Replace settings of the training, and make batches of free rows small."""
    shipped = training_settings.adversarial_training
    monkeypatch.setattr(
        training_settings, "adversarial_training", lambda *size: shipped(*size) | settings
    )
    make_batches_small(monkeypatch, 80)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network and a handful of steps."""
    settle_for(monkeypatch, hidden=8, latent=2, warm_steps=3, steps=7, rounds=2)


def coarse(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
    """Cut ``value`` into runs of four cells; missing keeps its own."""
    cut = codes.astype(np.int64)
    cut[:, 1] //= 4
    return cut


# The generator --------------------------------------------------------------------------------


def test_a_strong_relation_is_learned(fitted: Ctgan) -> None:
    """Columns drawn on their own miss the relation; at epsilon 10 most of it must be there."""
    source = coarse(toy_cohort(1).codes[:, 0])
    alone = Independent(TOY).fit(toy_cohort(1), plan_for(Independent), SeededEntropy(2))
    drawn = coarse(fitted.sample(20_000, np.random.default_rng(3)))
    apart = coarse(alone.sample(20_000, np.random.default_rng(3)))
    assert tvd(source, apart, (0, 1)) > 0.6
    assert tvd(source, drawn, (0, 1)) < 0.3 * tvd(source, apart, (0, 1))
    assert mean_tvd(source, drawn, 2) < 0.3 * mean_tvd(source, apart, 2)


def test_columns_keep_their_distributions(fitted: Ctgan) -> None:
    source = coarse(toy_cohort(1).codes[:, 0])
    assert mean_tvd(source, coarse(fitted.sample(20_000, np.random.default_rng(4))), 1) < 0.05


def test_training_does_not_undo_the_start(fitted: Ctgan) -> None:
    """A noisy critic must not pull the generator away from the pairs that are known."""
    source = coarse(toy_cohort(1).codes[:, 0])
    start = coarse(fitted.start_.sample(20_000, np.random.default_rng(4)))
    drawn = coarse(fitted.sample(20_000, np.random.default_rng(4)))
    assert mean_tvd(source, drawn, 2) < 1.1 * mean_tvd(source, start, 2) + 0.005


@pytest.mark.parametrize("even", [True, False])
def test_samples_are_codes_of_the_domain(fitted: Ctgan, even: bool) -> None:
    drawn = fitted.sample(5000, np.random.default_rng(5), even=even)
    assert drawn.shape == (5000, 3) and drawn.dtype == np.uint16
    assert (drawn < np.array(TOY.sizes)).all()
    assert set(drawn[:, 0]) == {0, 1, 2, 3} and 40 in drawn[:, 1]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_few_rows_can_be_drawn(fitted: Ctgan, rows: int, even: bool) -> None:
    assert fitted.sample(rows, np.random.default_rng(5), even=even).shape == (rows, 3)


def test_even_rows_come_in_no_order(fitted: Ctgan) -> None:
    """Rows that are drawn side by side must not lie side by side: 2000 pairs, 5 sd."""
    drawn = fitted.sample(2001, np.random.default_rng(6)).astype(float)
    for j in range(3):
        neighbours = np.corrcoef(drawn[1:, j], drawn[:-1, j])[0, 1]
        assert abs(neighbours) < 5 / np.sqrt(2000)


def test_the_same_stream_draws_the_same_rows(fitted: Ctgan) -> None:
    first, second = (fitted.sample(500, np.random.default_rng(6)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != fitted.sample(500, np.random.default_rng(7))).any()


def test_restored_it_samples_bit_for_bit_the_same(fitted: Ctgan) -> None:
    config = json.loads(json.dumps(fitted.config()))
    arrays = {name: array.copy() for name, array in fitted.arrays().items()}
    again = Ctgan.restore(TOY, config, arrays)
    first, second = (model.sample(3000, np.random.default_rng(8)) for model in (fitted, again))
    np.testing.assert_array_equal(first, second)
    assert again.config() == fitted.config()
    assert again.arrays().keys() == arrays.keys()
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_the_arrays_are_plain_finite_numbers_and_hold_no_critic(fitted: Ctgan) -> None:
    for name, array in fitted.arrays().items():
        assert array.dtype.kind in "fu", name
        assert np.isfinite(array).all(), name
    assert {name.split(".")[0] for name in fitted.arrays()} == {
        *("residual", "weights", "tables", "bin_of", "shares")
    }
    assert fitted.arrays()["bin_of"].shape == fitted.arrays()["shares"].shape == (47,)


@pytest.mark.usefixtures("few_steps")
def test_the_plan_is_used_up_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One release of each set of histograms; as many steps as the event says, each with a draw."""
    plan, counted = plan_for(Ctgan), {ONE_WAY: 0, PAIRS: 0, "steps": 0, "draws": 0, "pupil": 0}
    releases = {ONE_WAY: measurement.joint_histograms, PAIRS: measurement.chosen_histograms}

    class Counting(training.DpSgd):
        def sample_batch(self, units: int) -> npt.NDArray[np.int64]:
            counted["draws"] += 1
            assert units == UNITS
            return super().sample_batch(units)

        def step(self, *args: Any, **kwargs: Any) -> None:
            counted["steps"] += 1
            assert self.event == plan.event(STEPS)
            super().step(*args, **kwargs)

    class Learning(ctgan_trainer.GeneratorTrainer):
        def step(self) -> None:
            counted["pupil"] += 1
            super().step()

    def counting(name: str) -> Any:
        def release(*args: Any) -> Any:
            counted[name] += 1
            assert plan.event(name) in args
            return releases[name](*args)

        return release

    monkeypatch.setattr(training, "DpSgd", Counting)
    monkeypatch.setattr(ctgan, "GeneratorTrainer", Learning)
    monkeypatch.setattr(measurement, "joint_histograms", counting(ONE_WAY))
    monkeypatch.setattr(measurement, "chosen_histograms", counting(PAIRS))
    told: list[tuple[str, float]] = []
    Ctgan(TOY).fit(toy_cohort(1), plan, SeededEntropy(0), lambda *pair: told.append(pair))
    assert counted == {
        ONE_WAY: 1,
        PAIRS: 1,
        "steps": 7,
        "draws": 7,
        "pupil": 3 * ctgan_trainer.GENERATOR_STEPS,
    }
    assert {event.name for event in plan.events} == {ONE_WAY, PAIRS, STEPS}
    parts = [part for stage, part in told if stage == "training"]
    assert parts == [step / 7 for step in range(1, 8)]
    assert all(0 <= part <= 1 for _, part in told)


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


def test_units_of_several_rows_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding carries codes that would be learned if they counted; the hidden column is left out.

    Units of three rows are in group 1, others in group 0; of the rows, 3/4 belong to group 1.
    """
    settle_for(monkeypatch, warm_steps=50, steps=100)
    domain = replace(TOY, max_rows=3, population=600)
    many = np.arange(600) % 2 == 1
    codes = np.zeros((600, 3, 3), dtype=np.uint16)
    codes[many] = [1, 20, 1]
    mask = np.ones((600, 3), dtype=bool)
    mask[~many, 1:] = False
    codes[~mask] = [3, 39, 0]
    plan = PrivacyPlan.calibrate(BUDGET, Ctgan(domain).shares(BUDGET))
    model = Ctgan(domain).fit(Cohort(codes, mask), plan, SeededEntropy(10))
    for even in (True, False):
        drawn = model.sample(4000, np.random.default_rng(11), even=even)
        assert drawn.shape == (4000, 3) and (drawn < np.array(domain.sizes)).all()
        assert (drawn[:, 0] == 1).mean() == pytest.approx(0.75, abs=0.06)
        assert (drawn[:, 0] == 3).mean() < 0.03
        assert ((drawn[:, 0] == 1) == (drawn[:, 2] == 1)).mean() > 0.9


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_fit_of_nothing_ends_like_any_other(max_rows: int) -> None:
    """An empty cohort must not tell itself apart by failing."""
    domain = replace(TOY, max_rows=max_rows)
    nothing = Cohort(
        np.zeros((0, max_rows, 3), dtype=np.uint16), np.zeros((0, max_rows), dtype=bool)
    )
    plan = plan_for(Ctgan, domain)
    drawn = Ctgan(domain).fit(nothing, plan, SeededEntropy(11)).sample(50, np.random.default_rng(0))
    assert (drawn < np.array(TOY.sizes)).all()


@pytest.mark.usefixtures("few_steps")
def test_a_fit_without_privacy_runs_to_its_end() -> None:
    reference = Ctgan(TOY).fit(toy_cohort(1), NonPrivatePlan(plan_for(Ctgan)), SeededEntropy(1))
    assert (reference.sample(50, np.random.default_rng(0)) < np.array(TOY.sizes)).all()


def test_a_plan_of_another_model_is_refused() -> None:
    with pytest.raises(InputError, match="no event"):
        Ctgan(TOY).fit(toy_cohort(1), plan_for(Independent), SeededEntropy(0))


@pytest.mark.usefixtures("few_steps")
def test_the_preset_does_not_depend_on_the_rows() -> None:
    """Other rows, fewer of them: the same settings, of the same plan."""
    plan, other = plan_for(Ctgan), toy_cohort(12)
    fewer = Cohort(other.codes[:300], other.mask[:300])
    for cohort in (toy_cohort(1), fewer):
        preset = Ctgan(TOY).fit(cohort, plan, SeededEntropy(2)).preset_
        assert preset == Preset.of("ctgan", TOY, BUDGET)
    assert list(inspect.signature(Ctgan.shares).parameters) == ["self", "budget"]


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
    for row, share in law.items():
        found = (drawn == row).all(axis=1).mean()
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / rows) + 1e-5, row


def test_even_draws_are_closer_to_the_law_than_chance() -> None:
    mixture = products()
    network = residual(mixture)
    expected = np.array([law_of(mixture)[row] for row in ROWS])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for even, seed in itertools.product((True, False), range(20)):
        drawn = network.draw(mixture, 2000, np.random.default_rng(seed), even=even)
        found = [(drawn == row).all(axis=1).mean() for row in ROWS]
        errors[even].append(float(np.abs(found - expected).sum()))
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
    found = law_of_generator(network, mixture.tilted(0, factors))
    assert found == pytest.approx({row: w / total for row, w in weighed.items()}, abs=1e-6)


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
    trainer = training.trainer_of(
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
