"""What commands do with runs and schemas of linked tables; their data are folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dpsynth.cli.console import Console

if TYPE_CHECKING:
    from dpsynth.schema import LinkedSchema
    from dpsynth.synthesis import CohortRun


def refuse_options(options: Mapping[str, object], why: str) -> None:
    """Refuse options that a command has for the other kind of run.

    Raises:
        UsageError: one is given.
    """
    for name, value in options.items():
        if value not in (None, False, ()):
            raise click.UsageError(f"{name} {why}")


def audited_cohort(
    console: Console,
    subject: str,
    schema: LinkedSchema,
    run: CohortRun | None,
    folders: tuple[str | None, str | None, str | None],
    *,
    seed: int,
    output: str | None,
    force: bool,
) -> dict[str, Any]:
    """Attack a synthetic cohort; the folders are of the source, the cohort and the holdout.

    Raises:
        UsageError: a folder is missing: the training of linked tables is not audited by itself.
    """
    from dpsynth.assessment import CohortCandidate, audit_cohort

    source, synthetic, holdout = folders
    if source is None or synthetic is None or holdout is None:
        raise click.UsageError(
            "to audit linked tables, give DATA, --synthetic and --holdout: the folders of the "
            "source, of the cohort and of other patients"
        )
    if run is None:
        candidate = CohortCandidate.of(schema, synthetic)
    else:
        candidate = CohortCandidate.of_run(subject, synthetic)
    return audit_cohort(
        schema,
        source,
        candidate,
        holdout,
        seed=seed,
        output=output,
        overwrite=force,
        progress=console.progress,
    )
