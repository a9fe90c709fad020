"""P20, P22 for histories: a patient is clipped once, with her row and her steps of all tables.

The sum of a private step of the networks of linked tables is taken with and without one patient of
as many rows as there may be, in two tables. Broken twins: each step is clipped on its own; each
table is, or the row of the patient; the first steps are kept and not random ones; a step weighs as
much as a patient.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.dpsgd.unit_gradients import check_units_apart, packs
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories import HistoryDomain
from dpsynth.models.histories.networks.latent_network import LatentNetworks
from dpsynth.models.histories.networks.latent_units import LatentUnits
from dpsynth.models.histories.networks.patient_units import KEPT, PatientUnits
from dpsynth.models.histories.networks.step_networks import StepNetworks
from dpsynth.models.histories.settings import empty_step_table
from dpsynth.models.histories.steps.gap_factors import GapFactors
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.marginals import MergedBins, Products
from dpsynth.privacy import SeededEntropy

from ..support.made_histories import domain_of, histories_of, hostile, with_patient
from ..support.private_steps import private

C = 0.01
PATIENTS = 60


def two_tables() -> HistoryDomain:
    """The made-up tables with their visits twice."""
    domain = domain_of(PATIENTS)
    visits = domain.tables[1]
    return replace(domain, tables=(visits, replace(visits, name="stays")))


def both(histories: Histories) -> Histories:
    visits = histories.rows[1]
    return replace(histories, rows=(visits, visits))


def models_of(domain: HistoryDomain) -> list[tuple[int, StepModel]]:
    """Each table's steps as they are before anything is learned: a bin for each code."""
    models = []
    for place, table in enumerate(domain.tables):
        steps = replace(empty_step_table(domain, table, 0), conditions=())
        bins = tuple(
            MergedBins(np.arange(feature.size), np.full(feature.size, 1 / feature.size))
            for feature in steps.features
        )
        sizes = tuple(column.count for column in bins)
        tables = np.concatenate([np.full(size, 1 / size) for size in sizes])[None]
        products = Products(sizes, np.ones(1), tables.astype(np.float32))
        shape = Shape(sizes, 8, steps.drawn)
        network = Network(shape, generator=torch.Generator().manual_seed(place))
        with torch.no_grad():
            network.masked_out.weight.normal_(generator=torch.Generator().manual_seed(place))
        even = GapFactors.even(table.days)
        models.append((place, StepModel(steps, bins, products, even, network)))
    return models


DOMAIN = two_tables()
MODELS = models_of(DOMAIN)


def units_of(histories: Histories) -> PatientUnits:
    return PatientUnits.of(histories, DOMAIN, MODELS, SeededEntropy(3))


def networks() -> StepNetworks:
    return StepNetworks([model.network for _, model in models_of(DOMAIN)])  # type: ignore[misc]


def last(units: PatientUnits) -> tuple[Any, Tensor]:
    return units.batch(np.array([len(units) - 1]))


def moved(batch: Any, mask: Tensor) -> float:
    """The norm of what the units of a batch add to the sum of a private step."""
    network = networks()
    trainer: DpSgd = private(network, clipping_norm=C, population=20, optimizer="adam")
    return float(trainer.clipped_sum(network.loss, batch, mask).norm())


@pytest.fixture(params=[True, False], ids=["alike", "different"])
def patient(request: pytest.FixtureRequest) -> Histories:
    return both(hostile(30, request.param, seed=1))


def test_a_patient_moves_the_sum_by_c_however_many_rows_and_tables_she_has(
    patient: Histories,
) -> None:
    units = units_of(with_patient(both(histories_of(PATIENTS)), patient))
    (rows, weights), mask = last(units)
    assert mask.sum() == KEPT and (weights > 0).all()
    assert moved((rows, weights), mask) == pytest.approx(C, rel=1e-3)
    whole, present = units.whole()
    others = tuple(part[:-1] for part in whole)
    network = networks()
    trainer = private(network, clipping_norm=C, population=20, optimizer="adam")
    joined = trainer.clipped_sum(network.loss, whole, present)
    alone = trainer.clipped_sum(network.loss, others, present[:-1])
    assert float((joined - alone).norm()) <= C * (1 + 1e-3)


def test_a_step_for_a_unit_is_caught() -> None:
    """Broken twin: rows are clipped one by one, so a patient of equal rows counts as many."""
    (rows, weights), mask = last(units_of(both(hostile(30, True, seed=1))))
    by_row = rows.flatten(0, 1)[:, None], weights.flatten(0, 1)[:, None]
    assert moved(by_row, mask.flatten()[:, None]) > 5 * C


def test_a_table_for_a_unit_is_caught() -> None:
    """Broken twin: a patient is clipped once in each table."""
    (rows, weights), mask = last(units_of(both(hostile(30, True, seed=1))))
    apart = torch.cat([weights * torch.tensor(one) for one in ([1.0, 0.0], [0.0, 1.0])])
    twice = rows.expand(2, -1, -1), apart
    assert moved(twice, mask.expand(2, -1)) > 1.3 * C


def test_a_patient_is_one_unit_whoever_else_there_is(patient: Histories) -> None:
    """One place in all tables; bins and weights are those that she has alone."""
    joined = units_of(with_patient(both(histories_of(PATIENTS)), patient))
    alone = units_of(patient)
    assert len(joined) == PATIENTS + 1 and len(alone) == 1
    for (rows, weights), mask in (last(joined), last(alone)):
        assert rows.shape[:2] == mask.shape == (1, KEPT)
        torch.testing.assert_close(weights.sum(dim=1), torch.full((1, 2), KEPT**0.5))
    everybody = units_of(both(histories_of(PATIENTS)))
    for table, same in zip(everybody.tables, joined.tables, strict=True):
        assert np.array_equal(table.counts, same.counts[:-1])
        known = len(table.bins) if (table.counts < KEPT).all() else 0
        parts = [
            np.sort(one.view([("", one.dtype)] * one.shape[1]), axis=0)
            for one in (table.bins[:known], same.bins[:known])
        ]
        assert np.array_equal(*parts)


def test_a_batch_holds_the_steps_of_those_who_are_drawn() -> None:
    """Each patient's own, all of them where they are few, and nobody else's."""
    few = both(hostile(10, False, seed=1))
    joined = units_of(with_patient(both(histories_of(PATIENTS)), few))
    somebody = int(joined.tables[0].counts[:-1].argmax())
    (rows, _), mask = joined.batch(np.array([somebody, PATIENTS]))
    (own, _), _ = last(units_of(few))
    (others, _), present = units_of(both(histories_of(PATIENTS))).batch(np.array([somebody]))
    assert mask.sum(dim=1).tolist()[1] == 9
    width = rows.shape[2] // 2
    for table in (slice(0, width), slice(width, None)):  # the order within a table is random
        assert sorted(rows[1, mask[1], table].tolist()) == sorted(own[0, :, table].tolist())
        theirs = sorted(others[0, present[0], table].tolist())
        assert sorted(rows[0, mask[0], table].tolist()) == theirs


def with_rows(histories: Histories) -> PatientUnits:
    """Patients with their rows of a table of patients: here, their baseline."""
    return units_of(histories).with_rows(histories.baseline)


def networks_with_rows() -> StepNetworks:
    """The networks of steps behind one of rows, in which no logit starts at nought."""
    sizes = tuple(feature.size for feature in DOMAIN.baseline)
    network = Network(Shape(sizes, 8), generator=torch.Generator().manual_seed(7))
    return StepNetworks([network, *networks().networks])  # type: ignore[list-item]


def moved_with_rows(batch: Any, mask: Tensor) -> float:
    network = networks_with_rows()
    trainer: DpSgd = private(network, clipping_norm=C, population=20, optimizer="adam")
    return float(trainer.clipped_sum(network.loss, batch, mask).norm())


def test_a_patient_with_her_row_moves_the_sum_by_c(patient: Histories) -> None:
    units = with_rows(with_patient(both(histories_of(PATIENTS)), patient))
    assert moved_with_rows(*last(units)) == pytest.approx(C, rel=1e-3)
    no_visit = SeriesRows(*(np.zeros((0, 3) if j == 2 else 0, np.uint16) for j in range(3)))
    without = replace(patient, rows=((no_visit,), (no_visit,)))
    (_, weights), mask = last(with_rows(without))
    assert weights.sum() == mask.sum() == 1, "her row alone"
    assert moved_with_rows(*last(with_rows(without))) == pytest.approx(C, rel=1e-3)
    [pack] = packs(*units.batch(np.arange(30, 40)), 10_000)
    check_units_apart(networks_with_rows().loss, pack)


def test_the_row_of_a_patient_for_a_unit_is_caught() -> None:
    """Broken twin: she is clipped once with her row and once with her steps."""
    (rows, weights), mask = last(with_rows(both(hostile(30, True, seed=1))))
    apart = torch.cat([weights * torch.tensor(one) for one in ([1.0, 0.0, 0.0], [0.0, 1.0, 1.0])])
    assert moved_with_rows((rows.expand(2, -1, -1), apart), mask.expand(2, -1)) > 1.3 * C


def test_a_batch_holds_the_rows_of_those_who_are_drawn() -> None:
    """Each patient's own, once, at her first place, whether she has steps or none."""
    histories = both(histories_of(PATIENTS))
    units = with_rows(histories)
    chosen = np.array([40, 3, 17, 58, 0])
    (rows, weights), mask = units.batch(chosen)
    width = histories.baseline.shape[1]
    assert rows[:, 0, :width].tolist() == histories.baseline[chosen].tolist()
    assert weights[:, 0, 0].tolist() == [1.0] * 5 and weights[:, 1:, 0].sum() == 0
    (steps, alone), present = units_of(histories).batch(chosen)
    assert torch.equal(weights[:, :, 1:], alone)
    assert torch.equal(mask[:, 1:], present[:, 1:]) and mask[:, 0].all()
    assert steps.shape == (*rows.shape[:2], rows.shape[2] - width)


def test_a_batch_is_the_same_whoever_is_not_in_it() -> None:
    """Also where it holds nothing: the first patient's rows do not lie there."""
    histories = both(histories_of(PATIENTS))
    (visits,) = histories.rows[0]
    first = visits.patients == 0
    assert first.any()
    values = np.where(first[:, None], (visits.values + 1) % 2, visits.values)
    baseline = histories.baseline.copy()
    baseline[0] = baseline[1] + 1
    changed = replace(histories, baseline=baseline)
    changed = replace(changed, rows=((replace(visits, values=values),),) * 2)
    chosen = np.arange(1, PATIENTS)
    (rows, weights), mask = with_rows(histories).batch(chosen)
    (same, alike), known = with_rows(changed).batch(chosen)
    assert not mask.all() and not torch.equal(
        *(x.whole()[0][0] for x in map(with_rows, (histories, changed)))
    )
    assert torch.equal(rows, same) and torch.equal(weights, alike) and torch.equal(mask, known)
    assert rows[:, 1:, : histories.baseline.shape[1]].sum() == 0, "her row is at one place"


def test_a_latent_vector_makes_no_second_unit_of_a_patient(patient: Histories) -> None:
    """`tvae`: her row, mean step and latent noise are at all her places, and she is one unit."""
    joined = with_patient(both(histories_of(PATIENTS)), patient)
    bins = DOMAIN.baseline
    person = np.column_stack([joined.baseline[:, j] for j in range(len(bins))])
    sizes = [feature.size for feature in bins]
    widths = [[column.count for column in model.bins] for _, model in MODELS]
    units = LatentUnits(units_of(joined), person, sizes, widths, np.random.default_rng(1))
    network = LatentNetworks(
        [model.network for _, model in models_of(DOMAIN)],  # type: ignore[misc]
        sum(sizes),
        generator=torch.Generator().manual_seed(1),
    )
    trainer = private(network, clipping_norm=C, population=20, optimizer="adam")
    batch, mask = units.batch(np.array([PATIENTS]))
    assert float(trainer.clipped_sum(network.loss, batch, mask).norm()) == pytest.approx(C, 1e-3)
    by_row = tuple(part.flatten(0, 1)[:, None] for part in batch), mask.flatten()[:, None]
    assert float(trainer.clipped_sum(network.loss, *by_row).norm()) > 2 * C  # the broken twin
    [pack] = packs(*units.batch(np.arange(30, 40)), 10_000)
    check_units_apart(network.loss, pack)


def index_of_kept(source: SeededEntropy) -> np.ndarray:
    """Which steps of a patient with 29 are kept: the place of each among hers, from 1."""
    (_, model), _ = MODELS
    units = PatientUnits.of(both(hostile(30, False, seed=1)), DOMAIN, MODELS, source)
    index = len(model.table.conditions) + 1
    assert model.table.features[index].name == "index"
    return units.tables[0].bins[:, index]


def test_each_step_is_kept_as_often_as_any_other() -> None:
    """Claimed random, and is: the mean place of what is kept is that of all steps."""
    source = SeededEntropy(1)
    grid = MODELS[0][1].table.series.counts
    expected = grid.code(np.arange(1, 30)).mean()
    means = [index_of_kept(source).mean() for _ in range(200)]
    assert abs(np.mean(means) - expected) < 4 * np.std(means) / np.sqrt(200)
    assert np.std(means) > 0


def test_the_first_steps_kept_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: the first steps are kept, and claimed to be random."""
    monkeypatch.setattr(
        "dpsynth.models.histories.networks.patient_units.select",
        lambda patients, most, entropy: (np.arange(min(most, len(patients))), None),
    )
    with pytest.raises(AssertionError):
        test_each_step_is_kept_as_often_as_any_other()


def test_the_steps_of_a_patient_weigh_the_root_of_their_number_together() -> None:
    """Then her gradient is about as long as that of a patient with one step.

    Broken twin: each step weighs one. The bound on a patient holds all the same, by clipping.
    """
    units = units_of(both(histories_of(PATIENTS)))
    (rows, weights), mask = units.whole()
    some = (weights > 0).any(dim=1)
    assert some.any()
    kept = (weights > 0).sum(dim=1)[some]
    torch.testing.assert_close(weights.sum(dim=1)[some], kept.sqrt())
    assert torch.equal(mask, (weights > 0).any(dim=2))
    in_full = (weights > 0).float()
    assert (in_full.sum(dim=1)[some] > 1.5).any()
    assert moved((rows[-1:], in_full[-1:]), mask[-1:]) <= C * (1 + 1e-3)
