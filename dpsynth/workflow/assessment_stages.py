"""The stages that stay in the office: evaluation and audit of the table that will be released.

They share the folder ``<bundle>.internal``. What they find never decides whether the bundle is
written, nor what is in it; a person reads it before the bundle goes out. That includes that they
find nothing: where the real rows cannot be evaluated or attacked (too few people, a refused cell,
whatever it is), the internal page says why, and the run goes on to the same bundle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import read_document
from dpsynth.assessment.results_folder import AUDIT
from dpsynth.bundle.format import read_audits
from dpsynth.eval.attacks import all_blind, false_alarms
from dpsynth.eval.report import Answer, answer
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of
from dpsynth.workflow.subjects import subject_of
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
        return order.internal / subject_of(order.schema).evaluation

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether this very table was evaluated, as far as it can be."""
        return _about(self.result(job.order), job.order)

    def carry_out(self, job: Job) -> list[Path]:
        """Hold what was drawn against the real rows."""
        subject_of(job.order.schema).evaluate(job)
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
        return not order.attacks or _about(self.result(order), order)

    def carry_out(self, job: Job) -> list[Path]:
        """Attack; what is found in the training goes beside the run as well, for the bundle."""
        subject_of(job.order.schema).audit(job)
        return []


def answer_of(order: ResolvedSettings) -> Answer:
    """Return the answer with which the internal page begins."""
    return answer(_evaluation(order), _audit(order))


def not_done(order: ResolvedSettings) -> tuple[str, ...]:
    """List what could not be done with the real rows, and why."""
    documents = (("evaluation", _evaluation(order)), ("attack on the table", _audit(order)))
    return tuple(
        f"{kind}: {one['not_done']['reason']}" for kind, one in documents if one.get("not_done")
    )


def failed_gates(order: ResolvedSettings) -> tuple[str, ...]:
    """List what the evaluation found wanting: gates that failed, or uses it is not fit for."""
    return subject_of(order.schema).failed(_evaluation(order))


def successful_attacks(order: ResolvedSettings) -> tuple[str, ...]:
    """List the attacks that found more than chance explains."""
    return tuple(finding["key"] for finding in _audit(order)["findings"] if finding["found"])


def faults_of_audit(order: ResolvedSettings) -> tuple[str, ...]:
    """List, a few words each, why the audit as a whole says nothing; none if it does.

    An attack that missed a leak made on purpose is blind, and is told beside the other attacks. It
    is no fault of the audit while another attack could have seen a leak.
    """
    document = _audit(order)
    faults = [
        f"“{alarm.get('title') or alarm['key']}” was accused, where nothing leaks"
        for alarm in false_alarms(document)
    ]
    faults += [f"{one['attack']} ended with an error" for one in document.get("broken") or []]
    faults += ["no attack could have seen a leak here"] if all_blind(document) else []
    return tuple(faults)


def _evaluation(order: ResolvedSettings) -> dict[str, Any]:
    return dict(read_document(order.internal / subject_of(order.schema).evaluation))


def _audit(order: ResolvedSettings) -> dict[str, Any]:
    return dict(read_document(order.internal / AUDIT))


def _about(path: Path, order: ResolvedSettings) -> bool:
    """Whether a document is there and about this table."""
    if not path.is_file():
        return False
    document = read_document(path)
    about = (document.get("tables") or {}).get("synthetic") or document.get("not_done") or {}
    return bool(about.get("sha256") == subject_of(order.schema).sha256(order))
