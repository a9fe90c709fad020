"""The verb evaluate for linked tables: a synthetic cohort held against the real histories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import digest
from dpsynth._version import __version__
from dpsynth.assessment.evaluation import check_people, facts_of
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
from dpsynth.encoding import Histories, HistoryCodec, read_any_tables, read_histories
from dpsynth.encoding.any_table import AUTO, ISO
from dpsynth.errors import GateError
from dpsynth.eval import Progress, silent
from dpsynth.eval.longitudinal import evaluate_histories
from dpsynth.eval.longitudinal.evaluation import FORMAT, VERSION
from dpsynth.eval.longitudinal.uses import UNFIT
from dpsynth.eval.report import longitudinal_page
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import CohortSample, Run, read_records
from dpsynth.tables import (
    NamedSource,
    Source,
    linked_digests,
    linked_files,
    linked_sources,
    open_linked,
    open_synthetic_linked,
    written_schema,
)


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


Folder = str | Path | Mapping[str, Source]
"""A folder with a file for each table, or the source of each by the table's name."""


@dataclass(frozen=True, repr=False)
class CohortCandidate:
    """A synthetic cohort to be judged.

    Attributes:
        name: what pages call it.
        tables: its files.
        run: facts of the run that it was drawn from; None for another tool's.
        sha256: over the digests of its files; None if they are DataFrames.
        form: how another tool's tables are written; see `dpsynth.assessment.Candidate`.
    """

    name: str
    tables: Folder
    run: dict[str, object] | None = None
    sha256: str | None = None
    form: str = AUTO

    @property
    def written(self) -> str:
        """How its cells are written: dpsynth wrote those of a run."""
        return self.form if self.run is None else ISO

    @classmethod
    def of(cls, schema: LinkedSchema, folder: str | Path, form: str = AUTO) -> CohortCandidate:
        """Take the cohort in a folder, written as ``form`` says.

        Raises:
            TableError: a table has no file there, or several.
        """
        sha256 = digest(linked_digests(folder, schema))
        files = linked_files(folder, schema, synthetic=True)
        return cls(Path(folder).name, files, None, sha256, form)

    @classmethod
    def of_run(cls, run_folder: str | Path, folder: str | Path) -> CohortCandidate:
        """Take a cohort that was drawn from a run, as its ``cohorts.json`` records it.

        Raises:
            GateError: the cohort is not recorded there, or was changed since.
        """
        run = Run.load(run_folder)
        own = cls.of(run.schema, folder)
        recorded = [digest(one.tables) for one in read_records(run_folder, CohortSample)]
        if own.sha256 not in recorded:
            raise GateError(
                f"{folder} is not recorded in {run_folder}/cohorts.json as drawn from this run, or "
                "was changed since; draw it again with `dpsynth sample`, or give the schema "
                "instead of the run"
            )
        return cls(own.name, own.tables, facts_of(run), own.sha256)


@dataclass(frozen=True, repr=False)
class CohortSides:
    """Coded histories of a synthetic cohort, of its source, and of other people.

    Attributes:
        codec: of all of them.
        source: what the generator learned from.
        synthetic: what is judged.
        holdout: of people who are not in the source; None if there are none.
        notes: how the synthetic tables were read, where that is not certain.
    """

    codec: HistoryCodec
    source: Histories
    synthetic: Histories
    holdout: Histories | None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show no number: they are of real people."""
        return short_repr(self, f"schema {self.codec.schema.name}")

    @classmethod
    def read(
        cls,
        schema: LinkedSchema,
        source: Folder,
        synthetic: Folder,
        holdout: Folder | None,
        *,
        form: str = ISO,
        seed: int = 0,
        progress: Progress = silent,
    ) -> CohortSides:
        """Read all of them; the same files and seed give the same histories.

        Raises:
            InputError: a table is wrong, or source and holdout share people.
        """
        patients = schema.patients.name
        sides = [_files(one, schema) for one in (source, synthetic)]
        others = None if holdout is None else _files(holdout, schema)
        codec = HistoryCodec(schema)
        check_people(
            schema.patients, sides[0][patients], None if others is None else others[patients]
        )

        def real(files: Mapping[str, Source]) -> Histories:
            tables = open_linked(files, schema)
            return read_histories(
                tables, codec, SeededEntropy(seed), progress=lambda part: progress("reading", part)
            )

        read, notes = read_any_tables(sides[1], schema, form)
        drawn = read_histories(
            open_synthetic_linked(read, schema),
            HistoryCodec(written_schema(schema)),
            SeededEntropy(seed),
            progress=lambda part: progress("reading", part),
        )
        apart = None if others is None else real(others)
        return cls(codec, real(sides[0]), drawn, apart, notes)


def _files(folder: Folder, schema: LinkedSchema) -> Mapping[str, NamedSource]:
    return linked_sources(folder, schema)
