"""What a run is about, one table or linked ones, and what a stage asks of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.strict_json import digest, file_digest
from dpsynth.assessment import (
    Candidate,
    Real,
    Trained,
    audit,
    check_place,
    evaluate,
    failed_gates,
    publish_quality,
    unfit_uses,
)
from dpsynth.assessment.results_folder import EVALUATION, HISTORIES
from dpsynth.bundle import ledger_of, require_allowed
from dpsynth.bundle.format import read_quality, table_path
from dpsynth.bundle.format.layout import TYPED
from dpsynth.certificate import AddedRule, Certificate
from dpsynth.errors import InputError
from dpsynth.inspection import CheckResult, check
from dpsynth.schema import SINGLE, AnySchema, LinkedSchema, Schema, synthetic_tables
from dpsynth.synthesis import (
    Execution,
    Run,
    Sampler,
    fitting,
    read_rules,
    read_samples,
    record_sample,
    write_drawn,
)
from dpsynth.tables import OptOut, leave_out, linked_digests, split_file
from dpsynth.workflow.stage import Job

if TYPE_CHECKING:
    from dpsynth.workflow.resolved_settings import ResolvedSettings
    from dpsynth.workflow.stage import Progress


def confirmed(order: ResolvedSettings) -> tuple[AddedRule, ...]:
    """Return the rules that people confirmed after the fit."""
    return () if order.settings.rules is None else read_rules(order.settings.rules)


@dataclass(frozen=True, repr=False)
class Subject:
    """A table, from a file or a database, or linked tables; see `ResolvedSettings` for folders.

    Attributes:
        schema: of the source.
    """

    schema: AnySchema

    def __repr__(self) -> str:
        """Name the schema."""
        return f"<Subject {self.schema.name}>"

    @property
    def is_single(self) -> bool:
        """Whether it is one table."""
        return isinstance(self.schema, Schema)

    @property
    def evaluation(self) -> str:
        """Name of the document of the evaluation."""
        return EVALUATION if self.is_single else HISTORIES

    @property
    def drawn(self) -> str:
        """What a number of them is drawn."""
        return "rows" if self.is_single else "patients"

    @property
    def wanting(self) -> tuple[str, str]:
        """Noun and verb of what an evaluation found wanting."""
        of_histories = ("use or gate", "of the histories failed")
        return ("internal gate", "failed") if self.is_single else of_histories

    def opt_out(self, path: Path) -> OptOut:
        """Read a list of who opted out, by the key of the table, or of that of patients."""
        schema = self.schema
        return OptOut.load(path, schema.patients if isinstance(schema, LinkedSchema) else schema)

    def check(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> CheckResult:
        """Compare the private source with the schema."""
        data = order.settings.data
        told = partial(progress, "reading")
        return check(data, self.schema, opt_out=absent, progress=told)

    def deal(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> Iterable[Path]:
        """Leave out who opted out, hold out a share; return the files that were written."""
        data, schema = order.settings.data, self.schema
        told = partial(progress, "reading")
        if order.holdout is None:
            assert absent is not None  # or else nothing is left out
            sides = [leave_out(data, schema, order.split, absent, progress=told)]
        else:
            share = order.settings.holdout
            sides = list(
                split_file(data, schema, order.split, holdout=share, opt_out=absent, progress=told)
            )
        if self.is_single:
            return sides
        return sorted(path for side in sides for path in side.iterdir())

    def fit(self, job: Job, execution: Execution, **terms: Any) -> None:
        """Learn from the side that is fitted, on such terms; one process reads linked tables."""
        order = job.order
        assert order.fitted is not None
        if self.is_single:
            terms["publish_quality"] = order.settings.publish_quality
            execution = replace(execution, workers=job.workers)
        fitting.fit(order.train, order.fitted, execution=execution, **terms)

    def draw(self, job: Job) -> str | None:
        """Draw the synthetic rows, record them in the run, and say how many met the rules."""
        order, progress = job.order, job.told("sample")
        size, seed = order.settings.rows, order.settings.seed
        assert size is not None and seed is not None  # the settings are resolved
        run: Run = Run.load(order.run)
        rules = confirmed(order)
        require_allowed(rules, ledger_of(run, job.ledger))
        run = run.kept_to(rules, str(order.settings.rules))
        sampler: Sampler = Sampler.of(run)
        digests = write_drawn(
            run,
            sampler,
            order.table,
            size,
            seed=seed,
            suffix=TYPED,
            workers=job.workers,
            overwrite=True,
            private=True,
            progress=lambda part: progress("drawing", part),
        )
        record_sample(order.run, order.table, size=size, seed=seed, rules=rules, digests=digests)
        noun = self.drawn.removesuffix("s")
        return sampler.acceptance.words(noun) if sampler.acceptance.drawn else None

    def digests(self, order: ResolvedSettings) -> dict[str, str] | None:
        """Return the digest of each file that was drawn, by the name of its table; None if not."""
        if isinstance(self.schema, Schema):
            return {SINGLE: file_digest(order.table)} if order.table.is_file() else None
        try:
            return linked_digests(order.table, self.schema)
        except InputError:
            return None

    def sha256(self, order: ResolvedSettings) -> str | None:
        """Return the digest of what was drawn; None if it is not there."""
        digests = self.digests(order)
        if digests is None:
            return None
        return digests[SINGLE] if self.is_single else digest(digests)

    def is_drawn(self, order: ResolvedSettings) -> bool:
        """Whether what is there is what the run records for these settings."""
        asked = order.settings.rows, order.settings.seed
        expected = (self.digests(order), *asked, None, False, confirmed(order))
        return any(
            (one.tables, one.size, one.seed, one.condition, one.plain, one.rules) == expected
            for one in read_samples(order.run)
        )

    def is_released(self, order: ResolvedSettings) -> bool:
        """Whether the bundle that is there holds what was drawn, of this run."""
        released = {
            name: file_digest(order.bundle / table_path(name, TYPED))
            for name in synthetic_tables(self.schema)
        }
        return released == self.digests(order)

    def evaluate(self, job: Job) -> None:
        """Hold what was drawn against the real rows; keep what cannot be done as a reason.

        Before that, the share for public figures is spent, if there is one.
        """
        order = job.order
        check_place(order.internal, False, self.evaluation)
        if order.settings.publish_quality is not None:
            spend_on_figures(job)
        evaluate(
            self.schema_of_run(order),
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
        """Attack the training, and what was drawn where people were held out."""
        order, real = job.order, None
        if order.attacks:
            assert order.holdout is not None
            real = Real(order.train, Candidate.of_run(order.run, order.table), order.holdout)
        audit(
            self.schema_of_run(order),
            real=real,
            trained=Trained(order.run, order.settings.canaries),
            seed=order.settings.audit_seed,
            workers=job.workers,
            output=order.internal,
            tolerant=True,
            progress=job.told("audit"),
        )

    @staticmethod
    def schema_of_run(order: ResolvedSettings) -> AnySchema:
        """Return the schema with what the fit has found."""
        run: Run = Run.load(order.run)
        schema: AnySchema = run.schema
        return schema

    def failed(self, document: dict[str, Any]) -> tuple[str, ...]:
        """List what an evaluation found wanting, by its keys: gates, or uses of histories."""
        failed = failed_gates(document)
        return failed if self.is_single else tuple(dict.fromkeys((*unfit_uses(document), *failed)))


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
