"""Facts of histories: a table that is broken in one way is seen there, and in plain numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import NEVER, Histories, SeriesRows
from dpsynth.eval.gates import gates, judged
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, HistoryFacts, chosen
from dpsynth.eval.longitudinal.facts_of_patients import _cox, patient_facts
from dpsynth.eval.longitudinal.facts_of_rows import row_facts
from dpsynth.eval.longitudinal.named_facts import quantiles
from dpsynth.eval.longitudinal.survival import survival

from ...support.hospital_histories import (
    CODES,
    E11,
    LAST,
    O80,
    codec,
    hospital,
    with_labs,
    with_patients,
    with_stays,
)

TRAIN = hospital(seed=1)
FACTS = (
    *("values", "panels", "links", "calendar", "prevalence", "effects", "event_curves"),
    "coefficients",
)
Found = tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]


def measured(drawn: Histories, train: Histories = TRAIN, **declared: Any) -> Found:
    """Return figures, and the largest differences, by fact."""
    rng = np.random.default_rng(5)
    compared = Compared.of(codec(**declared), drawn, train, None, rng)
    parts = [*row_facts(compared), *patient_facts(compared)]
    own = [one for part in (*parts, survival(compared)) for one in part.measures]
    figures = {one.key: one.to_dict() for one in own if one.key in FACTS}
    return figures, {part.details["key"]: part.details["largest"] for part in parts}


def failed(figures: dict[str, Any]) -> set[str]:
    """Return the gates of histories that fail."""
    verdicts = judged(figures, [one for one in gates() if one.of_histories])
    assert {one["key"] for one in verdicts} == set(FACTS)
    return {one["key"] for one in verdicts if one["passed"] is False}


@cache
def fresh() -> Histories:
    """Other patients of the same law."""
    return hospital(seed=2)


@cache
def of_fresh() -> Found:
    """What is measured of them."""
    return measured(fresh())


def drifting(drawn: Histories) -> Histories:
    rows = drawn.rows[1][0]
    place = np.arange(len(rows.patients)) - np.searchsorted(rows.patients, rows.patients)
    values = np.minimum(rows.values[:, 0] + 4 * place, 99).astype(np.uint16)[:, None]
    return with_labs(drawn, 0, values=values)


def unrelated(drawn: Histories) -> Histories:
    values = drawn.rows[1][1].values
    return with_labs(drawn, 1, values=values[np.random.default_rng(0).permutation(len(values))])


def outside(drawn: Histories) -> Histories:
    days = drawn.rows[0][0].days
    moved = np.clip(days - 300, 0, None)
    return with_stays(drawn, days=np.sort(moved + drawn.rows[0][0].patients * 10_000) % 10_000)


def without_chd(drawn: Histories) -> Histories:
    onsets = drawn.onsets.copy()
    onsets[:, 1] = np.random.default_rng(0).permutation(onsets[:, 1])
    onsets = np.where(onsets <= drawn.ends[:, None], onsets, NEVER)
    return with_patients(drawn, onsets=onsets)


def rarer(drawn: Histories) -> Histories:
    values = drawn.rows[0][0].values.copy()
    hit = (values[:, 1] == E11) & (np.random.default_rng(0).random(len(values)) < 0.7)
    values[hit, 1] = 1
    return with_stays(drawn, values=values)


def of_others(drawn: Histories) -> Histories:
    values = drawn.rows[0][0].values.copy()
    values[:, 1] = np.random.default_rng(0).permutation(values[:, 1])
    return with_stays(drawn, values=values)


def crowded(drawn: Histories) -> Histories:
    stays, labs = drawn.rows
    crowd = [SeriesRows(one.patients, one.days // 4, one.values) for one in (*stays, *labs)]
    return Histories(drawn.baseline, drawn.ends, drawn.onsets, ((crowd[0],), tuple(crowd[1:])))


def other_ages(drawn: Histories) -> Histories:
    baseline = drawn.baseline.copy()
    baseline[:, 1] = np.random.default_rng(0).permutation(baseline[:, 1])
    return with_patients(drawn, baseline=baseline)


def longer_lives(drawn: Histories) -> Histories:
    onsets = drawn.onsets.copy()
    spared = np.random.default_rng(0).random(len(drawn)) < 0.7
    onsets[spared, 2] = NEVER
    return with_patients(drawn, onsets=onsets)


def of_one_day(drawn: Histories) -> Histories:
    rows = drawn.rows[1][1]
    return with_labs(drawn, 1, days=np.maximum(rows.days - 1, 0))


TWINS: dict[str, tuple[Any, str, str]] = {
    "values that drift": (drifting, "values", "sbp"),
    "pressures that are unrelated": (unrelated, "panels", "rank correlation"),
    "tests that are taken apart": (of_one_day, "panels", "days of"),
    "values outside stays": (outside, "links", "rows of labs on a day of a row of stays"),
    "events without what they imply": (without_chd, "links", "who had chd by then"),
    "a rare code that is rarer": (rarer, "prevalence", "diagnosis E11"),
    "codes of other patients": (of_others, "effects", "among patients with diagnosis E11"),
    "all days at once": (crowded, "calendar", "day with rows"),
    "fewer deaths": (longer_lives, "event_curves", "death within"),
    "ages of other patients": (other_ages, "coefficients", "age"),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_seen_in_its_fact_and_named(twin: str) -> None:
    break_one, key, words = TWINS[twin]
    assert key not in failed(of_fresh()[0])
    figures, largest = measured(break_one(fresh()))
    assert key in failed(figures)
    named = [one["name"] for one in largest[key] if one["clear"]]
    assert any(words in name for name in named), named


def test_the_same_patients_are_nowhere_apart() -> None:
    figures, largest = measured(TRAIN)
    assert set(figures) == set(FACTS)
    assert max(one["value"] for one in figures.values()) < 1e-6
    assert not [one for entries in largest.values() for one in entries if one["clear"]]


def test_other_patients_of_the_same_law_pass_every_gate() -> None:
    assert not failed(of_fresh()[0])


@pytest.mark.parametrize("seed", range(2))
def test_a_bootstrap_scores_like_the_bootstrap_beside_it(seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(len(TRAIN), size=len(TRAIN))
    figures, _ = measured(chosen(TRAIN, drawn))
    for key, one in figures.items():
        assert 0.25 * one["chance"] - 0.005 < one["value"] < 2.5 * one["chance"] + 0.02, key


def test_numbers_are_those_that_a_clinician_counts() -> None:
    _, largest = measured(of_others(fresh()))
    entry = next(one for one in largest["effects"] if one["name"].startswith("labs: sbp of"))
    (with_code, without), drawn = entry["source"], entry["synthetic"]
    code = next(place for place, name in enumerate(CODES) if name in entry["name"])
    own = TRAIN.rows[1][0]
    means = np.bincount(own.patients, own.values[:, 0]) / np.bincount(own.patients)
    stays = TRAIN.rows[0][0]
    has = np.isin(np.arange(len(TRAIN)), stays.patients[stays.values[:, 1] == code])
    assert with_code == pytest.approx(means[has].mean(), abs=0.3)
    assert without == pytest.approx(means[~has].mean(), abs=0.3)
    assert abs(drawn[0] - drawn[1]) < 0.3 * abs(with_code - without) and entry["unit"] == "mmHg"
    _, largest = measured(rarer(fresh()))
    [entry] = [one for one in largest["prevalence"] if "E11" in one["name"]]
    has = np.unique(stays.patients[stays.values[:, 1] == E11])
    assert entry["source"] == pytest.approx([len(has) / len(TRAIN)], abs=1e-5)


def test_what_the_schema_declares_and_what_it_does_not_is_told_apart() -> None:
    """The same share is kept by construction under a declaration, and by luck without one."""
    inside = {"table": "stays", "length": "los"}
    implies = [{"table": "events", "event": "mi", "implies": "chd"}]
    for declared in ({}, {"inside": inside, "implies": implies}):
        entries = measured(TRAIN, **declared)[1]["links"]
        within = [one for one in entries if "rows of labs on a day" in one["name"]]
        then = [one for one in entries if "by then" in one["name"]]
        assert [one["declared"] for one in (*within, *then)] == [bool(declared)] * 2
        assert [one["source"] for one in (*within, *then)] == [[1.0], [1.0]]
        helps = [one["help"].split(":")[0] for one in (*within, *then)]
        assert helps == (
            [""] * 2 if declared else ["Declare `inside", "Declare that mi `implies` chd"]
        )


def test_a_rule_that_train_does_not_hold_is_no_link() -> None:
    _, largest = measured(fresh(), outside(TRAIN))
    assert not [one for one in largest["links"] if "on a day of a row" in one["name"]]


def test_rows_of_one_day_need_no_length() -> None:
    """Values on the day of a stay are within it, whatever other number the stay has."""
    (stays,), labs = TRAIN.rows
    at = np.repeat(np.arange(len(stays.patients)), 2)
    moved = tuple(SeriesRows(stays.patients[at], stays.days[at], one.values) for one in labs)
    train = Histories(TRAIN.baseline, TRAIN.ends, TRAIN.onsets, ((stays,), moved))
    entries = {one["name"]: one for one in measured(fresh(), train)[1]["links"]}
    held = entries["rows of labs on a day of a row of stays"]
    assert held["source"] == [1.0] and held["synthetic"][0] < 0.5
    assert held["declared"] is False and held["help"] == ""
    assert entries["rows of stays on a day of a row of labs"]["source"] == [1.0]


def few_births(cases: int) -> Histories:
    """Train with so many men who give birth, and no difference else."""
    values = TRAIN.rows[0][0].values.copy()
    men = np.flatnonzero(TRAIN.baseline[TRAIN.rows[0][0].patients, 0] == 1)
    first = men[np.unique(TRAIN.rows[0][0].patients[men], return_index=True)[1]]
    values[first[:cases], 1] = O80
    return with_stays(TRAIN, values=values)


@pytest.mark.parametrize(("cases", "is_shown"), [(0, True), (1, False), (9, False), (10, True)])
def test_no_share_tells_of_fewer_than_ten_patients(cases: int, is_shown: bool) -> None:
    _, largest = measured(of_others(fresh()), few_births(cases))
    names = (
        "sex M among patients with diagnosis O80",
        "diagnosis O80 among patients with sex M",
    )
    [entry] = [one for one in largest["effects"] if one["name"].startswith(names)]
    assert (entry["source"][0] is not None) == (entry["chance"][0] is not None) == is_shown
    assert entry["synthetic"][0] > 0.2 or "O80 among" in entry["name"]


def test_outer_values_are_shown_of_many_patients_alone() -> None:
    names = [
        one["name"] for one in measured(drifting(hospital(900, 3)), hospital(900, 4))[1]["values"]
    ]
    assert names and not [name for name in names if "percentile" in name]


def test_patients_without_any_row_are_as_far_as_can_be() -> None:
    none = np.zeros(0, dtype=np.int64)
    empty = SeriesRows(none, none, np.zeros((0, 1), np.uint16))
    drawn = Histories(TRAIN.baseline, TRAIN.ends, TRAIN.onsets, (TRAIN.rows[0], (empty, empty)))
    figures, _ = measured(drawn)
    assert figures["values"]["value"] > 3 and figures["panels"]["value"] > 0.3
    nobody = SeriesRows(none, none, np.zeros((0, 2), np.uint16))
    figures, _ = measured(Histories(TRAIN.baseline, TRAIN.ends, np.full_like(TRAIN.onsets, NEVER),
                                    ((nobody,), (empty, empty))))  # fmt: skip
    assert figures["prevalence"]["value"] == 3 and figures["links"]["value"] > 0.5
    assert figures["calendar"]["value"] > 0.8 and figures["coefficients"]["value"] >= 0.9


def test_cox_coefficients_are_those_of_lifelines() -> None:
    pd = pytest.importorskip("pandas")
    lifelines = pytest.importorskip("lifelines")
    cohort = Cohort.of(HistoryFacts.of(codec()), TRAIN, 20, np.random.default_rng(0))
    age = (TRAIN.baseline[:, 1] - 35) / 20
    sex = TRAIN.baseline[:, 0].astype(float)
    beta = _cox(cohort, [age, sex], "death")
    frame = pd.DataFrame({"age": age, "sex": sex, "days": TRAIN.ends})
    frame["dead"] = TRAIN.onsets[:, 2] != NEVER
    fitted = lifelines.CoxPHFitter().fit(frame, "days", "dead", robust=True)
    assert beta[0] == pytest.approx(fitted.params_.to_numpy(), abs=0.01)
    spread = np.sqrt(19 / 20 * ((beta[1:] - beta[1:].mean(axis=0)) ** 2).sum(axis=0))
    assert spread == pytest.approx(fitted.standard_errors_.to_numpy(), rel=0.4)


def test_quantiles_of_counts() -> None:
    counts = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
    found = quantiles(counts, np.array([1.0, 5.0, 7.0]), (0.0, 0.25, 0.5, 1.0))
    assert found[0].tolist() == [1.0, 1.0, 5.0, 7.0] and np.isnan(found[1]).all()


def test_the_last_day_of_the_window_is_a_fact_of_its_own() -> None:
    ends = np.where(fresh().ends == LAST, LAST - 1, fresh().ends)
    baseline = fresh().baseline.copy()
    baseline[:, 2] = ends
    moved = with_patients(fresh(), ends=ends, baseline=baseline)
    [entry] = [one for one in measured(moved)[1]["calendar"] if "last day" in one["name"]]
    assert entry["synthetic"] == [0.0] and entry["help"].startswith("Declare `last_day: true`")
    [entry] = [
        one for one in measured(moved, last_day=True)[1]["calendar"] if "last day" in one["name"]
    ]
    assert entry["help"] == ""
