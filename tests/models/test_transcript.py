"""An observer hears every release, changes none, and turns them into what they say of canaries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dpsynth.assessment.training_audit import PlantedRows, canaries, seen_by, trial
from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, Generator, Preset, spec_of
from dpsynth.models.auditing import Tight, Transcript, UnclippedTranscript
from dpsynth.models.auditing.transcript import CoinEvidence, _along, _inner
from dpsynth.models.dpsgd import Linear, MaskedLinear, UnitGradients, packs
from dpsynth.models.dpsgd.layers import Embedding
from dpsynth.models.generators import Autoregressive, Independent, Mixture, Tvae
from dpsynth.privacy import Entropy, ObservedPlan, PrivacyBudget, PrivacyPlan, SeededEntropy

ROOT = Path(__file__).parents[2]
DOMAIN = Domain((Feature("a", 3, 0), Feature("b", 4, 0), Feature("c", 5, 5, (1,) * 5)), 300, 2)
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-5)
FEW: dict[str, Any] = {"warm_steps": 2, "steps": 12, "mixture_steps": 5, "components": 8}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a dozen steps."""
    chosen = Preset.of

    def few(model: str, domain: Domain, budget: PrivacyBudget) -> Preset:
        settings = vars(chosen(model, domain, budget)) | FEW
        settings["settling_steps"] = min(5, settings["settling_steps"])
        return Preset(**settings)

    monkeypatch.setattr(Preset, "of", few)


def plan_of(generator: Generator) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))


def background(units: int = 300, seed: int = 1) -> Cohort:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, (units, 2)) for size in DOMAIN.sizes], axis=-1)
    mask = np.ones((units, 2), dtype=bool)
    mask[::2, 1] = False
    return Cohort(np.where(mask[:, :, None], codes, 0).astype(np.uint16), mask)


def beside(first: Cohort, second: Cohort) -> Cohort:
    return Cohort(
        np.concatenate([first.codes, second.codes]), np.concatenate([first.mask, second.mask])
    )


@pytest.mark.parametrize("kind", [Independent, Mixture, Autoregressive, Tvae])
def test_a_watched_fit_is_the_same_fit(kind: type[Generator]) -> None:
    cohort, generator = background(), kind(DOMAIN)
    plan = plan_of(generator)
    plain = kind(DOMAIN).fit(cohort, plan, SeededEntropy(7)).arrays()
    strangers = canaries(DOMAIN, 20, np.random.default_rng(0))
    heard = Transcript(seen_by(generator, strangers), seen_by(generator, cohort))
    watched = generator.fit(cohort, ObservedPlan(plan, heard), SeededEntropy(7)).arrays()  # type: ignore[arg-type]
    assert plain.keys() == watched.keys()
    # the observer asks `tvae` for gradients too, and latent noise is never drawn twice: its weights
    # have the same law, and other numbers
    same = ["bin_of", "shares"] if kind is Tvae else list(plain)
    assert all(np.array_equal(plain[name], watched[name]) for name in same)
    assert heard.counts.gram.any() and heard.steps.gram.any() == spec_of(kind.name).neural


@pytest.mark.parametrize("kind", [Transcript, UnclippedTranscript])
def test_steps_with_and_without_clipping_can_be_watched(kind: type[Transcript]) -> None:
    """The controls of every audit do this: an error here would end each of them."""
    generator, rng = Tight(DOMAIN), np.random.default_rng(3)
    strangers = canaries(DOMAIN, 20, rng)
    trial(
        generator, plan_of(generator), PlantedRows(background(), strangers), rng=rng, observer=kind
    )


class Silence(SeededEntropy):
    """No noise; sampling as ever."""

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        return np.zeros(size, dtype=np.int64)

    def normal(self, size: Any, dtype: Any = np.float64) -> Any:
        return np.zeros(size, dtype=dtype)


@pytest.mark.parametrize("kind", [Independent, Mixture])
def test_without_noise_counts_are_what_the_canaries_in_the_data_add(kind: type[Generator]) -> None:
    """b = G x, whatever the background is."""
    rng = np.random.default_rng(2)
    strangers = canaries(DOMAIN, 30, rng)
    included = rng.random(30) < 0.5
    within = Cohort(strangers.codes[included], strangers.mask[included])
    generator = kind(DOMAIN)
    heard = Transcript(*(seen_by(generator, one) for one in (strangers, background())))
    terms: Any = ObservedPlan(plan_of(generator), heard)
    generator.fit(beside(background(), within), terms, Silence(1))
    np.testing.assert_allclose(heard.counts.linear, heard.counts.gram @ included, rtol=1e-9)


def test_the_product_with_a_direction_is_that_of_the_gradient() -> None:
    """Against one backward pass for each row, through every kind of layer."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            seed = torch.Generator().manual_seed(1)
            self.table = Embedding(5, 3, generator=seed)
            self.first = Linear(3, 4, generator=seed)
            self.second = MaskedLinear([0, 0, 1, 2], [0, 1, 2], generator=seed)

        def loss(self, rows: torch.Tensor, activations: Any) -> torch.Tensor:
            hidden = torch.tanh(self.first(self.table(rows[:, 0], activations), activations))
            return (self.second(hidden, activations) ** 2).sum(dim=1, keepdim=True)

    from dpsynth.models.dpsgd.parameter_buffer import FlatParameters

    net = Net()
    flat = FlatParameters(net)
    rows = torch.tensor([[0], [4], [2], [4]])
    [pack] = packs(rows, torch.ones(4, 1), 100)
    found = UnitGradients.of(net.loss, pack)
    direction = torch.randn(len(flat.values), generator=torch.Generator().manual_seed(2))
    gradients = []
    for row in rows:
        [one] = packs(row[None], torch.ones(1, 1), 100)
        total = torch.zeros_like(flat.values)
        UnitGradients.of(net.loss, one).add_to(flat.views(total))
        gradients.append(total)
    each = torch.stack(gradients)
    direction = direction * (each.abs().sum(0) > 0)  # a mask keeps the others at zero
    before = flat.values.clone()

    class Trainer:
        pass

    trainer: Any = Trainer()
    trainer.flat = flat
    alone = torch.arange(len(each))
    torch.testing.assert_close(_along(trainer, found, direction, alone), each @ direction)
    torch.testing.assert_close(_inner(found, alone), each @ each.T)
    assert torch.equal(before, flat.values)
    several = torch.tensor([[0, 4, 2], [4, 0, 0]])  # the gradients of a unit's rows add up
    [pack] = packs(several, torch.tensor([[1, 1, 1], [1, 0, 0]]), 100)
    found, owners = UnitGradients.of(net.loss, pack), torch.tensor([0, 1, 1, 1])
    summed = torch.stack([each[3], each[:3].sum(dim=0)])
    torch.testing.assert_close(_along(trainer, found, direction, owners), summed @ direction)
    torch.testing.assert_close(_inner(found, owners), summed @ summed.T)


def test_a_scale_is_seen_only_where_it_is_plain() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((40, 60)) + 1.0
    gram = rows @ rows.T
    for scale, plain in ((1.0, False), (5.0, True)):
        included = rng.random(40) < 0.5
        noise = rows @ rng.standard_normal(60)
        found = CoinEvidence(scale * gram @ included + noise, gram).scale
        assert found == pytest.approx(scale, rel=0.5) if plain else found == 1.0
    assert CoinEvidence.of(5).scale == 1.0


def test_scores_tell_canaries_apart_that_share_cells() -> None:
    """Without noise all coins are known, although the canaries lie in a few dozen cells."""
    rng = np.random.default_rng(4)
    strangers = canaries(DOMAIN, 12, rng)
    included = np.arange(12) % 3 == 0
    within = Cohort(strangers.codes[included], strangers.mask[included])
    generator = Mixture(DOMAIN)
    heard = Transcript(*(seen_by(generator, one) for one in (strangers, background())))
    terms: Any = ObservedPlan(plan_of(generator), heard)
    generator.fit(beside(background(), within), terms, Silence(1))
    big = CoinEvidence(heard.counts.linear * 1e6, heard.counts.gram * 1e6)
    heard.counts = big
    scores = heard.scores()
    sure = np.abs(scores - 0.5) > 0.01  # two canaries in the same bins cannot be told apart
    assert sure.sum() >= 9 and (included[sure] == (scores[sure] > 0.5)).all()


def test_a_trial_plants_the_canaries_whose_coins_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    cohorts: list[Cohort] = []
    fit = Mixture.fit

    def spying(self: Mixture, cohort: Cohort, *rest: Any) -> Mixture:
        cohorts.append(cohort)
        return fit(self, cohort, *rest)

    monkeypatch.setattr(Mixture, "fit", spying)
    rng = np.random.default_rng(5)
    strangers = canaries(DOMAIN, 40, rng)
    source: Entropy = SeededEntropy(1)
    evidence = trial(
        Mixture(DOMAIN),
        plan_of(Mixture(DOMAIN)),
        PlantedRows(background(), strangers),
        rng=rng,
        entropy=source,
    )
    [cohort] = cohorts
    assert 5 < evidence.included.sum() < 35
    assert np.array_equal(cohort.codes[300:], strangers.codes[evidence.included])
    assert evidence.black.shape == evidence.white.shape == (40,)


def test_every_second_canary_has_all_its_rows_and_equal_ones() -> None:
    cohort = canaries(DOMAIN, 50, np.random.default_rng(1))
    assert cohort.mask[:, 0].all() and cohort.mask[1::2].all() and not cohort.mask[::2, 1].any()
    assert (cohort.codes[1::2, 0] == cohort.codes[1::2, 1]).all()
    assert (cohort.codes.max(axis=(0, 1)) < np.array(DOMAIN.sizes)).all()


def test_only_audits_watch() -> None:
    """A fit that is charged and kept is never told to anybody."""
    users = [
        path.name
        for path in [*(ROOT / "dpsynth").rglob("*.py"), *(ROOT / "models").rglob("*.py")]
        if re.search(r"\bObservedPlan\(", path.read_text())
    ]
    assert users == ["training_audit.py"]
