"""The verbs that hold synthetic tables against real ones: evaluate and compare.

Of one table, rows are compared; of linked tables, whole histories of patients are.

What they find is internal: it goes into a folder of its own that only its owner can read, never
into a run or a bundle. The one way to the public is `dpsynth.assessment.published_quality`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.short_repr import Document, short_repr
from dpsynth._util.strict_json import digest, file_digest
from dpsynth._version import __version__
from dpsynth.assessment.results_folder import (
    AUDIT,
    COMPARISON,
    COMPARISON_PAGE,
    EVALUATION,
    HISTORIES,
    HISTORIES_PAGE,
    PAGE,
    alone_at,
    beside,
    check_place,
    reason,
    write_results,
)
from dpsynth.certificate import noise_sd
from dpsynth.encoding import (
    Histories,
    HistoryCodec,
    check_any_table,
    read_any_tables,
    read_histories,
    usual_workers,
)
from dpsynth.encoding.any_table import AUTO, ISO
from dpsynth.errors import InputError
from dpsynth.eval import Gate, Progress, silent
from dpsynth.eval.core import RealTables, shared_people
from dpsynth.eval.evaluation import FORMAT, VERSION, evaluation
from dpsynth.eval.gates import gates
from dpsynth.eval.longitudinal import evaluate_histories
from dpsynth.eval.longitudinal.evaluation import FORMAT as OF_HISTORIES
from dpsynth.eval.longitudinal.evaluation import VERSION as VERSION_OF_HISTORIES
from dpsynth.eval.longitudinal.uses import UNFIT
from dpsynth.eval.report import comparison_page, internal_page, longitudinal_page
from dpsynth.privacy import JointHistograms, SeededEntropy, event_from_dict
from dpsynth.schema import AnySchema, LinkedSchema, Schema, load_any
from dpsynth.synthesis import Run, drawn_from, goodness_of_fit, recorded_as
from dpsynth.tables import (
    Keys,
    Reference,
    Source,
    as_source,
    linked_digests,
    linked_files,
    linked_sources,
    open_linked,
    open_synthetic_linked,
    open_table,
    written_schema,
)
from dpsynth.tables.unit_keys import NO_KEY

WORTH_SHARING = 2**20  # bytes of a table whose figures several processes find sooner than one


AnySource = Source | Mapping[str, Source]
"""One table; or linked ones: what holds them, such as a folder, or each one by its name."""


@dataclass(frozen=True, repr=False)
class Candidate:
    """A synthetic table to be judged, or the linked tables of a synthetic cohort.

    Attributes:
        name: what pages call it.
        table: a file or a DataFrame; of linked tables, each one by its name.
        run: facts of the run that it was drawn from; None for another tool's.
        made_of: digest of the files that DataFrames were made of, or of linked files; None for one
            file, whose digest is taken when it is needed.
        form: how another tool's table is written: as the ``source``, ``iso`` (as dpsynth writes),
            or ``auto``: either of them.

    >>> from dpsynth.tables import simulate
    >>> Candidate("another tool's", simulate(20, seed=1))
    <Candidate another tool's>
    """

    name: str
    table: AnySource
    run: dict[str, Any] | None = None
    made_of: str | None = None
    form: str = AUTO

    def __post_init__(self) -> None:
        """Take the table as a name or a DataFrame of pandas."""
        if not isinstance(self.table, Mapping):
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
        """The digest of its file, or of those that it was made of; None of DataFrames."""
        if self.made_of is not None or isinstance(self.table, Mapping):
            return self.made_of
        return sha256_of(self.table)

    @property
    def one_table(self) -> Source:
        """The table, where it is one.

        Raises:
            InputError: there are several.
        """
        if isinstance(self.table, Mapping):
            raise InputError(f"{self.name}: one table is needed, not several")
        return self.table

    @classmethod
    def of(cls, schema: AnySchema, place: str | Path, form: str = AUTO) -> Candidate:
        """Take a table of another tool, or the linked ones in a folder, written as ``form`` says.

        Raises:
            TableError: a linked table has no file there, or several.
        """
        if isinstance(schema, Schema):
            return cls(Path(place).name, place, form=form)
        sha256 = digest(linked_digests(place, schema))
        files = linked_files(place, schema, synthetic=True)
        return cls(Path(place).name, files, None, sha256, form)

    @classmethod
    def of_run(cls, folder: str | Path, place: str | Path) -> Candidate:
        """Take what was drawn from a run, as its ``samples.json`` records it.

        Raises:
            GateError: it is not recorded there, or was changed since.
        """
        run: Run = Run.load(folder)
        schema: AnySchema = run.schema
        if isinstance(schema, Schema):
            drawn_from(folder, place)
        else:
            recorded_as(folder, linked_digests(place, schema), place)
        return replace(cls.of(schema, place), run=facts_of(run))

    @classmethod
    def drawn(cls, name: str, run: Run, seed: int) -> Candidate:
        """Draw the schema's number of rows, or of patients, from a run."""
        return cls(name, run.sample(seed=seed), facts_of(run))


def facts_of(run: Run) -> dict[str, Any]:
    """Return what pages say of a run."""
    certificate = run.certificate or {}
    return {
        "model": run.generator,
        "epsilon": certificate.get("epsilon"),
        "delta": certificate.get("delta"),
        "attack_rates": certificate.get("attack_rates"),
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
    schema: AnySchema | str | Path,
    source: AnySource,
    candidate: Candidate | AnySource,
    holdout: AnySource | None = None,
    *,
    limits: Sequence[Gate] | None = None,
    seed: int = 0,
    workers: int | None = 1,
    output: str | Path | None = None,
    overwrite: bool = False,
    tolerant: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure synthetic tables against their source.

    Of one table: fidelity, rules, usefulness, subgroups. Of linked tables: rows, gaps, courses,
    events of patients, and what can be predicted of them.

    Args:
        schema: the public facts of all tables, their path, or the name of a shipped one.
        source: what the generator learned from: a private table, or linked ones.
        candidate: what is judged: a table, linked ones, or a `Candidate`, which says more of it.
        holdout: rows of people who are not in the source, beside which every figure is put.
        limits: the internal gates; default: those that come with dpsynth.
        seed: of subsamples, groups, splits and models.
        workers: processes that share the work on one table; None for one for each core, if the
            source is a large file. The figures are the same with any number.
        output: folder to write a document and its page into, for its owner only:
            ``evaluation.json`` and ``internal.html`` of one table, ``histories.json`` and
            ``histories.html`` of linked ones. An audit of the same tables that is there stays.
        overwrite: put it in the place of an earlier evaluation there, when all is done.
        tolerant: where the tables cannot be compared, for whatever reason that lies in the real
            rows, return a document that says so (``not_done``) and holds no figure.
        progress: called with a stage and its fraction done.

    Returns:
        The document of the evaluation; internal.

    Raises:
        InputError: a table or the output is wrong, or source and holdout share people.

    >>> from dpsynth.tables import simulate
    >>> rows = simulate(300, seed=1)
    >>> found = evaluate("demo", rows[:200], simulate(200, seed=2), rows[200:])  # doctest: +SKIP
    >>> found["measures"]["tvd1"]["value"]  # doctest: +SKIP
    0.0478
    """
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    candidate = as_candidate(candidate, schema)
    is_single = isinstance(schema, Schema)
    name = EVALUATION if is_single else HISTORIES
    check_place(output, overwrite, name)
    if output is not None:
        beside(output, AUDIT, candidate.sha256)
    if isinstance(schema, Schema):
        schema.require_complete()
    progress("reading", 0.0)
    judging = (limits, seed, workers, progress)
    try:
        document = _real(schema, source, holdout, seed, progress).judged(candidate, *judging)
    except Exception as error:
        if not tolerant:
            raise
        document = _not_done(schema, candidate, seed, reason(error))
    if output is not None:
        progress("page", 0.0)
        with alone_at(output):
            audit = beside(output, AUDIT, candidate.sha256)
            if is_single:
                pages = {PAGE: internal_page(document, audit)}
            else:
                pages = {HISTORIES_PAGE: longitudinal_page(document)}
            documents = {name: document} | ({} if audit is None else {AUDIT: audit})
            write_results(Path(output), documents, pages)
    return Document(document)


def as_candidate(candidate: Candidate | AnySource, schema: AnySchema) -> Candidate:
    """Return a table, or linked ones, as a candidate of another tool.

    Raises:
        TableError: it is none, or a linked table has no file.
    """
    if isinstance(candidate, Candidate):
        return candidate
    if isinstance(candidate, Mapping) or not isinstance(candidate, str | Path):
        return Candidate("a DataFrame", candidate)
    return Candidate.of(schema, candidate)


@shown_in_notebooks
def compare(
    schema: AnySchema | str | Path,
    source: AnySource,
    candidates: Sequence[Candidate],
    holdout: AnySource | None = None,
    *,
    limits: Sequence[Gate] | None = None,
    seed: int = 0,
    workers: int | None = 1,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Measure several synthetic tables, or cohorts, against one source, on the same tasks.

    Arguments and errors are those of `evaluate`; the documents come in the order of the candidates.
    ``output`` gets ``comparison.json`` and ``comparison.html``. Source and holdout are read once,
    however many candidates there are.

    >>> from dpsynth.tables import simulate
    >>> candidates = [Candidate(name, simulate(200, seed=2)) for name in ("one", "two")]
    >>> found = compare("demo", simulate(200, seed=1), candidates)  # doctest: +SKIP
    >>> [document["measures"]["tvd1"]["value"] for document in found]  # doctest: +SKIP
    [0.0478, 0.0478]
    """
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    names = [candidate.name for candidate in candidates]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("a comparison needs two tables or more, under different names")
    check_place(output, overwrite, COMPARISON)
    if isinstance(schema, Schema):
        schema.require_complete()
        for candidate in candidates:
            # its header, before hours are spent on another
            check_any_table(candidate.one_table, schema, candidate.written)
    progress("reading", 0.0)
    real = _real(schema, source, holdout, seed, progress)
    documents = []
    for candidate in candidates:

        def named(stage: str, part: float, name: str = candidate.name) -> None:
            progress(f"{name}: {stage}", part)

        named("reading", 0.0)
        documents.append(real.judged(candidate, limits, seed, workers, named))
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


def _real(
    schema: AnySchema,
    source: AnySource,
    holdout: AnySource | None,
    seed: int,
    progress: Progress,
) -> RealRows | RealHistories:
    """Read what candidates are held against."""
    if isinstance(schema, LinkedSchema):
        return RealHistories.read(schema, source, holdout, seed=seed, progress=progress)
    return RealRows.read(schema, source, holdout)


@dataclass(frozen=True, repr=False)
class RealRows:
    """The rows of one source, and of its holdout.

    Attributes:
        tables: as read.
        source: where they are.
        holdout: where those of other people are.
    """

    tables: RealTables
    source: Source
    holdout: Source | None

    def __repr__(self) -> str:
        """Show no number: they are of real people."""
        return short_repr(self)

    @classmethod
    def read(cls, schema: Schema, source: AnySource, holdout: AnySource | None) -> RealRows:
        """Read both.

        Raises:
            InputError: a table is wrong, or they share people.
        """
        table, others = as_source(source), None if holdout is None else as_source(holdout)
        return cls(RealTables.read(schema, table, others), table, others)

    def judged(
        self,
        candidate: Candidate,
        limits: Sequence[Gate] | None,
        seed: int,
        workers: int | None,
        progress: Progress,
    ) -> dict[str, Any]:
        """Evaluate one table, and say which tables these were."""
        tables = self.tables.beside(candidate.one_table, form=candidate.written)
        chosen = gates() if limits is None else limits
        noise = (candidate.run or {}).get("noise", 0.0)
        workers = usual_workers(self.source, WORTH_SHARING) if workers is None else workers
        document = evaluation(
            tables, limits=chosen, noise=noise, seed=seed, workers=workers, progress=progress
        )
        described = document["tables"]
        described["source"]["name"] = name_of(self.source)
        described["synthetic"] |= {"name": candidate.name, "sha256": candidate.sha256}
        if described["holdout"] is not None and self.holdout is not None:
            described["holdout"]["name"] = name_of(self.holdout)
        return document | {"run": candidate.run, "dpsynth": __version__}


@dataclass(frozen=True, repr=False)
class RealHistories:
    """The coded histories of a source of linked tables, and of other people.

    Attributes:
        schema: of the tables.
        codec: of all histories.
        source: what the generator learned from.
        holdout: of people who are not in the source; None if there are none.
    """

    schema: LinkedSchema
    codec: HistoryCodec
    source: Histories
    holdout: Histories | None

    def __repr__(self) -> str:
        """Show no number: they are of real people."""
        return short_repr(self, f"schema {self.schema.name}")

    @classmethod
    def read(
        cls,
        schema: LinkedSchema,
        source: AnySource,
        holdout: AnySource | None,
        *,
        seed: int = 0,
        progress: Progress = silent,
    ) -> RealHistories:
        """Read both; the same files and seed give the same histories.

        Raises:
            InputError: a table is wrong, or they share people.
        """
        patients = schema.patients.name
        files = linked_sources(source, schema)
        others = None if holdout is None else linked_sources(holdout, schema)
        check_people(schema.patients, files[patients], None if others is None else others[patients])
        codec = HistoryCodec(schema)

        def coded(tables: Mapping[str, Source]) -> Histories:
            told = partial(progress, "reading")
            return read_histories(
                open_linked(tables, schema), codec, SeededEntropy(seed), progress=told
            )

        return cls(schema, codec, coded(files), None if others is None else coded(others))

    def beside(
        self, candidate: Candidate, *, seed: int = 0, progress: Progress = silent
    ) -> tuple[Histories, tuple[str, ...]]:
        """Read the histories of a synthetic cohort, and how they were read if it is not certain.

        Raises:
            InputError: a table is wrong.
        """
        tables = linked_sources(candidate.table, self.schema)
        read, notes = read_any_tables(tables, self.schema, candidate.written)
        histories = read_histories(
            open_synthetic_linked(read, self.schema),
            HistoryCodec(written_schema(self.schema)),
            SeededEntropy(seed),
            progress=partial(progress, "reading"),
        )
        return histories, notes

    def judged(
        self,
        candidate: Candidate,
        limits: Sequence[Gate] | None,
        seed: int,
        workers: int | None,
        progress: Progress,
    ) -> dict[str, Any]:
        """Evaluate one cohort, and say which it was; one process works."""
        synthetic, notes = self.beside(candidate, seed=seed, progress=progress)
        document = evaluate_histories(
            self.codec,
            synthetic,
            self.source,
            self.holdout,
            limits=gates() if limits is None else limits,
            seed=seed,
            progress=progress,
        ).to_dict()
        document["notes"] = [f"the synthetic table {one}" for one in notes] + document["notes"]
        return document | _of_cohort(candidate)


def _of_cohort(candidate: Candidate) -> dict[str, Any]:
    """Say which cohort a document is about."""
    return {
        "tables": {"synthetic": {"name": candidate.name, "sha256": candidate.sha256}},
        "run": candidate.run,
        "dpsynth": __version__,
    }


def _not_done(schema: AnySchema, candidate: Candidate, seed: int, why: str) -> dict[str, Any]:
    """Return the document of an evaluation that could not be made."""
    document: dict[str, Any] = {
        "internal": True,
        "seed": seed,
        "measures": {},
        "parts": {},
        "not_done": {"reason": why, "sha256": candidate.sha256},
        "run": candidate.run,
        "dpsynth": __version__,
    }
    if isinstance(schema, Schema):
        return document | {
            "format": FORMAT,
            "version": VERSION,
            "schema": {"name": schema.name, "title": schema.title, "sha256": schema.hash()},
            "tables": {"source": None, "synthetic": None, "holdout": None},
            "gates": [],
            "notes": [f"The table was not evaluated: {why}"],
        }
    title = schema.title or schema.name
    document |= {
        "format": OF_HISTORIES,
        "version": VERSION_OF_HISTORIES,
        "schema": {"name": schema.name, "title": title, "sha256": schema.hash()},
        "patients": {},
        "synthetic": {},
        "uses": [],
        "summary": [],
        "gates": [],
        "notes": [f"The histories were not evaluated: {why}"],
    }
    return document | _of_cohort(candidate)


def unfit_uses(document: dict[str, Any]) -> tuple[str, ...]:
    """List the uses for which a cohort is not fit, by their keys."""
    return tuple(use["key"] for use in document["uses"] if use["verdict"] == UNFIT)


def failed_gates(document: dict[str, Any]) -> tuple[str, ...]:
    """List the internal gates that failed, by their keys."""
    return tuple(gate["key"] for gate in document["gates"] if gate["passed"] is False)


def name_of(source: Source) -> str:
    """Return what pages call a table."""
    source = as_source(source)
    return "a DataFrame" if isinstance(source, pd.DataFrame) else Reference.of(source).title


def sha256_of(source: Source) -> str | None:
    """Return the digest of a file; a DataFrame has none."""
    source = as_source(source)
    return None if isinstance(source, pd.DataFrame) else file_digest(Path(source))
