"""Rates that no membership attack exceeds: against closed forms, and against the best attack."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, norm

from dpsynth.errors import ArtifactError, InputError
from dpsynth.privacy import (
    AttackRates,
    AttackRisk,
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    LaplaceCounts,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    highest_tpr,
    rates_of_claim,
    worst_case_rates,
)
from dpsynth.privacy.events import UNDECIDED

FALSE = (0.01, 0.1)


def gaussian(mu: float, name: str = "steps") -> PoissonSgd:
    """Steps without sampling are one Gaussian mechanism of sensitivity over noise mu."""
    return PoissonSgd(name, 1.0, 100, 10 / mu)


def exact(mu: float) -> list[float]:
    """Dong, Roth, Su: TPR = 1 - Phi(Phi^-1(1 - a) - mu); advantage = 2 Phi(mu / 2) - 1."""
    return [float(norm.sf(norm.isf(a) - mu)) for a in FALSE] + [float(2 * norm.cdf(mu / 2) - 1)]


@pytest.mark.smoke
@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 3.0, 6.0])
def test_gaussian_rates_are_the_exact_ones_rounded_up(mu: float) -> None:
    bounds = vars(worst_case_rates((gaussian(mu),))).values()
    for bound, truth in zip(bounds, exact(mu), strict=True):
        assert truth <= bound <= min(1.0, truth * 1.0004)


@pytest.mark.parametrize("fpr", [1e-6, 1e-4, 0.003, 0.2, 0.5, 0.9, 0.999])
def test_gaussian_rates_at_any_false_positive_rate(fpr: float) -> None:
    for mu in (0.1, 1.0, 3.0):
        truth = float(norm.sf(norm.isf(fpr) - mu))
        assert truth <= highest_tpr((gaussian(mu),), fpr) <= min(1.0, truth * 1.001)


def test_events_of_a_plan_count_together() -> None:
    events = (gaussian(0.6, "a"), gaussian(0.8, "b"), ChosenHistograms("c", 9, 2, 1 / 1.2))
    bounds = vars(worst_case_rates(events)).values()
    for bound, truth in zip(bounds, exact(math.sqrt(0.36 + 0.64 + 1.44)), strict=True):
        assert truth <= bound <= truth * 1.0004


@pytest.mark.parametrize("units", [2, 5, 40])
def test_several_units_of_one_person_are_one_group(units: int) -> None:
    """Groups of k are k mu apart for Gaussian noise: Dong, Roth, Su, section 2.5."""
    bounds = vars(worst_case_rates((gaussian(0.05),), units)).values()
    for bound, truth in zip(bounds, exact(units * 0.05), strict=True):
        assert truth <= bound <= truth * 1.001


def test_one_pair_of_epsilon_and_delta_gives_a_weaker_bound() -> None:
    shares = (Share(ChosenHistograms("c", 9, 2, UNDECIDED), 1.0),)
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), shares)
    ours, alone = worst_case_rates(plan.events), rates_of_claim(1.0, 1e-6)
    assert (ours.tpr_at_10_percent, alone.tpr_at_10_percent) == (
        pytest.approx(0.148, abs=5e-4),
        pytest.approx(0.272, abs=5e-4),
    )
    assert all(a < b for a, b in zip(vars(ours).values(), vars(alone).values(), strict=True))


def test_randomised_response_reaches_the_bound_of_its_epsilon() -> None:
    """Kairouz, Oh, Viswanath: of one pair, the worst case is told all with probability delta."""
    epsilon, delta = 1.3, 0.01
    grown = math.exp(epsilon)
    truths = [
        *(min(grown * a + delta, 1 - (1 - delta - a) / grown) for a in FALSE),
        delta + (1 - delta) * (grown - 1) / (grown + 1),
    ]
    for bound, truth in zip(vars(rates_of_claim(epsilon, delta)).values(), truths, strict=True):
        assert truth <= bound <= truth * 1.0002
    assert rates_of_claim(5000.0, 1e-6) == rates_of_claim(1.0, 1.0) == AttackRates(1.0, 1.0, 1.0)


def least(hits: int, runs: int) -> float:
    """Clopper and Pearson's lower bound that fails once in 10 000 times."""
    return float(beta.ppf(1e-4, hits, runs - hits + 1)) if hits else 0.0


def losses(event: Event, inside: bool, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the log-likelihood ratio of an event's worst case, with or without the unit."""
    if isinstance(event, JointHistograms):
        grid = np.arange(-200, 202)
        mass = np.exp(-(grid**2) / (2 * event.sigma**2))
        counts = rng.choice(grid, size=(runs, event.histograms), p=mass / mass.sum()) + inside
        return np.asarray((2 * counts - 1).sum(axis=1) / (2 * event.sigma**2))
    assert isinstance(event, PoissonSgd)
    total = np.zeros(runs)
    for _ in range(event.steps):
        shift = (rng.random(runs) < event.sampling_rate) & inside
        x = shift + event.noise_multiplier * rng.standard_normal(runs)
        ratio = np.exp((2 * x - 1) / (2 * event.noise_multiplier**2))
        total += np.log1p(event.sampling_rate * (ratio - 1))
    return total


@pytest.mark.parametrize(
    "events",
    [
        (JointHistograms("counts", 12, 1, 4.0),),
        (PoissonSgd("steps", 0.05, 80, 0.8),),
        (JointHistograms("counts", 12, 1, 5.0), PoissonSgd("steps", 0.1, 50, 1.1)),
    ],
)
def test_the_best_attack_comes_near_and_never_above(events: tuple[Event, ...]) -> None:
    """Neyman and Pearson's test on all results is the best attack on the worst case."""
    rng, runs = np.random.default_rng(5), 60_000
    outside, inside = (
        sum((losses(event, there, runs, rng) for event in events), np.zeros(runs))
        for there in (False, True)
    )
    for fpr, bound in zip(FALSE, vars(worst_case_rates(events)).values(), strict=False):
        level = np.quantile(outside, 1 - fpr * (1 + 4 / math.sqrt(fpr * runs)))
        allowed = np.quantile(outside, 1 - fpr * (1 - 4 / math.sqrt(fpr * runs)))
        named = int((inside > allowed).sum())
        assert least(named, runs) <= bound  # an attack with at most so many false positives
        assert (inside > level).mean() > 0.93 * bound  # and it is not idle


def test_discovered_codes_add_what_was_set_aside() -> None:
    event = gaussian(0.5)
    found = CodeDiscovery("codes", 4, 4, 1e-3, UNDECIDED).with_mu(1e-3)
    with_codes = worst_case_rates((event, found))
    for more, less in zip(
        vars(with_codes).values(), vars(worst_case_rates((event,))).values(), strict=True
    ):
        assert 5e-4 < more - less < 2e-3


def test_rates_of_laplace_noise() -> None:
    """One count with Laplace noise of scale 1 / e: the two lines of randomised response."""
    event = LaplaceCounts("counts", 1, False, 2.0)
    bound = worst_case_rates((event,)).tpr_at_1_percent
    each = event.loss.parameter * event.loss.times
    assert bound == pytest.approx(math.exp(each) * 0.01, rel=1e-3)
    assert bound >= math.exp(each) * 0.01


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5%", "two numbers with @"),
        ("0.05", "two numbers with @"),
        ("0.05@", "two numbers with @"),
        ("-0.05@0.01", "two numbers with @"),
        ("nan@0.01", "two numbers with @"),
        ("0.05@0.01@0.1", "two numbers with @"),
        ("1@0.01", "above 0 and below 1"),
        ("5@1", "above 0 and below 1"),
        ("0.05@0", "above 0 and below 1"),
        ("0.01@0.01", "random guesses with 1 % false alarms find 1 %"),
        ("0.009@0.01", "allow a larger share found"),
        ("0.01000001@0.01", "no noise can keep to this"),
    ],
)
def test_a_risk_that_cannot_be_met_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        AttackRisk.parse(text)
    assert "\n" not in str(caught.value)


def test_a_risk_in_words() -> None:
    risk = AttackRisk.parse("0.05@.01")
    assert (risk.tpr, risk.fpr, str(risk)) == (0.05, 0.01, "0.05@0.01")
    assert risk.words == "at most 5 % found at 1 % false alarms"


def test_rates_are_read_strictly() -> None:
    rates = worst_case_rates((gaussian(1.0),))
    assert AttackRates.from_dict(dict(vars(rates)), "here") == rates
    for change in ({"advantage": 0}, {"advantage": 1.1}, {"auc": 0.5}, {"advantage": "0.3"}):
        with pytest.raises(ArtifactError, match="here"):
            AttackRates.from_dict(vars(rates) | change, "here")


def test_undecided_noise_and_no_event_are_refused() -> None:
    for events in ((), (JointHistograms("counts", 1, 1, UNDECIDED),)):
        with pytest.raises(InputError):
            worst_case_rates(events)
