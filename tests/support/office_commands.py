"""Commands of an office with a policy: a fit with a small budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .command_outcome import Outcome

BUDGET = ["--delta", "1e-6", "--model", "independent", "--quiet"]
POLICY = """
dpsynth_policy: 1
name: Office
delta: 1.0e-5
caps:
  release: {epsilon: 0.405, basis: "law: ln 1.5"}
  year: {epsilon: 0.5, basis: "ethics board"}
tiers:
  rare-disease: {releases_a_year: 1, least: {epsilon: 0.17, basis: "accuracy floor"}}
  standard: {releases_a_year: 2}
datasets: {ward: [ward-2019, ward-2020]}
models: [independent, mixture]
minimum_population: {value: 5000, basis: "board"}
sign_off: {people: 2}
"""
Cli = Callable[..., Outcome]


def fit(cli: Cli, output: str, **changes: Any) -> Outcome:
    """Fit with a small budget; keyword arguments are options."""
    options = {"dataset": "ward-2019", "epsilon": 0.165, "tier": "standard"} | changes
    data = options.pop("data", "extract.csv")
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return cli("fit", "ward.schema.json", data, *words, *BUDGET, "-o", output)
