"""The part of ``dpsynth demo`` with linked tables: the histories of a simulated clinic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.messages import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from dpsynth.ledger import Ledger

PATIENTS, HOLDOUT = 8_000, 1_600
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
    from dpsynth.synthesis import CohortSample, CohortSampler, add_record, fit_cohort
    from dpsynth.tables import write_linked

    schema = LinkedSchema.load("clinic")
    progress("clinic: simulating", 0.0)
    source, holdout = _simulated(folder, seed)
    run = fit_cohort(
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
        CohortSampler.of(run).frames(
            PATIENTS, seed=seed, progress=lambda part: progress("clinic: sampling", part)
        )
    )
    cohort = folder / "cohort"
    digests = write_linked(iter(blocks), cohort, published_tables(schema), kind=".csv")
    add_record(folder / "run", CohortSample(cohort.name, digests, ".csv", PATIENTS, seed))
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
        "patients": PATIENTS,
        "checks": checks,
        "uses": document["uses"],
    }
    lines = [
        f"{source}: {PATIENTS} simulated patients in {len(schema.table_names)} linked tables "
        f"({listed(schema.table_names)})",
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

    tables = simulate_cohort(PATIENTS + HOLDOUT, seed=seed)
    keys = tables["patients"]["patient"]
    folders = (folder / "source", folder / "holdout")
    for place, own in zip(folders, (keys[:PATIENTS], keys[PATIENTS:]), strict=True):
        place.mkdir(parents=True)
        for name, table in tables.items():
            table[table["patient"].isin(own)].to_csv(place / f"{name}.csv", index=False)
    return folders
