"""Noise in words: in patients or rows, and the same on the card, on the page and in a plan."""

from __future__ import annotations

import re

import pytest

from dpsynth.certificate import Certificate, budget_lines, certify, noise_sd
from dpsynth.forecasts.plan_words import describe_event
from dpsynth.privacy import ChosenHistograms, JointHistograms, PoissonSgd
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare

SD = re.compile(r"sd (?:about )?([\d.,]+)")


def certified(name: str, model: str, quality: float | None = None) -> Certificate:
    schema = Schema.load(name)
    plan = prepare(schema, epsilon=3.0, delta=1e-6, model=model, publish_quality=quality).plan
    return Certificate.from_dict(certify(schema, plan, model=model, charge=None))


@pytest.mark.parametrize("name", ["demo", "cardio"])
@pytest.mark.parametrize("quality", [None, 0.1])
def test_the_noise_is_that_of_the_plan(name: str, quality: float | None) -> None:
    certificate = certified(name, "mixture", quality)
    lines = budget_lines(certificate, quality=False)
    for event, line in zip(certificate.events, lines, strict=True):
        [here], [there] = SD.findall(line.noise), SD.findall(describe_event(event))
        assert here == there, event.name
        assert not isinstance(event, PoissonSgd)
        assert float(here) == pytest.approx(noise_sd(event), rel=1e-3)


def test_shares_of_a_patient_are_whole_patients() -> None:
    _, counts, pairs = certified("demo", "mixture").events
    assert isinstance(counts, JointHistograms) and isinstance(pairs, ChosenHistograms)
    assert counts.unit_mass == pairs.unit_mass == 12
    assert noise_sd(counts) == counts.sigma / 12
    assert noise_sd(pairs) == pairs.noise_multiplier * pairs.most**0.5


@pytest.mark.parametrize(
    ("name", "words"),
    [("demo", "sd [0-9.]+ patients on each count"), ("cardio", "sd [0-9.]+ rows on each count")],
)
def test_the_unit_is_said(name: str, words: str) -> None:
    for line in budget_lines(certified(name, "mixture"), quality=False):
        assert re.match(words, line.noise)


def test_quality_is_about_rows_and_training_about_steps() -> None:
    *_, quality = budget_lines(certified("demo", "mixture", 0.1), quality=True)
    assert re.match(r"about sd [0-9.]+ rows on each figure; multiplier", quality.noise)
    steps = [line for line in budget_lines(certified("demo", "tvae"), quality=False)]
    assert any(re.fullmatch(r"multiplier [0-9.]+, in each step", step.noise) for step in steps)


def test_grains_are_about_how_numbers_are_written() -> None:
    purposes = [line.purpose for line in budget_lines(certified("demo", "mixture"), quality=False)]
    assert purposes[0] == "how 6 numbers are written: whole, with decimals, or rounded"
    assert purposes[1].startswith("how often each value of a column occurs")
