"""Shadow models, judged: leaks are found, chance is not, and no bound proves too much."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack, Roc
from dpsynth.eval.attacks import Exposed, Shadow, ShadowSight, shadow_attack
from dpsynth.eval.attacks.shadow_models import _area
from dpsynth.eval.core import Tables
from dpsynth.eval.report.sections.attacks import shadows as section

from ...support.evaluation_tables import number, tables, words

FIELDS = [number("age", 0, 100), words("ward", "a", "b", "c"), words("sex", "F", "M")]
UNITS = [{"name": "id", "type": "string", "dpsynth": {"role": "unit"}}, *FIELDS]
TARGETS = 4


def people(rows: int, seed: int, prefix: str) -> pd.DataFrame:
    """Draw people of wards a and b, one row each."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"{prefix}{i}" for i in range(rows)],
            "age": rng.integers(20, 60, rows),
            "ward": rng.choice(["a", "b"], rows),
            "sex": rng.choice(["F", "M"], rows),
        }
    )


def attacked(source: pd.DataFrame, holdout: pd.DataFrame | None = None) -> Tables:
    synthetic = source.drop(columns="id")
    more: dict[str, Any] = {"max_rows": {"value": 2, "basis": "made for this test"}}
    return tables(UNITS, source, synthetic, holdout, **more)


def played(fits: int, seed: int, leak: float, width: int = 20) -> list[Shadow]:
    """Make fits whose tables tell each coin by ``leak`` standard deviations of one feature."""
    rng = np.random.default_rng(seed)
    shadows = []
    for i in range(fits):
        coins = rng.random(TARGETS) < 0.5
        features = rng.normal(size=(TARGETS, width))
        features[:, -1] += leak * coins
        shadows.append(Shadow(i, coins, features))
    return shadows


def judged(fits: list[Shadow], delta: float = 1e-6) -> Attack:
    return shadow_attack(fits, ["everyone"] * TARGETS, delta, minutes=1.0)


def test_features_are_counts_and_distances_by_hand() -> None:
    source, holdout = people(300, 1, "s"), people(300, 2, "h")
    source.loc[0, ["age", "ward", "sex"]] = [50, "a", "F"]
    cohort = attacked(source, holdout)
    unit = cohort.source.units[0]
    sight = ShadowSight.of(cohort, np.array([unit]), np.random.default_rng(3))
    rows = pd.DataFrame({"age": [50, 25, 25], "ward": ["b", "a", "c"], "sex": ["F", "F", "M"]})
    drawn = tables(FIELDS, rows, rows).source
    features = sight.features(drawn)
    assert features.shape == (1, sight.width)
    shares = features[0, 3:-6]
    for columns, share in zip(sight.columns, shares, strict=True):
        hits = {0: {0}, 1: {1}, 2: {0, 1}}  # rows that match in age's decile, ward, sex
        count = len(set.intersection(*(hits[int(column)] for column in columns)))
        assert share == pytest.approx(math.log((count + 0.5) / 4))
    ways = np.array([len(columns) for columns in sight.columns])
    means = [shares[ways == way].mean() for way in (1, 2, 3)]
    assert features[0, -6:-2] == pytest.approx([*means, 0.0])
    assert features[0, -2:] == pytest.approx(0.25)  # to the second row: 25 years of 100


def test_rows_of_a_target_are_taken_together() -> None:
    source, holdout = people(300, 1, "s"), people(300, 2, "h")
    source.loc[1, "id"] = source.loc[0, "id"]
    source.loc[[0, 1], "age"] = [20, 59]
    cohort = attacked(source, holdout)
    sight = ShadowSight.of(cohort, cohort.source.units[[0]], np.random.default_rng(3))
    assert len(sight.target) == 2
    mean, least = sight.features(cohort.source.take(np.array([0])))[0, -2:]
    assert least == 0 and mean > 0.1


def test_targets_are_exposed_people_of_the_source_and_depend_on_nothing_else() -> None:
    source, holdout = people(2000, 1, "s"), people(2000, 2, "h")
    source.loc[:40, "ward"] = "c"
    source.loc[:40, "age"] = 100
    cohort = attacked(source, holdout)
    chosen = [Exposed.of(cohort, 8, np.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert chosen[0].units.tolist() == chosen[1].units.tolist() != chosen[2].units.tolist()
    assert len(set(chosen[0].units.tolist())) == 8 == len(chosen[0].groups)
    assert np.isin(chosen[0].units, cohort.source.units[:41]).all()
    assert set(chosen[0].groups) == {"people unlike others", "people with rare values"}


def test_few_people_are_all_targets_and_nobody_else_can_be() -> None:
    cohort = attacked(people(6, 1, "s"), people(30, 2, "h"))
    assert len(set(Exposed.of(cohort, 6, np.random.default_rng(1)).units.tolist())) == 6
    with pytest.raises(InputError, match="1 to 6"):
        Exposed.of(cohort, 7, np.random.default_rng(1))
    with pytest.raises(InputError, match="holdout"):
        Exposed.of(attacked(people(6, 1, "s")), 2, np.random.default_rng(1))


def test_a_leak_is_found_and_proved() -> None:
    attack = judged(played(120, 1, 4.0))
    assert attack.findings[0].found
    assert attack.part.details["auc"]["value"] > 0.95
    assert attack.part.details["epsilon"] > 1


def test_chance_is_not_found() -> None:
    attacks = [judged(played(60, seed, 0.0)) for seed in range(10)]
    assert not any(attack.findings[0].found for attack in attacks)
    areas = [attack.part.measures[0].estimate for attack in attacks]
    assert sum(area.low <= 0.5 <= area.high for area in areas) >= 8  # type: ignore[operator]


def test_scores_do_not_know_the_coins_that_they_are_judged_by() -> None:
    fits = played(60, 1, 1.0)
    turned = [
        Shadow(fit.number, fit.included ^ (fit.number % 2 == 1), fit.features) for fit in fits
    ]
    areas = [judged(some).part.details["auc"]["value"] for some in (fits, turned)]
    assert areas[0] > 0.6 and sum(areas) == pytest.approx(1, abs=1e-5)


def test_the_epsilon_that_is_proved_is_kept_by_what_is_private() -> None:
    """Randomised response of epsilon 1 tells each coin as well as epsilon 1 can, and no better."""
    right, proved = math.e / (1 + math.e), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shadows = []
        for i in range(120):
            coins = rng.random(TARGETS) < 0.5
            guesses = np.where(rng.random(TARGETS) < right, coins, ~coins)
            features = np.column_stack([guesses, np.zeros((TARGETS, 8))])[:, ::-1]
            shadows.append(Shadow(i, coins, features.astype(float)))
        proved.append(judged(shadows).part.details["epsilon"])
    assert sum(epsilon > 1 for epsilon in proved) <= 3  # 1 of 20 is allowed, on average
    assert np.median(proved) > 0.3


def test_what_cannot_be_judged_says_so() -> None:
    fits = [
        Shadow(i, np.ones(TARGETS, bool), one.features) for i, one in enumerate(played(20, 1, 0))
    ]
    attack = judged(fits)
    assert not attack.findings and "by chance" in attack.part.notes[-1]


def test_power_is_the_area_that_would_have_been_seen() -> None:
    attack = judged(played(120, 1, 0.0))
    least = attack.powers[0].least
    assert attack.powers[0].key == "shadows" and attack.powers[0].unit == "auc"
    assert least == pytest.approx(0.5 + (3.0902 + 1.2816) * math.sqrt(241 / (12 * 120 * 120)), 2e-3)


def test_details_are_strict_json_and_the_page_shows_them() -> None:
    attack = judged(played(40, 1, 1.0))
    details = json.loads(json.dumps(attack.part.details, allow_nan=False))
    assert {"targets", "models", "auc", "roc", "epsilon", "minutes"} <= set(details)
    assert (details["targets"], details["models"]) == (TARGETS, 40)
    audit = {"parts": {"shadows": details}, "findings": [attack.findings[0].to_dict()]}
    assert section(audit) is not None


def test_the_interval_allows_for_the_people_of_one_fit_being_alike() -> None:
    """Thirty people whose tables say the same are little more than one: each alone is too sure."""
    rng = np.random.default_rng(4)
    included = np.repeat(np.arange(12)[:, None] % 2 == 0, 30, axis=1)
    scores = rng.standard_normal((12, 1)) + 1e-3 * rng.standard_normal((12, 30))
    roc = Roc(scores[included], scores[~included])
    plain, allowed = roc.auc, _area(roc, scores, included)
    assert None not in (plain.low, plain.high, allowed.low, allowed.high)
    assert allowed.high - allowed.low > 2 * (plain.high - plain.low)  # the broken version: plain
    assert allowed.low <= plain.low and allowed.high >= plain.high
