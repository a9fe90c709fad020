"""`autoregressive`, `tvae` and `ctgan` learn a relation under differential privacy.

All randomness is seeded: a test that passes once passes always. Except for one fit of each with the
settings that users get, fits run with few steps: what is tested there does not depend on their
number.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.eval.fidelity import mean_tvd
from dpsynth.eval.fidelity.summary import tvd
from dpsynth.models import Preset
from dpsynth.models.dpsgd import trainer
from dpsynth.models.generators import Autoregressive, Ctgan, Independent, Tvae, ctgan
from dpsynth.models.generators import ctgan as adversarial_trainer
from dpsynth.models.marginals import measurement
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS
from dpsynth.privacy import PoissonSgd, PrivacyBudget, SeededEntropy

from ..support.short_training import shorten_mixture
from ..support.toy_generators import (
    BUDGET,
    FEW_STEPS,
    TOY,
    UNITS,
    coarse,
    make_batches_small,
    plan_for,
    settle_for,
    toy_cohort,
)

every_kind = pytest.mark.parametrize("kind", [Autoregressive, Tvae, Ctgan])


@cache
def fit_once(kind: type[Any]) -> Any:
    """The settings of a user; only the batches of free rows are smaller, for the time they take."""
    with pytest.MonkeyPatch.context() as patch:
        make_batches_small(patch, {Autoregressive: 500, Tvae: 250, Ctgan: 300}[kind])
        return kind(TOY).fit(toy_cohort(1), plan_for(kind), SeededEntropy(2))


@cache
def fit_briefly(kind: type[Any]) -> Any:
    """A small network after a handful of steps: whole, but it has not learned much."""
    with pytest.MonkeyPatch.context() as patch:
        settle_for(patch, kind, **FEW_STEPS[kind])
        shorten_mixture(patch)
        return kind(TOY).fit(toy_cohort(1), plan_for(kind), SeededEntropy(2))


@pytest.fixture(params=[Autoregressive, Tvae, Ctgan])
def fitted(request: pytest.FixtureRequest) -> Any:
    return fit_briefly(request.param)


@pytest.fixture
def few_steps(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network, a small mixture, and a handful of steps."""
    settle_for(monkeypatch, kind, **FEW_STEPS[kind])
    shorten_mixture(monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [Autoregressive, *(pytest.param(kind, marks=pytest.mark.long) for kind in (Tvae, Ctgan))],
)
def test_a_strong_relation_is_learned(kind: type[Any]) -> None:
    """Columns drawn on their own miss the relation; at epsilon 10 most of it must be there."""
    fitted = fit_once(kind)
    source = coarse(toy_cohort(1).codes[:, 0])
    alone = Independent(TOY).fit(toy_cohort(1), plan_for(Independent), SeededEntropy(2))
    drawn = coarse(fitted.sample(20_000, np.random.default_rng(3)))
    apart = coarse(alone.sample(20_000, np.random.default_rng(3)))
    assert tvd(source, apart, (0, 1)) > 0.6
    assert tvd(source, drawn, (0, 1)) < 0.25
    assert max(tvd(source, drawn, (j,)) for j in range(3)) < 0.1
    assert tvd(source, drawn, (0, 1)) < 0.3 * tvd(source, apart, (0, 1))
    assert mean_tvd(source, drawn, 2) < 0.3 * mean_tvd(source, apart, 2)
    assert mean_tvd(source, drawn, 1) < 0.05


@pytest.mark.long
def test_training_does_not_undo_the_start() -> None:
    """A noisy critic must not pull the generator away from the pairs that are known."""
    fitted = fit_once(Ctgan)
    source = coarse(toy_cohort(1).codes[:, 0])
    start = coarse(fitted.start_.sample(20_000, np.random.default_rng(4)))
    drawn = coarse(fitted.sample(20_000, np.random.default_rng(4)))
    assert mean_tvd(source, drawn, 2) < 1.1 * mean_tvd(source, start, 2) + 0.005


@pytest.mark.parametrize("even", [True, False])
def test_samples_are_codes_of_the_domain(fitted: Any, even: bool) -> None:
    drawn = fitted.sample(5000, np.random.default_rng(5), even=even)
    assert drawn.shape == (5000, 3) and drawn.dtype == np.uint16
    assert (drawn < np.array(TOY.sizes)).all()
    assert set(drawn[:, 0]) == {0, 1, 2, 3} and 40 in drawn[:, 1]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_few_rows_can_be_drawn(fitted: Any, rows: int, even: bool) -> None:
    assert fitted.sample(rows, np.random.default_rng(5), even=even).shape == (rows, 3)


def test_even_rows_come_in_no_order(fitted: Any) -> None:
    """Rows that are drawn side by side must not lie side by side: 2000 pairs, 5 sd."""
    drawn = fitted.sample(2001, np.random.default_rng(6)).astype(float)
    for j in range(3):
        neighbours = np.corrcoef(drawn[1:, j], drawn[:-1, j])[0, 1]
        assert abs(neighbours) < 5 / np.sqrt(2000)


def test_the_same_stream_draws_the_same_rows(fitted: Any) -> None:
    first, second = (fitted.sample(500, np.random.default_rng(6)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != fitted.sample(500, np.random.default_rng(7))).any()


def test_restored_it_samples_bit_for_bit_the_same(fitted: Any) -> None:
    config = json.loads(json.dumps(fitted.config()))
    arrays = {name: array.copy() for name, array in fitted.arrays().items()}
    again = type(fitted).restore(TOY, config, arrays)
    first, second = (model.sample(3000, np.random.default_rng(8)) for model in (fitted, again))
    np.testing.assert_array_equal(first, second)
    assert again.config() == fitted.config()
    assert again.arrays().keys() == arrays.keys()
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_the_arrays_are_plain_finite_numbers(fitted: Any) -> None:
    """`ctgan` does not keep its critic."""
    arrays = fitted.arrays()
    for name, array in arrays.items():
        assert array.dtype.kind in "fu", name
        assert np.isfinite(array).all(), name
    assert arrays["bin_of"].shape == arrays["shares"].shape == (47,)
    if isinstance(fitted, Ctgan):
        parts = {"residual", "weights", "tables", "bin_of", "shares", "within", "thresholds"}
        assert {name.split(".")[0] for name in arrays} == parts | {"fitness", "measured", "units"}


@pytest.mark.parametrize("width", ["latent", "hidden"])
def test_settings_without_a_latent_path_are_another_generators(width: str) -> None:
    fitted = fit_briefly(Tvae)
    config = json.loads(json.dumps(fitted.config()))
    config["preset"][width] = 0
    with pytest.raises(ValueError, match="latent vector and hidden layers"):
        Tvae.restore(TOY, config, fitted.arrays())


@every_kind
@pytest.mark.usefixtures("few_steps")
def test_the_plan_is_used_up_exactly(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One release of each set of histograms; as many steps as the event says, each with a draw."""
    plan, counted = plan_for(kind), {ONE_WAY: 0, PAIRS: 0, "steps": 0, "draws": 0, "turns": 0}
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

    class Learning(adversarial_trainer.GeneratorTrainer):
        def step(self) -> None:
            counted["turns"] += 1
            super().step()

    def counting(name: str) -> Any:
        def release(*args: Any) -> Any:
            counted[name] += 1
            assert plan.event(name) in args
            return releases[name](*args)

        return release

    monkeypatch.setattr(trainer, "DpSgd", Counting)
    monkeypatch.setattr(ctgan, "GeneratorTrainer", Learning)
    monkeypatch.setattr(measurement, "joint_histograms", counting(ONE_WAY))
    monkeypatch.setattr(measurement, "chosen_histograms", counting(PAIRS))
    stages: list[tuple[str, float]] = []
    kind(TOY).fit(toy_cohort(1), plan, SeededEntropy(0), lambda *pair: stages.append(pair))
    turns = 3 * adversarial_trainer.GENERATOR_STEPS if kind is Ctgan else 0
    assert counted == {ONE_WAY: 1, PAIRS: 1, "steps": 7, "draws": 7, "turns": turns}
    assert {event.name for event in plan.events} == {ONE_WAY, PAIRS, STEPS}
    parts = [part for stage, part in stages if stage == "training"]
    assert parts == [step / 7 for step in range(1, 8)]
    assert all(0 <= part <= 1 for _, part in stages)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Autoregressive, {"masked": 0, "warm_steps": 600, "steps": 100}),
        pytest.param(
            Tvae,
            {"hidden": 32, "latent": 4, "warm_steps": 800, "steps": 100, "settling_steps": 50},
            marks=pytest.mark.long,
        ),
        pytest.param(Ctgan, {"warm_steps": 50, "steps": 100}, marks=pytest.mark.long),
    ],
)
def test_units_of_several_rows_are_learned_from(
    kind: type[Any], settings: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padding carries codes that would be learned if they counted; the hidden column is left out.

    Units of three rows are in group 1, others in group 0; of the rows, 3/4 belong to group 1. So
    the latent vector of `tvae` must reach the hidden column, whose weights must reach the others.
    """
    settle_for(monkeypatch, kind, **settings)
    domain = replace(TOY, max_rows=3, population=600)
    many = np.arange(600) % 2 == 1
    codes = np.zeros((600, 3, 3), dtype=np.uint16)
    codes[many] = [1, 20, 1]
    mask = np.ones((600, 3), dtype=bool)
    mask[~many, 1:] = False
    codes[~mask] = [3, 39, 0]
    model = kind(domain).fit(Cohort(codes, mask), plan_for(kind, domain), SeededEntropy(10))
    for even in (True, False) if kind is Ctgan else (True,):
        drawn = model.sample(4000, np.random.default_rng(11), even=even)
        assert drawn.shape == (4000, 3) and (drawn < np.array(domain.sizes)).all()
        assert (drawn[:, 0] == 1).mean() == pytest.approx(0.75, abs=0.06)
        assert (drawn[:, 0] == 3).mean() < (0.04 if kind is Tvae else 0.03)
        assert ((drawn[:, 0] == 1) == (drawn[:, 2] == 1)).mean() > 0.9


@every_kind
@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_fit_of_nothing_ends_like_any_other(kind: type[Any], max_rows: int) -> None:
    """An empty cohort must not tell itself apart by failing."""
    domain = replace(TOY, max_rows=max_rows)
    codes = np.zeros((0, max_rows, 3), dtype=np.uint16)
    nothing = Cohort(codes, np.zeros((0, max_rows), dtype=bool))
    model = kind(domain).fit(nothing, plan_for(kind, domain), SeededEntropy(11))
    assert (model.sample(50, np.random.default_rng(0)) < np.array(TOY.sizes)).all()


@every_kind
def test_a_plan_of_another_model_is_refused(kind: type[Any]) -> None:
    with pytest.raises(InputError, match="no event"):
        kind(TOY).fit(toy_cohort(1), plan_for(Independent), SeededEntropy(0))


@every_kind
@pytest.mark.usefixtures("few_steps")
def test_the_preset_does_not_depend_on_the_rows(kind: type[Any]) -> None:
    """Other rows, fewer of them: the same settings, of the same plan."""
    plan, other = plan_for(kind), toy_cohort(12)
    fewer = Cohort(other.codes[:300], other.mask[:300])
    for cohort in (toy_cohort(1), fewer):
        preset = kind(TOY).fit(cohort, plan, SeededEntropy(2)).preset_
        assert preset == Preset.of(kind.name, TOY, BUDGET)
    assert list(inspect.signature(kind.shares).parameters) == ["self", "budget"]


@every_kind
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("population", [100, 20_000, 10**6])
@pytest.mark.parametrize("max_rows", [1, 5])
def test_shares_follow_the_preset(
    kind: type[Any], epsilon: float, population: int, max_rows: int
) -> None:
    domain = replace(TOY, population=population, max_rows=max_rows)
    budget = PrivacyBudget(epsilon, 1e-6)
    model = kind(domain)
    preset = Preset.of(kind.name, model.domain, budget)
    shares = {share.event.name: share for share in model.shares(budget)}
    assert list(shares) == [ONE_WAY, PAIRS, STEPS]
    assert shares[ONE_WAY].fraction == preset.one_way
    assert shares[STEPS].fraction == preset.training
    assert sum(share.fraction for share in shares.values()) == pytest.approx(1.0)
    steps = shares[STEPS].event
    assert isinstance(steps, PoissonSgd)
    assert (steps.sampling_rate, steps.steps) == (preset.sampling_rate, preset.steps)
    assert 0 < preset.sampling_rate < 1 and preset.steps >= 100 and preset.bins >= 2
    assert kind is not Tvae or (preset.latent > 0 and preset.hidden > 0)
