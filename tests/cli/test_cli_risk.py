"""A budget in terms of attacks: --risk of plan and fit, and the attack rates that they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.privacy import worst_case_rates
from dpsynth.schema import load_any
from dpsynth.synthesis import prepare

from ..support.command_line import Cli

RISK = ("--risk", "0.05@0.01", "--delta", "1e-6", "--model", "independent")


def test_plan_prints_attack_rates_with_their_condition(cli: Cli) -> None:
    budget = ("--epsilon", "3", "--delta", "1e-6", "--model", "mixture")
    ended = cli("plan", "demo", *budget)
    plan = prepare(load_any("demo"), epsilon=3, delta=1e-6, model="mixture").plan
    rates = worst_case_rates(plan.events)
    assert f"attacks     {rates.words}" in ended.out
    told = " ".join(ended.out.split())
    assert "with and without a patient with all of their rows" in told
    assert "They were not measured: an audit measures what its attacks reach." in told
    assert cli("plan", "demo", *budget, "--json").json["attack_rates"] == vars(rates)


def test_plan_finds_the_epsilon_of_a_risk(cli: Cli) -> None:
    values = cli("plan", "demo", *RISK, "--json").json
    epsilon = values["plan"]["epsilon"]
    assert values["risk"] == "0.05@0.01" and values["attack_rates"]["tpr_at_1_percent"] <= 0.05
    words = f"risk        at most 5 % found at 1 % false alarms: epsilon {epsilon:g} follows"
    assert words in cli("plan", "demo", *RISK).out
    again = cli("plan", "demo", "--epsilon", str(epsilon), *RISK[2:], "--json").json
    assert again["plan"] == values["plan"] and "risk" not in again


def test_a_fit_is_charged_the_epsilon_of_its_risk(cli: Cli, cohort: Path) -> None:
    planned = cli("plan", "demo", *RISK, "--json").json["plan"]["epsilon"]
    ended = cli("fit", "demo", cohort, *RISK, "--dataset", "cohort", "-o", "run")
    assert ended.code == 0 and f"epsilon {planned:g} follows" in ended.err
    assert "attacks     at most" in ended.out
    shown = cli("ledger", "show", "--json").json["datasets"]["cohort"]
    assert (shown["epsilon"], shown["delta"]) == (planned, 1e-6)
    assert shown["attack_rates"]["tpr_at_1_percent"] > 0.05  # epsilon and delta alone say less


@pytest.mark.parametrize("command", ["plan", "fit"])
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--risk", "0.05@0.01", "--epsilon", "3"), 2, "leave out --epsilon or --risk"),
        ((), 2, "Missing option '--epsilon' or '--risk'"),
        (("--risk", "0.01@0.05"), 2, "no noise can keep to this"),
        (("--risk", "1.2@0.05"), 2, "both rates must be above 0 and below 1"),
        (("--risk", "5%"), 2, "a risk is two numbers with @ between them"),
    ],
)
def test_risks_that_are_refused(
    cli: Cli, cohort: Path, command: str, options: tuple[str, ...], code: int, words: str
) -> None:
    arguments = ["fit", "demo", cohort, "--dataset", "cohort", "-o", "run"]
    arguments = arguments if command == "fit" else ["plan", "demo"]
    ended = cli(*arguments, *options, "--delta", "1e-6")
    assert ended.code == code and words in ended.err
    assert not Path("run").exists()


def test_a_risk_belongs_to_a_private_fit_of_a_table(cli: Cli, cohort: Path) -> None:
    ended = cli("fit", "demo", cohort, "--not-private", "--risk", "0.05@0.01", "-o", "run")
    assert ended.code == 2 and "leave out --risk" in ended.err
