"""Replicates of cohorts: tables whose spread shows how uncertain a fit of histories is.

As in `replicates`: from the run, as many patients as the schema declares are drawn with all of
their rows; the run's plan is carried out on them once more, with noise as large as the first time;
and the replicate is drawn from what that learned. Both times, patients are independent draws:
spread more evenly than chance, they would vary less than patients do. A patient's rows stay
together throughout, so estimates about visits vary as much as patients make them vary. No private
row is read, and no ledger is charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pandas as pd

from dpsynth._util.seeds import check_drawn, fresh_seed
from dpsynth.encoding import HistoryCodec
from dpsynth.models import histories_class
from dpsynth.models.histories import domain_of
from dpsynth.privacy import SeededEntropy
from dpsynth.synthesis.drawing.cohort_sampler import CohortSampler, sample_cohort
from dpsynth.synthesis.drawing.fitted import FittedCohort
from dpsynth.synthesis.replicates import STAMP, check_count, plan_of, seeds_of

AnyCohort = TypeVar("AnyCohort", bound=FittedCohort)


def refitted(run: AnyCohort, *, seed: int, number: int) -> AnyCohort:
    """Carry out the run's plan on patients drawn from the run; the result is stamped.

    Raises:
        InputError: the run was fitted without privacy, so it has no plan.
    """
    of_patients, of_noise, _ = seeds_of(seed, number)
    patients = CohortSampler.of(run).generator.sample(
        run.schema.population.value, np.random.default_rng(of_patients), even=False
    )
    domain = domain_of(HistoryCodec(run.schema))
    generator = histories_class(run.model)(domain)
    fitted = generator.fit(patients, plan_of(run), SeededEntropy(of_noise))
    return replace(run, config=fitted.config(), arrays=fitted.arrays(), stamps=(*run.stamps, STAMP))


def cohort_replicates(
    run: FittedCohort,
    m: int,
    patients: int | None = None,
    *,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[dict[str, pd.DataFrame]]:
    """Draw m replicates in memory; a refit takes about as long as the fit did, without reading.

    Args:
        run: the artifact of a fit of linked tables; nothing else is read.
        m: how many, 2 to 100.
        patients: of each; by default as many as the schema declares.
        seed: makes them repeatable; replicate i is the same for every m.
        progress: called with the fraction done.

    Raises:
        InputError: m, patients or seed are out of range, or the run was fitted without privacy.
    """
    check_count(m)
    patients = run.schema.population.value if patients is None else patients
    check_patients(patients)
    seed = fresh_seed() if seed is None else seed
    cohorts = []
    for number in range(1, m + 1):
        refit = refitted(run, seed=seed, number=number)
        cohorts.append(sample_cohort(refit, patients, seed=seeds_of(seed, number)[2], plain=True))
        if progress is not None:
            progress(number / m)
    return cohorts


def check_patients(patients: int) -> None:
    """Refuse a cohort of nobody before the first refit."""
    check_drawn(patients, "patients")
