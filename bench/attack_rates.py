"""Attack rates by epsilon, of a fit that counts and of one that trains by DP-SGD.

    python bench/attack_rates.py

prints the table of docs/choosing-epsilon.md: the greatest share of patients found at 1 % and 10 %
false alarms, and the greatest advantage, by all events of a plan; beside them, what epsilon and
delta alone would say. It reads no data.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth._util.formatting import percent_at_most
from dpsynth.privacy import AttackRates, rates_of_claim, worst_case_rates
from dpsynth.schema import load_any
from dpsynth.synthesis import prepare

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
MODELS = ("mixture", "autoregressive")


def rates(epsilon: float) -> Iterator[AttackRates]:
    """Yield the rates of each model's plan for the demo table, then those of the claim alone."""
    for model in MODELS:
        plan = prepare(load_any("demo"), epsilon=epsilon, delta=DELTA, model=model).plan
        yield worst_case_rates(plan.events)
    yield rates_of_claim(epsilon, DELTA)


def main() -> None:
    """Print the table in Markdown."""
    heads = [f"{name}: at 1 %, at 10 %, advantage" for name in (*MODELS, "epsilon and delta alone")]
    print("| epsilon | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * len(heads))
    for epsilon in EPSILONS:
        cells = [", ".join(map(percent_at_most, vars(one).values())) for one in rates(epsilon)]
        print(f"| {epsilon:g} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
