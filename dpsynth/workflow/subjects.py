"""What a run is about: one table or linked ones, and what a stage asks of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpsynth._util.strict_json import digest, file_digest
from dpsynth.assessment import (
    Candidate,
    CohortCandidate,
    Real,
    RealCohorts,
    Trained,
    audit_cohort,
    audit_run,
    check_place,
    evaluate,
    evaluate_cohort,
    publish_quality,
    unfit_uses,
)
from dpsynth.assessment.results_folder import EVALUATION, HISTORIES
from dpsynth.bundle import ledger_of
from dpsynth.bundle.format import read_quality, table_path
from dpsynth.bundle.format.layout import PARQUET, TYPED
from dpsynth.certificate import Certificate
from dpsynth.errors import InputError
from dpsynth.inspection import LinkedCheck, TableCheck, check_fit, check_linked
from dpsynth.schema import AnySchema, LinkedSchema, Schema, published_tables
from dpsynth.synthesis import (
    CohortSample,
    Run,
    Sampler,
    add_record,
    drawn_frames,
    fit,
    fitting,
    read_records,
    read_samples,
    record_sample,
    write_drawn,
)
from dpsynth.tables import (
    OptOut,
    leave_out,
    linked_digests,
    split_file,
    write_linked,
)
from dpsynth.workflow.stage import Job

if TYPE_CHECKING:
    from dpsynth.workflow.resolved_settings import ResolvedSettings
    from dpsynth.workflow.stage import Progress


class Subject(Protocol):
    """A table, or tables, in the order of a run; see `ResolvedSettings` for its folders."""

    evaluation: str
    """Name of the document of the evaluation."""
    drawn: str
    """What a number of them is drawn."""
    wanting: tuple[str, str]
    """Noun and verb of what an evaluation found wanting."""

    def opt_out(self, path: Path) -> OptOut:
        """Read a list of who opted out."""

    def check(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> TableCheck | LinkedCheck:
        """Compare the private source with the schema."""

    def deal(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> Iterable[Path]:
        """Leave out who opted out, hold out a share; return the files that were written."""

    def fit(self, job: Job, **terms: Any) -> None:
        """Learn from the side that is fitted, on such terms, which both verbs take."""

    def draw(self, job: Job) -> str | None:
        """Draw the synthetic rows, record them in the run, and say how many met the rules."""

    def sha256(self, order: ResolvedSettings) -> str | None:
        """Return the digest of what was drawn; None if it is not there."""

    def is_drawn(self, order: ResolvedSettings) -> bool:
        """Whether what is there is what the run records for these settings."""

    def is_released(self, order: ResolvedSettings) -> bool:
        """Whether the bundle that is there holds what was drawn, of this run."""

    def evaluate(self, job: Job) -> None:
        """Hold what was drawn against the real rows; keep what cannot be done as a reason."""

    def audit(self, job: Job) -> None:
        """Attack; keep what cannot be done as a reason."""

    def failed(self, document: dict[str, Any]) -> tuple[str, ...]:
        """List what an evaluation found wanting, by its keys."""


@dataclass(frozen=True)
class OneTable:
    """A table, from a file or a database; see `Subject` for the methods."""

    schema: Schema
    evaluation = EVALUATION
    drawn = "rows"
    wanting = ("internal gate", "failed")

    def __repr__(self) -> str:
        """Name the schema."""
        return f"<OneTable {self.schema.name}>"

    def opt_out(self, path: Path) -> OptOut:
        """Read the list by the schema's key."""
        return OptOut.load(path, self.schema)

    def check(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> TableCheck:
        """Compare the table with its schema."""
        return check_fit(
            order.settings.data,
            self.schema,
            opt_out=absent,
            progress=lambda part: progress("reading", part),
        )

    def deal(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> Iterable[Path]:
        """Write one file, or two."""
        data = order.settings.data

        def report(part: float) -> None:
            progress("reading", part)

        if order.holdout is None:
            assert absent is not None  # or else nothing is left out
            return [leave_out(data, self.schema, order.split, absent, progress=report)]
        return split_file(
            data,
            self.schema,
            order.split,
            holdout=order.settings.holdout,
            opt_out=absent,
            progress=report,
        )

    def fit(self, job: Job, **terms: Any) -> None:
        """Fit the table."""
        order = job.order
        assert isinstance(order.fitted, Schema)
        share = order.settings.publish_quality
        fitting.fit(order.train, order.fitted, publish_quality=share, workers=job.workers, **terms)

    def draw(self, job: Job) -> str | None:
        """Draw the rows into a file."""
        order, progress = job.order, job.told("sample")
        rows, seed = order.settings.rows, order.settings.seed
        assert rows is not None and seed is not None  # the settings are resolved
        run = Run.load(order.run)
        sampler = Sampler.of(run)
        sha256 = write_drawn(
            run,
            sampler,
            order.table,
            rows,
            seed=seed,
            workers=job.workers,
            overwrite=True,
            private=True,
            progress=lambda part: progress("drawing", part),
        )
        record_sample(order.run, order.table, rows=rows, seed=seed, sha256=sha256)
        return sampler.acceptance.words("row") if sampler.acceptance.drawn else None

    def sha256(self, order: ResolvedSettings) -> str | None:
        """Return the digest of the file."""
        return file_digest(order.table) if order.table.is_file() else None

    def is_drawn(self, order: ResolvedSettings) -> bool:
        """Compare the file with the run's ``samples.json``."""
        expected = (self.sha256(order), order.settings.rows, order.settings.seed, None, False)
        return any(
            (sample.sha256, sample.rows, sample.seed, sample.condition, sample.plain) == expected
            for sample in read_samples(order.run)
        )

    def is_released(self, order: ResolvedSettings) -> bool:
        """Compare the bundle's table with the file."""
        return file_digest(order.bundle / PARQUET) == self.sha256(order)

    def evaluate(self, job: Job) -> None:
        """Spend the share for public figures, if there is one, and then look at everything."""
        order = job.order
        check_place(order.internal, False, EVALUATION)
        if order.settings.publish_quality is not None:
            spend_on_figures(job)
        run = Run.load(order.run)
        evaluate(
            run.schema,
            order.train,
            Candidate.of_run(order.run, order.table),
            order.holdout,
            limits=order.limits,
            seed=order.settings.evaluate_seed,
            workers=job.workers,
            output=order.internal,
            tolerant=True,
            progress=job.told("evaluate"),
        )

    def audit(self, job: Job) -> None:
        """Attack the training, and the table where people were held out."""
        order, real = job.order, None
        run = Run.load(order.run)
        if order.attacks:
            assert order.holdout is not None
            real = Real(order.train, Candidate.of_run(order.run, order.table), order.holdout)
        audit_run(
            run.schema,
            real=real,
            trained=Trained(order.run, order.settings.canaries),
            seed=order.settings.audit_seed,
            workers=job.workers,
            output=order.internal,
            tolerant=True,
            progress=job.told("audit"),
        )

    def failed(self, document: dict[str, Any]) -> tuple[str, ...]:
        """List the internal gates that the table failed."""
        return tuple(gate["key"] for gate in document["gates"] if gate["passed"] is False)


KIND = ".parquet"


@dataclass(frozen=True)
class LinkedTables:
    """Tables of patients and of their rows, in folders; see `Subject` for the methods."""

    schema: LinkedSchema
    evaluation = HISTORIES
    drawn = "patients"
    wanting = ("use", "of the histories ruled out")

    def __repr__(self) -> str:
        """Name the schema."""
        return f"<LinkedTables {self.schema.name}>"

    def opt_out(self, path: Path) -> OptOut:
        """Read the list by the key of the table of patients."""
        return OptOut.load(path, self.schema.patients)

    def check(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> LinkedCheck:
        """Compare the tables with their schema, and with each other."""
        return check_linked(
            order.settings.data,
            self.schema,
            opt_out=absent,
            progress=lambda part: progress("reading", part),
        )

    def deal(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> Iterable[Path]:
        """Write one folder of files, or two."""
        data = order.settings.data

        def report(part: float) -> None:
            progress("reading", part)

        if order.holdout is None:
            assert absent is not None  # or else nothing is left out
            sides = [leave_out(data, self.schema, order.split, absent, progress=report)]
        else:
            share = order.settings.holdout
            sides = list(
                split_file(
                    data, self.schema, order.split, holdout=share, opt_out=absent, progress=report
                )
            )
        return sorted(path for side in sides for path in side.iterdir())

    def fit(self, job: Job, **terms: Any) -> None:
        """Fit the histories; one process reads them."""
        order = job.order
        assert isinstance(order.fitted, LinkedSchema)
        fit(order.train, order.fitted, **terms)

    def draw(self, job: Job) -> str | None:
        """Draw the patients into a folder of files."""
        order, progress = job.order, job.told("sample")
        patients, seed = order.settings.rows, order.settings.seed
        assert patients is not None and seed is not None  # the settings are resolved
        run = Run.load(order.run)
        sampler: Sampler = Sampler.of(run)
        frames = drawn_frames(
            run,
            sampler,
            patients,
            seed=seed,
            workers=job.workers,
            progress=lambda part: progress("drawing", part),
        )
        if order.table.is_dir():
            shutil.rmtree(order.table)  # drawn with other settings, or changed since
        tables = published_tables(run.schema)
        digests = write_linked(frames, order.table, tables, kind=KIND, private=True)
        record = CohortSample(order.table.name, digests, KIND, patients, seed)
        add_record(order.run, record)
        return sampler.acceptance.words("patient") if sampler.acceptance.drawn else None

    def sha256(self, order: ResolvedSettings) -> str | None:
        """Return the digest of the digests of the files."""
        tables = self._digests(order.table)
        return None if tables is None else digest(tables)

    def is_drawn(self, order: ResolvedSettings) -> bool:
        """Compare the files with the run's ``cohorts.json``."""
        expected = (self._digests(order.table), order.settings.rows, order.settings.seed)
        return any(
            (cohort.tables, cohort.patients, cohort.seed) == expected
            for cohort in read_records(order.run, CohortSample)
        )

    def is_released(self, order: ResolvedSettings) -> bool:
        """Compare the bundle's tables with the files."""
        released = {
            name: file_digest(order.bundle / table_path(name, TYPED))
            for name in self.schema.table_names
        }
        return released == self._digests(order.table)

    def evaluate(self, job: Job) -> None:
        """Compare histories."""
        order = job.order
        check_place(order.internal, False, HISTORIES)
        evaluate_cohort(
            Run.load(order.run).schema,
            order.train,
            CohortCandidate.of_run(order.run, order.table),
            order.holdout,
            seed=order.settings.evaluate_seed,
            output=order.internal,
            tolerant=True,
            progress=job.told("evaluate"),
        )

    def audit(self, job: Job) -> None:
        """Attack the training, and whole histories where people were held out."""
        order, real = job.order, None
        if order.attacks:
            assert order.holdout is not None
            candidate = CohortCandidate.of_run(order.run, order.table)
            real = RealCohorts(order.train, candidate, order.holdout)
        audit_cohort(
            Run.load(order.run).schema,
            real,
            trained=Trained(order.run, order.settings.canaries),
            seed=order.settings.audit_seed,
            workers=job.workers,
            output=order.internal,
            tolerant=True,
            progress=job.told("audit"),
        )

    def failed(self, document: dict[str, Any]) -> tuple[str, ...]:
        """List the uses for which the cohort is not fit."""
        return unfit_uses(document)

    def _digests(self, folder: Path) -> dict[str, str] | None:
        """Return the digest of each file by the name of its table; None if one is missing."""
        try:
            return linked_digests(folder, self.schema)
        except InputError:
            return None


def subject_of(schema: AnySchema) -> Subject:
    """Return the subject of a run with this schema."""
    return LinkedTables(schema) if isinstance(schema, LinkedSchema) else OneTable(schema)


def spend_on_figures(job: Job) -> None:
    """Spend the share for public figures once, before anything else is known of the table."""
    order = job.order
    if read_quality(order.run) is not None:
        return
    run = Run.load(order.run)
    book = ledger_of(run, job.ledger)
    charge = Certificate.from_dict(run.certificate).ledger
    assert charge is not None  # or ledger_of would have refused
    if book.state().entry(charge.entry, book.place).measured is not None:
        job.notes.append(
            "the share for public quality figures was spent by an attempt that was interrupted; "
            "there are none, and only a person can release the bundle without them"
        )
        return
    publish_quality(
        order.run,
        order.table,
        order.holdout or order.train,
        ledger=book,
        progress=job.told("evaluate"),
    )
