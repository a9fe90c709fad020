"""The verbs that hold synthetic tables against real ones: evaluate and compare.

What they find is internal: it goes into a folder of its own that only its owner can read, never
into a run or a bundle. The one way to the public is `dpsynth.assessment.published_quality`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.short_repr import Document, short_repr
from dpsynth._util.strict_json import file_digest
from dpsynth._version import __version__
from dpsynth.assessment.results_folder import (
    AUDIT,
    COMPARISON,
    COMPARISON_PAGE,
    EVALUATION,
    PAGE,
    alone_at,
    beside,
    check_place,
    reason,
    write_results,
)
from dpsynth.certificate import noise_sd
from dpsynth.encoding import check_any_table, usual_workers
from dpsynth.encoding.any_table import AUTO, ISO
from dpsynth.errors import InputError
from dpsynth.eval import Gate, Progress, silent
from dpsynth.eval.core import RealTables, shared_people
from dpsynth.eval.evaluation import FORMAT, VERSION, evaluation
from dpsynth.eval.gates import gates
from dpsynth.eval.report import comparison_page, internal_page
from dpsynth.privacy import JointHistograms, event_from_dict
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, drawn_from, goodness_of_fit
from dpsynth.tables import Keys, Reference, Source, as_source, open_table
from dpsynth.tables.unit_keys import NO_KEY

WORTH_SHARING = 2**20  # bytes of a table whose figures several processes find sooner than one


@dataclass(frozen=True)
class Candidate:
    """A synthetic table to be judged.

    Attributes:
        name: what pages call it.
        table: a file or a DataFrame.
        run: facts of the run that it was drawn from; None for another tool's table.
        made_of: digest of the files that a DataFrame was made of, if it was.
        form: how another tool's table is written: as the ``source``, ``iso`` (as dpsynth writes),
            or ``auto``: either of them.
    """

    name: str
    table: Source
    run: dict[str, Any] | None = None
    made_of: str | None = None
    form: str = AUTO

    def __post_init__(self) -> None:
        """Take the table as a name or a DataFrame of pandas."""
        object.__setattr__(self, "table", as_source(self.table))

    def __repr__(self) -> str:
        """Name the table."""
        return short_repr(self, self.name)

    @property
    def written(self) -> str:
        """How its cells are written: dpsynth wrote those of a run."""
        return self.form if self.run is None else ISO

    @property
    def sha256(self) -> str | None:
        """The digest of its file, or of those that it was made of."""
        return self.made_of or sha256_of(self.table)

    @classmethod
    def of_run(cls, folder: str | Path, table: str | Path) -> Candidate:
        """Take a table that was drawn from a run, as its ``samples.json`` records it.

        Raises:
            GateError: the table is not recorded there, or was changed since.
        """
        run, _ = Run.load(folder), drawn_from(folder, table)
        return cls(Path(table).name, table, facts_of(run))

    @classmethod
    def drawn(cls, name: str, run: Run, seed: int) -> Candidate:
        """Draw the schema's number of rows from a run."""
        return cls(name, run.sample(seed=seed), facts_of(run))


def facts_of(run: Run) -> dict[str, Any]:
    """Return what pages say of a run."""
    certificate = run.certificate or {}
    return {
        "model": run.generator,
        "epsilon": certificate.get("epsilon"),
        "delta": certificate.get("delta"),
        "stamps": list(run.stamps),
        "noise": count_noise(run),
        "fitness": None if (fit := goodness_of_fit(run)) is None else fit.to_dict(),
    }


def count_noise(run: Run) -> float:
    """Return the standard deviation of the noise of a count, as a share of the population.

    It is what the plan announces of the one-way counts, public; 0 of a run without a certificate.
    """
    certificate = run.certificate or {"events": []}
    events = [event_from_dict(dict(event)) for event in certificate["events"]]
    counts = [event for event in events if isinstance(event, JointHistograms)]
    return noise_sd(counts[0]) / run.schema.population.value if counts else 0.0


@shown_in_notebooks
def evaluate(
    schema: Schema,
    source: Source,
    candidate: Candidate,
    holdout: Source | None = None,
    *,
    limits: Sequence[Gate] | None = None,
    seed: int = 0,
    workers: int | None = 1,
    output: str | Path | None = None,
    overwrite: bool = False,
    tolerant: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure a synthetic table against its source: fidelity, rules, usefulness, subgroups.

    Args:
        schema: the public facts of all tables.
        source: the private table that the generator learned from.
        candidate: the table to judge.
        holdout: rows of people who are not in the source.
        limits: the internal gates; default: those that come with dpsynth.
        seed: of subsamples and splits.
        workers: processes that share the work; None for one for each core, if the source is a
            large file. The figures are the same with any number.
        output: folder to write ``evaluation.json`` and ``internal.html`` into, for its owner only;
            an audit of the same table that is there stays, and shares the page.
        overwrite: put it in the place of an earlier evaluation there, when all is done.
        tolerant: where the tables cannot be compared, for whatever reason that lies in the real
            rows, return a document that says so (``not_done``) and holds no figure.
        progress: called with a stage and its fraction done.

    Returns:
        The document of the evaluation; internal.

    Raises:
        InputError: a table or the output is wrong, or source and holdout share people.
    """
    source, holdout = as_source(source), None if holdout is None else as_source(holdout)
    check_place(output, overwrite, EVALUATION)
    if output is not None:
        beside(output, AUDIT, sha256_of(candidate.table))
    schema.require_complete()
    progress("reading", 0.0)
    try:
        real = RealTables.read(schema, source, holdout)
        document = _judged(real, source, candidate, holdout, limits, seed, workers, progress)
    except Exception as error:
        if not tolerant:
            raise
        document = _not_done(schema, candidate, seed, reason(error))
    if output is not None:
        progress("page", 0.0)
        with alone_at(output):
            audit = beside(output, AUDIT, sha256_of(candidate.table))
            documents = {EVALUATION: document} | ({} if audit is None else {AUDIT: audit})
            write_results(Path(output), documents, {PAGE: internal_page(document, audit)})
    return Document(document)


@shown_in_notebooks
def compare(
    schema: Schema,
    source: Source,
    candidates: Sequence[Candidate],
    holdout: Source | None = None,
    *,
    limits: Sequence[Gate] | None = None,
    seed: int = 0,
    workers: int | None = 1,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Measure several synthetic tables against one source, on the same tasks and splits.

    Arguments and errors are those of `evaluate`; the documents come in the order of the candidates.
    ``output`` gets ``comparison.json`` and ``comparison.html``. Source and holdout are read once,
    however many candidates there are.
    """
    names = [candidate.name for candidate in candidates]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("a comparison needs two tables or more, under different names")
    source, holdout = as_source(source), None if holdout is None else as_source(holdout)
    check_place(output, overwrite, COMPARISON)
    schema.require_complete()
    for candidate in candidates:
        # its header, before hours are spent on another
        check_any_table(candidate.table, schema, candidate.written)
    progress("reading", 0.0)
    real = RealTables.read(schema, source, holdout)
    documents = []
    for candidate in candidates:

        def named(stage: str, part: float, name: str = candidate.name) -> None:
            progress(f"{name}: {stage}", part)

        named("reading", 0.0)
        document = _judged(real, source, candidate, holdout, limits, seed, workers, named)
        documents.append(document)
    if output is not None:
        together = {
            "format": "dpsynth-comparison",
            "version": 1,
            "internal": True,
            "evaluations": dict(zip(names, documents, strict=True)),
        }
        page = comparison_page(documents, names)
        write_results(Path(output), {COMPARISON: together}, {COMPARISON_PAGE: page})
    return [Document(document) for document in documents]


def check_people(schema: Schema, source: Source, holdout: Source | None) -> None:
    """Refuse a source and a holdout that share people, before anything is spent on them.

    Raises:
        InputError: they do, or one of them cannot be read.
    """
    keys, sides = Keys(schema), []
    for table in (source, holdout):
        if table is not None and schema.unit.column is not None:
            units = [keys.units(chunk) for chunk in open_table(table, schema).chunks()]
            sides.append(set(np.concatenate(units).tolist()) - {NO_KEY})
    if len(sides) == 2 and sides[0] & sides[1]:
        raise shared_people()


def _judged(
    real: RealTables,
    source: Source,
    candidate: Candidate,
    holdout: Source | None,
    limits: Sequence[Gate] | None,
    seed: int,
    workers: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """Evaluate one table, and say which tables these were."""
    tables = real.beside(candidate.table, form=candidate.written)
    chosen = gates() if limits is None else limits
    noise = (candidate.run or {}).get("noise", 0.0)
    workers = usual_workers(source, WORTH_SHARING) if workers is None else workers
    document = evaluation(
        tables, limits=chosen, noise=noise, seed=seed, workers=workers, progress=progress
    )
    described = document["tables"]
    described["source"]["name"] = name_of(source)
    described["synthetic"] |= {"name": candidate.name, "sha256": candidate.sha256}
    if described["holdout"] is not None and holdout is not None:
        described["holdout"]["name"] = name_of(holdout)
    return document | {"run": candidate.run, "dpsynth": __version__}


def _not_done(schema: Schema, candidate: Candidate, seed: int, why: str) -> dict[str, Any]:
    """Return the document of an evaluation that could not be made."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "internal": True,
        "schema": {"name": schema.name, "title": schema.title, "sha256": schema.hash()},
        "tables": {"source": None, "synthetic": None, "holdout": None},
        "seed": seed,
        "measures": {},
        "parts": {},
        "gates": [],
        "notes": [f"The table was not evaluated: {why}"],
        "not_done": {"reason": why, "sha256": candidate.sha256},
        "run": candidate.run,
        "dpsynth": __version__,
    }


def name_of(source: Source) -> str:
    """Return what pages call a table."""
    source = as_source(source)
    return "a DataFrame" if isinstance(source, pd.DataFrame) else Reference.of(source).title


def sha256_of(source: Source) -> str | None:
    """Return the digest of a file; a DataFrame has none."""
    source = as_source(source)
    return None if isinstance(source, pd.DataFrame) else file_digest(Path(source))
