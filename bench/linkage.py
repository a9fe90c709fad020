"""Record linkage: do intervals hold the extract's own figures, and how wide are they?

Two registers of so many people each, 7 in 10 of them in both. Each true match is a candidate pair;
each record of the first register is a candidate with two others by chance. Scores are normal:
matches around 0.92 (sd 0.06), others around 0.6 (sd 0.12). The thresholds are 0.5, 0.7, 0.8, 0.9
and 0.95; at most 1 match and 3 other pairs of a record count; delta is 1e-7.

    python bench/linkage.py [--runs 1000]

Prints a Markdown table: how often intervals of 95 % hold over the thresholds, half of their mean
width, and the share of other pairs that the cap leaves out.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import pandas as pd  # noqa: E402

from dpsynth.privacy import LinkCounts, Links, SeededEntropy  # noqa: E402
from dpsynth.privacy.answers import largest_matching  # noqa: E402
from dpsynth.stats import LinkageRequest  # noqa: E402
from dpsynth.stats.linkage import RATIOS, tables_of  # noqa: E402

THRESHOLDS = [0.5, 0.7, 0.8, 0.9, 0.95]
DELTA = 1e-7
COUNT = {"value": 20_000, "basis": "simulated"}
CASES = [(people, epsilon) for people in (500, 5_000, 20_000) for epsilon in (0.5, 1.0, 3.0)]
Floats = npt.NDArray[np.float64]


def asked(*, same_people: bool) -> LinkageRequest:
    """Return the request."""
    registers = [{"name": name, "key": f"{name}_id", "population": COUNT} for name in ("a", "b")]
    return LinkageRequest.from_dict(
        {
            "linkage": "simulated",
            "registers": registers,
            "score": {"column": "score", "thresholds": THRESHOLDS},
            "match": {"column": "match", "matches": ["1"], "others": ["0"]},
            "cap": {"matches": 1, "others": 3, "basis": "simulated"},
            "same_people": same_people,
            "own_records": {"value": True, "basis": "simulated"},
        }
    )


def simulated(people: int, rng: np.random.Generator) -> dict[str, Links]:
    """Draw matches and other pairs."""
    first = np.flatnonzero(rng.random(people) < 0.7)
    matches = Links(first, first, _reached(rng.normal(0.92, 0.06, len(first))))
    a = np.repeat(np.arange(people), 2)
    others = Links(a, rng.integers(0, people, len(a)), _reached(rng.normal(0.6, 0.12, len(a))))
    return {"matches": matches, "non-matches": others}


def _reached(scores: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(scores[:, None] >= np.array(THRESHOLDS))


def exact(links: Links, cap: int) -> npt.NDArray[np.int64]:
    """Count the pairs from each threshold on, without noise."""
    return np.array(
        [largest_matching(links.first[cell], links.second[cell], cap) for cell in links.cells.T]
    )


def ratios(matches: Floats, others: Floats) -> dict[str, Floats]:
    """Return the figures of numbers without noise."""
    return {
        "precision": matches / np.maximum(matches + others, 1),
        "recall": matches / max(matches[0], 1),
        "F1": 2 * matches / np.maximum(matches + others + matches[0], 1),
    }


def held(table: pd.DataFrame, truth: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Say how often intervals of a table hold, and half of their width, over the thresholds."""
    found = {}
    for name, values in truth.items():
        low, high = (table[f"{name}: {end}"].to_numpy(float) for end in ("lower", "upper"))
        inside = (low <= values + 1e-12) & (values - 1e-12 <= high)
        found[name] = float(inside.mean()), float((high - low).mean() / 2)
    return found


def print_intervals(runs: int) -> None:
    """Print how often intervals hold."""
    names = ("matches", "accepted", *RATIOS)
    heads = [f"{name}: holds | half width" for name in names]
    print(f"| people | epsilon | left out | {' | '.join(heads)} |")
    print("|---" * (3 + 2 * len(names)) + "|")
    for people, epsilon in CASES:
        request = asked(same_people=True)
        events = {event.name: event for event in request.plan(epsilon, DELTA).events}
        source = SeededEntropy(people)
        links = simulated(people, np.random.default_rng(people))
        caps = {"matches": request.cap_of_matches, "non-matches": request.cap_of_others}
        true = {name: exact(part, caps[name]) for name, part in links.items()}
        m, n = (true[name].astype(float) for name in ("matches", "non-matches"))
        left_out = 1 - n[0] / links["non-matches"].cells[:, 0].sum()
        truth = {"matches": m, "accepted": m + n} | ratios(m, n)
        tallies: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for _ in range(runs):
            noisy = {}
            for name, event in events.items():
                assert isinstance(event, LinkCounts)
                drawn = source.discrete_gaussian(event.sigma, len(THRESHOLDS))
                noisy[name] = true[name] + drawn
            for name, one in held(tables_of(request, noisy, events)["thresholds"], truth).items():
                tallies[name].append(one)
        cells = []
        for name in names:
            share, half = np.mean(tallies[name], axis=0)
            cells.append(f"{share:.3f} | {half:{'.3f' if name in RATIOS else '.0f'}}")
        print(f"| {people:,} | {epsilon:g} | {left_out:.3f} | {' | '.join(cells)} |")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    print_intervals(options.runs)


if __name__ == "__main__":
    main()
