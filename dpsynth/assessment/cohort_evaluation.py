"""The verb evaluate for linked tables: a synthetic cohort held against the real histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth._version import __version__
from dpsynth.assessment.cohort_sides import CohortCandidate, CohortSides, Folder
from dpsynth.assessment.results_folder import (
    AUDIT,
    HISTORIES,
    HISTORIES_PAGE,
    alone_at,
    beside,
    check_place,
    reason,
    write_results,
)
from dpsynth.eval import Progress, silent
from dpsynth.eval.longitudinal import evaluate_histories
from dpsynth.eval.longitudinal.evaluation import FORMAT, VERSION
from dpsynth.eval.longitudinal.uses import UNFIT
from dpsynth.eval.report.histories import longitudinal_page
from dpsynth.schema import LinkedSchema


def evaluate_cohort(
    schema: LinkedSchema,
    source: Folder,
    candidate: CohortCandidate,
    holdout: Folder | None = None,
    *,
    seed: int = 0,
    output: str | Path | None = None,
    overwrite: bool = False,
    tolerant: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure a synthetic cohort: rows, gaps, courses, events and what can be predicted of them.

    Args:
        schema: of all tables.
        source: the tables that the generator learned from.
        candidate: the synthetic cohort that is judged.
        holdout: tables of other people, beside which every figure is put.
        seed: of samples, groups and models.
        output: folder to write ``histories.json`` and ``histories.html`` into, for its owner only;
            an audit of the same cohort may be there.
        overwrite: whether an earlier evaluation there gives way.
        tolerant: where the cohorts cannot be compared, for whatever reason that lies in them, say
            so in the document (``not_done``).
        progress: called with a stage and its fraction done.

    Returns:
        The document of the evaluation; internal.

    Raises:
        InputError: a table or the output is wrong, or source and holdout share people.
    """
    check_place(output, overwrite, HISTORIES)
    if output is not None:
        beside(output, AUDIT, candidate.sha256)
    try:
        sides = CohortSides.read(
            schema,
            source,
            candidate.tables,
            holdout,
            form=candidate.written,
            seed=seed,
            progress=progress,
        )
        document = evaluate_histories(
            sides.codec, sides.synthetic, sides.source, sides.holdout, seed=seed, progress=progress
        ).to_dict()
        document["notes"] = [f"the synthetic table {one}" for one in sides.notes] + document[
            "notes"
        ]
    except Exception as error:
        if not tolerant:
            raise
        document = _not_done(schema, candidate, seed, reason(error))
    document |= {
        "tables": {"synthetic": {"name": candidate.name, "sha256": candidate.sha256}},
        "run": candidate.run,
        "dpsynth": __version__,
    }
    if output is not None:
        with alone_at(output):
            beside(output, AUDIT, candidate.sha256)
            pages = {HISTORIES_PAGE: longitudinal_page(document)}
            write_results(Path(output), {HISTORIES: document}, pages)
    return document


def _not_done(
    schema: LinkedSchema, candidate: CohortCandidate, seed: int, why: str
) -> dict[str, Any]:
    """Return the document of an evaluation that could not be made."""
    empty: dict[str, Any] = {"patients": {}, "measures": {}, "parts": {}, "synthetic": {}}
    return empty | {
        "format": FORMAT,
        "version": VERSION,
        "internal": True,
        "schema": {
            "name": schema.name,
            "title": schema.title or schema.name,
            "sha256": schema.hash(),
        },
        "seed": seed,
        "uses": [],
        "summary": [],
        "notes": [f"The histories were not evaluated: {why}"],
        "not_done": {"reason": why, "sha256": candidate.sha256},
    }


def unfit_uses(document: dict[str, Any]) -> tuple[str, ...]:
    """List the uses for which a cohort is not fit, by their keys."""
    return tuple(use["key"] for use in document["uses"] if use["verdict"] == UNFIT)
