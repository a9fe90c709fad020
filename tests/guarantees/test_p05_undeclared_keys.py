"""P05: counts by codes that nobody declared, and a threshold on what was observed.

The check: whatever keys a patient alone has, and however her rows are spread over them, the chance
that one of them is listed, summed term by term from the noise's law, is at most delta. Keys in a
release are in an order that does not depend on the table's. The broken twins: a threshold that
follows from no delta, one key where a patient has several, rows beyond the bound, a row for a
patient, the order of the table, and every key that occurs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import dpsynth
from dpsynth.encoding import CodedCells
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.privacy import Entropy, KeyCounts, Occurrences, Selected, key_counts
from dpsynth.privacy.accounting import delta
from dpsynth.stats import (
    Answers,
    KeyTable,
    StatisticsRequest,
)
from dpsynth.stats.statistic import Rows

from ..privacy.test_accounting_discrete import shifted_cells_delta
from ..support.bare_counts import Silence
from ..support.discovered_ward import RARE, discovered_ward, ward

DELTA = 1e-3
EVENTS = [
    KeyCounts("keys", rows, once, DELTA, sigma)
    for rows in (1, 2, 5)
    for once in (True, False)
    for sigma in (3.0, 7.3)
]


def spread(rows: int, most: int) -> Iterator[list[int]]:
    """Every way to spread rows over keys, none with more than ``most``."""
    if rows == 0:
        yield []
    for first in range(min(rows, most), 0, -1):
        for others in spread(rows - first, first):
            yield [first, *others]


def shown(event: KeyCounts, threshold: int, counts: list[int]) -> float:
    """The chance that one of a patient's own keys is listed, from the law of the noise."""
    places = np.arange(-400, 401)
    masses = np.exp(-0.5 * (places / event.sigma) ** 2)
    masses /= masses.sum()
    hidden = [1 - float(masses[places >= threshold - count].sum()) for count in counts]
    return 1 - float(np.prod(hidden))


def worst(event: KeyCounts, threshold: int) -> float:
    """The largest chance over all that a patient's rows may be."""
    numbers = range(1, event.rows_per_unit + 1)
    ways = (way for rows in numbers for way in spread(rows, rows))
    return max(shown(event, threshold, [1] * len(w) if event.once else w) for w in ways)


@pytest.mark.parametrize("event", EVENTS)
def test_own_keys_of_a_patient_show_with_at_most_delta(event: KeyCounts) -> None:
    assert worst(event, event.threshold) <= DELTA
    assert worst(event, event.threshold - 4) > DELTA  # and the threshold is not far above


@pytest.mark.parametrize("once", [True, False])
def test_a_threshold_for_less_is_caught(once: bool) -> None:
    event = KeyCounts("keys", 5, once, DELTA, 7.3)
    assert worst(event, 3) > DELTA  # whatever delta is
    assert worst(event, replace(event, rows_per_unit=1).threshold) > DELTA  # a row for a patient


@pytest.mark.parametrize(("once", "shift"), [(True, (1, 1, 1)), (False, (3,)), (False, (2, 1))])
def test_keys_of_others_are_charged_for_what_a_patient_moves(
    once: bool, shift: tuple[int, ...]
) -> None:
    event = KeyCounts("keys", 3, once, 1e-9, 9.0)
    for epsilon in (0.3, 1.0):
        assert shifted_cells_delta(shift, event.sigma, epsilon) <= delta([event], epsilon)
    cheap = replace(event, rows_per_unit=1)  # the broken twin: a row for a patient
    assert shifted_cells_delta(shift, event.sigma, 0.3) > delta([cheap], 0.3)


@pytest.mark.parametrize(("once", "shift"), [(True, (1, 1, 1, 1)), (False, (2, 2))])
def test_substitution_costs_at_most_what_its_event_does(once: bool, shift: tuple[int, ...]) -> None:
    event = KeyCounts("keys", 2, once, 1e-9, 9.0)
    other = event.substituted()
    exact = shifted_cells_delta(shift, event.sigma, 0.5)
    assert delta([event], 0.5) < exact <= delta([other], 0.5)
    assert other.set_aside == pytest.approx(2 * event.set_aside)


def test_rows_beyond_the_bound_are_refused_before_any_noise() -> None:
    silence, event = Silence(0), KeyCounts("keys", 2, False, DELTA, 3.0)
    for units, keys in (([0, 0, 0], [1, 1, 1]), ([-1], [1]), ([1], [-1]), ([1, 2], [1])):
        with pytest.raises(InputError):
            key_counts(Occurrences(np.array(units), np.array(keys)), event, silence)
    undecided = replace(event, sigma=float("inf"))
    with pytest.raises(InputError, match="not decided"):
        key_counts(Occurrences(np.array([1]), np.array([1])), undecided, silence)
    assert silence.asked == []
    assert shown(event, event.threshold, [event.threshold - 1]) > DELTA  # had they been taken


def test_a_patient_counts_once_for_a_key_or_with_each_row() -> None:
    many = Occurrences(np.repeat(np.arange(60), 2), np.repeat([5, 5, 9, 9], 30))
    for once, counts in ((True, [30, 30]), (False, [60, 60])):
        found = key_counts(many, KeyCounts("keys", 2, once, DELTA, 3.0), Silence(0))
        assert (found.codes.tolist(), found.counts.tolist()) == ([5, 9], counts)


ENTRIES = [
    {"name": "devices", "count": "patients", "by": ["device"]},
    {"name": "diagnoses by sex", "count": "rows", "by": ["sex", "diagnosis"]},
]


def test_a_key_of_one_patient_is_in_no_file(tmp_path: Path) -> None:
    request = StatisticsRequest.from_dict(
        {"schema": discovered_ward().to_dict(), "statistics": ENTRIES}
    )
    budget = {"epsilon": 4.0, "delta": 1e-6, "dataset": "ward"}

    def asked(name: str) -> Path:
        ledger = Ledger.create(tmp_path / f"{name}.sqlite")
        dpsynth.statistics(ward(), request, **budget, ledger=ledger, output=tmp_path / name)
        return tmp_path / name

    found = Answers.load(asked("found"))
    assert found.table("devices")["device"].tolist() in (["A001", "B002"], ["B002", "A001"])
    assert set(found.table("diagnoses by sex")["diagnosis"]) == {"428.0", "250.01", "401"}
    assert not any(RARE.encode() in file.read_bytes() for file in (tmp_path / "found").iterdir())

    def everything(rows: Occurrences, event: KeyCounts, entropy: Entropy) -> Selected:
        """Broken twin: every key that occurs is listed."""
        with patch.object(KeyCounts, "threshold", -(10**6)):
            return key_counts(rows, event, entropy)

    with patch("dpsynth.stats.keys.key_counts", everything):
        with pytest.raises(ValueError, match="below the threshold"):
            asked("twin")


def answered(backwards: bool) -> list[list[Any]]:
    """Keys with equal noisy counts, of the same table from either end."""
    (one,) = StatisticsRequest.from_dict(
        {"schema": discovered_ward().to_dict(), "statistics": ENTRIES[:1]}
    ).statistics
    assert isinstance(one, KeyTable)
    request = StatisticsRequest.from_dict(
        {"schema": discovered_ward().to_dict(), "statistics": ENTRIES[:1]}
    )
    plan = request.plan(epsilon=4.0, delta=1e-6)
    numbers = np.repeat([0, 1, 2], 100)
    texts = ("A001", "B002", "C003")
    if backwards:
        numbers, texts = 2 - numbers, texts[::-1]
    cells = CodedCells(
        np.arange(300), np.zeros((300, 3), np.uint16), ("device",), numbers[:, None], (texts,)
    )
    rows = Rows(cells.units, cells.codes, cells)
    found = one.answer(rows, {event.name: event for event in plan.events}, Silence(0))
    return [part.tolist() for part in found["devices"]]


def test_the_order_of_keys_is_not_that_of_the_table() -> None:
    """Numbers of keys follow from the first row that has each: nothing has paid for them."""
    assert answered(False) == answered(True) == [[100] * 3, ["A001", "B002", "C003"]]
    with patch.object(np, "lexsort", lambda keys: np.arange(len(keys[0]))):  # as they were numbered
        assert answered(False) != answered(True)


def test_ties_at_the_end_of_the_list_are_not_cut_by_the_order_of_the_table() -> None:
    """Of keys with equal noisy counts, their texts say which are left out."""
    with patch.object(KeyTable, "most", 2):
        assert answered(False) == answered(True) == [[100] * 2, ["A001", "B002"]]
        with patch.object(np, "lexsort", lambda keys: np.argsort(keys[-1], kind="stable")):
            assert answered(False) != answered(True)  # by count, then as they were numbered


def test_only_keys_that_may_be_listed_load() -> None:
    (one,) = StatisticsRequest.from_dict(
        {"schema": discovered_ward().to_dict(), "statistics": ENTRIES[1:]}
    ).statistics
    counts, sexes = np.array([90, 80]), np.array(["F", "F"])
    name = "diagnoses by sex"
    assert one.fits({name: [counts, sexes, np.array(["401", "428.0"])]})
    assert one.fits({name: [np.array([], np.int64)] * 3})
    for sex, codes in (
        (sexes, ["428.0", "401"]),  # out of order
        (sexes, ["401", "401"]),
        (sexes, ["401", "Maria"]),  # fits no pattern
        (np.array(["F", "X"]), ["401", "428.0"]),
        (sexes, ["401"]),
    ):
        assert not one.fits({name: [counts, sex, np.array(codes)]})
    assert not one.fits({name: [counts.astype(np.str_), sexes, np.array(["401", "428.0"])]})
