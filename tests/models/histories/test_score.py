"""The score of a network's weights: a gradient at one point, in coordinates of a prior."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.models.dpsgd import PlainSgd
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.networks import scoring
from dpsynth.models.histories.networks.score import Score
from dpsynth.models.histories.networks.scoring import NoisyScore, learn
from dpsynth.models.histories.networks.step_networks import StepNetworks
from dpsynth.models.histories.steps import pair_weights
from dpsynth.models.marginals import MergedBins

from ...support.private_sums import one_private_step

SIZES, GIVEN, CELLS = (5, 3, 4, 2), 2, (5, 0, 4, 0)
PATIENTS = 6_000


def columns() -> list[MergedBins]:
    return [MergedBins(np.arange(k, dtype=np.uint16), np.full(k, 1 / k)) for k in SIZES]


def network(seed: int = 0, size: float = 0.5) -> Network:
    found = Network(Shape(SIZES, 0, GIVEN), generator=torch.Generator().manual_seed(seed))
    found.skip.weight.normal_(0.0, size, generator=torch.Generator().manual_seed(seed))
    return found


def scored(own: Network) -> Score:
    return Score.of(own, columns(), CELLS)


def rows_of(own: Network, number: int = PATIENTS, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    given = np.column_stack([rng.integers(0, k, number) for k in SIZES[:GIVEN]])
    return np.column_stack([given, own.draw_after(given, rng)])


def by_hand(own: Network, score: Score, rows: Tensor) -> Tensor:
    """The mean over rows of (y - p) x^T, in the score's coordinates."""
    hot = own.one_hot(rows)
    blocks = torch.split(own.logits(hot), list(SIZES[GIVEN:]), 1)
    expected = torch.cat([block.softmax(dim=1) for block in blocks], dim=1)
    gradient = (hot[:, own.before :] - expected).T @ hot / len(rows)
    return score.moves.mask * (score.drawn.T @ gradient @ score.root)


def test_the_root_is_that_of_the_prior_column_by_column() -> None:
    """Columns that are alike in nothing are not mixed: a mask would cut a part of both off."""
    score = scored(network())
    correlation = score.root @ score.root.T
    assert torch.allclose(torch.diagonal(correlation), torch.ones(sum(SIZES)), atol=1e-5)
    ends = np.cumsum([0, *SIZES])
    outside = torch.ones(sum(SIZES), sum(SIZES))
    for start, end in pairwise(ends):
        outside[start:end, start:end] = 0
    assert float((score.root.abs() * outside).sum()) == 0
    inner = score.root.T @ score.root
    assert torch.allclose(inner, torch.diag(score.spread), atol=1e-5)
    assert score.spread[0:5].max() > 2 > score.spread[5:8].max(), "neighbours go together"


def test_steps_add_up_the_gradient_at_one_point() -> None:
    own = network()
    score, rows = scored(own), torch.from_numpy(rows_of(network(seed=5), 300))
    expected = by_hand(own, score, rows)
    trainer = PlainSgd(score, learning_rate=1.0, steps=3, schedule="constant", optimizer="sgd")
    before = score.loss(rows[:, None], None)
    for _ in range(3):
        trainer.step(score.loss, rows[:, None], torch.ones(len(rows), 1))
    assert torch.allclose(score.loss(rows[:, None], None), before), "it stands where it stood"
    assert torch.allclose(before[:, 0], own.loss(rows[:, None], None)[:, 0], atol=1e-5)
    assert torch.allclose(score.moves.weight / 3, expected, atol=1e-6)
    noisy = NoisyScore.of(score, noise=0.2, steps=3, mass=0.5)
    assert noisy.weights == pytest.approx(expected.numpy() / 0.5, abs=1e-5)
    assert noisy.noise == pytest.approx(0.2 / 3**0.5 / 0.5)


def test_a_network_that_changes_leaves_its_score_alone() -> None:
    own = network()
    score, rows = scored(own), torch.from_numpy(rows_of(own, 50))[:, None]
    before = score.loss(rows, None)
    own.skip.weight.zero_()
    assert torch.equal(score.loss(rows, None), before)


@pytest.mark.parametrize("rows", [1, 7])
def test_a_patient_moves_the_sum_by_c(rows: int) -> None:
    """The engine's norms are those of the gradient in these coordinates: one, and many rows."""
    own = network()
    networks = StepNetworks([scored(own)])
    trainer = one_private_step(networks, 0.01)
    patient = torch.from_numpy(rows_of(network(seed=5), rows)).int()[None]
    weights = torch.full((1, rows, 1), rows**-0.5)
    moved = trainer.clipped_sum(networks.loss, (patient, weights), torch.ones(1, rows))
    assert float(moved.norm()) == pytest.approx(0.01, rel=1e-3)


def learned(noise: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    """How far draws are from those of a truth, before and after a score with so much noise."""
    for module, name, value in (
        (scoring, "STEPS", 400),
        (scoring, "RATE", 0.05),
        (pair_weights, "BATCH", 300),
    ):
        monkeypatch.setattr(module, name, value)
    truth, own = network(seed=5), network(size=0.0)
    own.skip.bias.zero_()
    score, rows = scored(own), torch.from_numpy(rows_of(truth))
    exact = by_hand(own, score, rows)
    rng = np.random.default_rng(3)
    weights = exact.numpy() + noise * rng.standard_normal(tuple(exact.shape))
    hot = own.one_hot(rows)[:, own.before :].mean(dim=0)
    even = torch.cat([torch.full((k,), 1 / k) for k in SIZES[GIVEN:]])
    bias = (score.drawn.T @ (hot - even)).numpy() + noise * rng.standard_normal(len(hot))
    noisy = NoisyScore(weights * score.moves.mask.numpy(), bias, np.zeros((0, 0)), noise)
    apart = [distance(own, truth)]
    learn(own, score, noisy, lambda: rows_of(own, seed=4), rng)
    return apart[0], distance(own, truth)


def distance(own: Network, truth: Network) -> float:
    """The mean total variation distance of what is drawn last, by what is known."""
    rows = torch.from_numpy(rows_of(truth, 2_000, seed=9))
    first = own.before, own.before + SIZES[2]
    laws = []
    for one in (own, truth):
        start = first[0] - one.before
        laws.append(one.logits(one.one_hot(rows))[:, start : start + SIZES[2]].softmax(dim=1))
    return float((laws[0] - laws[1]).abs().sum(dim=1).mean() / 2)


def test_a_clear_score_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = learned(1e-4, monkeypatch)
    assert before > 0.2 and after < 0.06


def test_noise_alone_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = learned(0.5, monkeypatch)
    assert after == pytest.approx(before, abs=0.05)
