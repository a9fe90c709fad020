"""Statistics beside OpenDP's and diffprivlib's: error at the same epsilon, query by query.

5 000 simulated patients, one visit of each; each query alone spends the whole epsilon. dpsynth also
has delta 1e-7, the others have delta 0. Mean absolute error over the runs.

diffprivlib is no dependency: give the Python of an environment that has it (0.6.6 needs
scikit-learn below 1.6).

    python bench/statistics_of_libraries.py [--diffprivlib venv/bin/python] [--runs 200]

Prints a Markdown table. What they claim differs: diffprivlib takes the number of rows for public in
means and variances, where a person takes another's place (substitution); both draw noise for rows,
and leave it to their user that a patient has one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from direct_statistics import SCHEMA, Silent, value_of  # noqa: E402

from dpsynth.encoding import read_cohort  # noqa: E402
from dpsynth.privacy import SeededEntropy  # noqa: E402
from dpsynth.stats import StatisticsRequest  # noqa: E402
from dpsynth.stats.statistic import Rows  # noqa: E402
from dpsynth.tables import open_table, simulate  # noqa: E402

EPSILONS, DELTA = (0.5, 2.0), 1e-7
LOW, HIGH, EDGES = 60.0, 240.0, [40, 55, 70]
AGES = (18, 100)
QUERIES: dict[str, dict[str, Any]] = {
    "count": {"count": "patients"},
    "histogram of 4 cells": {"count": "patients", "by": [{"age": EDGES}]},
    "mean": {"mean": "sbp"},
    "variance": {"variance": "sbp"},
    "median": {"quantiles": "age", "shares": [0.5]},
}
THEIRS = """
import json, sys, warnings
import numpy as np
import diffprivlib.tools as tools
warnings.simplefilter("ignore")
given = json.loads(sys.stdin.read())
rows = {name: np.array(values) for name, values in given["rows"].items()}
sbp, age, bounds = rows["sbp"], rows["age"], (given["low"], given["high"])
edges = [given["ages"][0], *given["edges"], given["ages"][1]]
found = {}
for epsilon in given["epsilons"]:
    each = {
        "count": lambda: [tools.count_nonzero(np.ones(len(age)), epsilon=epsilon)],
        "histogram of 4 cells": lambda: tools.histogram(age, epsilon=epsilon, bins=edges)[0],
        "mean": lambda: [tools.mean(sbp, epsilon=epsilon, bounds=bounds)],
        "variance": lambda: [tools.var(sbp, epsilon=epsilon, bounds=bounds)],
        "median": lambda: [tools.median(age, epsilon=epsilon, bounds=tuple(given["ages"]))],
    }
    for name, ask in each.items():
        found[f"{epsilon:g} {name}"] = [[float(v) for v in ask()] for _ in range(given["runs"])]
print(json.dumps(found))
"""


def ours(rows: pd.DataFrame, name: str, epsilon: float | None, runs: int) -> np.ndarray:
    """Return the figures of one query, ``[runs, cells]``; exact without an epsilon."""
    entry = {"name": name, **QUERIES[name]}
    request = StatisticsRequest.from_dict({"schema": SCHEMA.to_dict(), "statistics": [entry]})
    plan = request.plan(epsilon=epsilon or 20.0, delta=DELTA)
    source = Silent(0) if epsilon is None else SeededEntropy(1)
    cohort = read_cohort(open_table(rows, request.schema), request.codec, request.schema, source)
    coded, (one,) = Rows.of(cohort), request.statistics
    events, found = {event.name: event for event in plan.events}, []
    for _ in range(runs):
        (result,) = request.results(one.answer(coded, events, source), events)
        label = "variance" if "variance" in result.table else None
        values = value_of(result.table) if label is None else result.table[label].to_numpy()
        found.append(values[: 4 if name.startswith("hist") else 1].astype(float))
    return np.array(found)


def opendp(
    sbp: np.ndarray, age: np.ndarray, epsilon: float
) -> dict[str, Callable[[], list[float]]]:
    """Return OpenDP's queries: Laplace noise; the number of rows is private, as for us."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    half = (HIGH - LOW) / 2
    centred = (sbp - LOW - half).tolist()
    ages = age.tolist()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(1 / epsilon)
    sums = space >> dp.t.then_clamp((-half, half)) >> dp.t.then_sum()
    total = dp.binary_search_chain(
        lambda scale: sums >> dp.m.then_laplace(scale), 1, epsilon / 2, bounds=(1.0, 1e6)
    )
    number = space >> dp.t.then_count() >> dp.m.then_laplace(2 / epsilon)
    candidates = [float(one) for one in range(*AGES)]
    median = dp.binary_search_chain(
        lambda scale: dp.m.make_private_quantile(
            *space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=scale
        ),
        1,
        epsilon,
        bounds=(1e-3, 1e6),
    )
    cells = np.split(np.sort(age), np.searchsorted(np.sort(age), EDGES))
    return {
        "count": lambda: [float(count(ages))],
        "histogram of 4 cells": lambda: [float(count(cell.tolist())) for cell in cells],
        "mean": lambda: [LOW + half + total(centred) / max(number(centred), 1)],
        "median": lambda: [float(median(ages))],
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--diffprivlib", help="a Python that has it")
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    rows = simulate(5000, seed=1).drop_duplicates("patient_id")
    numbers = {name: pd.to_numeric(rows[name], errors="coerce") for name in ("sbp", "age")}
    known = {name: column.dropna().to_numpy(float) for name, column in numbers.items()}
    theirs: dict[str, list[list[float]]] = {}
    if options.diffprivlib:
        given = {"rows": {name: column.tolist() for name, column in known.items()}}
        given |= {"low": LOW, "high": HIGH, "ages": AGES, "edges": EDGES}
        given |= {"epsilons": EPSILONS, "runs": options.runs}
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "theirs.py"
            script.write_text(THEIRS)
            done = subprocess.run(
                [options.diffprivlib, "-I", str(script)],
                input=json.dumps(given),
                capture_output=True,
                text=True,
                check=True,
            )
        theirs = json.loads(done.stdout)
    print("| epsilon | query | dpsynth | OpenDP | diffprivlib |\n|---|---|---|---|---|")
    for epsilon in EPSILONS:
        other = opendp(known["sbp"], known["age"], epsilon)
        for name in QUERIES:
            exact = ours(rows, name, None, 1)[0]
            figures = [ours(rows, name, epsilon, options.runs)]
            if name in other:
                figures.append(np.array([other[name]() for _ in range(options.runs)]))
            else:
                figures.append(np.empty((0, 1)))
            figures.append(np.array(theirs.get(f"{epsilon:g} {name}", np.empty((0, 1)))))
            errors = [f"{np.abs(one - exact).mean():.3g}" if len(one) else "" for one in figures]
            print(f"| {epsilon:g} | {name} | " + " | ".join(errors) + " |")


if __name__ == "__main__":
    main()
