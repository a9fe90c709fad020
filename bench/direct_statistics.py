"""Statistics: are intervals right, and how much better is an answer than counting synthetic rows?

The demo's simulated patients, one visit of each, a request of every kind, delta 1e-6.

- Coverage: of each interval over many answers, which should be the confidence asked for (0.95) or
  more; noise is seeded, so that a run can be repeated.
- Error: mean absolute error of each statistic, answered directly and computed from synthetic rows
  of a fit at the same epsilon, both about the figures of the source.

    python bench/direct_statistics.py [--patients 5000] [--epsilons 0.5,2] [--runs 1000] [--fits 2]

- Level: of each test where there is no difference, over many extracts and their noise; 5 % should
  be about 5 %. Beside it the same test without the noise in its law, and the power to find a
  difference; for survival, how often the band holds the curve of the extract, and
  those of competing events the shares of each.

    python bench/direct_statistics.py --only-tests [--runs 2000]

- Series: noise of an occupancy by the filter of dpsynth, beside that of noisy counts of each
  period and of noisy changes that are added up (one by one, or in a tree), at equal privacy, by the
  longest stay; and how often lines hold a series of the source, with their error over that of raw
  counts.

    python bench/direct_statistics.py --only-series [--runs 200]

Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import dpsynth  # noqa: E402
from dpsynth.encoding import read_cohort  # noqa: E402
from dpsynth.privacy import SeededEntropy, StaySums  # noqa: E402
from dpsynth.privacy.stay_filters import WHOLE, inverse_weights, most_moved  # noqa: E402
from dpsynth.schema import Schema  # noqa: E402
from dpsynth.stats import StatisticsRequest  # noqa: E402
from dpsynth.stats.comparisons import (
    compared,  # noqa: E402
    independent,  # noqa: E402
)
from dpsynth.stats.series import (
    noise_power,  # noqa: E402
    smoothed,  # noqa: E402
)
from dpsynth.stats.statistic import Rows  # noqa: E402
from dpsynth.stats.survival import (  # noqa: E402
    aalen_johansen,  # noqa: E402
    kaplan_meier,
    log_rank,
)
from dpsynth.tables import open_table, simulate  # noqa: E402

DELTA = 1e-6


def one_visit() -> Schema:
    """Return the demo's schema for tables with one row of each patient."""
    document = Schema.load("demo").to_dict()
    document["dpsynth"]["max_rows"] = {"value": 1, "basis": "choice: first visits"}
    document["dpsynth"]["rows"] = document["dpsynth"]["population"]
    return Schema.from_dict(document)


SCHEMA = one_visit()
REQUEST = StatisticsRequest.from_dict(
    {
        "schema": SCHEMA.to_dict(),
        "statistics": [
            {"name": "by sex", "count": "patients", "by": ["sex"]},
            {"name": "by sex and age", "count": "patients", "by": ["sex", {"age": [40, 55, 70]}]},
            {"name": "pressure", "mean": "sbp", "by": ["sex", {"age": [40, 55, 70]}]},
            {"name": "diabetics", "proportion": {"diabetes": ["True"]}, "by": ["sex"]},
            {"name": "age", "quantiles": "age", "shares": [0.1, 0.25, 0.5, 0.75, 0.9]},
        ],
    }
)
VALUES = ("count", "mean", "value")
COMPETING = np.array([0.06, 0.04, 0.05, 0.06, 0.08, 0.02, 0.05, 0.05, 0.09, 0.5])  # two kinds


def tables(rows: pd.DataFrame, epsilon: float | None, seed: int) -> dict[str, pd.DataFrame]:
    """Answer the request; exactly without an epsilon."""
    source = SeededEntropy(seed)
    plan = REQUEST.plan(epsilon=epsilon or 1000.0, delta=DELTA)
    events = {event.name: event for event in plan.events}
    if epsilon is None:
        source = Silent(seed)
    cohort = read_cohort(open_table(rows, REQUEST.schema), REQUEST.codec, REQUEST.schema, source)
    coded = Rows.of(cohort)
    answers = {}
    for one in REQUEST.statistics:
        answers |= one.answer(coded, events, source)
    return {result.name: result.table for result in REQUEST.results(answers, events)}


class Silent(SeededEntropy):
    """No noise: the figures of the source."""

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        """Draw zeros."""
        return np.zeros(size, np.int64)

    discrete_laplace = discrete_gaussian


def value_of(table: pd.DataFrame) -> np.ndarray:
    """Return the figures of a table, in order."""
    label = next(label for label in VALUES if label in table)
    return table[label].to_numpy(dtype=float)


def coverage(rows: pd.DataFrame, epsilon: float, runs: int) -> dict[str, float]:
    """Return how often each statistic's intervals hold the figure of the source."""
    exact = {name: value_of(table) for name, table in tables(rows, None, 0).items()}
    held = {name: [] for name in exact}
    plan = REQUEST.plan(epsilon=epsilon, delta=DELTA)
    events = {event.name: event for event in plan.events}
    source = SeededEntropy(1)
    cohort = read_cohort(open_table(rows, REQUEST.schema), REQUEST.codec, REQUEST.schema, source)
    coded = Rows.of(cohort)
    for _ in range(runs):
        answers = {}
        for one in REQUEST.statistics:
            answers |= one.answer(coded, events, source)
        for result in REQUEST.results(answers, events):
            low = result.table["lower"].to_numpy(dtype=float)
            high = result.table["upper"].to_numpy(dtype=float)
            true = exact[result.name]
            slack = 1e-9 * (1 + np.abs(true))
            held[result.name].append(np.mean((low <= true + slack) & (true - slack <= high)))
    return {name: float(np.mean(shares)) for name, shares in held.items()}


def errors(found: dict[str, pd.DataFrame], exact: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Return the mean absolute error of each statistic."""
    return {
        name: float(np.mean(np.abs(value_of(found[name]) - value_of(exact[name]))))
        for name in exact
    }


def levels(sd: float, people: int, runs: int, effect: float) -> dict[str, np.ndarray]:
    """Return how often each test finds something at 5 %, with noise in its law and without.

    Counts are drawn and get noise ``sd``, in people; values of a mean lie in parts of half the
    width of their bounds, and their sums get the same noise.
    """
    rng = np.random.default_rng(7)
    found = {name: np.zeros(2) for name in ("log-rank", "independence", "difference of means")}
    law = np.array([0.1, 0.05, 0.1, 0.1, 0.05, 0.1, 0.5])
    other = law + effect * np.array([0.1, 0, 0.1, 0.1, 0, 0.1, -0.4])
    joint = np.outer([0.4, 0.6], [0.2, 0.3, 0.5])
    joint = joint + effect * 0.05 * np.array([[1, 0, -1], [-1, 0, 1]])
    held, shares = [], []
    for _ in range(runs):
        exact = np.stack([rng.multinomial(people // 2, one) for one in (law, other)])
        groups = exact + np.rint(rng.normal(0, sd, exact.shape))
        table = rng.multinomial(people, joint.ravel()).reshape(joint.shape)
        table = table + np.rint(rng.normal(0, sd, joint.shape))
        values = np.clip(rng.normal([[-0.1], [-0.1 + 0.1 * effect]], 0.3, (2, people // 2)), -1, 1)
        sums = [np.full(2, people // 2), values.sum(axis=1), (values**2).sum(axis=1)]
        sums = [one + rng.normal(0, sd, 2) for one in sums]
        for place, stated in enumerate((sd, 1e-9)):
            found["log-rank"][place] += log_rank(groups, stated)["p-value"] < 0.05
            found["independence"][place] += independent(table, stated)["p-value"] < 0.05
            *_, p = compared(sums[0], sums[1], sums[2], (stated, stated), 1.96)
            found["difference of means"][place] += p < 0.05
        true = kaplan_meier(exact[0].astype(float), 0.0, 1.96)[0]
        _, lower, upper = kaplan_meier(groups[0], sd, 1.96)
        held.append(np.mean((lower - 1e-9 <= true) & (true <= upper + 1e-9)))
        kinds = rng.multinomial(people, COMPETING)
        true = aalen_johansen(kinds.astype(float), 2, 0.0, 1.96)[0]
        noisy = kinds + np.rint(rng.normal(0, sd, len(kinds)))
        _, lower, upper = aalen_johansen(noisy, 2, sd, 1.96)
        shares.append(np.mean((lower - 1e-9 <= true) & (true <= upper + 1e-9)))
    bands = {"band": np.mean(held), "shares": np.mean(shares)}
    return {name: each / runs for name, each in found.items()} | bands


def print_levels(runs: int) -> None:
    """Print the third table."""
    print("\n| noise | people | test | level | without noise in its law | power | bands hold |")
    print("|---|---|---|---|---|---|---|")
    for sd, people in ((1, 400), (5, 400), (5, 2000), (20, 2000), (20, 10000), (60, 10000)):
        none, some = levels(sd, people, runs, 0.0), levels(sd, people, runs, 1.0)
        for name in ("log-rank", "independence", "difference of means"):
            held = f"{none['band']:.3f}, {none['shares']:.3f}" if name == "log-rank" else ""
            print(
                f"| {sd} | {people:,} | {name} | {none[name][0]:.3f} | {none[name][1]:.3f} "
                f"| {some[name][0]:.3f} | {held} |"
            )


def print_series(runs: int) -> None:
    """Print the tables of time series."""
    print("\n| periods | longest stay | counts | changes | changes in a tree | filter | gain |")
    print("|---|---|---|---|---|---|---|")
    for periods in (52, 365, 2000):
        for longest in (1, 3, 7, 14, 31, 91, 365):
            if longest > periods:
                continue
            filtered = most_moved(periods, longest) ** 0.5
            filtered *= np.sqrt(np.cumsum(inverse_weights(periods, longest) ** 2).mean())
            ends = np.arange(1, periods + 1)
            levels = (periods - 1).bit_length() + 1
            blocks = np.mean([int(end).bit_count() for end in ends])
            changes, tree = (2 * ends.mean()) ** 0.5, (2 * levels * blocks) ** 0.5
            least = min(longest**0.5, changes, tree)
            print(
                f"| {periods:,} | {longest} | {longest**0.5:.2f} | {changes:.2f} | {tree:.2f} "
                f"| {filtered:.2f} | {least / filtered:.2f} |"
            )
    rng, size = np.random.default_rng(7), 365
    time = np.arange(size)
    sources = {
        "constant": lambda: np.full(size, 100.0),
        "seasons": lambda: 100 + 30 * np.sin(2 * np.pi * time / 365),
        "outbreak": lambda: 100 + 200 * np.exp(-(((time - 180) / 12) ** 2)),
        "a step": lambda: 100.0 + 80 * (time > 180),
        "random walk": lambda: 100 + np.cumsum(rng.normal(0, 3, size)),
        "people by chance": lambda: rng.poisson(100, size).astype(float),
        "days of the week": lambda: 100 + 15 * np.sin(2 * np.pi * time / 7),
    }
    print("\n| source | noise | line holds | its error | filtered: line holds | its error |")
    print("|---|---|---|---|---|---|")
    event = StaySums("beds", size, longest=14, stays_per_unit=1, sigma=3.0)
    way_back = inverse_weights(size, 14) * WHOLE
    scale = WHOLE / np.sqrt(np.cumsum(way_back**2).mean())
    for name, source in sources.items():
        for sd in (3.0, 10.0, 30.0):
            noisy = [np.full(size, sd**2), noise_power(replace(event, sigma=sd * scale))]
            held, error = np.zeros((2, runs)), np.zeros((2, runs))
            for run in range(runs):
                true = source()
                white = rng.normal(0, sd, (2, size))
                white[1] = np.convolve(white[1] * scale / WHOLE, way_back)[:size]
                for kind, power in enumerate(noisy):
                    line, low, high = smoothed(true + white[kind], power, 1.96)
                    held[kind, run] = np.mean((low <= true) & (true <= high))
                    error[kind, run] = np.linalg.norm(line - true) / np.linalg.norm(white[kind])
            print(
                f"| {name} | {sd:g} | {held[0].mean():.3f} | {error[0].mean():.2f} "
                f"| {held[1].mean():.3f} | {error[1].mean():.2f} |"
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--patients", type=int, default=5000)
    parser.add_argument("--epsilons", default="0.5,2")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--only-tests", action="store_true", help="print the table of tests alone")
    parser.add_argument("--only-series", action="store_true", help="print those of series alone")
    options = parser.parse_args()
    if options.only_series:
        print_series(options.runs)
        return
    if options.only_tests:
        print_levels(options.runs)
        return
    rows = simulate(options.patients, seed=1).drop_duplicates("patient_id")
    exact = tables(rows, None, 0)
    print("| epsilon | statistic | coverage | error | from synthetic rows | ratio |")
    print("|---|---|---|---|---|---|")
    for epsilon in map(float, options.epsilons.split(",")):
        held = coverage(rows, epsilon, options.runs)
        direct = [errors(tables(rows, epsilon, seed), exact) for seed in range(20)]
        drawn = []
        for seed in range(options.fits):
            run = dpsynth.fit(
                rows, SCHEMA, epsilon=epsilon, delta=DELTA, dataset="x", without_ledger=True
            )
            sample = run.sample(len(rows), seed=seed)
            sample["patient_id"] = [f"s{number}" for number in range(len(sample))]
            drawn.append(errors(tables(sample, None, 0), exact))
        for name in exact:
            ours = float(np.mean([one[name] for one in direct]))
            theirs = float(np.mean([one[name] for one in drawn]))
            print(
                f"| {epsilon:g} | {name} | {held[name]:.3f} | {ours:.3g} | {theirs:.3g} "
                f"| {theirs / ours:.1f} |"
            )
    print_levels(options.runs)


if __name__ == "__main__":
    main()
