"""The stage that makes the bundle; it is signed by hand, once what is internal was read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import as_object, read_document
from dpsynth.bundle import release, verify
from dpsynth.bundle.format import About
from dpsynth.bundle.format.layout import MANIFEST, PRIVACY
from dpsynth.certificate import Certificate, Override
from dpsynth.errors import BudgetError, GateError, InputError, Note
from dpsynth.synthesis import run_digest
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job
from dpsynth.workflow.subjects import subject_of
from dpsynth.workflow.work_folder import StageRecord


class ReleaseStage:
    """The bundle is written, if the public gates let it."""

    name = "release"
    purpose = "write the bundle, if the public gates let it"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return the public words."""
        return {"about": _words(order)}

    def result(self, order: ResolvedSettings) -> Path:
        """Return the bundle."""
        return order.bundle

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether the bundle is there, holds this run's table, and verifies.

        Raises:
            InputError: it is another bundle, or says nothing of an override that is given now.
            VerificationError: it was changed.
        """
        order = job.order
        if not os.path.lexists(order.bundle):
            return False
        job.progress(f"{self.name}: verifying", 0.0)
        verify(order.bundle)
        extension = as_object(read_document(order.bundle / MANIFEST).get("dpsynth"), MANIFEST)
        drawing = as_object(extension.get("drawing"), f"{MANIFEST}: drawing")
        is_ours = drawing.get("run_sha256") == run_digest(order.run)
        if not (is_ours and subject_of(order.schema).is_released(order)):
            raise InputError(f"{order.bundle} is the bundle of another run; choose another output")
        if extension.get("about") != _words(order):
            raise InputError(
                f"{order.bundle} describes the release differently from the settings; move it away "
                "and run the same command to write it again at no charge"
            )
        _require_written(job.override, order.bundle)
        return True

    def carry_out(self, job: Job) -> list[Path]:
        """Release the table that was judged."""
        order = job.order
        job.progress(f"{self.name}: bundle", 0.0)
        try:
            release(
                order.run,
                order.bundle,
                table=order.table,
                about=order.settings.about,
                override=job.override,
                ledger=job.ledger,
            )
        except (BudgetError, GateError) as error:
            error.add_note(
                Note(
                    f"no bundle was written; earlier results are kept in {job.work.path} and "
                    f"{order.internal}; run the same command again to continue from here"
                )
            )
            raise
        return []


def _require_written(override: Override | None, bundle: Path) -> None:
    """Refuse a reason that a bundle which is there does not give."""
    if override is None:
        return
    certificate = Certificate.from_dict(read_document(bundle / PRIVACY))
    written = certificate.overrides
    if not written or written != override.of(excuse.gate for excuse in written):
        raise InputError(
            f"{bundle} was already written without this override and is not changed; leave out "
            "--override"
        )


def _words(order: ResolvedSettings) -> dict[str, Any]:
    return (order.settings.about or About()).to_dict()
