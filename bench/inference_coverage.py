"""Do intervals of 95 % from synthetic tables cover the truth? Naive ones, and combined ones.

usage: inference_coverage.py [--studies 60] [--replicates 10] [--epsilon 3] [--model mixture]
    [--population 5000] [--seed 1] [--lines FILE]

A study is a table of patients, one row each, drawn from a process that is known in full. It is
fitted privately, and six quantities are estimated in four ways: from the real table; from the
synthetic table as if it were real (naive); from m replicates (combined); from the synthetic table
and m replicates (corrected). docs/inference.md says what the last two are. No real row is involved,
and a seed makes the whole run repeatable. A fit of `mixture` takes about a second, so 60 studies
with 10 replicates take about a quarter of an hour on one core. Studies whose lines are in FILE are
not run again.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.combine import combine
from dpsynth.eval.core.estimate import Z
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.replicates import replicates
from dpsynth.synthesis.run import Run

Floats = npt.NDArray[np.float64]
Pair = tuple[float, float]  # an estimate and its variance

TRUTH_ROWS = 4_000_000
BASIS = "the process of bench/inference_coverage.py"


def schema_of(population: int) -> Schema:
    """Declare the table: six columns, one row of a patient."""
    own = {"bounds_basis": BASIS}

    def column(name: str, kind: str, low: float, high: float, **more: float) -> dict[str, object]:
        bounds = {"minimum": low, "maximum": high, "required": True}
        return {"name": name, "type": kind, "constraints": bounds, "dpsynth": {**own, **more}}

    def flag(name: str) -> dict[str, object]:
        return {"name": name, "type": "boolean", "constraints": {"required": True}}

    return Schema.from_dict(
        {
            "name": "study",
            "fields": [
                column("age", "integer", 18, 90),
                flag("female"),
                column("bmi", "number", 15, 50, step=0.1),
                column("sbp", "integer", 80, 220),
                flag("treated"),
                flag("event"),
            ],
            "dpsynth": {
                "version": 1,
                "population": {"value": population, "basis": BASIS},
                "rows": {"value": population, "basis": BASIS},
            },
        }
    )


def study(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw patients: treatment is given to the older and the hypertensive, and prevents events."""
    age = np.clip(np.round(rng.normal(55, 15, rows)), 18, 90)
    female = rng.random(rows) < 0.52
    bmi = np.clip(np.round(np.exp(rng.normal(math.log(27), 0.17, rows)), 1), 15, 50)
    sbp = 128 + 0.4 * (age - 55) + 0.8 * (bmi - 27) - 3 * female + rng.normal(0, 14, rows)
    sbp = np.clip(np.round(sbp), 80, 220)
    treated = rng.random(rows) < _logistic(-0.8 + 0.03 * (age - 55) + 0.03 * (sbp - 128))
    event = rng.random(rows) < _logistic(
        -1.6 + 0.04 * (age - 55) + 0.02 * (sbp - 128) - 0.6 * treated
    )
    return pd.DataFrame(
        {
            "age": age.astype(np.int64),
            "female": female,
            "bmi": bmi,
            "sbp": sbp.astype(np.int64),
            "treated": treated,
            "event": event,
        }
    )


def estimates(table: pd.DataFrame) -> dict[str, Pair]:
    """Estimate each quantity with the variance that a textbook gives it."""
    sbp, event = (table[name].to_numpy(dtype=np.float64) for name in ("sbp", "event"))
    treated = table["treated"].to_numpy(dtype=bool)
    design = np.column_stack(
        [np.ones(len(table)), (table["age"] - 55) / 10, (table["sbp"] - 128) / 10, treated]
    ).astype(np.float64)
    odds, variances = logistic_regression(design, event)
    one, other = sbp[treated], sbp[~treated]
    gap = one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)
    return {
        "mean pressure": (sbp.mean(), sbp.var(ddof=1) / len(sbp)),
        "share with event": (event.mean(), event.mean() * (1 - event.mean()) / len(event)),
        "pressure, treated - not": (one.mean() - other.mean(), gap),
        "log odds ratio, age": (odds[1], variances[1]),
        "log odds ratio, pressure": (odds[2], variances[2]),
        "log odds ratio, treated": (odds[3], variances[3]),
    }


def logistic_regression(design: Floats, outcome: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and their variances, by Newton's method."""
    found = np.zeros(design.shape[1])
    for _ in range(8):
        share = _logistic(design @ found)
        information = design.T @ (design * (share * (1 - share))[:, None])
        found = found + np.linalg.solve(information, design.T @ (outcome - share))
    return found, np.diag(np.linalg.inv(information))


def _logistic(log_odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-log_odds))


def measure(number: int, args: argparse.Namespace) -> dict[str, dict[str, list[Pair]]]:
    """Run one study; give the estimates of every table of every way."""
    seed, m = args.seed * 100_000 + number, args.replicates
    real = study(args.population, np.random.default_rng([seed, 0]))
    run: Run = fitting.fit(
        real,
        schema_of(args.population),
        epsilon=args.epsilon,
        delta=1e-6,
        dataset="study",
        model=args.model,
        without_ledger=True,
        entropy=SeededEntropy(seed),
    )
    tables: dict[str, Sequence[pd.DataFrame]] = {
        "real": [real],
        "synthetic": [run.sample(args.population, seed=seed)],
        "replicates": replicates(run, m, seed=seed),
    }
    return {
        kind: _transposed([estimates(table) for table in made]) for kind, made in tables.items()
    }


def _transposed(found: Sequence[dict[str, Pair]]) -> dict[str, list[Pair]]:
    return {
        name: [(float(one[name][0]), float(one[name][1])) for one in found] for name in found[0]
    }


def intervals(found: dict[str, list[Pair]]) -> dict[str, tuple[float, float, float]]:
    """Return estimate and interval of each way, from the estimates of each kind of table."""
    q, v = zip(*found["replicates"], strict=True)
    ways = {"real": _normal(*found["real"][0]), "naive": _normal(*found["synthetic"][0])}
    for way, original in (("combined", None), ("corrected", found["synthetic"][0])):
        one = combine(q, v, original=original)
        ways[way] = one.value, one.low, one.high
    return ways


def _normal(value: float, variance: float) -> tuple[float, float, float]:
    return value, value - Z * math.sqrt(variance), value + Z * math.sqrt(variance)


def report(truth: dict[str, Pair], studies: Sequence[dict[str, dict[str, list[Pair]]]]) -> str:
    """Lay out coverage, mean error and median half-width: a line a quantity, a column a way."""
    lines: list[str] = []
    for name, (value, _) in truth.items():
        found = [intervals({kind: study[kind][name] for kind in study}) for study in studies]
        cells = [_cell(np.array([one[way] for one in found]), value) for way in found[0]]
        if not lines:
            lines = [" | ".join(["| quantity | truth", *found[0]]) + " |", "|---" * 6 + "|"]
        lines.append(" | ".join([f"| {name} | {value:.4g}", *cells]) + " |")
    return "\n".join(lines)


def _cell(found: Floats, truth: float) -> str:
    """Word estimates and interval ends ``[studies, 3]`` of one way."""
    covered = ((found[:, 1] <= truth) & (truth <= found[:, 2])).mean()
    half = float(np.median(found[:, 2] - found[:, 1])) / 2
    return f"{100 * covered:.0f} % ({found[:, 0].mean() - truth:+.2g} ± {half:.2g})"


def main(write: Callable[[str], None] = print) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--model", default="mixture")
    parser.add_argument("--population", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=Path, help="keeps the estimates of every study")
    args = parser.parse_args()
    truth = estimates(study(TRUTH_ROWS, np.random.default_rng(0)))
    studies = []
    if args.lines is not None and args.lines.exists():
        studies = [json.loads(line) for line in args.lines.read_text().splitlines()]
    for number in range(len(studies), args.studies):
        studies.append(measure(number, args))
        if args.lines is not None:
            with args.lines.open("a") as file:
                file.write(json.dumps(studies[-1]) + "\n")
    write(report(truth, studies[: args.studies]))


if __name__ == "__main__":
    main()
