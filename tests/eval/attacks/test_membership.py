"""Membership inference: copies are found, the population is not, and nobody is judged untold."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.attack_stats import Attack, ExposureGroup, People, Roc, ceiling, ceiling_auc
from dpsynth.eval.attack_stats.result import ALARM, ALARMS
from dpsynth.eval.attacks import membership as module
from dpsynth.eval.attacks.membership import DELTA, TITLES, membership
from dpsynth.eval.core import Tables
from dpsynth.eval.distances import Metric

from ...support.evaluation_tables import number, tables, words

UNIT = {"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}
NAMES = ("u", "v", "w")
FIELDS = [UNIT, *(number(name, 0, 1000) for name in NAMES), words("p", "a", "b", "c", "d")]
ROWS = {"max_rows": {"value": 9, "basis": "made for this test"}}


def law(units: int, seed: int, rows: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = units * rows
    cells: dict[str, Any] = {"unit": np.repeat([f"{seed}-{i}" for i in range(units)], rows)}
    for name in NAMES:
        cells[name] = np.clip(500 + 130 * rng.normal(size=n), 0, 1000).astype(int)
    cells["p"] = rng.choice(list("abcd"), n)
    return pd.DataFrame(cells)


def read(
    source: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    fields: list[dict[str, Any]] = FIELDS,
) -> Tables:
    return tables(fields, source, synthetic.drop(columns="unit"), holdout, **ROWS)


def attacked(cohort: Tables, seed: int = 0, **more: Any) -> Attack:
    people = People.of(cohort, np.random.default_rng(seed))
    return membership(cohort, people, np.random.default_rng(seed), **more)


def found(attack: Attack) -> set[str]:
    return {finding.key.removeprefix("membership:") for finding in attack.findings if finding.found}


def area(attack: Attack, key: str) -> float:
    [value] = [m.estimate.value for m in attack.part.measures if m.key == f"auc:{key}"]
    return value


def everyone(attack: Attack, key: str) -> dict[str, Any]:
    entries = attack.part.details["attacks"]
    [one] = [a for a in entries if (a["key"], a["group"]) == (key, "everyone")]
    return dict(one)


SOURCE, HOLDOUT = law(500, 1), law(500, 2)
COPIED, FRESH = read(SOURCE, SOURCE, HOLDOUT), read(SOURCE, law(500, 3), HOLDOUT)
CLAIM = (1.0, 1e-5)


@pytest.fixture(scope="module")
def copied() -> Attack:
    return attacked(COPIED, claim=CLAIM)


@pytest.fixture(scope="module")
def fresh() -> Attack:
    return attacked(FRESH)


def test_a_copied_table_is_found(copied: Attack) -> None:
    assert found(copied) >= {"distance", "density", "ensemble"}
    assert area(copied, "distance") > 0.99 and area(copied, "density") > 0.7
    proved = everyone(copied, "distance")["epsilon"]
    assert proved["value"] > 2 and proved["correct"] > 0.9 * proved["guesses"]


def test_a_table_that_holds_every_third_row_is_found_by_whom_it_names() -> None:
    some = pd.concat([law(300, 4), SOURCE.iloc[::3]], ignore_index=True)
    attack = attacked(read(SOURCE, some, HOLDOUT))
    assert "distance" in found(attack) and area(attack, "density") > 0.54
    true = everyone(attack, "distance")["rates"][1]["tpr"]
    assert 0.2 < true["value"] < 0.5  # a third is copied


@pytest.mark.long
def test_a_fresh_sample_of_the_law_is_not_found() -> None:
    covered = 0
    for seed in range(20):
        cohort = read(*(law(350, 1000 * seed + i) for i in (1, 2, 3)))
        attack = attacked(cohort, seed)
        assert found(attack) == set(), seed
        for key in TITLES:
            auc = everyone(attack, key)["auc"]
            covered += auc["low"] <= 0.5 <= auc["high"]
            assert everyone(attack, key)["epsilon"]["value"] < 0.8
    assert covered >= 0.88 * 80


def test_the_same_generator_gives_the_same_answer(fresh: Attack) -> None:
    again, other = attacked(FRESH), attacked(FRESH, 1)
    assert again.part.details == fresh.part.details and again.findings == fresh.findings
    assert other.part.details != fresh.part.details


def test_source_and_fresh_people_are_not_looked_at(fresh: Attack) -> None:
    people = People.of(FRESH, np.random.default_rng(0))
    other = read(law(9, 7), law(9, 8), law(9, 9))
    unseen = other.source.take(np.arange(5))
    unseen = replace(unseen, units=unseen.units + 2**50)
    blind = replace(FRESH, source=other.source, holdout=None)
    attack = membership(blind, replace(people, fresh=unseen), np.random.default_rng(0))
    assert attack.part.details == fresh.part.details


def test_people_with_many_rows_count_once_and_score_by_their_mean() -> None:
    rows = 3
    cohort = read(law(350, 1, rows), law(300, 3), law(350, 2, rows))
    people = People.of(cohort, np.random.default_rng(0))
    details = attacked(cohort).part.details
    assert details["members"] == people.members.rows / rows
    assert details["strangers"] == people.non_members.rows / rows
    assert details["reference"] == people.reference.rows / rows
    one = everyone(attacked(cohort), "distance")
    assert one["rates"][0]["tpr"]["runs"] == one["members"] == details["members"]

    metric = Metric.of(cohort.codec)
    nearest = _nearest(metric, cohort, people)
    assert one["auc"]["value"] == pytest.approx(nearest.auc.value, abs=1e-5)


def _nearest(metric: Metric, cohort: Tables, people: People) -> Roc:
    """Mean distance of each unit's rows to the nearest synthetic row, by all pairs."""
    sides = []
    table = metric.points(cohort.synthetic)
    for view in (people.members, people.non_members):
        points = metric.points(view)
        pairs = np.indices((view.rows, table.rows)).reshape(2, -1)
        apart = metric.squared(points, pairs[0], table, pairs[1]).reshape(view.rows, -1)
        near = pd.Series(np.sqrt(apart.min(axis=1))).groupby(view.units).mean()
        sides.append(-near.to_numpy())
    return Roc(sides[0], sides[1])


def test_who_is_judged_by_classifiers_is_about_half(fresh: Attack) -> None:
    for key, share in (("distance", 1.0), ("density", 1.0), ("queries", 0.5), ("ensemble", 0.5)):
        one = everyone(fresh, key)
        people = fresh.part.details["members"] + fresh.part.details["strangers"]
        assert (one["members"] + one["strangers"]) / people == pytest.approx(share, abs=0.12)


def test_every_attack_has_measures_a_finding_and_a_power(copied: Attack) -> None:
    keys = [f"membership:{key}" for key in ("distance", "density", "queries", "ensemble")]
    assert (
        [finding.key for finding in copied.findings]
        == keys
        == [power.key for power in copied.powers]
    )
    measures = {measure.key for measure in copied.part.measures}
    for key in TITLES:
        groups = {a["group"] for a in copied.part.details["attacks"] if a["key"] == key}
        assert {"everyone", "outliers", "rare"} >= groups
        assert {f"auc:{key}", f"tpr:{key}", f"epsilon:{key}"} <= measures
        assert {f"auc:{key}:{group}" for group in groups - {"everyone"}} <= measures
    json.dumps(copied.part.details, allow_nan=False)
    assert len(measures) == len(copied.part.measures)


def test_a_finding_shares_its_false_alarms_among_groups(copied: Attack, fresh: Attack) -> None:
    for attack in (copied, fresh):
        for finding, power in zip(attack.findings, attack.powers, strict=True):
            key = finding.key.removeprefix("membership:")
            tests = sum(a["key"] == key for a in attack.part.details["attacks"])
            one = everyone(attack, key)
            roc = Roc(np.zeros(one["members"]), np.zeros(one["strangers"]))
            assert power.least == roc.least(tests) > roc.least() and tests > 1
            assert f"{power.least:.3f}" in power.sentence
    assert "more than chance allows" in copied.findings[0].sentence
    assert "no more than chance allows" in fresh.findings[0].sentence


def test_one_group_in_which_members_stand_out_is_enough_and_shared() -> None:
    """Scores are chance, but for a group of 40; at a level that all groups share."""
    rng = np.random.default_rng(1)
    inside = np.arange(400) % 2 == 0
    some = np.arange(400) < 40
    whole = ExposureGroup("everyone", "everyone", np.ones(400, dtype=bool))
    groups = [
        whole,
        *(ExposureGroup(f"g{i}", "some", some if i == 0 else ~some) for i in range(3)),
    ]
    values = rng.normal(size=400)
    values[some & inside] += 1.4
    scores = module._Scores("distance", np.ones(400, dtype=bool), values)
    judged = module._judged(scores, groups, inside, np.arange(400), DELTA)
    assert judged.finding.found and "(some)" in judged.finding.sentence
    chance = Roc(values[some & inside], values[some & ~inside]).chance
    assert ALARM / 1000 < chance
    many = groups + groups[2:3] * math.ceil(ALARM / chance)
    assert not module._judged(scores, many, inside, np.arange(400), DELTA).finding.found


def test_groups_without_both_sides_are_left_out() -> None:
    inside = np.arange(60) < 30
    whole = ExposureGroup("everyone", "everyone", np.ones(60, dtype=bool))
    scores = module._Scores("distance", np.ones(60, dtype=bool), np.arange(60.0))
    judged = module._judged(
        scores, [whole, ExposureGroup("rare", "rare", inside)], inside, np.arange(60), DELTA
    )
    assert [one["group"] for one in judged.shown] == ["everyone"]


def test_equal_scores_are_guessed_by_lot() -> None:
    """Units of the source have lower numbers than others: that must not decide between ties."""
    fields = [UNIT, words("p", "a", "b")]
    frames = [law(600, seed)[["unit", "p"]].assign(p="a") for seed in (1, 2, 3)]
    attack = attacked(read(*frames, fields))
    assert area(attack, "distance") == 0.5 and found(attack) == set()
    guessed = everyone(attack, "distance")["epsilon"]
    assert guessed["value"] == 0.0 and guessed["guesses"] > 300
    half = guessed["guesses"] / 2
    assert abs(guessed["correct"] - half) < 4 * math.sqrt(half / 2)


def test_too_few_people_have_no_power() -> None:
    power = module._power("distance", Roc(np.ones(4), np.zeros(4)), 3)
    assert power.least is None and power.unit == "auc" and "too few" in power.sentence


def test_what_a_claim_allows_stands_beside_the_attacks(copied: Attack, fresh: Attack) -> None:
    shown = copied.part.details["ceiling"]
    assert (shown["epsilon"], shown["delta"]) == CLAIM
    assert shown["auc"] == ceiling_auc(*CLAIM)
    expected = ceiling(*CLAIM, np.array(ALARMS)).tolist()
    assert [rate["tpr"] for rate in shown["rates"]] == pytest.approx(expected)
    assert [rate["fpr"] for rate in shown["rates"]] == list(ALARMS)
    curve = ceiling(*CLAIM, np.array(shown["roc"]["fpr"]))
    assert shown["roc"]["tpr"] == pytest.approx(curve.tolist(), rel=2e-3)
    assert area(copied, "distance") > shown["auc"]  # this release breaks its claim
    assert fresh.part.details["ceiling"] is None


@pytest.mark.parametrize("claim", [None, (2.0, 1e-3)], ids=["none", "claim"])
def test_epsilon_is_proved_at_the_delta_of_the_claim(
    claim: tuple[float, float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltas = []
    audited = module.audited
    monkeypatch.setattr(module, "audited", lambda *a: deltas.append(a[2]) or audited(*a))
    attacked(FRESH, claim=claim)
    assert deltas == [DELTA if claim is None else claim[1]] * 4


def test_large_tables_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 120)
    monkeypatch.setattr(module, "KNOWN", 50)
    calls = []
    scored = module._scored
    monkeypatch.setattr(module, "_scored", lambda *a: calls.append(a[1:3]) or scored(*a))
    assert attacked(FRESH).part.details["reference"] == 50
    assert [view.rows for view in calls[0]] == [120, 50]
