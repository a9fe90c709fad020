"""P06: rounding read off the table. One patient with 77.25 must not change how all are written.

The check: a table of whole heart rates, and the same with one patient who has a tenth. What the fit
says of tenths differs between the two no more often than the claim allows; one patient moves all
counts of grains together by no more than is accounted; and a patient of several rows counts once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature
from dpsynth.models.grain_settings import GRAINS, with_grains
from dpsynth.models.marginals import grains, measure_grains
from dpsynth.models.marginals.exact_counts import exact_joint_histograms
from dpsynth.models.presets import mass_of
from dpsynth.privacy import JointHistograms, PrivacyBudget, PrivacyPlan, SeededEntropy, Share
from dpsynth.privacy.events import UNDECIDED

from ..support.bare_counts import Silence

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-6)
TENTHS = ((0, 0), *((int(c % 10 == 0), int(c % 10 > 0)) for c in range(1, 301)))  # 30.0 to 60.0
RUNS = 300
Release = Callable[..., Any]


def domain_of(columns: int, rows: int) -> Domain:
    names = [f"rate {place}" for place in range(columns)]
    features = [Feature(name, 301, 301, (1,) * 301, grains=TENTHS) for name in names]
    return Domain(tuple(features), population=400, max_rows=rows)


def plan_of(domain: Domain) -> PrivacyPlan:
    mass = mass_of(domain.max_rows)
    others = JointHistograms("others", 3, domain.max_rows, UNDECIDED, mass)
    return PrivacyPlan.calibrate(BUDGET, with_grains((Share(others, 1.0),), domain, unit_mass=mass))


def whole(units: int, domain: Domain, *, odd: bool) -> Cohort:
    """Return patients of whole values; with ``odd``, one more who has tenths in all of hers."""
    rng = np.random.default_rng(5)
    shape = (units + odd, domain.max_rows, len(domain.features))
    codes = rng.integers(1, 30, shape) * 10
    mask = np.arange(domain.max_rows) < rng.integers(1, domain.max_rows + 1, (len(codes), 1))
    if odd:
        codes[-1], mask[-1] = 173, True
    codes[~mask] = 0  # as padding has it
    return Cohort(codes.astype(np.uint16), mask)


def tenths_seen(cohort: Cohort, domain: Domain, plan: PrivacyPlan, seed: int) -> bool:
    found = measure_grains(cohort, domain, plan, SeededEntropy(seed))
    assert found is not None
    return bool(found.weights(domain)[0, 1] > 0)


def difference(domain: Domain, plan: PrivacyPlan) -> float:
    """How much likelier a fit sees tenths where one patient has some."""
    shares = [
        np.mean([tenths_seen(whole(400, domain, odd=odd), domain, plan, s) for s in range(RUNS)])
        for odd in (False, True)
    ]
    return float(shares[1] - shares[0])


def test_one_patient_does_not_decide_how_all_are_written() -> None:
    domain = domain_of(2, 1)
    assert difference(domain, plan_of(domain)) < 0.15


def test_grains_of_the_table_as_it_is_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: any tenth of the table counts, without noise and so without a threshold."""
    monkeypatch.setattr(grains, "joint_histograms", exact_joint_histograms)
    monkeypatch.setattr(grains, "SEEN", 0.0)
    monkeypatch.setattr(grains, "APART", 0.0)
    domain = domain_of(2, 1)
    assert difference(domain, plan_of(domain)) == 1.0


def shift(domain: Domain, release: Release | None = None) -> tuple[float, JointHistograms]:
    """How far one odd patient moves all counts of grains, the last cells included."""
    event = plan_of(domain).event(GRAINS)
    assert isinstance(event, JointHistograms)
    sizes = [3] * len(domain.features)
    counts = [
        np.concatenate(
            grains.joint_histograms(
                (release or grains.grained)(whole(30, domain, odd=odd), domain),
                sizes,
                event,
                Silence(0),
            )
        )
        for odd in (False, True)
    ]
    return float(np.linalg.norm(counts[1] - counts[0])), event


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_one_patient_moves_the_grains_by_no_more_than_accounted(columns: int, rows: int) -> None:
    moved, event = shift(domain_of(columns, rows))
    assert moved <= event.sensitivity + 1e-9
    assert event.sensitivity == event.mass * math.sqrt(columns)


def test_rows_that_are_not_there_do_not_count() -> None:
    """Broken twin: padding has a code, too, and so a grain. With it, every unit is seen whole."""

    def padded(cohort: Cohort, domain: Domain) -> Cohort:
        return Cohort(grains.grained(cohort, domain).codes, np.ones_like(cohort.mask))

    domain = domain_of(1, 5)
    masked = grains.grained(whole(30, domain, odd=True), domain)
    assert masked.mask.sum() < masked.mask.size
    nobody = Cohort(masked.codes, np.zeros_like(masked.mask))
    event = plan_of(domain).event(GRAINS)
    counts = grains.joint_histograms(nobody, [3], event, Silence(0))  # type: ignore[arg-type]
    assert not np.concatenate(counts).any()
    seen = measure_grains(whole(30, domain, odd=True), domain, plan_of(domain), Silence(0))
    broken = grains.joint_histograms(  # type: ignore[arg-type]
        padded(whole(30, domain, odd=True), domain), [3], event, Silence(0)
    )
    assert seen is not None and seen.counts[0].tolist() != broken[0][:-1].tolist()


def test_the_cell_of_a_row_is_a_function_of_its_own_code() -> None:
    domain = domain_of(3, 2)
    together = whole(20, domain, odd=True)
    alone = Cohort(together.codes[-1:], together.mask[-1:])
    both = grains.grained(together, domain), grains.grained(alone, domain)
    assert both[0].codes[-1:].tolist() == both[1].codes.tolist()
    assert both[0].mask.tolist() == together.mask.tolist()


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 1), (3, 5)])
def test_the_event_pays_for_each_column_and_for_all_rows_of_a_patient(
    columns: int, rows: int
) -> None:
    event = plan_of(domain_of(columns, rows)).event(GRAINS)
    assert isinstance(event, JointHistograms)
    assert (event.histograms, event.rows_per_unit) == (columns, rows)
    assert event.unit_mass == mass_of(rows)


def spread(domain: Domain, plan: PrivacyPlan) -> float:
    """Standard deviation of what releases of the same rows differ by, over the noise paid for."""
    event = plan.event(GRAINS)
    assert isinstance(event, JointHistograms)
    rows = whole(50, domain, odd=True)
    seen = [measure_grains(rows, domain, plan, SeededEntropy(s)) for s in range(RUNS)]
    counts = np.array([np.concatenate(one.counts) for one in seen if one is not None])
    return float(counts.std(axis=0).mean()) / event.sigma


def test_every_count_has_the_noise_that_was_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = domain_of(3, 2)
    assert spread(domain, plan_of(domain)) == pytest.approx(1.0, abs=0.1)
    monkeypatch.setattr(grains, "joint_histograms", exact_joint_histograms)
    assert spread(domain, plan_of(domain)) == 0.0, "the broken twin has none"
