"""Which diagnoses of diabetes130 does a fit discover, and how many were predicted?

usage: discovery.py [--epsilon 1 3 10] [--runs 5] [--fits]

Codes of diag_1, diag_2 and diag_3 are discovered together, under the plan of `mixture`, with
patients as units (at most five rows each) and with rows as units. Prints, as means over runs of the
three columns together: codes that occur, found, found as predicted from the exact numbers of
patients, and from public facts alone (Zipf's law, 750 codes a column), false ones, and the share of
cells whose code is found. Then the same for other shares of the budget, and, for one code per unit,
how many units a code needs by the plan's mechanism and by the optimal one of Desfontaines et al.
With --fits, also how far synthetic codes are off. Needs DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from codes import COLUMNS, apart

import dpsynth
from dpsynth.encoding import Codec, code_search, find_codes
from dpsynth.models import discovered_codes
from dpsynth.models.discovered_codes import DISCOVERY
from dpsynth.privacy import CodeDiscovery, Entropy, OsEntropy, Outlook, PaidEntropy
from dpsynth.privacy.accounting import gaussian_mu
from dpsynth.privacy.discovery import Occurrences, Selected, select_codes
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare
from dpsynth.tables import open_table

DELTA = 1e-6
EXPECTED = 750  # codes of a column, as a coding office would guess


def schema_of(unit: str) -> Schema:
    """Return the shipped schema with diagnoses that are discovered."""
    document: dict[str, Any] = Schema.load("diabetes130").to_dict()
    own = document["dpsynth"]
    own.pop("rules", None)
    for field in document["fields"]:
        if field["name"] in COLUMNS:
            codes = {"system": "ICD-9-CM", "rollup": "chapter-diabetes"}
            field["dpsynth"]["codes"] = codes | {"discover": True, "expected": EXPECTED}
        elif unit == "rows" and field["dpsynth"].get("role") in ("unit", "order"):
            field["dpsynth"]["role"] = "drop"
    if unit == "rows":
        own["population"] = own["rows"]
        for key in ("max_rows", "keep", "key", "person"):
            own.pop(key, None)
    return Schema.from_dict(document)


def source() -> Path:
    """Return the table."""
    return Path(os.environ["DPSYNTH_DATA"], "diabetes130.csv.gz")


def event_of(schema: Schema, epsilon: float) -> CodeDiscovery:
    """Return the event of a fit of the mixture."""
    plan = prepare(schema, epsilon=epsilon, delta=DELTA, model="mixture").plan
    event = plan.event(DISCOVERY)
    assert isinstance(event, CodeDiscovery)
    return event


class Watched:
    """What discovery is asked, and what it gives; exact, for a bench on a public table alone."""

    def __init__(self, schema: Schema, event: CodeDiscovery) -> None:
        """Run it once."""
        self.asked: list[Occurrences] = []
        self.event = event
        paid = PaidEntropy([event], OsEntropy())
        with patch.object(code_search, "select_codes", self._select):
            find_codes(open_table(str(source()), schema), schema, event, paid)
        pairs = np.unique(np.stack([self.asked[0].units, self.asked[0].codes], axis=1), axis=0)
        _, of_pair, own = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
        parts = 1 / np.sqrt(own[of_pair.ravel()])
        self.codes, of_code = np.unique(pairs[:, 1], return_inverse=True)
        self.counts = np.bincount(of_code.ravel(), weights=parts)
        cells = np.unique(self.asked[0].codes, return_counts=True)[1]
        self.cells = cells / cells.sum()

    def _select(self, occurrences: Occurrences, event: CodeDiscovery, entropy: Entropy) -> Selected:
        self.asked.append(occurrences)
        return select_codes(occurrences, event, entropy)

    @property
    def predicted(self) -> float:
        """How many codes are found in expectation, from the exact numbers of units."""
        return float(Outlook(self.event).found(self.counts).sum())

    def again(self) -> tuple[int, int, float]:
        """Run it once more: codes found, found though nobody has them, share of their cells."""
        found = select_codes(
            self.asked[0], self.event, PaidEntropy([self.event], OsEntropy())
        ).codes
        known = np.isin(self.codes, found)
        return len(found), int((~np.isin(found, self.codes)).sum()), float(self.cells[known].sum())


def lines_of(unit: str, epsilon: float, runs: int) -> str:
    """Return a line of the table."""
    schema = schema_of(unit)
    event = event_of(schema, epsilon)
    outlook, watched = Outlook(event), Watched(schema, event)
    found = np.array([watched.again() for _ in range(runs)])
    rows = schema.rows.value / schema.population.value
    assumed = 3 * outlook.expected(EXPECTED, schema.population.value, rows).found
    several = outlook.units_needed(0.5, 3)
    number, false, cells = found.mean(axis=0)
    occur = len(watched.codes)
    return (
        f"| {epsilon:g} | {unit} | {outlook.threshold:.1f} | {several} | {occur} | {number:.1f} "
        f"| {watched.predicted:.1f} | {assumed:.0f} | {occur - number:.1f} | {false:.0f} "
        f"| {cells:.3f} |"
    )


def optimal_probability(units: int, epsilon: float, delta: float) -> float:
    """Return the largest probability with which an (epsilon, delta)-private mechanism finds a code.

    Of one code per unit: pi(0) = 0, and pi(n) = min(e^epsilon pi(n - 1) + delta,
    1 - e^-epsilon (1 - pi(n - 1) - delta), 1). It is what a plan is compared with.

    Source: Desfontaines, Voss, Gipson and Mandayam, arXiv 2006.03684, theorem 1.

    >>> [round(optimal_probability(n, 1.0, 0.01), 3) for n in (1, 2, 3, 10)]
    [0.01, 0.037, 0.111, 1.0]
    """
    chance = 0.0
    for _ in range(units):
        lower = math.exp(epsilon) * chance + delta
        chance = min(lower, 1 - math.exp(-epsilon) * (1 - chance - delta), 1.0)
    return chance


def optimal_units(epsilon: float, delta: float) -> int:
    """Return how many units a code needs by the optimal mechanism, with probability 50 %."""
    units = 1
    while optimal_probability(units, epsilon, delta) < 0.5:
        units += 1
    return units


def own_epsilon(epsilon: float, share: float) -> float:
    """Return the epsilon that a mechanism of bounded loss may have beside the rest of a plan.

    The rest is a Gaussian with (1 - share) of the plan's mu squared, the mechanism has a tenth of
    delta; both are composed by privacy loss distributions.
    """
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    rest = gaussian_mu(epsilon, 0.9 * DELTA) * math.sqrt(1 - share)
    gaussian = pld.from_gaussian_mechanism(1 / rest, value_discretization_interval=1e-3)
    low, high = 1e-3, epsilon
    for _ in range(20):
        middle = (low + high) / 2
        parameters = common.DifferentialPrivacyParameters(middle, 0.1 * DELTA)
        own = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-3)
        fits = gaussian.compose(own).get_epsilon_for_delta(DELTA) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def one_code(epsilon: float) -> str:
    """Return a line on units with one code each: the plan's mechanism beside the optimal one."""
    mu = gaussian_mu(epsilon, 0.9 * DELTA)
    cells = []
    for share in (discovered_codes.SHARE, 0.5, 1.0):
        event = CodeDiscovery("codes", 1, 1, 0.1 * DELTA, 1.0).with_mu(mu * math.sqrt(share))
        own = own_epsilon(epsilon, share) if share < 1 else epsilon
        delta = 0.1 * DELTA if share < 1 else DELTA
        cells += [str(Outlook(event).units_needed(0.5)), str(optimal_units(own, delta))]
    return f"| {epsilon:g} | {' | '.join(cells)} |"


def groups_of(codec: Codec, name: str) -> set[str]:
    """Return the categories of a column that are groups, not codes that were found."""
    codes = codec.schema.column(name).codes
    assert codes is not None
    pairs = zip(codes.categories, codes.group_of, strict=True)
    return {category for category, group in pairs if category == group}


def fits(epsilon: float) -> str:
    """Fit the mixture, and return how far its codes are off, coded by the released list."""
    schema = schema_of("patients")
    budget = {"epsilon": epsilon, "delta": DELTA, "dataset": "codes", "without_ledger": True}
    run = dpsynth.fit(str(source()), schema, model="mixture", **budget)
    codec, rng = Codec(run.schema), np.random.default_rng(0)
    frames = open_table(str(source()), schema).chunks()
    real = pd.concat([codec.decode(codec.encode(frame), rng) for frame in frames])
    drawn = run.sample(len(real), seed=0)
    pairs = [list(pair) for pair in (*pairwise(COLUMNS), (COLUMNS[0], COLUMNS[2]))]
    figures = [
        np.mean([apart(real, drawn, [name]) for name in COLUMNS]),
        np.mean([apart(real, drawn, [name, "age"]) for name in COLUMNS]),
        np.mean([apart(real, drawn, pair) for pair in pairs]),
    ]
    rest = [drawn[name].dropna().isin(groups_of(codec, name)).mean() for name in COLUMNS]
    return f"| {epsilon:g} | {' | '.join(f'{x:.4f}' for x in (*figures, np.mean(rest)))} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--fits", action="store_true", help="also fit and compare tables")
    options = parser.parse_args()
    header = (
        "| epsilon | unit | threshold | 50 % with | occur | found | predicted | assumed | missed "
        "| false | cells |\n| --- | --- |" + " ---: |" * 9
    )
    print(header)
    for unit in ("patients", "rows"):
        for epsilon in options.epsilon:
            print(lines_of(unit, epsilon, options.runs), flush=True)
    shares = header.replace("| epsilon |", "| share | epsilon |")
    print("\n" + shares.replace("--- |", "--- | --- |", 1))
    for share in (0.05, 0.1, 0.2):
        with patch.object(discovered_codes, "SHARE", share):
            print(f"| {share:g} {lines_of('patients', 3.0, options.runs)}", flush=True)
    print("\n| epsilon | .1: plan | optimal | .5: plan | optimal | all: plan | optimal |")
    print("| --- |" + " ---: |" * 6)
    for epsilon in options.epsilon:
        print(one_code(epsilon), flush=True)
    if options.fits:
        print("\n| epsilon | codes | codes with age | pairs of codes | not listed |")
        print("| --- |" + " ---: |" * 4)
        for epsilon in options.epsilon:
            print(fits(epsilon), flush=True)


if __name__ == "__main__":
    main()
