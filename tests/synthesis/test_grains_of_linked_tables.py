"""Numbers of linked tables are written as was counted: whole, or heaped at round values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.encoding import HistoryCodec, Roundings, rates_of
from dpsynth.encoding.history_codec import rounded
from dpsynth.models import Feature
from dpsynth.models.grain_settings import GRAINS
from dpsynth.models.histories.roundings import _rates
from dpsynth.models.histories.row_grains import weights_of_rows
from dpsynth.models.histories.steps.table import MASS
from dpsynth.models.marginals import GrainCounts
from dpsynth.models.marginals.grains import UNITS
from dpsynth.synthesis import Sampler

from ..support.clinic import clinic_run, clinic_schema

LATTICE = np.where(np.arange(1001) % 50 == 0, 0, np.where(np.arange(1001) % 10 == 0, 1, 2))
LATTICE[[0, -1]] = -1
WIDTHS = [50, 10, 1]


@pytest.mark.parametrize(
    "goal", [[0.5, 0.4, 0.1], [0.02, 0.08, 0.9], [0.1, 0.0, 0.9], [0, 0.6, 0.4]]
)
def test_drawn_points_get_the_grains_that_were_counted(goal: list[float]) -> None:
    """From a smooth draw, and from one that has heaps already."""
    rng = np.random.default_rng(1)
    points = np.bincount(LATTICE[LATTICE >= 0], minlength=3).astype(float)
    seen = {2: goal[2], 1: goal[1] / (goal[0] + goal[1])}
    smooth = rng.integers(1, 1000, 40_000)
    heaped = np.where(rng.random(len(smooth)) < 0.3, np.clip(smooth // 50 * 50, 50, 950), smooth)
    for drawn in (smooth, heaped):
        own = np.bincount(LATTICE[drawn], minlength=3)
        found = rounded(drawn, LATTICE, WIDTHS, rates_of(own, seen, points).tolist(), rng)
        shares = np.bincount(LATTICE[found], minlength=3) / len(found)
        assert shares.tolist() == pytest.approx(goal, abs=0.015)
        assert np.abs(found - drawn).max() <= 75


def test_a_point_becomes_its_nearest_neighbour_and_one_without_a_grain_stays() -> None:
    points = np.array([0, 3, 44, 47, 996, 1000])
    found = rounded(points, LATTICE, WIDTHS, [0, 0, 1.0], np.random.default_rng(0))
    assert found.tolist() == [0, 10, 40, 50, 990, 1000]  # neither bound: they have no grain


def test_rows_of_a_patient_weigh_one_patient_together() -> None:
    owners = [np.array([0, 0, 0, 1]), np.array([0, 2])]
    weights = weights_of_rows(owners, 3, MASS)
    in_series = [
        np.bincount(own, part, minlength=3)
        for own, part in zip(owners, np.split(weights, [4]), strict=True)
    ]
    assert np.sqrt(np.square(in_series).sum(axis=0)).max() <= MASS


def test_grains_follow_patients_and_not_rows() -> None:
    """Half of the patients write tenths, in nine rows each; the others have a row of wholes."""
    grains = ((0, 0), *((int(code % 10 == 0), int(code % 10 > 0)) for code in range(1, 301)))
    feature = Feature("pulse", 301, 301, (1,) * 301, grains=grains)
    counts = GrainCounts((np.array([500.0, 500.0]) * MASS,), 20.0 * MASS, float(MASS))
    rows = np.array([[10]] * 100 + [[11]] * 900, dtype=np.uint16)
    weights = weights_of_rows([np.repeat(np.arange(200), [1] * 100 + [9] * 100)], 200, MASS)
    [rates] = _rates((feature,), counts, (rows, weights), (rows, weights))
    assert rates.tolist() == pytest.approx([0.0] * UNITS)
    [by_row] = _rates((feature,), counts, *[(rows, np.ones(1000, np.int64))] * 2)
    assert by_row[1] == pytest.approx(1 - 0.5 / 0.9)


def rates_of_clinic(rate: float) -> Roundings:
    """Round all ages to fives and all weights to whole numbers, or as often as said."""
    codec = HistoryCodec(clinic_schema())
    patients = np.zeros((len(codec.baseline), UNITS))
    names = [column.name for column in codec.baseline]
    patients[names.index("age"), 1] = rate
    tables = []
    for table in codec.tables:
        own = [np.zeros((len(one.values), UNITS)) for one in table.series]
        for series, one in zip(own, table.series, strict=True):
            for place, column in enumerate(one.values):
                if column.grains:
                    series[place, len(column.grains[0]) - 1] = rate
        tables.append(tuple(own))
    return Roundings(patients, tuple(tables))


def test_a_cohort_is_drawn_by_the_rates_of_its_run() -> None:
    run = clinic_run()
    assert run.certificate is not None
    events = [event["name"] for event in run.certificate["events"] if GRAINS in event["name"]]
    assert events == [f"patients: {GRAINS}", f"visits, rows: {GRAINS}", f"labs, rows: {GRAINS}"]
    assert "grains.patients" in run.arrays
    arrays = run.arrays | rates_of_clinic(1.0).arrays()
    cohort = replace(run, arrays=arrays).sample(200, seed=3)
    ages = cohort["patients"]["age"]
    assert ((ages % 5 == 0) | ages.isin([40, 90])).all()
    weights = cohort["visits"]["weight"].dropna()
    assert ((weights % 1 == 0) | weights.isin([30, 200])).all()
    hba1c = cohort["labs"]["value"][cohort["labs"]["test"] == "hba1c"].astype(float).dropna()
    assert len(hba1c) and (np.rint(hba1c * 10) % 5 == 0).all()
    assert (cohort["patients"]["followed"] % 5 != 0).any()  # the end of follow-up is a day


def test_a_run_of_before_draws_as_it_did() -> None:
    run = clinic_run()
    kept = {name: array for name, array in run.arrays.items() if not name.startswith("grains.")}
    assert Sampler.of(replace(run, arrays=kept)).generator.rounding is None
    nothing = replace(run, arrays=run.arrays | rates_of_clinic(0.0).arrays())
    before = replace(run, arrays=kept).sample(30, seed=1)
    for name, frame in nothing.sample(30, seed=1).items():
        assert frame.equals(before[name])
