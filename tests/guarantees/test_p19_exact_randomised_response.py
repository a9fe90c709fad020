"""Randomised response in whole numbers: its law is enumerated, and no ratio exceeds e^epsilon.

With R in eighths instead of 2^-24, every draw of a report can be enumerated. The broken twins take
the epsilon of all columns for each, round R upwards, or send the own bit always.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.stats import (
    Randomiser,
    perturb,
    perturbing,
)
from dpsynth.stats import (
    local as randomiser,
)
from dpsynth.stats.local import RESPONSE, UNARY

Law = dict[Any, Fraction]
CASES = [(kind, size, epsilon) for kind in (RESPONSE, UNARY) for size in (2, 3, 5)
         for epsilon in (0.7, 1.5)]  # fmt: skip


class AllDraws:
    """Coins that fall each way once: the draws of n reports are n consecutive ones."""

    def integers(self, low: int, high: int, size: Any) -> Any:
        count = size if isinstance(size, int) else size[0]
        draws = np.arange(count) % high if high > 2 else np.arange(count) * 2 // count
        return draws if isinstance(size, int) else np.repeat(draws[:, None], size[1], axis=1)


def law(one: Randomiser, code: int) -> Law:
    """The probability of each report, from all draws; bits are drawn independently."""
    draws = one.whole * (1 if one.kind == RESPONSE else 2)
    reports = one.reports(np.full(draws, code), AllDraws())  # type: ignore[arg-type]
    if one.kind == RESPONSE:
        return {k: Fraction(n, draws) for k, n in Counter(reports.tolist()).items()}
    ones = [Fraction(int(bits.sum()), draws) for bits in reports.T]
    return {
        bits: math.prod(p if bit else 1 - p for bit, p in zip(bits, ones, strict=True))
        for bits in product((0, 1), repeat=one.size)
    }


def ratio(one: Randomiser) -> Fraction | float:
    """How much likelier a report is from one category than from another, at most."""
    laws = [law(one, code) for code in range(one.size)]
    reports = set().union(*laws)
    return max(
        laws[a].get(r, Fraction(0)) / laws[b][r] if laws[b].get(r) else math.inf
        for a, b, r in product(range(one.size), range(one.size), reports)
        if laws[a].get(r)
    )


def kept(epsilon: float, found: Fraction | float) -> bool:
    return found != math.inf and Decimal(float(found)) <= Decimal(repr(epsilon)).exp()


@pytest.mark.parametrize(("kind", "size", "epsilon"), CASES)
def test_no_report_is_likelier_than_was_paid(
    kind: str, size: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(randomiser, "_PARTS", 8)
    one = Randomiser(kind, size, epsilon)
    assert kept(epsilon, ratio(one)) and ratio(one) == Fraction(one.odds, 8)
    for code in range(size):
        found = law(one, code)
        assert sum(found.values()) == 1
        for other in range(size):
            speaks = sum(
                p for r, p in found.items() if (r == other if kind == RESPONSE else r[other])
            )
            assert speaks == (one.own if other == code else one.other)


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 3.0, 20.0])
def test_the_ratio_is_rounded_down_and_hardly(epsilon: float) -> None:
    one = Randomiser(RESPONSE, 4096, epsilon)
    exact = Decimal(repr(epsilon)).exp() * 2**24
    assert one.odds <= exact < one.odds + 2
    assert one.whole < 2**63


def test_a_ratio_that_is_rounded_upwards_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomiser, "_PARTS", 8)
    monkeypatch.setattr(math, "floor", math.ceil)
    assert not kept(0.7, ratio(Randomiser(RESPONSE, 3, 0.7)))


def test_an_own_bit_that_is_always_sent_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sent(AllDraws):
        def integers(self, low: int, high: int, size: Any) -> Any:
            drawn = super().integers(low, high, size)
            return np.ones_like(drawn) if high == 2 else drawn

    monkeypatch.setattr(randomiser, "_PARTS", 8)
    monkeypatch.setitem(globals(), "AllDraws", Sent)
    assert ratio(Randomiser(UNARY, 3, 0.7)) == math.inf


def whole_ratio(columns: list[str], epsilon: float) -> Fraction:
    """How much likelier a row of reports is from one row than from another, at most."""
    rows = pd.DataFrame({"gender": ["1", "2"], "smoke": ["0", "1"], "cholesterol": ["1", "3"]})
    found = perturb(rows, Schema.load("cardio"), columns, epsilon=epsilon, entropy=SeededEntropy(1))
    ratios = [Fraction(one.randomiser.odds, 2**24) for one in found.settings.columns]
    return math.prod(ratios, start=Fraction(1))


@pytest.mark.parametrize("columns", [["gender"], ["gender", "smoke", "cholesterol"]])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_all_columns_together_keep_epsilon(columns: list[str], epsilon: float) -> None:
    assert kept(epsilon, whole_ratio(columns, epsilon))


def test_columns_that_each_spend_all_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perturbing, "rounded_down", lambda value, digits: 1.0)
    assert not kept(1.0, whole_ratio(["gender", "smoke"], 1.0))
    assert kept(1.0, whole_ratio(["gender"], 1.0))
