"""Controls of an audit, played again and again: how often each does what it must.

On the simulated demo cohort, with new patients each time: the controls that need no fit and those
that do. A positive control must be found, a negative one must not.

    python bench/controls.py [--repeats 20] [--first 0] [--patients 4000]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict

import numpy as np
import torch

from dpsynth.assessment.fitted_controls import play
from dpsynth.eval.attack_stats.people import People
from dpsynth.eval.attacks.controls import CONTROLS, Control, control_table
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.core.tables import Tables
from dpsynth.schema.schema import Schema
from dpsynth.tables.simulated import simulate


def main() -> None:
    """Play all, and print how often each passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first repeat")
    parser.add_argument("--patients", type=int, default=4_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    passed: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    started = time.perf_counter()
    for seed in range(options.first, options.first + options.repeats):
        for one in [*on_tables(seed, options.patients), *play(np.random.default_rng(seed), silent)]:
            passed[one.key, one.kind, one.attack].append(one.passed)
            if not one.passed:
                print(f"seed {seed}: {one.key} {one.attack}: {one.sentence}", flush=True)
        print(
            f"{seed + 1 - options.first} repeats, {time.perf_counter() - started:.0f} s", flush=True
        )
    print("| control | kind | attack | did what it must |")
    print("|---|---|---|---|")
    for (key, kind, attack), each in passed.items():
        print(f"| {key} | {kind} | {attack} | {sum(each)} of {len(each)} |")


def on_tables(seed: int, patients: int) -> list[Control]:
    """Play the controls that need no fit."""
    rng = np.random.default_rng(seed)
    everyone = simulate(patients, seed=1_000 + seed)
    keys = everyone["patient_id"].unique()
    inside = everyone["patient_id"].isin(keys[rng.random(len(keys)) < 0.7])
    source, holdout = (everyone[side].reset_index(drop=True) for side in (inside, ~inside))
    tables = Tables.read(Schema.load("demo"), source, simulate(patients, seed=seed), holdout)
    people = People.of(tables, rng)
    made = [control_table(key, tables, people, rng) for key in CONTROLS]
    return [control for table in made for control in table.play(ATTACKS, people, rng)]


def silent(stage: str, part: float) -> None:
    """Show no progress."""


if __name__ == "__main__":
    main()
