"""What commands do with runs and schemas of linked tables; their data are folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth.cli.console import Console
from dpsynth.errors import GateError

if TYPE_CHECKING:
    from dpsynth.assessment import Trained
    from dpsynth.schema import LinkedSchema


def refuse_options(options: Mapping[str, object], why: str) -> None:
    """Refuse options that a command has for the other kind of run.

    Raises:
        UsageError: one is given.
    """
    for name, value in options.items():
        if value not in (None, False, ()):
            raise click.UsageError(f"{name} {why}")


def evaluated_cohort(
    console: Console,
    subject: str,
    schema: LinkedSchema,
    run: object,
    folders: tuple[str, str, str | None],
    seed: int,
    output: str | None,
    force: bool,
    written: str,
) -> None:
    """Compare a synthetic cohort with the source; the third folder is of other patients.

    Raises:
        GateError: the cohort is not fit for a use.
    """
    from dpsynth.assessment import CohortCandidate, evaluate_cohort, unfit_uses
    from dpsynth.assessment.results_folder import HISTORIES_PAGE

    source, synthetic, holdout = folders
    if run is None:
        candidate = CohortCandidate.of(schema, synthetic, written)
    else:
        candidate = CohortCandidate.of_run(subject, synthetic)
    document = evaluate_cohort(
        schema,
        source,
        candidate,
        holdout,
        seed=seed,
        output=output,
        overwrite=force,
        progress=console.progress,
    )
    lines = [f"{use['verdict']:<13} {use['title']}: {use['sentence']}" for use in document["uses"]]
    if output is not None:
        lines += ["", f"page          {Path(output) / HISTORIES_PAGE}"]
    names = ("internal", "patients", "run", "seed", "measures", "uses", "notes")
    values = {name: document[name] for name in names} | {"output": output}
    console.result("evaluate", values, lines)
    for note in document["notes"]:
        console.advice(f"Note: {note}")
    console.advice("Internal: computed from real rows. Do not release.")
    if unfit := unfit_uses(document):
        raise GateError(f"the cohort is not fit for {counted(len(unfit), 'use')}: {listed(unfit)}")


def audited_cohort(
    console: Console,
    subject: str,
    schema: LinkedSchema,
    run: object,
    folders: tuple[str | None, str | None, str | None],
    trained: Trained | None,
    *,
    seed: int,
    workers: int | None,
    output: str | None,
    force: bool,
) -> dict[str, Any]:
    """Attack a synthetic cohort, the training of its run, or both.

    The folders are of the source, the cohort and the holdout; all of them or none.
    """
    from dpsynth.assessment import CohortCandidate, RealCohorts, audit_cohort

    source, synthetic, holdout = folders
    real = None
    if source is not None and synthetic is not None and holdout is not None:
        if run is None:
            candidate = CohortCandidate.of(schema, synthetic)
        else:
            candidate = CohortCandidate.of_run(subject, synthetic)
        real = RealCohorts(source, candidate, holdout)
    return audit_cohort(
        schema,
        real,
        trained=trained,
        seed=seed,
        workers=workers,
        output=output,
        overwrite=force,
        progress=console.progress,
    )
