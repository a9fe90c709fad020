"""The stage that looks at the private table before anything is charged: does it fit its schema.

It reads exact rows and spends nothing, so only the office may learn what it finds. It decides one
thing: whether the run goes on. Where it does, every later stage gets what it would have got without
this stage: the settings and the same file. So no released file depends on what was found or
accepted. That a run stopped is one bit that the guarantee does not cover, as with ``refuse``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth._util.strict_json import read_document, written
from dpsynth.errors import InputError
from dpsynth.inspection import require_accepted
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of
from dpsynth.workflow.subjects import subject_of
from dpsynth.workflow.work_folder import StageRecord

CHECK = "check.json"
FORMAT = "dpsynth-check"


class CheckStage:
    """The private table is compared with its schema; serious findings stop the run, uncharged."""

    name = "check"
    purpose = "compare the private table with its schema; nothing is charged; internal"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return nothing: until a fit is charged, a corrected table or schema is checked anew."""
        return {}

    def result(self, order: ResolvedSettings) -> Path:
        """Return the findings, in the work folder."""
        return order.settings.work_folder / CHECK

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether this very table was checked, and what was found is accepted.

        After a charge there is nothing to protect: a run that is resumed goes on.
        """
        if _is_late(job):
            return True
        known = _known(job)
        return known is not None and set(known) <= set(job.order.settings.accept)

    def carry_out(self, job: Job) -> list[Path]:
        """Read the table, keep the findings, and judge them.

        Raises:
            GateError: something serious was found that the settings do not accept.
        """
        order = job.order
        if _is_late(job):
            return []
        serious = _known(job)
        if serious is None:
            serious = self._found(job)
        require_accepted(serious, order.settings.accept)
        return []

    def _found(self, job: Job) -> tuple[str, ...]:
        """Compare the whole table, without the units that opted out, with its schema."""
        order, report = job.order, job.told(self.name)
        path = order.settings.opt_out
        absent = None if path is None else subject_of(order.schema).opt_out(path)
        check = subject_of(order.schema).check(order, absent, report)
        document = {
            "format": FORMAT,
            "version": 1,
            "internal": True,
            "inputs": _inputs(order),
            **check.to_dict(),
        }
        job.work.write(CHECK, written(document))
        warnings = sum(finding.level.word == "warning" for finding in check.findings)
        if warnings:
            job.notes.append(
                f"the check of the table has {counted(warnings, 'warning')}; `dpsynth schema check "
                "SCHEMA DATA` shows what to do"
            )
        return check.serious


def _is_late(job: Job) -> bool:
    """Whether a fit of this work folder was entered in the ledger, and none is to follow."""
    return bool(job.work.log.fits) and not job.fit_again


def _inputs(order: ResolvedSettings) -> dict[str, Any]:
    """Return what the findings depend on."""
    return {
        "schema": order.schema.hash(),
        "data": order.data_sha256,
        "opt_out": digest_of(order.settings.opt_out),
    }


def _known(job: Job) -> tuple[str, ...] | None:
    """Return the serious findings about this very table; None if it was not checked."""
    path = job.work.path / CHECK
    if not path.is_file():
        return None
    try:
        document = read_document(path)
    except InputError:
        return None  # it is damaged, and can be made again
    if document.get("inputs") != _inputs(job.order):
        return None
    return tuple(document["serious"])
