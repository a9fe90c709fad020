"""A target follows its released pairs, as far as noise lets them be seen, and as strongly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpsynth.models import Feature
from dpsynth.models.generators import target_weights
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.target_weights import learn_targets
from dpsynth.models.marginals import MergedBins, Target

COLUMNS = 40
SIZES = (2,) * (COLUMNS + 1)  # the last one is the target
WIDTH = 2 * (COLUMNS + 1)
FEATURES = (*(Feature(f"c{j}", 2, 0) for j in range(COLUMNS)), Feature("ill", 2, 0, target=True))
BINS = [MergedBins(np.arange(2, dtype=np.uint16), np.full(2, 0.5)) for _ in SIZES]
# By how much a column of 1 adds to the log odds: as strong as the prior expects.
EFFECTS = 0.08 * np.random.default_rng(3).standard_normal(COLUMNS)
TRUE = float(np.sqrt((EFFECTS**2).sum()) / 2)


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_weights, "ROWS", 8_000)


def released(sd: float, seed: int = 0) -> Target:
    """Pairs of even columns with a target that follows from all of them, with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(2, size=(100_000, COLUMNS))
    chance = 1 / (1 + np.exp(-(rows - 0.5) @ EFFECTS))
    pairs, known = np.zeros((WIDTH, WIDTH)), np.full((WIDTH, WIDTH), np.inf)
    for j in range(COLUMNS):
        for bin_ in (0, 1):
            ill = float(chance[rows[:, j] == bin_].mean() / 2)
            pairs[2 * j + bin_, -2:] = np.array([0.5 - ill, ill]) + sd * rng.standard_normal(2)
    known[:-2, -2:] = sd
    return Target(SIZES, np.full(WIDTH, 0.5), np.full(WIDTH, 1e-4), pairs, known)


def network() -> Network:
    """A network of even and independent columns."""
    made = Network(Shape(SIZES, 0), generator=torch.Generator().manual_seed(0))
    made.start_at([np.full(2, 0.5)] * len(SIZES))
    return made


def learned(target: Target, features: tuple[Feature, ...] = FEATURES) -> Network:
    made = network()
    leaders = ((),) * len(SIZES)
    learn_targets(made, target, BINS, features, leaders, np.random.default_rng(1))
    return made


def effects(made: Network) -> np.ndarray:
    """The log odds of the target that a column adds when it is 1."""
    weights = made.skip.effective_weight().detach().numpy()[-2:, :-2]
    by_bin = (weights[1] - weights[0]).reshape(COLUMNS, 2)
    return np.asarray(by_bin[:, 1] - by_bin[:, 0])


def spread(made: Network) -> float:
    return float(np.sqrt((effects(made) ** 2).sum()) / 2)


def test_pairs_that_are_known_well_are_followed_by_all_columns() -> None:
    assert effects(learned(released(1e-4))) == pytest.approx(EFFECTS, abs=0.03)


def test_pairs_that_noise_hides_move_nothing() -> None:
    assert np.abs(effects(learned(released(0.2)))).max() < 0.02


def test_a_target_is_as_strong_as_what_was_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise makes the most likely weights too weak, and the learned ones are not."""
    noisy = [released(0.006, seed) for seed in range(4)]
    strong = np.mean([spread(learned(one)) for one in noisy])
    monkeypatch.setattr(target_weights, "MOST", 1.0)
    weak = np.mean([spread(learned(one)) for one in noisy[:2]])
    assert weak < 0.9 * TRUE and strong == pytest.approx(TRUE, rel=0.07)


def test_columns_that_are_no_targets_stay_as_they_were() -> None:
    before, after = network(), learned(released(1e-4))
    for name in ("skip.weight", "skip.bias"):
        kept = torch.equal(before.get_parameter(name)[:-2], after.get_parameter(name)[:-2])
        assert kept, name


@pytest.mark.parametrize("target_at", [None, 0])
def test_without_columns_before_a_target_there_is_nothing_to_learn(target_at: int | None) -> None:
    plain = [replace(feature, target=place == target_at) for place, feature in enumerate(FEATURES)]
    before, after = network(), learned(released(1e-4), tuple(plain))
    for name, array in before.named_parameters():
        assert torch.equal(array, after.get_parameter(name)), name


def test_pairs_that_were_not_measured_say_nothing() -> None:
    target = released(1e-4)
    known = target.pair_sd.copy()
    known[:2] = np.inf
    found = effects(learned(replace(target, pair_sd=known)))
    assert abs(found[0]) < 0.01 and found[1:] == pytest.approx(EFFECTS[1:], abs=0.03)
