"""`autoregressive` learns a relation under differential privacy, by the network that it names.

All randomness is seeded: a test that passes once passes always. But for one fit with the settings
that users get, fits run with few steps: what is tested there does not depend on their number.
"""

from __future__ import annotations

import inspect
import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dpsynth.encoding.cohort import Cohort
from dpsynth.errors import InputError
from dpsynth.eval.fidelity.summary import mean_tvd, tvd
from dpsynth.models import training_settings
from dpsynth.models.base import Domain, Feature
from dpsynth.models.dpsgd import trainer
from dpsynth.models.generators import warm_started
from dpsynth.models.generators.autoregressive import Autoregressive
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.independent import Independent
from dpsynth.models.marginals import measurement
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


def toy_cohort(seed: int) -> Cohort:
    """2000 units; ``value`` lies within a few cells of 10 group + 5, or is missing; ``flag`` is
    a fair coin."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, UNITS, p=[0.4, 0.3, 0.2, 0.1])
    value = np.clip(np.rint(10 * group + 5 + rng.normal(0, 1.5, UNITS)), 0, 39)
    value[rng.random(UNITS) < 0.05] = 40
    codes = np.stack([group, value, rng.integers(0, 2, UNITS)], axis=-1)
    return Cohort(codes.astype(np.uint16)[:, None, :], np.ones((UNITS, 1), dtype=bool))


def plan_for(model: type[Autoregressive] | type[Independent], domain: Domain = TOY) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, model(domain).shares(BUDGET))


@pytest.fixture(scope="module")
def fitted() -> Autoregressive:
    """The settings of a user; only the batches of free rows are smaller, for the time it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm_started, "WARM_BATCH", 500)
        return Autoregressive(TOY).fit(toy_cohort(1), plan_for(Autoregressive), SeededEntropy(2))


def settle_for(monkeypatch: pytest.MonkeyPatch, **settings: int) -> None:
    """Replace settings of the network and its training, and make batches of free rows small."""
    shipped = training_settings.autoregressive_training
    monkeypatch.setattr(
        training_settings, "autoregressive_training", lambda *size: shipped(*size) | settings
    )
    monkeypatch.setattr(warm_started, "WARM_BATCH", 50)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network and a handful of steps."""
    settle_for(monkeypatch, masked=4, warm_steps=3, steps=7)


def coarse(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
    """Cut ``value`` into runs of four cells; missing keeps its own."""
    cut = codes.astype(np.int64)
    cut[:, 1] //= 4
    return cut


# The generator --------------------------------------------------------------------------------


def test_a_strong_relation_is_learned(fitted: Autoregressive) -> None:
    """Columns drawn on their own miss the relation; at epsilon 10 most of it must be there."""
    source = coarse(toy_cohort(1).codes[:, 0])
    alone = Independent(TOY).fit(toy_cohort(1), plan_for(Independent), SeededEntropy(2))
    drawn = coarse(fitted.sample(20_000, np.random.default_rng(3)))
    apart = coarse(alone.sample(20_000, np.random.default_rng(3)))
    assert tvd(source, apart, (0, 1)) > 0.6
    assert tvd(source, drawn, (0, 1)) < 0.3 * tvd(source, apart, (0, 1))
    assert mean_tvd(source, drawn, 2) < 0.3 * mean_tvd(source, apart, 2)


def test_columns_keep_their_distributions(fitted: Autoregressive) -> None:
    source = coarse(toy_cohort(1).codes[:, 0])
    assert mean_tvd(source, coarse(fitted.sample(20_000, np.random.default_rng(4))), 1) < 0.05


@pytest.mark.parametrize("even", [True, False])
def test_samples_are_codes_of_the_domain(fitted: Autoregressive, even: bool) -> None:
    drawn = fitted.sample(5000, np.random.default_rng(5), even=even)
    assert drawn.shape == (5000, 3) and drawn.dtype == np.uint16
    assert (drawn < np.array(TOY.sizes)).all()
    assert set(drawn[:, 0]) == {0, 1, 2, 3} and 40 in drawn[:, 1]


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_few_rows_can_be_drawn(fitted: Autoregressive, rows: int) -> None:
    assert fitted.sample(rows, np.random.default_rng(5)).shape == (rows, 3)


def test_even_rows_come_in_no_order(fitted: Autoregressive) -> None:
    """Rows that are drawn side by side must not lie side by side: 2000 pairs, 5 sd."""
    drawn = fitted.sample(2001, np.random.default_rng(6)).astype(float)
    for j in range(3):
        neighbours = np.corrcoef(drawn[1:, j], drawn[:-1, j])[0, 1]
        assert abs(neighbours) < 5 / np.sqrt(2000)


def test_the_same_stream_draws_the_same_rows(fitted: Autoregressive) -> None:
    first, second = (fitted.sample(500, np.random.default_rng(6)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != fitted.sample(500, np.random.default_rng(7))).any()


def test_restored_it_samples_bit_for_bit_the_same(fitted: Autoregressive) -> None:
    config = json.loads(json.dumps(fitted.config()))
    arrays = {name: array.copy() for name, array in fitted.arrays().items()}
    again = Autoregressive.restore(TOY, config, arrays)
    first, second = (model.sample(3000, np.random.default_rng(8)) for model in (fitted, again))
    np.testing.assert_array_equal(first, second)
    assert again.config() == fitted.config()
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_the_arrays_are_plain_finite_numbers(fitted: Autoregressive) -> None:
    for name, array in fitted.arrays().items():
        assert array.dtype.kind in "fu", name
        assert np.isfinite(array).all(), name
    assert fitted.arrays()["bin_of"].shape == fitted.arrays()["shares"].shape == (47,)


@pytest.mark.usefixtures("few_steps")
def test_the_plan_is_used_up_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One release of each set of histograms; as many steps as the event says, each with a draw."""
    plan, counted = plan_for(Autoregressive), {ONE_WAY: 0, PAIRS: 0, "steps": 0, "draws": 0}
    releases = {ONE_WAY: measurement.joint_histograms, PAIRS: measurement.chosen_histograms}

    class Counting(trainer.DpSgd):
        def sample_batch(self, units: int) -> npt.NDArray[np.int64]:
            counted["draws"] += 1
            assert units == UNITS
            return super().sample_batch(units)

        def step(self, *args: Any, **kwargs: Any) -> None:
            counted["steps"] += 1
            assert self.event == plan.event(STEPS)
            super().step(*args, **kwargs)

    def counting(name: str) -> Any:
        def release(*args: Any) -> Any:
            counted[name] += 1
            assert plan.event(name) in args
            return releases[name](*args)

        return release

    monkeypatch.setattr(trainer, "DpSgd", Counting)
    monkeypatch.setattr(measurement, "joint_histograms", counting(ONE_WAY))
    monkeypatch.setattr(measurement, "chosen_histograms", counting(PAIRS))
    told: list[tuple[str, float]] = []
    Autoregressive(TOY).fit(toy_cohort(1), plan, SeededEntropy(0), lambda *pair: told.append(pair))
    assert counted == {ONE_WAY: 1, PAIRS: 1, "steps": 7, "draws": 7}
    assert {event.name for event in plan.events} == {ONE_WAY, PAIRS, STEPS}
    parts = [part for stage, part in told if stage == "training"]
    assert parts == [step / 7 for step in range(1, 8)]
    assert all(0 <= part <= 1 for _, part in told)


def test_units_of_several_rows_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding carries codes that would be learned if they counted; the hidden column is left out.

    Units of three rows are in group 1, others in group 0; of the rows, 3/4 belong to group 1.
    """
    settle_for(monkeypatch, masked=0, warm_steps=600, steps=100)
    domain = replace(TOY, max_rows=3, population=600)
    many = np.arange(600) % 2 == 1
    codes = np.zeros((600, 3, 3), dtype=np.uint16)
    codes[many] = [1, 20, 1]
    mask = np.ones((600, 3), dtype=bool)
    mask[~many, 1:] = False
    codes[~mask] = [3, 39, 0]
    plan = PrivacyPlan.calibrate(BUDGET, Autoregressive(domain).shares(BUDGET))
    model = Autoregressive(domain).fit(Cohort(codes, mask), plan, SeededEntropy(10))
    drawn = model.sample(4000, np.random.default_rng(11))
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
    plan = plan_for(Autoregressive, domain)
    drawn = (
        Autoregressive(domain)
        .fit(nothing, plan, SeededEntropy(11))
        .sample(50, np.random.default_rng(0))
    )
    assert (drawn < np.array(TOY.sizes)).all()


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


def test_a_plan_of_another_model_is_refused() -> None:
    with pytest.raises(InputError, match="no event"):
        Autoregressive(TOY).fit(toy_cohort(1), plan_for(Independent), SeededEntropy(0))


# The preset -----------------------------------------------------------------------------------


def test_the_preset_is_a_function_of_public_facts() -> None:
    assert list(inspect.signature(Preset.of).parameters) == ["model", "domain", "budget"]
    assert list(inspect.signature(Autoregressive.__init__).parameters) == ["self", "domain"]
    assert list(inspect.signature(Autoregressive.shares).parameters) == ["self", "budget"]
    assert Preset.of("autoregressive", TOY, BUDGET) == Preset.of(
        "autoregressive", replace(TOY), replace(BUDGET)
    )


@pytest.mark.usefixtures("few_steps")
def test_the_preset_does_not_depend_on_the_rows() -> None:
    """Other rows, fewer of them: the same settings, of the same plan."""
    plan, other = plan_for(Autoregressive), toy_cohort(12)
    fewer = Cohort(other.codes[:300], other.mask[:300])
    for cohort in (toy_cohort(1), fewer):
        preset = Autoregressive(TOY).fit(cohort, plan, SeededEntropy(2)).preset_
        assert preset == Preset.of("autoregressive", TOY, BUDGET)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("population", [100, 20_000, 10**6])
@pytest.mark.parametrize("max_rows", [1, 5])
def test_shares_follow_the_preset(epsilon: float, population: int, max_rows: int) -> None:
    domain = replace(TOY, population=population, max_rows=max_rows)
    budget = PrivacyBudget(epsilon, 1e-6)
    model = Autoregressive(domain)
    preset = Preset.of("autoregressive", model.domain, budget)
    shares = {share.event.name: share for share in model.shares(budget)}
    assert list(shares) == [ONE_WAY, PAIRS, STEPS]
    assert shares[ONE_WAY].fraction == preset.one_way
    assert shares[STEPS].fraction == preset.training
    assert sum(share.fraction for share in shares.values()) == pytest.approx(1.0)
    steps = shares[STEPS].event
    assert isinstance(steps, PoissonSgd)
    assert (steps.sampling_rate, steps.steps) == (preset.sampling_rate, preset.steps)
    assert 0 < preset.sampling_rate < 1 and preset.steps >= 100 and preset.bins >= 2


# The network ----------------------------------------------------------------------------------

SMALL = Shape(bins=(2, 3, 2), masked=5)
NO_LEADERS: tuple[tuple[int, ...], ...] = ((), (), ())
LEADERS = ((), (0,), (1, 0))
ROWS = list(itertools.product(*(range(count) for count in SMALL.bins)))


def network_of(shape: Shape, seed: int = 1) -> Network:
    """A network with weights far from zero in every layer."""
    network = Network(shape, generator=torch.Generator().manual_seed(seed))
    rng = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))
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
    for row, share in law.items():
        found = (drawn == row).all(axis=1).mean()
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / rows) + 1e-5, row


def test_even_draws_are_closer_to_the_law_than_chance() -> None:
    network, rows = autoregressive(), 2000
    expected = np.exp([log_law(network)[row] for row in ROWS])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for even, seed in itertools.product((True, False), range(20)):
        drawn = network.draw(rows, np.random.default_rng(seed), leaders=LEADERS, even=even)
        found = [(drawn == row).all(axis=1).mean() for row in ROWS]
        errors[even].append(float(np.abs(np.array(found) - expected).sum()))
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
    for row, share in weighed.items():
        found, share = (drawn == row).all(axis=1).mean(), share / total
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / rows) + 1e-5, row


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
        found = (drawn == row).all(axis=1).mean()
        assert abs(found - by_hand) < 5 * np.sqrt(by_hand / 100_000), row


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
