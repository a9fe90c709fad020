"""Steps that a generator draws itself: coded as those that were counted, whoever drew them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories import DistilledHistories, drawn_steps
from dpsynth.models.histories.beginnings import Beginnings
from dpsynth.models.histories.row_weights import FirstRows
from dpsynth.models.histories.steps import StepModel, TableRows
from dpsynth.models.histories.steps.table import MASS

from ...support.made_histories import histories_of
from ...support.wide_fits import VISITS, wide_fit

PATIENTS = 200


@pytest.fixture(scope="module")
def fitted() -> DistilledHistories:
    return wide_fit(PATIENTS)


def test_a_wide_table_has_a_network_and_keeps_no_released_shares(
    fitted: DistilledHistories,
) -> None:
    (model,) = fitted.models[VISITS]
    assert model.network is not None and model.shares is None
    assert all(one.network is None for place in (0,) for one in fitted.models[place])
    assert not any("target" in name for name in fitted.arrays())


def test_steps_are_coded_as_rows_of_patients_are(
    fitted: DistilledHistories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were counted, in the place of drawn ones, give what was counted of them."""
    histories = histories_of(PATIENTS)
    codes = fitted.person.codes(histories).astype(np.int64)
    (model,) = fitted.models[VISITS]
    (rows,) = histories.rows[VISITS]

    def real(model: object, start: Beginnings, rng: object) -> SeriesRows:
        return rows

    monkeypatch.setattr(drawn_steps, "draw_series", real)
    _, starts = fitted._beginnings(PATIENTS, np.random.default_rng(0))
    start = replace(starts[VISITS][0], ends=histories.ends)
    steps, weights = drawn_steps.drawn_steps(model, start, codes, np.random.default_rng(0))
    table = TableRows.of(fitted.domain.tables[VISITS], (rows,), codes, histories.ends)
    (expected,) = table.coded([model.table])
    for place, column in enumerate(model.bins):
        assert np.array_equal(steps[:, place], column.coarsen(expected[:, place]))
    assert np.array_equal(weights, table.weights[0])


def test_a_patient_weighs_as_much_as_was_counted(fitted: DistilledHistories) -> None:
    codes, starts = fitted._beginnings(300, np.random.default_rng(1))
    (model,), (start,) = fitted.models[VISITS], starts[VISITS]
    steps, weights = drawn_steps.drawn_steps(model, start, codes, np.random.default_rng(2))
    several = start.counts > 1
    assert len(steps) == int((start.counts[several] - 1).sum())
    assert weights.sum() == pytest.approx(MASS * several.sum(), rel=1e-4)


def test_a_network_learns_on_its_own_steps_after_the_first_round(
    fitted: DistilledHistories, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def learning(*given: object) -> object:
        rows = given[4](model.network)  # type: ignore[operator]
        seen.append(len(rows))
        return model.network

    (model,) = fitted.models[VISITS]
    codes, starts = fitted._beginnings(100, np.random.default_rng(1))
    monkeypatch.setattr(drawn_steps, "fitted_network", learning)
    assert fitted.network is not None
    rows = FirstRows(fitted.network, fitted.binning.columns)
    again = replace(model, shares=object())  # type: ignore[arg-type]
    hidden = fitted.person.hidden[VISITS]

    def learned(start: Beginnings) -> StepModel:
        rng = np.random.default_rng(3)
        (found,) = drawn_steps.with_networks([again], [start], hidden, codes, rows, rng)
        return found

    assert learned(starts[VISITS][0]).shares is None and seen == [drawn_steps.ROWS]
    learned(replace(starts[VISITS][0], counts=np.ones(100, dtype=np.int64)))
    assert seen[1] == 0, "then rows of the mixture take their place"
    rng = np.random.default_rng(3)
    kept = drawn_steps.with_networks([model], starts[VISITS], hidden, codes, rows, rng)
    assert kept == [model], "it has no shares to learn from"
