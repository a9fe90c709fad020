"""`tvae` of linked tables: one latent vector of a patient, in all her steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dpsynth.encoding import Histories
from dpsynth.models.histories.networks import TvaeHistories
from dpsynth.models.histories.networks.latent_network import LATENT, LatentNetworks
from dpsynth.models.histories.networks.latent_units import LatentUnits, without_padding
from dpsynth.models.histories.networks.training import Training
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps import StepSettings
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ...support.made_histories import domain_of, histories_of, hostile, with_patient
from ...support.short_training import shorten_gaps, shorten_networks

PATIENTS = 400
BUDGET = PrivacyBudget(epsilon=20.0, delta=1e-6)


@pytest.fixture(scope="module")
def fitted() -> Any:
    """A quick fit; with `tried`, everything that its private steps were given."""
    patch = pytest.MonkeyPatch()
    quick = HistorySettings(10, 20, 20, 1.0, 1.0, StepSettings(16, 20, 20, 1.0, 8))
    patch.setattr(HistorySettings, "of", lambda *_: quick)
    few = Training(share=0.3, sampling_rate=0.2, steps=5, learning_rate=0.01, anchor=1.0)
    patch.setattr(Training, "of", lambda *_: few)
    shorten_networks(patch)
    shorten_gaps(patch)
    generator = TvaeHistories(domain_of(PATIENTS))
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    generator.fit(histories_of(PATIENTS), plan, SeededEntropy(1))
    patch.undo()
    return generator


def units_of(fitted: Any, histories: Histories) -> LatentUnits:
    noise = np.random.default_rng(0)
    units: LatentUnits = fitted._units(histories, fitted._trained(), SeededEntropy(2), noise)
    return units


def networks_of(fitted: Any) -> LatentNetworks:
    tables = [model.network for _, model in fitted._trained()]
    seed = torch.Generator().manual_seed(5)
    found = LatentNetworks(tables, sum(fitted.binning.sizes), generator=seed)
    with torch.no_grad():
        for layer in (*found.decoders.out, found.decoders.prior, found.encode_out):
            layer.weight.normal_(generator=seed)
    return found


def test_what_is_a_patients_is_the_same_at_all_her_places(fitted: Any) -> None:
    (_, _, first, summary, noise), mask = units_of(fitted, histories_of(PATIENTS)).whole()
    several = mask.sum(dim=1) > 1
    assert several.any()
    assert (summary == summary[:, :1]).all() and (noise == noise[:, :1]).all()
    assert noise.shape[2] == LATENT and len(torch.unique(noise[:, 0, 0])) == PATIENTS
    assert torch.equal(first.sum(dim=1), mask[:, 0].float())
    row = sum(fitted.binning.sizes)
    columns = len(fitted.binning.sizes)
    steps = units_of(fitted, histories_of(PATIENTS)).widths[0]
    assert (summary[:, 0, :row].sum(dim=1) == columns).all()
    sums = summary[several, 0, row:].sum(dim=1)
    torch.testing.assert_close(sums, torch.full_like(sums, float(len(steps))))


def test_a_patients_row_and_mean_are_her_own(fitted: Any) -> None:
    """Whoever else is drawn with her."""
    few = hostile(10, False, seed=1)
    joined = units_of(fitted, with_patient(histories_of(60), few))
    among, alone = joined.batch(np.array([3, 60])), units_of(fitted, few).whole()
    torch.testing.assert_close(among[0][3][1, 0], alone[0][3][0, 0])


def test_the_loss_of_a_patient_is_her_evidence_lower_bound(fitted: Any) -> None:
    """By torch's own Gaussian laws, patient by patient."""
    network = networks_of(fitted)
    units = units_of(fitted, histories_of(PATIENTS))
    batch, mask = units.batch(units.with_a_step()[:20])
    found = (network.loss(batch, None) * mask).sum(dim=1)
    rows, weights, _, summary, noise = batch
    (table,) = network.networks
    for place in range(len(mask)):
        seen = summary[place, :1]
        law = network.encode_out(torch.tanh(network.encode_in(seen, None)), None)
        mean, spread = law[:, :LATENT], torch.exp(0.5 * law[:, LATENT:].clamp(-6, 6))
        prior = network.decoders.prior(seen[:, : network.decoders.row], None)
        wide = torch.exp(0.5 * prior[:, LATENT:].clamp(-6, 6))
        normal = torch.distributions.Normal
        posterior, before = normal(mean, spread), normal(prior[:, :LATENT], wide)
        total = torch.distributions.kl_divergence(posterior, before).sum()
        latent = mean + spread * noise[place, :1]
        pull = network.decoders.out[0](latent, None)
        for step in range(int(mask[place].sum())):
            cost = table.loss(rows[place, step][None, None].long(), None, pull)
            total = total + weights[place, step, 0] * cost[0, 0]
        assert float(found[place]) == pytest.approx(float(total), rel=1e-4)


def test_without_padding_the_mean_gradient_is_the_same(fitted: Any) -> None:
    network = networks_of(fitted)
    units = units_of(fitted, histories_of(PATIENTS))
    batch, mask = units.batch(units.with_a_step()[:20])
    assert not mask.all()
    mean = (network.loss(batch, None) * mask).sum() / len(mask)
    flat = network.loss(without_padding(batch, mask), None)
    assert float(flat.mean()) == pytest.approx(float(mean), rel=1e-5)


def test_the_latent_vector_makes_the_steps_of_a_patient_alike(fitted: Any) -> None:
    """It moves the same column of all her steps: with large weights, they hardly differ."""
    rng = np.random.default_rng(3)
    (layer,) = fitted.decoders.out
    before = layer.weight.clone(), layer.bias.clone()
    drawn = layer.weight.shape[0]
    layer.weight.data.zero_()
    layer.weight.data[drawn - 2 :, 0] = torch.tensor([-40.0, 40.0])  # the last column, of two bins
    rows = fitted.sample(2_000, rng).rows[1][0]
    later = rows.patients[1:] == rows.patients[:-1]
    last = rows.values[1:, 2][later]
    who = rows.patients[1:][later]
    means = np.bincount(who, last) / np.maximum(np.bincount(who), 1)
    assert 0.3 < last.mean() < 0.7
    alike = means[np.unique(who)]
    assert ((alike < 0.1) | (alike > 0.9)).mean() > 0.8
    layer.weight.data.copy_(before[0])


def test_a_generator_is_rebuilt_from_its_arrays(fitted: Any) -> None:
    rebuilt = TvaeHistories.restore(fitted.domain, fitted.config(), fitted.arrays())
    one, other = (each.sample(100, np.random.default_rng(4)) for each in (fitted, rebuilt))
    assert np.array_equal(one.baseline, other.baseline)
    for table, same in zip(one.rows, other.rows, strict=True):
        for rows, others in zip(table, same, strict=True):
            assert np.array_equal(rows.values, others.values)
            assert np.array_equal(rows.patients, others.patients)
    assert not any(name.startswith("latent.encode") for name in fitted.arrays())
