"""``dpsynth demo``: the whole way with simulated patients, in one table and in linked ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsynth.cli.console import Console, output_options
from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dpsynth.eval import Score

MARKER = ".dpsynth-demo"
EPSILON, DELTA, PATIENTS, SEED = 3.0, 1e-6, 20_000, 1


@click.command(epilog="Example:  dpsynth demo -o demo/")
@click.option(
    "--output", "-o", default="demo", show_default=True, type=click.Path(), help="Folder to write."
)
@output_options
def demo(output: str, as_json: bool, quiet: bool) -> None:
    """Make demo bundles from simulated patients.

    The demo simulates a table of hospital visits, fits a generator, and writes and checks a bundle.
    Then it does the same with four linked tables: the patients of a clinic with their visits,
    laboratory values and events. It shows the courses of synthetic patients, and what their
    histories keep and lose. Everything goes into one folder, including a ledger for the demo. An
    earlier demo in that folder is replaced. Any other existing folder is refused.
    """
    from dpsynth.bundle import release, verify
    from dpsynth.cli.clinic_demo import clinic_demo
    from dpsynth.eval.overview import overview
    from dpsynth.ledger import Ledger
    from dpsynth.schema import Schema
    from dpsynth.synthesis import fitting, sampler
    from dpsynth.tables import simulate

    folder = _fresh(Path(output))
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        schema = Schema.load("demo")
        ledger = Ledger.create(folder / "ledger.sqlite")
        console.progress("simulating", 0.0)
        cohort = simulate(PATIENTS, seed=SEED)
        cohort.to_csv(folder / "cohort.csv", index=False)
        run = fitting.fit(
            folder / "cohort.csv",
            schema,
            epsilon=EPSILON,
            delta=DELTA,
            dataset="demo",
            purpose="demo",
            ledger=ledger,
            output=folder / "run",
            progress=console.progress,
        )
        console.progress("bundle", 0.0)
        bundle = release(folder / "run", folder / "bundle", seed=SEED, ledger=ledger)
        checks = verify(bundle)
        console.progress("comparing", 0.0)
        synthetic = sampler.sample(run, seed=SEED)
        scores = overview(schema, cohort, synthetic)
        assert run.certificate is not None  # it was fitted under a plan
        composed = run.certificate["composed_epsilon"]
        clinic = clinic_demo(
            folder / "clinic",
            epsilon=EPSILON,
            delta=DELTA,
            seed=SEED,
            ledger=ledger,
            progress=console.progress,
        )
        values = {
            "internal": True,
            "folder": str(folder),
            "bundle": str(bundle),
            "epsilon": EPSILON,
            "delta": DELTA,
            "composed_epsilon": composed,
            "checks": checks,
            "scores": {name: vars(score) for name, score in scores.items()},
            "clinic": clinic.values,
        }
        lines = [
            f"{folder}/cohort.csv: a cohort of {PATIENTS} simulated patients",
            f"{folder}/run: a generator fitted to it under differential privacy",
            f"{bundle}: a verified bundle of {len(synthetic)} synthetic rows",
            "",
            f"Privacy cost for each patient, with at most {schema.unit.max_rows} visits each: "
            f"epsilon {EPSILON:g} at delta {DELTA:g} (composed: {composed:.4f}).",
            "",
            "Quality (internal: computed from the cohort, not part of the bundle):",
            *[f"  {line}" for line in scores_lines(scores)],
            "",
            *clinic.lines,
        ]
        console.result("demo", values, lines)
        console.advice("")
        console.advice(
            f"Next: open {bundle}/report.html, {clinic.values['bundle']}/report.html and "
            f"{clinic.values['page']}. README.md shows how to use real data."
        )


def scores_lines(scores: dict[str, Score]) -> list[str]:
    """Word the scores, each with its references in brackets."""
    return [
        f"{name:<20} total variation distance {score.value:.3f}  [{score.floor:.3f} by chance"
        + (f", {score.ceiling:.3f} with independent columns]" if score.ceiling else "]")
        for name, score in scores.items()
    ]


def _fresh(folder: Path) -> Path:
    """Return an empty demo folder; replace an earlier demo, refuse anything else."""
    if folder.exists():
        if not (folder / MARKER).is_file():
            raise InputError(f"{folder} exists and is not a demo; choose another folder with -o")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("dpsynth demo: replaced by the next one\n")
    return folder
