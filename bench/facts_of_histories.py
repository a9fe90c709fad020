"""Fit a simulated cohort of linked tables a few times, and score its facts.

usage: facts_of_histories.py COHORT --scorer FOLDER [--epsilon 3] [--fits 3] [--model auto]

COHORT is a folder that sim_hospital.py or sim_registry.py of the scorer's folder wrote: a package,
facts.json, and the tables in train/. FOLDER holds the scorer (facts_histories.py), which is no part
of this project. Prints the eight figures of each fit and their means, processor seconds and memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dpsynth
from dpsynth.schema import LinkedSchema


def main() -> None:
    """Fit, draw and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path)
    parser.add_argument("--scorer", required=True)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--model", default="auto")
    options = parser.parse_args()
    sys.path.insert(0, options.scorer)
    import facts_histories as scorer

    schema = LinkedSchema.load(str(next(options.cohort.glob("*.package.yaml"))))
    spec = json.loads((options.cohort / "facts.json").read_text())
    source = options.cohort / "train"
    scale: dict[str, tuple[float, float]] = {}
    real = scorer.facts(scorer.read(source, spec), spec, scale)
    found = []
    for seed in range(options.fits):
        worked = time.process_time()
        run = dpsynth.fit(
            str(source),
            schema,
            epsilon=options.epsilon,
            delta=1e-6,
            dataset="cohort",
            model=options.model,
            without_ledger=True,
        )
        fitted, worked = time.process_time() - worked, time.process_time()
        frames = run.sample(seed=seed)
        drawn = time.process_time() - worked
        with tempfile.TemporaryDirectory() as folder:
            for name, frame in frames.items():
                frame.to_csv(Path(folder, f"{name}.csv"), index=False)
            cohort = scorer.read(folder, spec)
        figures, _ = scorer.compare(real, scorer.facts(cohort, spec, scale))
        found.append(figures)
        print(f"{run.model}: fit {fitted:.1f} s, sample {drawn:.1f} s", _line(figures), flush=True)
    means = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    print("mean", _line(means))
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _line(figures: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.3f}" for name, value in figures.items())


if __name__ == "__main__":
    main()
