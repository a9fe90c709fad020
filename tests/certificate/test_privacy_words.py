"""Epsilon in words: Bayes by hand, bounds that never understate, honest at large epsilon."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth._util.formatting import at_most, figure, one_in, percent, percent_at_most, shown
from dpsynth.certificate import (
    Certificate,
    attack_conditions,
    largest_posterior,
    protected,
    readings,
)
from dpsynth.certificate.interpretation import PRIORS, smallest_posterior
from dpsynth.errors import InputError
from dpsynth.privacy import AttackRates, rates_of_claim
from dpsynth.privacy.unit import EACH_ROW


@pytest.fixture
def certificate(forger: Any) -> Certificate:
    return Certificate.from_dict(forger.read("privacy.json"))


@pytest.mark.parametrize(
    ("prior", "epsilon", "delta", "posterior"),
    [
        (0.5, math.log(3), 0.0, 0.75),  # odds 1 : 1 become 3 : 1
        (0.1, math.log(9), 0.0, 0.5),  # 1 : 9 become 1 : 1
        (0.01, math.log(99), 0.0, 0.5),
        (0.5, 0.0, 0.0, 0.5),
        (0.5, math.log(3), 0.2, 0.2 + 0.8 * 0.75),  # with probability 0.2 all is told
        (0.3, 5.0, 1.0, 1.0),
        (0.0, 5.0, 0.5, 0.0),  # what is impossible stays so
        (1.0, 5.0, 0.5, 1.0),
        (0.5, 10_000.0, 0.0, 1.0),
    ],
)
def test_a_posterior_is_that_of_bayes(
    prior: float, epsilon: float, delta: float, posterior: float
) -> None:
    assert largest_posterior(prior, epsilon, delta) == pytest.approx(posterior, abs=1e-12)


def test_the_least_posterior_mirrors_the_largest() -> None:
    assert smallest_posterior(0.5, math.log(3)) == pytest.approx(0.25)
    assert smallest_posterior(0.1, math.log(9)) == pytest.approx(1 / 82)  # 1 : 9 become 1 : 81


@given(
    prior=st.floats(0.001, 0.999),
    epsilon=st.floats(0, 20),
    delta=st.sampled_from([0.0, 1e-6, 0.01]),
    loss=st.floats(-1, 1),
)
def test_no_attack_on_the_dominating_release_ends_beyond_the_bounds(
    prior: float, epsilon: float, delta: float, loss: float
) -> None:
    """Bayes' theorem for randomised response with any odds within the bound; delta: all is told."""
    odds = prior / (1 - prior) * math.exp(loss * epsilon)
    believed = delta + (1 - delta) * odds / (1 + odds)
    assert believed <= largest_posterior(prior, epsilon, delta) + 1e-9
    assert odds / (1 + odds) >= smallest_posterior(prior, epsilon, delta) - 1e-9


@pytest.mark.parametrize("wrong", [(-0.1, 1, 0), (1.1, 1, 0), (0.5, -1, 0), (0.5, 1, 2)])
def test_what_is_no_probability_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        largest_posterior(*wrong)


def test_one_fit_is_read_by_its_composed_epsilon(certificate: Certificate) -> None:
    [reading] = readings(certificate)
    assert (reading.epsilon, reading.delta) == (certificate.composed_epsilon, 1e-6)
    assert [belief.prior for belief in reading.beliefs] == list(PRIORS) == [0.5, 0.1, 0.01]
    assert reading.exception == "1 in 1,000,000"
    assert reading.factor == "at most 20.1"  # e^3 = 20.09, and composed is a little less


def test_all_fits_are_read_too_if_they_come_to_more(certificate: Certificate) -> None:
    assert certificate.ledger is not None
    charge = replace(certificate.ledger, fits=4, epsilon_total=12.0, delta_total=4e-6)
    alone, together = readings(replace(certificate, ledger=charge))
    assert alone.epsilon == certificate.composed_epsilon
    assert (together.epsilon, together.delta) == (12.0, 4e-6)
    assert "All 4 fits" in together.title and together.exception == "1 in 250,000"


def test_attack_rates_are_said_of_this_release_and_of_all_fits(certificate: Certificate) -> None:
    """Those of all fits follow from two sums, so they are weaker than those of events."""
    assert certificate.ledger is not None
    charge = replace(certificate.ledger, fits=4, epsilon_total=12.0, delta_total=4e-6)
    alone, together = readings(replace(certificate, ledger=charge))
    assert alone.rates == certificate.attack_rates
    assert together.rates == rates_of_claim(12.0, 4e-6)
    rates = AttackRates(0.0466, 0.2629, 0.2538)
    words = replace(alone, rates=rates).attack
    assert "1 % of the people who are not in the data (false alarms) finds at most 4.7 %" in words
    assert "with 10 % false alarms, at most 26.3 %" in words
    assert "by at most 25.4 percentage points (the advantage)" in words


def test_attack_rates_name_their_conditions(certificate: Certificate) -> None:
    words = attack_conditions(certificate.unit)
    for part in (
        "every attack, also by someone who knows all other rows",
        "with and without a patient with all of their rows",
        "mechanisms listed in the certificate",
        "What delta leaves open is counted as found",
        "not measured: an audit measures",
    ):
        assert part in words
    assert "with and without a row." in attack_conditions(EACH_ROW)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.5, "This bound is strong"),
        (2.0, "This bound is moderate"),
        (3.0, "strongest for people an attacker does not already suspect"),
        (10.0, "promises little"),
        (500.0, "promises little"),
    ],
)
def test_a_large_epsilon_is_not_made_nice(
    certificate: Certificate, epsilon: float, words: str
) -> None:
    stated = replace(certificate, epsilon=epsilon, composed_epsilon=epsilon, ledger=None)
    assert words in readings(stated)[0].verdict


def test_at_epsilon_ten_the_words_say_what_may_be_learned(certificate: Certificate) -> None:
    stated = replace(certificate, epsilon=10.0, composed_epsilon=10.0, ledger=None)
    [reading] = readings(stated)
    assert reading.factor == "at most 22,100"  # e^10 = 22 026.5
    assert [belief.bound for belief in reading.beliefs] == [
        "at most 99.996 %",  # 1 / (1 + e^-10) = 0.9999546
        "at most 99.96 %",  # 1 / (1 + 9 e^-10) = 0.9995916
        "at most 99.6 %",  # 1 / (1 + 99 e^-10) = 0.9955256
    ]


def test_whom_it_protects_is_said() -> None:
    mrn = replace(EACH_ROW, name="mrn", max_rows=4, person="patient")
    assert "At most 4 rows of each patient" in protected(mrn)
    assert "consecutive" in protected(replace(mrn, keep="window"))
    assert "protects each row separately" in protected(EACH_ROW)
    stays = protected(replace(mrn, person=None))
    assert "protects a value of column 'mrn'" in stays and "patient" not in stays
    three = protected(replace(EACH_ROW, person="patient", max_units=3, max_units_basis="form 7"))
    assert "a patient with at most 3 rows" in three and "assumes" in three and "form 7" in three


@given(st.floats(0, 1))
def test_a_bound_on_a_chance_is_never_shown_smaller(share: float) -> None:
    text = percent_at_most(share)
    value = 100.0 if "almost" in text else float(text.removesuffix(" %"))
    assert value >= 100 * share - 2e-6
    assert (value == 100) <= (share > 0.999999 or text.startswith("almost"))


@given(st.floats(1e-5, 1e6))
def test_a_bound_is_never_shown_smaller(value: float) -> None:
    assert float(at_most(value).replace(",", "")) >= value * (1 - 1e-12)


def test_figures_are_short_and_honest() -> None:
    assert [figure(x) for x in (0.0, 12_345.0, 0.12344, 1.5e-7)] == [
        *("0", "12,345", "0.1234", "1.5e-7"),
    ]
    assert percent(1e-9) == "under 0.1 %" and percent(1 - 1e-9) == "over 99.9 %"
    assert one_in(3e-6) == "1 in 333,333"
    assert shown("a\u200bb\nc") == "a[U+200B]b c"
