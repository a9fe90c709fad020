"""The privacy filter: its sums, the order that it chooses, and what it takes for a budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.privacy import (
    JointHistograms,
    PoissonSgd,
    PrivacyFilter,
    Spend,
    accounting,
    exactly,
    rounded_down,
)
from dpsynth.privacy.accounting import gaussian_delta
from dpsynth.privacy.filter import renyi_budget, renyi_sum


def spend(epsilon: float, delta: float = 1e-9) -> Spend:
    return Spend(epsilon, delta, ())


def test_decimals_add_up_as_they_are_written() -> None:
    three = [spend(0.1)] * 3
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert PrivacyFilter(0.3, 1e-5).admits(three)
    assert PrivacyFilter(0.3, 1e-5).used(three) == 0.3
    assert not PrivacyFilter(0.3, 1e-5).admits([*three, spend(1e-9)])
    nearly = [spend(0.3), spend(1e-17)]
    assert not PrivacyFilter(0.3, 1e-5).admits(nearly)
    assert PrivacyFilter(0.3, 1e-5).used(nearly) > 0.3


def test_deltas_add_up_to_nine_tenths() -> None:
    cap = PrivacyFilter(1.0, 1e-5)
    assert cap.admits([spend(0.1, 3e-6)] * 3)
    assert not cap.admits([spend(0.1, 3e-6)] * 3 + [spend(0.1, 1e-10)])
    assert cap.used([spend(0.1, 9.1e-6)]) == math.inf
    assert cap.plain_room([spend(0.1, 3e-6)]) == (exactly(0.9), exactly(6e-6))


def test_a_fit_of_unknown_events_counts_by_its_claim_alone() -> None:
    """No events are not no divergence."""
    cap = PrivacyFilter(0.5, 1e-5)
    assert cap.order is not None
    assert spend(0.6).divergence(cap.order) == math.inf
    assert not cap.admits([spend(0.6)])
    quiet = JointHistograms("counts", 1, 1, 500.0)
    assert not cap.admits([Spend(0.3, 1e-6, (quiet,)), spend(0.3, 1e-6)])


def test_many_small_fits_are_admitted_by_their_divergences() -> None:
    """Plain sums grow with the number of fits, divergences with its square root."""
    event = JointHistograms("counts", 1, 1, 100.0)
    one = Spend(round(accounting.epsilon([event], 1e-6) + 1e-4, 4), 1e-6, (event,))
    cap = PrivacyFilter(0.5, 1e-5)
    plain = int(0.5 / one.epsilon)
    most = max(n for n in range(1, 200) if cap.admits([one] * n))
    assert most > 2 * plain
    used = [cap.used([one] * n) for n in range(1, most + 20)]
    assert used == sorted(used)
    assert all((value <= 0.5) == (n <= most) for n, value in enumerate(used, start=1))
    # what was admitted is true, by the exact curve of a Gaussian of that many steps
    assert gaussian_delta(math.sqrt(most) / 100, 0.5) <= 1e-5


def test_order_and_budget_depend_on_the_cap_alone() -> None:
    cap = PrivacyFilter(0.5, 1e-5)
    assert cap.order is not None
    budget = renyi_budget(0.5, cap.order, 1e-6)
    event = PoissonSgd("steps", 0.05, 1, 8.0)
    steps = int(budget / renyi_sum((event,), cap.order))

    def long(steps: int) -> Spend:
        return Spend(0.45, 1e-5, (PoissonSgd("steps", 0.05, steps, 8.0),))

    assert cap.admits([long(steps)]) and not cap.admits([long(steps + 1)])
    assert cap.used([long(steps)]) <= 0.5 < cap.used([long(steps + 1)])


def test_a_cap_too_small_for_any_order_counts_plainly() -> None:
    cap = PrivacyFilter(1e-3, 1e-5)
    assert cap.order is None
    assert cap.admits([spend(5e-4), spend(5e-4)]) and not cap.admits([spend(1.1e-3)])


@given(st.lists(st.sampled_from([0.01, 0.1, 0.25, 0.333]), max_size=6), st.floats(0.05, 2.0))
def test_used_says_what_is_admitted_and_never_shrinks(epsilons: list[float], limit: float) -> None:
    cap, spends = PrivacyFilter(limit, 1e-5), [spend(value) for value in epsilons]
    used = [cap.used(spends[:n]) for n in range(len(spends) + 1)]
    assert used[0] == 0 and used == sorted(used)
    for n, value in enumerate(used):
        assert cap.admits(spends[:n]) == (value <= limit)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(30, 900), st.sampled_from([1e-7, 1e-6])), max_size=6),
    st.floats(0.05, 1.0),
)
def test_parts_of_what_is_admitted_are_admitted(
    noises: list[tuple[float, float]], limit: float
) -> None:
    """So a window of 365 days is within the cap whenever its last fit was judged with it."""
    cap = PrivacyFilter(limit, 1e-5)
    spends = [
        Spend(5 / sigma, delta, (JointHistograms("counts", 1, 1, sigma),))
        for sigma, delta in noises
    ]
    if cap.admits(spends):
        for start in range(len(spends) + 1):
            assert cap.admits(spends[start:])
            assert cap.admits(spends[::2])


def test_a_sum_beyond_all_floats_is_more_than_any_cap() -> None:
    cap = PrivacyFilter(1.5e308, 1e-5)
    assert cap.used([spend(1e308)]) == 1e308 and cap.admits([spend(1e308)])
    assert cap.used([spend(1e308)] * 3) == math.inf and not cap.admits([spend(1e308)] * 3)
    with pytest.raises(InputError, match="finite"):
        Spend(10**400, 1e-6, ())
    with pytest.raises(InputError, match="finite"):
        PrivacyFilter(10**400, 1e-6)


def test_numbers_are_taken_as_written_and_rounded_down() -> None:
    assert exactly(0.1) * 3 == exactly(0.3)
    assert exactly(np.float64(1e-05)) * 100_000 == 1
    assert rounded_down(exactly(0.1239), 3) == 0.123
    assert rounded_down(exactly(1) / 3, 3) == 0.333


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_budget_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        PrivacyFilter(bad, 1e-5)
    with pytest.raises(InputError, match="epsilon"):
        Spend(bad, 1e-6, ())
    with pytest.raises(InputError, match="delta"):
        PrivacyFilter(1.0, bad)
    with pytest.raises(InputError, match="delta"):
        Spend(1.0, bad or 1.0, ())
