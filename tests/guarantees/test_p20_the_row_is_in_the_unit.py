"""P20 for histories: the row of a patient is in one unit with her steps.

She is clipped once with her row and her steps. Broken twins: the row is a unit of its own; each
place is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.models.dpsgd import packs
from dpsynth.models.dpsgd.unit_gradients import check_units_apart
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.networks.patient_units import PERSON, PatientUnits
from dpsynth.models.histories.networks.step_networks import StepNetworks

from ..support.made_histories import histories_of, hostile, with_patient
from ..support.units_of_histories import (
    DOMAIN,
    PATIENTS,
    C,
    both,
    last,
    moved,
    networks,
    units_of,
    with_thirty_rows,
)


@pytest.fixture(params=[True, False], ids=["alike", "different"])
def patient(request: pytest.FixtureRequest) -> Histories:
    return with_thirty_rows(request.param)


def with_rows(histories: Histories) -> PatientUnits:
    """Patients with their rows of a table of patients: here, their baseline."""
    return units_of(histories).with_rows(histories.baseline)


def networks_with_rows() -> StepNetworks:
    """The networks of steps behind one of rows, in which no logit starts at nought."""
    sizes = tuple(feature.size for feature in DOMAIN.baseline)
    network = Network(Shape(sizes, 8), generator=torch.Generator().manual_seed(7))
    return StepNetworks([network, *networks().networks])  # type: ignore[list-item]


def test_a_patient_with_her_row_moves_the_sum_by_c(patient: Histories) -> None:
    units = with_rows(with_patient(both(histories_of(PATIENTS)), patient))
    assert moved(*last(units), networks_with_rows()) == pytest.approx(C, rel=1e-3)
    no_visit = SeriesRows(*(np.zeros((0, 3) if j == 2 else 0, np.uint16) for j in range(3)))
    without = replace(patient, rows=((no_visit,), (no_visit,)))
    (_, weights), mask = last(with_rows(without))
    assert weights.sum() == PERSON and mask.sum() == 1, "her row alone"
    assert moved(*last(with_rows(without)), networks_with_rows()) == pytest.approx(C, rel=1e-3)
    [pack] = packs(*units.batch(np.arange(30, 40)), 10_000)
    check_units_apart(networks_with_rows().loss, pack)


def test_the_row_of_a_patient_for_a_unit_is_caught() -> None:
    """Broken twin: she is clipped once with her row and once with her steps."""
    (rows, weights), mask = last(with_rows(both(hostile(30, True, seed=1))))
    apart = torch.cat([weights * torch.tensor(one) for one in ([1.0, 0.0, 0.0], [0.0, 1.0, 1.0])])
    assert (
        moved((rows.expand(2, -1, -1), apart), mask.expand(2, -1), networks_with_rows()) > 1.3 * C
    )


def test_a_place_of_a_patient_for_a_unit_is_caught(patient: Histories) -> None:
    """Broken twin: she is clipped at each of her places, one of which has her row."""
    (rows, weights), mask = last(with_rows(patient))
    by_place = rows.flatten(0, 1)[:, None], weights.flatten(0, 1)[:, None]
    assert moved(by_place, mask.flatten()[:, None], networks_with_rows()) > 2 * C


def test_a_batch_holds_the_rows_of_those_who_are_drawn() -> None:
    """Each patient's own, once, at her first place, whether she has steps or none."""
    histories = both(histories_of(PATIENTS))
    units = with_rows(histories)
    chosen = np.array([40, 3, 17, 58, 0])
    (rows, weights), mask = units.batch(chosen)
    width = histories.baseline.shape[1]
    assert rows[:, 0, :width].tolist() == histories.baseline[chosen].tolist()
    assert weights[:, 0, 0].tolist() == [PERSON] * 5 and weights[:, 1:, 0].sum() == 0
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
