"""Shadow fits: fair coins, cohorts, and what is declared of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.assessment.shadow_models import fit_and_draw
from dpsynth.errors import InputError
from dpsynth.eval.core import Tables

from ..support.shadow_bench import TARGETS, design


def test_coins_are_fair_and_their_own(tables: Tables) -> None:
    plan = design(tables)
    coins = np.stack([plan.dealt(i)[0] for i in range(2000)])
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(2000)
    assert np.abs(np.corrcoef(coins.T) - np.eye(TARGETS)).max() < 5 / np.sqrt(2000)
    fits, others = zip(*(plan.dealt(i) for i in range(5)), strict=True)
    again = [plan.dealt(i) for i in range(5)]
    assert all((a == b[0]).all() for a, b in zip(fits, again, strict=True))
    assert all((a == b[1]).all() for a, b in zip(others, again, strict=True))
    assert len({tuple(sorted(some)) for some in others}) == 5


def test_a_cohort_is_the_drawn_people_and_the_targets_whose_coins_say_so(tables: Tables) -> None:
    plan = design(tables)
    included, others = plan.dealt(0)
    assert len(set(others.tolist())) == plan.size == len(plan.pool) // 2
    assert not np.isin(plan.exposed.units, others).any()
    cohort = plan.cohort(included, others)
    chosen = np.concatenate([others, plan.exposed.units[included]])
    assert len(cohort.mask) == len(chosen) == plan.size + included.sum()
    rows = sum(min(plan.schema.unit.max_rows, int((plan.owners == one).sum())) for one in chosen)
    assert cohort.mask.sum() == rows
    assert not cohort.codes[~cohort.mask].any()
    real = {row.tobytes() for row in plan.codes[np.isin(plan.owners, chosen)]}
    assert {row.tobytes() for row in cohort.codes[cohort.mask]} <= real


def test_what_is_declared_does_not_depend_on_coins(tables: Tables) -> None:
    plan = design(tables)
    assert plan.schema.population.value == plan.size + TARGETS // 2
    assert plan.prepared.domain.population == plan.schema.population.value
    included, others = plan.dealt(0)
    for coins in (included, ~included):
        assert len(fit_and_draw(plan, plan.cohort(coins, others)).codes) == plan.rows


def test_targets_and_settings_are_functions_of_the_input(tables: Tables) -> None:
    first, again, other = design(tables), design(tables), design(tables, seed=2)
    assert first.name == again.name != other.name
    assert (first.exposed.units == again.exposed.units).all()
    fewer = replace(tables, holdout=tables.holdout.take(np.arange(200)))  # type: ignore[union-attr]
    assert design(fewer).name != first.name


def test_a_model_of_counts_has_no_fit_without_privacy(tables: Tables) -> None:
    with pytest.raises(InputError, match="without privacy"):
        design(tables, not_private=True)
