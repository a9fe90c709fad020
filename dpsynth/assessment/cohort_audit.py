"""The verb audit for linked tables: attacks that link a patient's rows over tables and time.

Each patient is summed up in one row (`dpsynth.encoding.summaries`), so the attacks on tables see
whole histories: who is remembered, who was a member, whose attributes can be told. The unit of the
claim is the patient, and so is a row of the summary; it stands beside the attacks without group
privacy. The training is audited with canary patients (`cohort_canaries`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth.assessment.attack_audit import Real, Undone, audit_run
from dpsynth.assessment.cohort_sides import CohortCandidate, CohortSides, Folder
from dpsynth.assessment.evaluation import Candidate
from dpsynth.assessment.repeated_audits import Trained
from dpsynth.assessment.results_folder import AUDIT, HISTORIES, beside, check_place, reason
from dpsynth.encoding import HistoryCodec, summaries, summary_schema
from dpsynth.encoding.any_table import ISO
from dpsynth.errors import InputError
from dpsynth.eval import Progress, silent
from dpsynth.schema import LinkedSchema


@dataclass(frozen=True, repr=False)
class RealCohorts:
    """The cohorts of an audit; as `Real` is for one table.

    Attributes:
        source: the tables that the generator learned from.
        candidate: the synthetic cohort that is attacked.
        holdout: tables of people who are not in the source.
    """

    source: Folder
    candidate: CohortCandidate
    holdout: Folder


def audit_cohort(
    schema: LinkedSchema,
    real: RealCohorts | None = None,
    *,
    trained: Trained | None = None,
    seed: int = 0,
    workers: int | None = 1,
    output: str | Path | None = None,
    overwrite: bool = False,
    tolerant: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Attack a synthetic cohort, the training of its run, or both, and write what was found.

    Args:
        schema: of all tables.
        real: the cohorts; None to audit the training alone, which reads no private row.
        trained: the run whose training is audited, as of `audit_run`.
        seed: of all draws.
        workers: as of `audit_run`; None for one, because a cohort has no one file.
        output: as of `audit_run`, like what follows.
        overwrite: whether an earlier audit there gives way.
        tolerant: where the cohorts cannot be attacked, say so in the document.
        progress: called with a stage and its fraction done.

    Returns:
        The document of the audit; internal.

    Raises:
        InputError: a table or the output is wrong, or source and holdout share people, or there are
            too few of them; or nothing was asked for.
    """
    if isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InputError("the seed of an audit is a whole number from 0, below 2^63")
    if trained is not None:
        trained.check()
    check_place(output, overwrite, AUDIT)
    if output is not None and real is not None:
        beside(output, HISTORIES, real.candidate.sha256)
    rows, undone = None, None
    if real is not None:
        try:
            rows = _summed_up(schema, real, seed, progress)
        except Exception as error:
            if not tolerant:
                raise
            undone = Undone(reason(error), real.candidate.sha256)
    return audit_run(
        summary_schema(HistoryCodec(schema)),
        real=rows,
        undone=undone,
        trained=trained,
        seed=seed,
        workers=workers,
        output=output,
        overwrite=overwrite,
        tolerant=tolerant,
        progress=progress,
    )


def _summed_up(
    schema: LinkedSchema,
    real: RealCohorts,
    seed: int,
    progress: Progress,
) -> Real:
    """Return each cohort as a table with a row for each patient."""
    candidate = real.candidate
    sides = CohortSides.read(
        schema,
        real.source,
        candidate.tables,
        real.holdout,
        form=candidate.written,
        seed=seed,
        progress=progress,
    )
    assert sides.holdout is not None  # it was given
    source, drawn, others = (
        summaries(one, sides.codec) for one in (sides.source, sides.synthetic, sides.holdout)
    )
    return Real(
        source,
        Candidate(candidate.name, drawn, candidate.run, candidate.sha256, ISO),
        others,
        names=("the source", "the holdout"),
        histories=True,
    )
