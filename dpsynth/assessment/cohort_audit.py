"""The verb audit for linked tables: attacks that link a patient's rows over tables and time.

Each patient is summed up in one row (`dpsynth.encoding.summaries`), so the attacks on tables see
whole histories: who is remembered, who was a member, whose attributes can be told. The unit of the
claim is the patient, and so is a row of the summary; it stands beside the attacks without group
privacy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth.assessment.attack_audit import Real, audit_run
from dpsynth.assessment.cohort_sides import CohortCandidate, CohortSides, Folder
from dpsynth.assessment.evaluation import Candidate
from dpsynth.assessment.results_folder import HISTORIES, beside
from dpsynth.encoding import summaries, summary_schema
from dpsynth.errors import InputError
from dpsynth.eval import Progress, silent
from dpsynth.schema import LinkedSchema


def audit_cohort(
    schema: LinkedSchema,
    source: Folder,
    candidate: CohortCandidate,
    holdout: Folder,
    *,
    seed: int = 0,
    output: str | Path | None = None,
    overwrite: bool = False,
    tolerant: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Attack a synthetic cohort, with controls, and write what was found.

    Args:
        schema: of all tables.
        source: the tables that the generator learned from.
        candidate: the synthetic cohort that is attacked.
        holdout: tables of people who are not in the source.
        seed: of all draws.
        output: as of `audit_run`, like what follows.
        overwrite: whether an earlier audit there gives way.
        tolerant: where the cohorts cannot be attacked, say so in the document.
        progress: called with a stage and its fraction done.

    Returns:
        The document of the audit; internal.

    Raises:
        InputError: a table or the output is wrong, or source and holdout share people, or there are
            too few of them.
    """
    if isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InputError("the seed of an audit is a whole number from 0, below 2^63")
    if output is not None:
        beside(output, HISTORIES, candidate.sha256)
    sides = CohortSides.read(
        schema, source, candidate.tables, holdout, seed=seed, progress=progress
    )
    assert sides.holdout is not None  # it was given
    rows = [summaries(one, sides.codec) for one in (sides.source, sides.synthetic, sides.holdout)]
    real = Real(
        rows[0],
        Candidate(candidate.name, rows[1], candidate.run, candidate.sha256),
        rows[2],
        names=("the source", "the holdout"),
    )
    return audit_run(
        summary_schema(sides.codec),
        real=real,
        seed=seed,
        output=output,
        overwrite=overwrite,
        tolerant=tolerant,
        progress=progress,
    )
