"""The stages that stay in the office: evaluation and audit of the table that will be released.

They share the folder ``<bundle>.internal``. What they find never decides whether the bundle is
written, nor what is in it; a person reads it before the bundle goes out. That includes that they
find nothing: where the real rows cannot be evaluated or attacked (too few people, a refused cell,
whatever it is), the internal page says why, and the run goes on to the same bundle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import file_digest, read_document
from dpsynth.assessment import (
    Candidate,
    Real,
    Trained,
    audit_run,
    check_place,
    evaluate,
    publish_quality,
)
from dpsynth.assessment.results_folder import AUDIT, EVALUATION
from dpsynth.bundle import ledger_of
from dpsynth.bundle.format import read_audits, read_quality
from dpsynth.certificate import Certificate
from dpsynth.eval.attacks import all_blind, false_alarms
from dpsynth.eval.report import Answer, answer
from dpsynth.synthesis import Run
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of
from dpsynth.workflow.work_folder import StageRecord


class EvaluateStage:
    """The table is held against the real rows; the share for public figures is spent first."""

    name = "evaluate"
    purpose = "hold the table against the real rows; internal"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return the gates and the seed."""
        return {
            "file: gates": digest_of(order.settings.gates),
            "evaluate_seed": order.settings.evaluate_seed,
        }

    def result(self, order: ResolvedSettings) -> Path:
        """Return the evaluation's document."""
        return order.internal / EVALUATION

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether this very table was evaluated, as far as it can be."""
        return _about(self.result(job.order), job.order.table)

    def carry_out(self, job: Job) -> list[Path]:
        """Spend the share for public figures, if there is one, and then look at everything."""
        order, progress = job.order, job.told(self.name)
        check_place(order.internal, False, EVALUATION)
        if order.settings.publish_quality is not None:
            _publish(job)
        run = Run.load(order.run)
        evaluate(
            run.schema,
            order.train,
            Candidate.of_run(order.run, order.table),
            order.holdout,
            limits=order.limits,
            seed=order.settings.evaluate_seed,
            output=order.internal,
            tolerant=True,
            progress=progress,
        )
        return []


class AuditStage:
    """The training is attacked, and the table where people were held out."""

    name = "audit"
    purpose = "attack the training, and the table if people are held out; internal"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return what the audit is asked for."""
        settings = order.settings
        return {name: getattr(settings, name) for name in ("canaries", "audit_seed", "attacks")}

    def result(self, order: ResolvedSettings) -> Path:
        """Return the audit's document."""
        return order.internal / AUDIT

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether the training was audited, and this very table if it is attacked at all."""
        order = job.order
        if not self.result(order).is_file() or read_audits(order.run) is None:
            return False
        return not order.attacks or _about(self.result(order), order.table)

    def carry_out(self, job: Job) -> list[Path]:
        """Attack; what is found in the training goes beside the run as well, for the bundle."""
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
            output=order.internal,
            tolerant=True,
            progress=job.told(self.name),
        )
        return []


def answer_of(order: ResolvedSettings) -> Answer:
    """Return the answer with which the internal page begins."""
    names = (EVALUATION, AUDIT)
    evaluation, audit = (dict(read_document(order.internal / name)) for name in names)
    return answer(evaluation, audit)


def not_done(order: ResolvedSettings) -> tuple[str, ...]:
    """List what could not be done with the real rows, and why."""
    kinds = (("evaluation", EVALUATION), ("attack on the table", AUDIT))
    documents = [(kind, read_document(order.internal / name)) for kind, name in kinds]
    return tuple(
        f"{kind}: {one['not_done']['reason']}" for kind, one in documents if one.get("not_done")
    )


def failed_gates(order: ResolvedSettings) -> tuple[str, ...]:
    """List the internal gates that the table failed."""
    document = read_document(order.internal / EVALUATION)
    return tuple(gate["key"] for gate in document["gates"] if gate["passed"] is False)


def successful_attacks(order: ResolvedSettings) -> tuple[str, ...]:
    """List the attacks that found more than chance explains."""
    document = read_document(order.internal / AUDIT)
    return tuple(finding["key"] for finding in document["findings"] if finding["found"])


def faults_of_audit(order: ResolvedSettings) -> tuple[str, ...]:
    """List, a few words each, why the audit as a whole says nothing; none if it does.

    An attack that missed a leak made on purpose is blind, and is told beside the other attacks. It
    is no fault of the audit while another attack could have seen a leak.
    """
    document = read_document(order.internal / AUDIT)
    faults = [
        f"“{alarm.get('title') or alarm['key']}” was accused, where nothing leaks"
        for alarm in false_alarms(document)
    ]
    faults += [f"{one['attack']} ended with an error" for one in document.get("broken") or []]
    faults += ["no attack could have seen a leak here"] if all_blind(document) else []
    return tuple(faults)


def _about(path: Path, table: Path) -> bool:
    """Whether a document is there and about this table."""
    if not path.is_file():
        return False
    document = read_document(path)
    about = (document.get("tables") or {}).get("synthetic") or document.get("not_done") or {}
    return bool(about.get("sha256") == file_digest(table))


def _publish(job: Job) -> None:
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
