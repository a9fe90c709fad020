"""A run of linked tables: folders of files, cohorts, histories."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.strict_json import digest, file_digest
from dpsynth.assessment import (
    CohortCandidate,
    RealCohorts,
    Trained,
    audit_cohort,
    check_place,
    evaluate_cohort,
    unfit_uses,
)
from dpsynth.assessment.results_folder import HISTORIES
from dpsynth.bundle.format import table_path
from dpsynth.bundle.format.layout import TYPED
from dpsynth.errors import InputError
from dpsynth.inspection import LinkedCheck, check_linked
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.synthesis import (
    CohortRun,
    CohortSample,
    CohortSampler,
    add_record,
    drawn_patients,
    fit_cohort,
    read_records,
)
from dpsynth.tables import (
    OptOut,
    leave_out_linked,
    linked_digests,
    linked_files,
    split_linked,
    write_linked,
)

if TYPE_CHECKING:
    from dpsynth.workflow.resolved_settings import ResolvedSettings
    from dpsynth.workflow.stage import Job, Progress

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
            linked_files(order.settings.data, self.schema),
            self.schema,
            opt_out=absent,
            progress=lambda part: progress("reading", part),
        )

    def deal(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> Iterable[Path]:
        """Write one folder of files, or two."""
        files = linked_files(order.settings.data, self.schema)

        def report(part: float) -> None:
            progress("reading", part)

        if order.holdout is None:
            assert absent is not None  # or else nothing is left out
            sides = [leave_out_linked(files, self.schema, order.split, absent, progress=report)]
        else:
            share = order.settings.holdout
            sides = list(
                split_linked(
                    files, self.schema, order.split, holdout=share, opt_out=absent, progress=report
                )
            )
        return sorted(path for side in sides for path in side.iterdir())

    def fit(self, job: Job, **terms: Any) -> None:
        """Fit the histories; one process reads them."""
        order = job.order
        assert isinstance(order.fitted, LinkedSchema)
        fit_cohort(order.train, order.fitted, **terms)

    def draw(self, job: Job) -> str | None:
        """Draw the patients into a folder of files."""
        order, progress = job.order, job.told("sample")
        patients, seed = order.settings.rows, order.settings.seed
        assert patients is not None and seed is not None  # the settings are resolved
        run = CohortRun.load(order.run)
        sampler = CohortSampler.of(run)
        frames = drawn_patients(
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
            CohortRun.load(order.run).schema,
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
            CohortRun.load(order.run).schema,
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
