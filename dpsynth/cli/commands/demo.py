"""``dpsynth demo``: the whole way with simulated patients, in one table and in linked ones."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.messages import listed
from dpsynth.cli.console import Console, output_options
from dpsynth.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from dpsynth.eval import Score
    from dpsynth.ledger import Ledger


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

    pass
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


CLINIC_PATIENTS, HOLDOUT = 8_000, 1_600
SHOWN = 3  # synthetic patients whose course the terminal shows
VISITS = (4, 10)  # visits that such a patient has at least and at most


@dataclass(frozen=True)
class ClinicDemo:
    """What the clinic's part of the demo did.

    Attributes:
        values: for ``--json``; internal, as the evaluation is.
        lines: for a person.
    """

    values: dict[str, Any]
    lines: list[str]


def clinic_demo(
    folder: Path,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    ledger: Ledger,
    progress: Callable[[str, float], None],
) -> ClinicDemo:
    """Simulate patients with visits and laboratory values, and go the whole way with them.

    Args:
        folder: new folder for the tables, the run, the cohort, the evaluation and the bundle.
        epsilon: budget of the fit.
        delta: of the budget.
        seed: of the simulation and of the draws; the noise of the fit has none.
        ledger: where the fit is charged.
        progress: called with a stage and its fraction done.
    """
    from dpsynth.assessment import CohortCandidate, evaluate_cohort
    from dpsynth.assessment.results_folder import HISTORIES_PAGE
    from dpsynth.bundle import release, verify
    from dpsynth.eval.longitudinal import HistoryUse
    from dpsynth.eval.longitudinal import summary as kept_and_lost
    from dpsynth.schema import LinkedSchema, published_tables
    from dpsynth.synthesis import CohortSample, Sampler, add_record, fit
    from dpsynth.tables import write_linked

    schema = LinkedSchema.load("clinic")
    progress("clinic: simulating", 0.0)
    source, holdout = _simulated(folder, seed)
    run = fit(
        source,
        schema,
        epsilon=epsilon,
        delta=delta,
        dataset="clinic",
        purpose="demo",
        ledger=ledger,
        output=folder / "run",
        progress=lambda stage, part: progress(f"clinic: {stage}", part),
    )
    blocks = list(
        Sampler.of(run).frames(
            CLINIC_PATIENTS, seed=seed, progress=lambda part: progress("clinic: sampling", part)
        )
    )
    cohort = folder / "cohort"
    digests = write_linked(iter(blocks), cohort, published_tables(schema), kind=".csv")
    add_record(folder / "run", CohortSample(cohort.name, digests, ".csv", CLINIC_PATIENTS, seed))
    document = evaluate_cohort(
        schema,
        source,
        CohortCandidate.of_run(folder / "run", cohort),
        holdout,
        output=folder / "internal",
        progress=progress,
    )
    progress("clinic: bundle", 0.0)
    bundle = release(folder / "run", folder / "bundle", table=cohort, ledger=ledger)
    checks = verify(bundle)
    uses = [HistoryUse(**use) for use in document["uses"]]
    page = folder / "internal" / HISTORIES_PAGE
    values = {
        "folder": str(folder),
        "bundle": str(bundle),
        "page": str(page),
        "patients": CLINIC_PATIENTS,
        "checks": checks,
        "uses": document["uses"],
    }
    lines = [
        f"{source}: {CLINIC_PATIENTS} simulated patients in {len(schema.table_names)} linked "
        f"tables ({listed(schema.table_names)})",
        f"{bundle}: a verified bundle of as many synthetic patients, whose keys agree",
        f"{page}: trajectories and figures beside {HOLDOUT} other patients (internal)",
        "",
        "Synthetic patients, and their systolic pressure (mm Hg) visit by visit:",
        *[f"  {line}" for line in course_lines(blocks[0])],
        "",
        "What a synthetic patient's history keeps and what it loses (internal):",
        *[f"  {sentence}" for sentence in kept_and_lost(uses)],
    ]
    return ClinicDemo(values, lines)


def course_lines(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Word the course of a few patients of the tables of ``clinic``, a line each.

    >>> from dpsynth.tables import simulate_cohort
    >>> course_lines(simulate_cohort(20, seed=1))[0]
    'female, 73, without diabetes: 142 151 154 135 119'
    """
    import pandas as pd

    visits, events = tables["visits"], tables["events"]
    count = visits.groupby("patient", sort=False).size()
    chosen = count.index[count.between(*VISITS)][:SHOWN]
    lines = []
    for _, one in tables["patients"].set_index("patient").loc[chosen].reset_index().iterrows():
        own = visits[visits["patient"] == one["patient"]]
        pressure = ["-" if pd.isna(cell) else f"{cell:.0f}" for cell in own["systolic"]]
        diabetes = "with" if str(one["diabetes"]).lower() == "true" else "without"
        line = f"{one['sex']}, {one['age']}, {diabetes} diabetes: {' '.join(pressure)}"
        for _, event in events[events["patient"] == one["patient"]].iterrows():
            days = (pd.Timestamp(event["date"]) - pd.Timestamp(one["included"])).days
            line += f"; {event['event']} on day {days}"
        lines.append(line)
    return lines


def _simulated(folder: Path, seed: int) -> tuple[Path, Path]:
    """Write the tables of the clinic, and those of other patients, into two folders."""
    from dpsynth.tables import simulate_cohort

    tables = simulate_cohort(CLINIC_PATIENTS + HOLDOUT, seed=seed)
    keys = tables["patients"]["patient"]
    folders = (folder / "source", folder / "holdout")
    for place, own in zip(folders, (keys[:CLINIC_PATIENTS], keys[CLINIC_PATIENTS:]), strict=True):
        place.mkdir(parents=True)
        for name, table in tables.items():
            table[table["patient"].isin(own)].to_csv(place / f"{name}.csv", index=False)
    return folders
