"""P20, P22 for histories: a patient is clipped once, with her steps of all tables.

The sum of a private step of the networks of linked tables is taken with and without one patient of
as many rows as there may be, in two tables. Broken twins: each step is clipped on its own; each
table is; the first steps are kept and not random ones; a step weighs as much as a patient.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpsynth.encoding import Histories
from dpsynth.models.histories.networks.patient_units import KEPT, PatientUnits
from dpsynth.privacy import SeededEntropy

from ..support.made_histories import histories_of, hostile, with_patient
from ..support.private_steps import private
from ..support.units_of_histories import (
    DOMAIN,
    MODELS,
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
