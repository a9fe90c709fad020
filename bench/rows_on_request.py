"""Time and judge rows that are drawn under a condition: `dpsynth sample --where`.

usage: rows_on_request.py [--models mixture,autoregressive,tvae] [--rows 5000] [--patients 20000]
                          [--seconds 60] [--keep FOLDER]

Generators are fitted to simulated patients (no real row is involved), and rows are asked for under
conditions that about 1 %, .1 %, .005 % and .001 % of the rows meet; the last one is narrowed until
the model gives it the support that is nearest to 1 in 100 000. A line says

- how many rows a second are drawn under the condition, and by throwing away those that do not meet
  it (computed: the speed without a condition times support); and the seconds of getting ready;
- how many effective proposals a network chose the rows from;
- TVD1 and TVD2: the mean total variation distance, of columns and of pairs of columns in the bins
  of the fit, to rows of the same model that were kept from very many, drawn for so many seconds;
  and the same distance when both tables are shuffled together, which is chance alone.

Reference rows are drawn without a condition. Where too few of those meet it, they are drawn under
its rarest column alone, which leaves most of the narrowing to throwing away all the same.
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from dpsynth.models.base import Law
from dpsynth.models.marginals import Binning
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.conditions import ImpossibleCondition
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables import simulate

CONDITIONS = (
    "age >= 80 and sbp >= 150",
    "sbp >= 155 and readmitted_30d == true and age >= 70",
    "ldl >= 4 and hba1c >= 8.5 and bmi >= 36 and sex == 'male'",
)
RAREST, NARROWED = 1e-5, "ldl >= {} and hba1c >= 8.5 and bmi >= 36 and sex == 'male'"
LEAST_LDL, STEPS = 4.0, 41  # tenths
KEPT = 20_000  # rows of a reference at most
FEWEST = 2e-4  # support, from which rows are drawn without a condition
AT_ONCE = 50_000


def distances(first: np.ndarray, second: np.ndarray, sizes: list[int]) -> tuple[float, float]:
    """Return TVD1 and TVD2 of binned rows."""
    ones = [apart(first[:, i], second[:, i], size) for i, size in enumerate(sizes)]
    twos = [
        apart(
            *(rows[:, i] * sizes[j] + rows[:, j] for rows in (first, second)), sizes[i] * sizes[j]
        )
        for i, j in combinations(range(len(sizes)), 2)
    ]
    return float(np.mean(ones)), float(np.mean(twos))


def apart(first: np.ndarray, second: np.ndarray, size: int) -> float:
    """Return the total variation distance of two columns of cells."""
    shares = [np.bincount(cells, minlength=size) / len(cells) for cells in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def binning_of(sampler: Sampler) -> Binning:
    """Return the bins of a fitted generator."""
    generator = sampler.generator
    return generator.start_.binning if hasattr(generator, "start_") else generator.binning_


def reference(sampler: Sampler, share: float, seconds: float) -> np.ndarray:
    """Return codes of rows that meet the condition of a sampler, kept from very many."""
    assert sampler.conditioned is not None
    [box], generator = sampler.conditioned.boxes, sampler.generator
    law: Law | None = generator
    if share < FEWEST:
        alone = {place: generator.given({place: codes}) for place, codes in box.allowed.items()}
        law = min(alone.values(), key=lambda found: found[1])[0]
    assert law is not None
    rng, kept, rows, start = np.random.default_rng(1), [], 0, time.perf_counter()
    while rows < KEPT and time.perf_counter() - start < seconds:
        codes = law.sample(AT_ONCE, rng, even=False)
        kept.append(codes[box.holds(codes)])
        rows += len(kept[-1])
    return np.concatenate(kept)


def narrowed(run: Run) -> str:
    """Return the condition whose support by the model is nearest to `RAREST`."""
    found = []
    for step in range(STEPS):
        condition = NARROWED.format(round(LEAST_LDL + step / 10, 1))
        try:
            share = Sampler.of(run, where=condition, plain=True).share()
        except ImpossibleCondition:
            break
        if share == 0:
            break
        found.append((abs(math.log(share / RAREST)), condition))
        if share < RAREST / 10:
            break
    return min(found)[1]


def fitted(model: str, patients: int, keep: Path | None) -> Run:
    """Fit a generator to simulated patients, or read the run that was kept."""
    if keep is not None and (keep / model).exists():
        return Run.load(keep / model)
    run = fitting.fit(
        simulate(patients, seed=1),
        Schema.load("demo"),
        epsilon=3.0,
        delta=1e-6,
        dataset="simulated",
        model=model,
        without_ledger=True,
    )
    if keep is not None:
        run.save(keep / model)
    return run


def main() -> None:
    """Fit, draw and print a line for each condition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="mixture,autoregressive,tvae")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of drawing a reference")
    parser.add_argument("--keep", type=Path, help="folder of runs: written once, then read again")
    chosen = parser.parse_args()
    print(
        "| model | support | ready, s | rows/s | rows/s, thrown away | effective proposals "
        "| reference rows | TVD1 | by chance | TVD2 | by chance |\n" + "|---" * 11 + "|"
    )
    for model in chosen.models.split(","):
        run = fitted(model, chosen.patients, chosen.keep)
        free = Sampler.of(run, plain=True)
        start = time.perf_counter()
        free.codes(50_000, seed=1)
        speed = 50_000 / (time.perf_counter() - start)
        for condition in (*CONDITIONS, narrowed(run)):
            start = time.perf_counter()
            sampler = Sampler.of(run, where=condition, plain=True)
            ready = time.perf_counter() - start
            codes = sampler.codes(chosen.rows, seed=2)
            drawn = chosen.rows / (time.perf_counter() - start - ready)
            share, count = sampler.share(), sampler.effective(chosen.rows)
            told = "" if count is None else f"{count:,.0f}"
            binning = binning_of(sampler)
            columns = binning.columns[binning.hidden :]
            sizes = [column.count for column in columns]
            rows, others = (
                np.column_stack([c.coarsen(some[:, j]) for j, c in enumerate(columns)]).astype(int)
                for some in (codes, reference(sampler, share, chosen.seconds))
            )
            ones, twos = distances(rows, others, sizes)
            pooled = np.random.default_rng(3).permutation(np.concatenate([rows, others]))
            by_chance = distances(pooled[: len(rows)], pooled[len(rows) :], sizes)
            print(
                f"| {model} | {share:.2g} | {ready:.1f} | {drawn:,.0f} | {speed * share:,.2f} "
                f"| {told} | {len(others):,} | {ones:.4f} | {by_chance[0]:.4f} | {twos:.4f} "
                f"| {by_chance[1]:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
