"""A run of a single table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.strict_json import file_digest
from dpsynth.assessment import Candidate, Real, Trained, audit_run, check_place, evaluate
from dpsynth.assessment.results_folder import EVALUATION
from dpsynth.bundle.format.layout import PARQUET
from dpsynth.inspection import TableCheck, check_fit
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, Sampler, fitting, read_samples, record_sample, write_drawn
from dpsynth.tables import OptOut, leave_out, split_file
from dpsynth.workflow.public_figures import spend_on_figures

if TYPE_CHECKING:
    from dpsynth.workflow.resolved_settings import ResolvedSettings
    from dpsynth.workflow.stage import Job, Progress


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
