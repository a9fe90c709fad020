"""Few patients: counts of all pairs, or products of contrasts first? What the rule rests on.

usage: few_patients.py [--kinds mixed,binary,numeric] [--columns 10,30,100]
    [--units 3000,10000,30000,100000] [--epsilons 0.5,1,3,10] [--seeds 1] [--work DIR] [--show]

Fits the mixture in both ways to simulated tables, a row a unit, delta 1e-6. Prints how far pairs of
columns are from the source (TVD2, on deciles) and the AUROC of gradient boosting trained on
synthetic rows and tested on other rows of the process (TSTR). No real row is involved. Resumable:
one line a fit in DIR/few_patients.jsonl. --show prints what is there, and what the rule chooses.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import ndtri
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpsynth.encoding import Cohort
from dpsynth.eval.fidelity.summary import coarse, decile_edges, mean_tvd
from dpsynth.models import contrast_settings, presets
from dpsynth.models.base import Domain, Feature
from dpsynth.models.generators import Mixture
from dpsynth.privacy import OsEntropy, PrivacyBudget, PrivacyPlan

WAYS = {"pairs": False, "contrasts": True}
DELTA = 1e-6
TEST = 20_000
NUMBERS = (40, 80, 200)  # codes of a number
LEVELS = (3, 5, 8)
KINDS = {"mixed": (0.4, 0.3), "binary": (0.1, 0.1), "numeric": (0.9, 0.05)}  # numbers, categories
MOST_PAIRS = 400  # that are compared


def made(kind: str, columns: int, rows: int, seed: int) -> tuple[Domain, np.ndarray]:
    """Draw rows of codes: columns load on a few factors, some on none; the last is the target.

    One in eight copies another with some errors; one in five has a relation without a trend.
    """
    facts = np.random.default_rng([seed, columns, len(kind)])  # of the process
    chance = np.random.default_rng([seed, columns, rows, 1])
    factors = 3 + columns // 15
    latent = chance.standard_normal((rows, factors))
    dense = kind == "binary"
    codes, features, signals = [], [], []
    for j in range(columns - 1):
        own = facts.standard_normal(factors) * (facts.random(factors) < (0.8 if dense else 0.35))
        own *= 0 if facts.random() < (0.1 if dense else 0.25) else facts.uniform(0.3, 1.0)
        value = latent @ own + chance.standard_normal(rows)
        value = value / np.sqrt(1 + own @ own)
        if j and facts.random() < 0.125:
            value = np.where(chance.random(rows) < 0.9, signals[facts.integers(j)], value)
        signals.append(value)
        if facts.random() < 0.2:  # a relation without a trend: both ends of it are alike
            value = 1.7 * np.abs(value) - 1.35
        draw, (numbers, categories) = facts.random(), KINDS[kind]
        if draw < numbers:
            size = int(facts.choice(NUMBERS))
            skew = facts.choice([0.3, 1.0])
            scaled = np.exp(skew * value) * size / 8 if skew > 0.5 else (value + 3.5) * size / 7
            codes.append(np.clip(scaled, 0, size - 1).astype(np.int64))
            features.append(Feature(f"c{j}", size, size, (1,) * size))
            continue
        levels = int(facts.choice(LEVELS)) if draw < numbers + categories else 2
        shares = facts.dirichlet(np.full(levels, 1.5))
        cuts = ndtri(np.clip(np.cumsum(shares)[:-1], 0.03, 0.97))
        order = facts.permutation(levels)
        codes.append(order[np.searchsorted(cuts, value)])
        features.append(Feature(f"c{j}", levels, 0))
    weights = facts.standard_normal(len(signals)) * (facts.random(len(signals)) < 0.4)
    score = np.column_stack(signals) @ weights
    score = 1.5 * score / max(float(np.sqrt(weights @ weights)), 1e-9) - 1.0
    codes.append((chance.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int64))
    features.append(Feature("target", 2, 0, target=True))
    return Domain(tuple(features), rows, 1), np.column_stack(codes)


def tstr(domain: Domain, train: np.ndarray, test: np.ndarray) -> float:
    """Return the AUROC for the last column of a model of ``train`` on ``test``."""
    named = [feature.cells == 0 for feature in domain.features[:-1]]
    model = HistGradientBoostingClassifier(
        random_state=0, early_stopping=False, categorical_features=named
    )
    if len(np.unique(train[:, -1])) < 2:
        return 0.5
    model.fit(train[:, :-1], train[:, -1])
    return float(roc_auc_score(test[:, -1], model.predict_proba(test[:, :-1])[:, 1]))


def one_fit(kind: str, columns: int, units: int, epsilon: float, way: str, seed: int) -> Any:
    """Fit in one way, and score."""
    domain, codes = made(kind, columns, units, seed)
    _, test = made(kind, columns, TEST, seed)
    cohort = Cohort(codes[:, None].astype(np.uint16), np.ones((units, 1), dtype=bool))
    budget = PrivacyBudget(epsilon, DELTA)

    def chosen(domain: Domain, budget: PrivacyBudget) -> bool:
        return WAYS[way]

    with (
        patch.object(contrast_settings, "contrasts_first", chosen),
        patch.object(presets, "contrasts_first", chosen),
    ):
        plan = PrivacyPlan.calibrate(budget, presets.shares_of("mixture", domain, budget))
        start = time.perf_counter()
        fitted = Mixture(domain).fit(cohort, plan, plan.opened(OsEntropy()))
        seconds = time.perf_counter() - start
    drawn = fitted.sample(min(units, 30_000), np.random.default_rng())
    edges = decile_edges(codes, [feature.cells for feature in domain.features])
    binned = [coarse(part, edges) for part in (codes, drawn)]
    found = {f"tvd{ways}": mean_tvd(*binned, ways) for ways in (1, 2)}
    return found | {"tstr": tstr(domain, drawn, test), "seconds": round(seconds, 1)}


def show(results: Path) -> None:
    """Print a line for each setting that was fitted in both ways."""
    lines: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = defaultdict(dict)
    for line in map(json.loads, results.read_text().splitlines()):
        kind, columns, units, epsilon, way, _ = line["key"]
        lines[kind, columns, units, epsilon].setdefault(way, []).append(line)
    print("| kind | columns | units | epsilon | TVD2 | TSTR | seconds | noise | rule |")
    print("|---" * 9 + "|")
    for key, ways in sorted(lines.items()):
        if len(ways) < len(WAYS):
            continue
        kind, columns, units, epsilon = key
        domain, _ = made(kind, columns, 100, 1)
        domain = Domain(domain.features, units, 1)
        budget = PrivacyBudget(epsilon, DELTA)
        rule = contrast_settings.contrasts_first(domain, budget)
        noise = contrast_settings.noise_of_pairs(domain, budget)
        both = [
            {name: mean(line[name] for line in ways[way]) for name in ("tvd2", "tstr", "seconds")}
            for way in WAYS
        ]
        cells = [" / ".join(f"{one[name]:.4f}" for one in both) for name in ("tvd2", "tstr")]
        cells.append(" / ".join(f"{one['seconds']:.0f}" for one in both))
        print(
            f"| {kind} | {columns} | {units} | {epsilon:g} | {' | '.join(cells)} | {noise:.3f} "
            f"| {'contrasts' if rule else 'pairs'} |"
        )


def main() -> None:
    """Fit what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--columns", default="10,30,100")
    parser.add_argument("--units", default="3000,10000,30000,100000")
    parser.add_argument("--epsilons", default="0.5,1,3,10")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("build/few"))
    parser.add_argument("--show", action="store_true", help="print what is there")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    results = options.work / "few_patients.jsonl"
    if options.show:
        show(results)
        return
    lines = results.read_text().splitlines() if results.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    for key in product(
        options.kinds.split(","),
        map(int, options.columns.split(",")),
        map(int, options.units.split(",")),
        map(float, options.epsilons.split(",")),
        options.ways.split(","),
        range(1, options.seeds + 1),
    ):
        if key in done:
            continue
        line = {"key": key} | one_fit(*key)
        with results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


if __name__ == "__main__":
    main()
