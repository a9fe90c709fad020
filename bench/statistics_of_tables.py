"""Statistics by cells: is what is said of keys, variances, areas and Laplace noise true?

- Keys: how many are listed and missed, beside what the plan said; how often intervals hold the
  number of a listed key, beside count +- z sd. 20 000 patients, one diagnosis each, 1 000 codes of
  which the i-th commonest has a share proportional to 1 / i.

    python bench/statistics_of_tables.py keys [--runs 200]

- Variances: how often the interval holds the variance of the extract, beside the delta method, for
  cells of several sizes. Values lie within -1 and 1, around -0.3.

    python bench/statistics_of_tables.py variances [--runs 4000]

- Areas: means and proportions of 40 areas, whose numbers of people are log-normal (median 55), with
  noise: error and average coverage of small areas merged, drawn together, and each for itself.

    python bench/statistics_of_tables.py areas [--runs 400]

- Laplace: half the width of an interval of 95 % of a count with Laplace and with Gaussian noise, by
  the number of cells that a patient moves in the whole request (delta 1e-7); and how often
  intervals of tables that agree hold.

    python bench/statistics_of_tables.py laplace [--runs 2000]

Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from dpsynth.privacy import (  # noqa: E402
    KeyCounts,
    LaplaceCounts,
    Occurrences,
    Outlook,
    RowSums,
    SeededEntropy,
    key_counts,
)
from dpsynth.privacy.events import UNDECIDED  # noqa: E402
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan, Share  # noqa: E402
from dpsynth.stats import agreed, fieller  # noqa: E402
from dpsynth.stats.counts import NoisyTable  # noqa: E402
from dpsynth.stats.keys import given_listed  # noqa: E402
from dpsynth.stats.means import (  # noqa: E402
    merged,
    shrunk,
    variances,  # noqa: E402
)

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


def print_variances(runs: int) -> None:
    """Print how often intervals of variances hold, and how wide they are."""
    print(
        "| noise | rows | true sd | interval holds | delta method | width | width, delta method |"
    )
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(5)
    for sd, rows in ((5, 30), (5, 100), (5, 1000), (20, 100), (20, 1000), (20, 10000)):
        for spread in (0.05, 0.3):
            values = np.clip(rng.normal(-0.3, spread, rows), -1, 1)
            true = [float(rows), values.sum(), (values**2).sum()]
            n, s, q = (one + rng.normal(0, sd, runs) for one in true)
            variance = values.var()
            _, low, high = variances(n, s, q, (sd, sd, sd), Z)
            m = s / n
            v = q / n - m**2
            off = Z * sd * np.sqrt(1 + 4 * m**2 + (m**2 - v) ** 2) / np.abs(n)
            held = np.mean((low <= variance) & (variance <= high))
            naive = np.mean((np.maximum(v - off, 0) <= variance) & (variance <= v + off))
            widths = np.median(high - low), np.median(v + off - np.maximum(v - off, 0))
            print(
                f"| {sd} | {rows:,} | {values.std():.2f} | {held:.3f} | {naive:.3f} "
                f"| {widths[0]:.3f} | {widths[1]:.3f} |"
            )


def areas_of(kind: str, spread: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the people of 40 areas, and the mean of each, between -1 and 1."""
    n = np.ceil(rng.lognormal(4, 1.2, 40)).astype(int)
    middle = np.clip(rng.normal(-0.3, spread, 40), -1, 1)
    if kind == "mean":
        drawn = [rng.normal(one, 0.2, k).clip(-1, 1) for one, k in zip(middle, n, strict=True)]
    else:
        drawn = [
            2.0 * (rng.random(k) < (1 + one) / 2) - 1 for one, k in zip(middle, n, strict=True)
        ]
    return n, np.array([values.mean() for values in drawn])


def print_areas(runs: int) -> None:
    """Print errors, coverage and widths."""
    print(
        "| of | noise | areas differ (sd) | error, each for itself | drawn together | holds, each",
        end="",
    )
    print(
        " for itself | drawn together | of areas below 50 | merged below 100 | width, each for",
        end="",
    )
    print(" itself | drawn together |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for kind in ("mean", "proportion"):
        for sd, spread in ((5, 0.0), (5, 0.05), (5, 0.2), (20, 0.0), (20, 0.05), (20, 0.2)):
            errors, held, few, widths, together = [], [], [], [], []
            for _ in range(runs):
                n, true = areas_of(kind, spread, rng)
                noisy, sums = n + rng.normal(0, sd, 40), n * true + rng.normal(0, sd, 40)
                own = fieller(sums, noisy, sd, sd, Z)
                drawn = shrunk(noisy, sums, sd, sd, Z, 1)
                hold = [(one[1] <= true) & (true <= one[2]) for one in (own, drawn)]
                errors.append([np.mean((one[0] - true) ** 2) for one in (own, drawn)])
                held.append([one.mean() for one in hold])
                few.append(hold[1][n < 50].mean())
                widths.append([np.median(one[2] - one[1]) for one in (own, drawn)])
                cell = merged(noisy, 100.0)
                parts = np.sqrt(np.bincount(cell))
                whole = np.bincount(cell, n * true) / np.bincount(cell, n)
                total, number = np.bincount(cell, sums), np.bincount(cell, noisy)
                _, low, high = fieller(total, number, sd * parts, sd * parts, Z)
                together.append(low[-1] <= whole[-1] <= high[-1])
            error, hold, width = (
                np.mean(errors, axis=0) ** 0.5,
                np.mean(held, axis=0),
                np.mean(widths, axis=0),
            )
            print(
                f"| {kind} | {sd} | {spread:g} | {error[0]:.3f} | {error[1]:.3f} | {hold[0]:.3f} "
                f"| {hold[1]:.3f} | {np.mean(few):.3f} | {np.mean(together):.3f} | {width[0]:.2f} "
                f"| {width[1]:.2f} |"
            )


def print_laplace(runs: int) -> None:
    """Print widths of both kinds of noise, and how often intervals of agreeing tables hold."""
    print("| epsilon | cells moved | Laplace | Gaussian | ratio | tables that agree hold |")
    print("|---|---|---|---|---|---|")
    source = SeededEntropy(2)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        for moved in (1, 2, 3, 5, 8, 12, 20):
            budget = PrivacyBudget(epsilon, 1e-7)
            laplace = [
                Share(LaplaceCounts(f"{i}", 1, False, UNDECIDED), 1 / moved) for i in range(moved)
            ]
            gauss = [
                Share(RowSums(f"{i}", 1, 1, 1, False, False, False, UNDECIDED), 1 / moved)
                for i in range(moved)
            ]
            ours = PrivacyPlan.calibrate(budget, laplace).events[0]
            other = PrivacyPlan.calibrate(budget, gauss).events[0]
            reach, width = ours.reach(0.05), Z * other.sigma
            held = []
            for _ in range(runs if moved == 3 else 0):
                tables = [((), ()), (("a",), (3,)), (("a", "b"), (3, 4))]
                noisy = [
                    NoisyTable(
                        axes,
                        source.discrete_laplace(ours.scale, int(np.prod(size))).reshape(size) * 1.0,
                        ours.sd,
                    )
                    for axes, size in tables
                ]
                far = max(Z, reach / ours.sd)
                held.append(
                    [np.mean(np.abs(a.counts) <= np.ceil(far * a.sd)) for a in agreed(noisy)]
                )
            words = ", ".join(f"{one:.3f}" for one in np.mean(held, axis=0)) if held else ""
            print(
                f"| {epsilon:g} | {moved} | {reach} | {width:.1f} | {width / max(reach, 1):.2f} "
                f"| {words} |"
            )


PARTS = {
    "laplace": print_laplace,
    "areas": print_areas,
    "keys": print_keys,
    "variances": print_variances,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    PARTS[options.part](options.runs)


if __name__ == "__main__":
    main()
