"""Competing events: shares that add up to 1 under any noise, and bands that hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import read_cohort
from dpsynth.errors import InputError
from dpsynth.privacy import SeededEntropy
from dpsynth.stats import StatisticsRequest, shares_of_request
from dpsynth.stats.statistic import FINE, Ints, Rows
from dpsynth.stats.survival import _derived, aalen_johansen, kaplan_meier, log_rank, split_counts
from dpsynth.tables import open_table, simulate

OF = {"insulin": ["insulin", "both"], "pill": ["oral"]}
ENTRY: dict[str, Any] = {
    "name": "treated",
    "survival": {"time": "length_of_stay", "event": "medication", "of": OF},
    "cuts": [4, 8, 15],
    "by": ["sex"],
}
COUNTS = np.array([30.0, 20, 10, 25, 40, 5, 10, 10, 30, 320])  # two kinds, three intervals


def test_shares_are_those_of_aalen_and_johansen() -> None:
    shares, lower, upper = aalen_johansen(COUNTS, 2, 0.0, 1.96)
    first = np.cumsum([30 / 500, 450 / 500 * 25 / 440, 450 / 500 * 375 / 440 * 10 / 370])
    second = np.cumsum([20 / 500, 450 / 500 * 40 / 440, 450 / 500 * 375 / 440 * 10 / 370])
    np.testing.assert_allclose(shares, [first, second, 1 - first - second])
    for band in (lower, upper):
        np.testing.assert_allclose(band, shares)
    merged = np.array([50.0, 10, 65, 5, 20, 30, 320])
    np.testing.assert_allclose(shares[2], kaplan_meier(merged, 0.0, 1.96)[0])


def test_one_less_each_kinds_survival_would_count_people_twice() -> None:
    """The broken twin: other events as if censored, and what is left of each curve."""
    naive = []
    for kind in (0, 1):
        leaving = COUNTS[:-1].reshape(3, 3)
        own = leaving[:, kind]
        two = np.append(np.stack([own, leaving.sum(axis=1) - own], axis=1).ravel(), COUNTS[-1])
        naive.append(1 - kaplan_meier(two, 0.0, 1.96)[0][-1])
    shares, _, _ = aalen_johansen(COUNTS, 2, 0.0, 1.96)
    assert sum(naive) + shares[2, -1] > 1.01


def test_bands_follow_from_derivatives_by_every_count() -> None:
    def curves(counts: np.ndarray) -> np.ndarray:
        risk, events = split_counts(counts[None], 2)
        return _derived(risk[0], events[0], 3)[0]

    risk, events = split_counts(COUNTS[None], 2)
    _, slopes = _derived(risk[0, :2], events[0, :, :2], 3)  # where the last interval is not known
    for place in range(len(COUNTS)):
        step = 1e-4 * (np.arange(len(COUNTS)) == place)
        found = (curves(COUNTS + step) - curves(COUNTS - step)) / 2e-4
        np.testing.assert_allclose(slopes[:, :, place], found[:, :2], atol=1e-8)


def test_shares_add_up_and_stay_in_their_bands_under_any_noise() -> None:
    rng = np.random.default_rng(1)
    for sd in (0.5, 5.0, 50.0):
        for counts in rng.poisson(20, (20, 16)) + rng.normal(0, sd, (20, 16)):
            shares, lower, upper = aalen_johansen(counts, 2, sd, 1.96)
            np.testing.assert_allclose(shares.sum(axis=0), 1)
            for curves in (shares, lower, upper):
                assert (np.diff(curves[:2], axis=1) >= -1e-12).all()
                assert (np.diff(curves[2]) <= 1e-12).all()
            assert (lower >= 0).all() and (lower <= shares + 1e-12).all()
            assert (shares <= upper + 1e-12).all() and (upper <= 1).all()


def test_bands_hold_the_shares_of_the_source() -> None:
    rng, runs = np.random.default_rng(2), 300
    true, _, _ = aalen_johansen(COUNTS, 2, 0.0, 1.96)
    held = []
    for noise in rng.normal(0, 5, (runs, len(COUNTS))):
        _, lower, upper = aalen_johansen(COUNTS + noise, 2, 5.0, 1.96)
        held.append((lower <= true) & (true <= upper))
    assert 0.92 < np.mean(held) < 0.98


def test_a_test_of_one_kind_has_the_noise_of_the_others() -> None:
    """Seeded: where the censored are sums of three counts, and groups do not differ."""
    rng, runs, sd = np.random.default_rng(3), 800, 12.0
    law = np.array([0.1, 0.05, 0.1, 0.1, 0.05, 0.1, 0.5])
    wrong = np.zeros(2)
    for _ in range(runs):
        groups = np.stack([rng.multinomial(size, law) for size in (300, 500)]).astype(float)
        noise = rng.normal(0, sd, groups.shape)
        noise[:, 1:-1:2] *= 3**0.5
        wrong += [log_rank(groups + noise, sd, merged)["p-value"] < 0.05 for merged in (3, 1)]
    assert 0.03 < wrong[0] / runs < 0.07 < wrong[1] / runs


def test_a_request_counts_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, int]] = []

    def tested(counts: np.ndarray, sd: float, merged: int) -> dict[str, float]:
        told.append((sd, merged))
        return log_rank(counts, sd, merged)

    monkeypatch.setattr("dpsynth.stats.survival.log_rank", tested)
    rows = simulate(300, seed=1).groupby("patient_id").head(1)
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [ENTRY]})
    events = {
        share.event.name: replace(share.event, sigma=900.0)
        for share in shares_of_request(request, 1e-6)
    }
    source = SeededEntropy(1)
    coded = Rows.of(
        read_cohort(open_table(rows, request.schema), request.codec, request.schema, source)
    )
    answers: dict[str, list[Ints]] = {}
    for one in request.statistics:
        answers |= one.answer(coded, events, source)
    [found] = request.results(answers, events)
    listed = found.table.set_index(["sex", "event", "before"])
    for kind, values in OF.items():
        early = rows["medication"].isin(values) & (rows["length_of_stay"].astype(float) < 4)
        true = (early & (rows["sex"] == "male")).sum()
        assert listed.loc[("male", kind, 4.0), "leaving"] == pytest.approx(true, abs=1)
    assert found.table.notna().all(axis=None)
    sums = found.table.groupby(["sex", "before"])["share"].sum()
    np.testing.assert_allclose(sums, 1, atol=1e-5)
    assert told == [(900 / FINE, 2), (900 / FINE, 2)]
    assert set(found.facts) == {
        f"{kind}: {fact}" for kind in OF for fact in ("chi-square", "degrees of freedom", "p-value")
    }


WRONG = {
    "one event": ({"a": ["oral"]}, "names 2 to 10 events"),
    "called none": ({"none": ["oral"], "b": ["insulin"]}, "none of them 'none'"),
    "a value twice": ({"a": ["oral"], "b": ["oral", "both"]}, "several events: oral"),
    "no list": ({"a": "oral", "b": ["insulin"]}, "must list values"),
    "all have one": ({"a": ["oral", "none"], "b": ["insulin", "both"]}, "must leave a value"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_clear_sentence(case: str) -> None:
    of, words = WRONG[case]
    entry = ENTRY | {"survival": ENTRY["survival"] | {"of": of}}
    with pytest.raises(InputError, match=words):
        StatisticsRequest.from_dict({"schema": "demo", "statistics": [entry]})
