"""`mixture` keeps what histograms of columns and pairs hold: heaps, missing cells, relations.

All fits are seeded: a test that passes once passes always. Tolerances are several times what other
seeds gave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.eval.fidelity import mean_tvd
from dpsynth.models import Domain, Feature
from dpsynth.models.generators import Independent, Mixture
from dpsynth.models.marginals import measurement
from dpsynth.models.presets import ONE_WAY, PAIRS
from dpsynth.privacy import SeededEntropy

from ..support.mixture_plans import plan_for, restored

Ints = npt.NDArray[np.int64]
UNITS = 20_000
GROUP, DOSE, LAB, LAB_TOO, FLAG = range(5)
HEAP, NO_DOSE, NO_LAB = 50, 100, 60
WARD = Domain(
    (
        Feature("group", 3, 0),
        Feature("dose", 101, 100),
        Feature("lab", 61, 60),
        Feature("lab too", 61, 60),
        Feature("flag", 2, 0),
    ),
    population=UNITS,
    max_rows=1,
)


def patients(seed: int) -> Ints:
    """Half of all doses are one value; two results are mostly missing together, by group."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, UNITS, p=[0.5, 0.3, 0.2])
    dose = np.clip(np.rint(25 + 20 * group + rng.normal(0, 12, UNITS)), 0, 99)
    dose[rng.random(UNITS) < 0.5] = HEAP
    dose[rng.random(UNITS) < 0.03] = NO_DOSE
    lab = np.clip(np.rint(10 + 15 * group + rng.normal(0, 6, UNITS)), 0, 59)
    lab_too = np.clip(np.rint(lab + rng.normal(0, 5, UNITS)), 0, 59)
    absent = rng.random(UNITS) < np.where(group == 2, 0.5, 0.1)
    lab[absent] = NO_LAB
    lab_too[absent & (rng.random(UNITS) < 0.9)] = NO_LAB
    flag = rng.random(UNITS) < 0.2 + 0.3 * group
    return np.stack([group, dose, lab, lab_too, flag], axis=-1).astype(np.int64)


def cohort_of(rows: Ints) -> Cohort:
    return Cohort(rows.astype(np.uint16)[:, None], np.ones((len(rows), 1), dtype=bool))


@pytest.fixture(scope="module")
def source() -> Ints:
    return patients(1)


@pytest.fixture(scope="module")
def fitted(source: Ints) -> Mixture:
    return Mixture(WARD).fit(cohort_of(source), plan_for(Mixture, WARD), SeededEntropy(2))


@pytest.fixture(scope="module", params=[True, False], ids=["even", "plain"])
def drawn(fitted: Mixture, request: pytest.FixtureRequest) -> Ints:
    drawn = fitted.sample(UNITS, np.random.default_rng(3), even=request.param)
    assert drawn.shape == (UNITS, 5) and drawn.dtype == np.uint16
    assert (drawn < np.array(WARD.sizes)).all()
    return drawn.astype(np.int64)


def coarse(rows: Ints) -> Ints:
    """Cut numbers into runs of ten; missing and the heap keep their own."""
    cut = rows.copy()
    for column, missing in ((DOSE, NO_DOSE), (LAB, NO_LAB), (LAB_TOO, NO_LAB)):
        cut[:, column] //= 10
        cut[rows[:, column] == missing, column] = 20
    cut[rows[:, DOSE] == HEAP, DOSE] = 21
    return cut


# One table, one row a unit --------------------------------------------------------------------


@pytest.mark.long
def test_a_heap_stays_a_heap(source: Ints, drawn: Ints) -> None:
    """Half of a column at one of 100 values: within 2 points, and not smeared over neighbours."""
    share = (source[:, DOSE] == HEAP).mean()
    assert 0.48 < share < 0.5
    assert abs((drawn[:, DOSE] == HEAP).mean() - share) < 0.02
    for beside in (HEAP - 1, HEAP + 1):
        assert (drawn[:, DOSE] == beside).mean() < 0.02


@pytest.mark.parametrize(("column", "missing"), [(DOSE, NO_DOSE), (LAB, NO_LAB), (LAB_TOO, NO_LAB)])
def test_shares_of_missing_cells_stay(source: Ints, drawn: Ints, column: int, missing: int) -> None:
    share = (source[:, column] == missing).mean()
    assert abs((drawn[:, column] == missing).mean() - share) < 0.015
    for group in range(3):  # and that they depend on the group
        inside, drawn_inside = source[source[:, 0] == group], drawn[drawn[:, 0] == group]
        share = (inside[:, column] == missing).mean()
        assert abs((drawn_inside[:, column] == missing).mean() - share) < 0.04


def test_results_that_are_missing_together_stay_so(source: Ints, drawn: Ints) -> None:
    def together(rows: Ints) -> float:
        return float(((rows[:, LAB] == NO_LAB) & (rows[:, LAB_TOO] == NO_LAB)).mean())

    apart = (source[:, LAB] == NO_LAB).mean() * (source[:, LAB_TOO] == NO_LAB).mean()
    assert together(source) > 5 * apart
    assert abs(together(drawn) - together(source)) < 0.015


def test_pairs_are_kept_far_better_than_by_columns_alone(source: Ints, drawn: Ints) -> None:
    """Two- and three-way distance to the source, against the baseline of the same budget."""
    alone = Independent(WARD).fit(cohort_of(source), plan_for(Independent, WARD), SeededEntropy(2))
    apart = alone.sample(UNITS, np.random.default_rng(3)).astype(np.int64)
    for order, far, factor in [(2, 0.2, 0.1), (3, 0.35, 0.15)]:
        distance = mean_tvd(coarse(source), coarse(apart), order)
        assert distance > far
        assert mean_tvd(coarse(source), coarse(drawn), order) < factor * distance
    assert mean_tvd(coarse(source), coarse(drawn), 1) < 0.01


def test_it_generalises_to_rows_it_has_not_seen(drawn: Ints) -> None:
    others = coarse(patients(99))
    assert mean_tvd(others, coarse(drawn), 2) < 2 * mean_tvd(others, coarse(patients(98)), 2)


def test_even_rows_come_in_no_order(fitted: Mixture) -> None:
    """2000 pairs of neighbours, five standard deviations."""
    drawn = fitted.sample(2001, np.random.default_rng(6)).astype(float)
    for j in range(5):
        assert abs(np.corrcoef(drawn[1:, j], drawn[:-1, j])[0, 1]) < 5 / 2000**0.5


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_few_rows_can_be_drawn(fitted: Mixture, rows: int, even: bool) -> None:
    assert fitted.sample(rows, np.random.default_rng(5), even=even).shape == (rows, 5)


# The artifact ---------------------------------------------------------------------------------


def test_restored_it_samples_bit_for_bit_the_same(fitted: Mixture) -> None:
    again = restored(fitted, WARD)
    for even in (True, False):
        first, second = (
            model.sample(3000, np.random.default_rng(8), even=even) for model in (fitted, again)
        )
        np.testing.assert_array_equal(first, second)
    assert again.config() == fitted.config()
    for name, array in fitted.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array, err_msg=name)
        assert again.arrays()[name].dtype == array.dtype


def test_the_arrays_are_plain_finite_numbers(fitted: Mixture) -> None:
    arrays = fitted.arrays()
    for name, array in arrays.items():
        assert array.dtype.kind in "fu" and np.isfinite(array).all(), name
    assert arrays["bin_of"].shape == arrays["shares"].shape == (sum(WARD.sizes),)
    bins = sum(fitted.config()["bins"])
    assert arrays["tables"].shape == (len(arrays["weights"]), bins)


def test_the_artifact_does_not_grow_with_the_cohort(small: Domain) -> None:
    """Width and number of bins follow the noisy counts; no array has a place for a row."""
    plan, rng = plan_for(Mixture, small), np.random.default_rng(1)
    sizes = set()
    for units in (700, 1300):
        rows = rng.integers(0, 3, (units, 2))
        model = Mixture(small).fit(cohort_of(rows), plan, SeededEntropy(1))
        shapes = {name: array.shape for name, array in model.arrays().items()}
        assert not any(units in shape for shape in shapes.values())
        sizes.add((shapes["weights"], shapes["bin_of"], shapes["shares"]))
    assert len(sizes) == 1


# The plan -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Domain:
    return Domain((Feature("a", 3, 0), Feature("b", 4, 3)), population=1000, max_rows=1)


def test_each_event_of_the_plan_is_run_once(monkeypatch: pytest.MonkeyPatch, small: Domain) -> None:
    plan, asked = plan_for(Mixture, small), []
    real = {ONE_WAY: measurement.joint_histograms, PAIRS: measurement.chosen_histograms}

    def counting(name: str) -> Any:
        def release(*args: Any) -> Any:
            asked.append(name)
            assert plan.event(name) in args
            return real[name](*args)

        return release

    monkeypatch.setattr(measurement, "joint_histograms", counting(ONE_WAY))
    monkeypatch.setattr(measurement, "chosen_histograms", counting(PAIRS))
    stages: list[tuple[str, float]] = []
    rows = cohort_of(np.random.default_rng(0).integers(0, 3, (1000, 2)))
    Mixture(small).fit(rows, plan, SeededEntropy(0), lambda *pair: stages.append(pair))
    assert asked == [ONE_WAY, PAIRS]
    assert {event.name for event in plan.events} == {ONE_WAY, PAIRS}
    assert stages[0] == ("histograms", 0.0) and ("histograms", 1.0) in stages
    assert stages[-1] == ("mixture", 1.0) and all(0 <= part <= 1 for _, part in stages)


def test_the_same_releases_give_the_same_model(
    monkeypatch: pytest.MonkeyPatch, small: Domain
) -> None:
    """With both releases given, other rows change nothing: all the rest is post-processing."""
    plan = plan_for(Mixture, small)
    rng = np.random.default_rng(2)
    rows = [cohort_of(rng.integers(0, 3, (1000, 2))), cohort_of(np.zeros((5, 2), np.int64))]
    kept: dict[str, Any] = {}

    def given(name: str, real: Any) -> Any:
        def release(*args: Any) -> Any:
            if name not in kept:
                kept[name] = real(*args)
            return [table.copy() for table in kept[name]]

        return release

    monkeypatch.setattr(
        measurement, "joint_histograms", given(ONE_WAY, measurement.joint_histograms)
    )
    monkeypatch.setattr(
        measurement, "chosen_histograms", given(PAIRS, measurement.chosen_histograms)
    )
    # the stream of the starting point must not have moved by the noise of the first fit
    models = []
    for each in rows:
        entropy = SeededEntropy(3)
        monkeypatch.setattr(entropy, "generator", lambda: np.random.default_rng(4))
        models.append(Mixture(small).fit(each, plan, entropy))
    for name, array in models[0].arrays().items():
        np.testing.assert_array_equal(models[1].arrays()[name], array, err_msg=name)


def test_a_plan_of_another_model_is_refused(small: Domain) -> None:
    rows = cohort_of(np.zeros((10, 2), np.int64))
    with pytest.raises(InputError, match="no event"):
        Mixture(small).fit(rows, plan_for(Independent, small), SeededEntropy(0))


@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_fit_of_nothing_ends_like_any_other(small: Domain, max_rows: int) -> None:
    """An empty cohort must not tell itself apart by failing."""
    domain = replace(small, max_rows=max_rows)
    nothing = Cohort(np.zeros((0, max_rows, 2), np.uint16), np.zeros((0, max_rows), bool))
    model = Mixture(domain).fit(nothing, plan_for(Mixture, domain), SeededEntropy(11))
    assert (model.sample(50, np.random.default_rng(0)) < np.array(small.sizes)).all()
