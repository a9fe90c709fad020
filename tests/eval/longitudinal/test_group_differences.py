"""Comparisons of groups are judged from the differences: sign, and size beyond chance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Histories
from dpsynth.eval.longitudinal.cohort import Compared
from dpsynth.eval.longitudinal.persons import group_means
from dpsynth.eval.longitudinal.survival import survival
from dpsynth.eval.longitudinal.uses import CARE, FIT, UNFIT, uses

from ...support.history_cohorts import codec, cohort

CODEC = codec()
TRAIN, HOLDOUT = cohort(seed=1), cohort(seed=2)
SEX, AGE = 0, 1  # columns of patients
HDL, SMOKE = "labs: hdl: sex, F and others", "labs: smoke: 0: sex, F and others"
MI = "rate of mi: age, 76 to 89 and others"


def regrouped(histories: Histories, column: int) -> Histories:
    """Deal the values of a column out among patients, so that its groups differ in nothing."""
    baseline = histories.baseline.copy()
    baseline[:, column] = np.random.default_rng(0).permutation(baseline[:, column])
    return replace(histories, baseline=baseline)


def judged(synthetic: Histories, holdout: Any = HOLDOUT) -> tuple[str, str, dict[str, Any]]:
    """Return the verdict on comparisons of groups, its sentence, and each difference by name."""
    compared = Compared.of(CODEC, synthetic, TRAIN, holdout, np.random.default_rng(0))
    means, curves = group_means(compared), survival(compared)
    measures = {one.key: one.to_dict() for part in (means, curves) for one in part.measures}
    [use] = [one for one in uses(measures) if one.key == "groups"]
    return use.verdict, use.sentence, {one["name"]: one for one in means.details["differences"]}


@cache
def fresh() -> tuple[str, str, dict[str, Any]]:
    """What is said about a cohort of the same law."""
    return judged(cohort(seed=3))


def test_groups_that_differ_as_they_do_are_fit() -> None:
    verdict, _, found = fresh()
    assert verdict == FIT
    assert {one["verdict"] for one in found.values()} == {"kept"}
    assert judged(cohort(seed=3), None)[0] == FIT


def test_each_difference_is_said_once_and_is_clear_in_the_source() -> None:
    _, _, found = fresh()
    by_sex = [name for name in found if "sex" in name]
    assert sorted(by_sex) == [HDL, SMOKE]
    hdl = found[HDL]["source"]
    assert hdl["value"] == pytest.approx(-14 / np.hypot(8, 7), abs=0.1) and hdl["high"] < -1
    assert MI in found
    assert not [name for name in found if name.startswith("rate of") and "sex" in name]


@pytest.mark.parametrize(
    ("draw", "words", "lost"),
    [
        (lambda: cohort(seed=3, sex_effect=0.0), "most by sex: 71 %", HDL),
        (lambda: regrouped(cohort(seed=3), SEX), "most by sex:", SMOKE),
        (lambda: regrouped(cohort(seed=3), AGE), "most by age:", MI),
    ],
    ids=["no effect of sex on a value", "sex of somebody else", "age of somebody else"],
)
def test_a_cohort_without_the_effect_of_a_group_fails(draw: Any, words: str, lost: str) -> None:
    verdict, sentence, found = judged(draw())
    assert verdict == UNFIT and words in sentence
    assert found[lost]["verdict"] == "lost"


def test_an_effect_of_the_other_sign_fails() -> None:
    verdict, _, found = judged(cohort(seed=3, sex_effect=-14.0))
    assert verdict == UNFIT
    assert found[HDL]["verdict"] == "turned round"


def test_half_an_effect_is_used_with_care() -> None:
    verdict, _, found = judged(cohort(seed=3, sex_effect=7.0))
    assert verdict == CARE
    assert found[HDL]["verdict"] == "too small"
    assert found[HDL]["kept"] == pytest.approx(0.5, abs=0.1)


def test_a_shift_of_all_groups_is_no_difference_between_them() -> None:
    compared = Compared.of(
        CODEC, cohort(seed=3, hazard=1.5), TRAIN, HOLDOUT, np.random.default_rng(0)
    )
    measures = {one.key: one.estimate for one in group_means(compared).measures}
    rates = measures["group_rate_differences"]
    assert rates.reference is not None and rates.value - rates.reference < 0.25
