"""Statistics by cells: undeclared keys. Is what a plan says of them true?

- Keys: how many are listed and missed, beside what the plan said; how often intervals hold the
  number of a listed key, beside count +- z sd. 20 000 patients, one diagnosis each, 1 000 codes of
  which the i-th commonest has a share proportional to 1 / i.

    python bench/statistics_of_tables.py keys [--runs 200]

Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from dpsynth.privacy import KeyCounts, Occurrences, Outlook, SeededEntropy, key_counts  # noqa: E402
from dpsynth.privacy.events import UNDECIDED  # noqa: E402
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan, Share  # noqa: E402
from dpsynth.stats.tables.keys import given_listed  # noqa: E402

Z = 1.959964
PATIENTS, CODES = 20_000, 1_000


def print_keys(runs: int) -> None:
    """Print what is listed and missed, and how often intervals hold."""
    print(
        "| epsilon | sd | threshold | listed, plan | listed | missed, plan | missed | false |",
        end="",
    )
    print(" interval holds | count +- z sd | the same, near the threshold |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    shares = 1 / np.arange(1, CODES + 1)
    true = np.floor(PATIENTS * shares / shares.sum()).astype(np.int64)
    rows = Occurrences(np.arange(true.sum()), np.repeat(np.arange(CODES), true))
    for epsilon in (0.5, 1.0, 2.0):
        event = KeyCounts("keys", 1, False, 1e-8, UNDECIDED)
        plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon, 1e-7), [Share(event, 1.0)])
        event = plan.event("keys")
        source, listed, held, naive, near = SeededEntropy(1), [], [], [], []
        false = 0
        for _ in range(runs):
            found = key_counts(rows, event, source)
            own = true[found.codes]
            low, high = given_listed(found.counts, event.threshold, event.sigma, Z)
            off = np.abs(found.counts - own) <= Z * event.sigma
            listed.append(len(own))
            false += int((own == 0).sum())
            held += ((low <= own) & (own <= high)).tolist()
            naive += off.tolist()
            near += off[own < event.threshold].tolist()
        outcome = Outlook(event).expected(CODES, PATIENTS, 1.0)
        mean = float(np.mean(listed))
        print(
            f"| {epsilon:g} | {event.sigma:.2f} | {event.threshold} | {outcome.found:.1f} "
            f"| {mean:.1f} | {outcome.missed:.1f} | {CODES - mean:.1f} | {false} "
            f"| {np.mean(held):.3f} | {np.mean(naive):.3f} | {np.mean(near):.3f} |"
        )


PARTS = {"keys": print_keys}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    PARTS[options.part](options.runs)


if __name__ == "__main__":
    main()
