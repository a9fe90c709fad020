"""The stages that make tables: the split of the private one, and the draw of the synthetic one."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of, require_unchanged
from dpsynth.workflow.subjects import subject_of
from dpsynth.workflow.work_folder import StageRecord


class SplitStage:
    """Units on the opt-out list are left out, and a share is held out of the fit."""

    name = "split"
    purpose = "leave out who opted out, and hold a share of the units out of the fit"

    def needed(self, order: ResolvedSettings) -> bool:
        """Whether anything is left out or held out."""
        return order.splits

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return what the split depends on; not the sizes that the schema declares."""
        return {
            "file: schema": order.schema.hash(),
            "file: data": order.data_sha256,
            "holdout": order.settings.holdout,
            "file: opt_out": digest_of(order.settings.opt_out),
        }

    def result(self, order: ResolvedSettings) -> Path:
        """Return the folder of both sides."""
        return order.split

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether the sides are there, as they were dealt out.

        Raises:
            InputError: they are gone, and a fit was made from them: sides that are dealt anew would
                hold people out who are in the fit.
        """
        if job.order.split.is_dir() and record.seconds is not None:
            require_unchanged(job, record)
            return True
        if job.work.log.fits:
            raise InputError(
                f"{job.order.split} is missing, but a fit used it, and the same holdout cannot be "
                "drawn again. Put it back, or choose another output and work folder"
            )
        return False

    def carry_out(self, job: Job) -> list[Path]:
        """Read the private table, and write its sides; what is warned of is told at the end too."""
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DpsynthWarning)
                return self._deal(job)
        finally:
            for warning in caught:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
                job.notes.append(str(warning.message))

    def _deal(self, job: Job) -> list[Path]:
        order = job.order
        if order.split.is_dir():
            shutil.rmtree(order.split)  # it was interrupted before its digests were noted
        report = job.told(self.name)
        absent = None
        if order.settings.opt_out is not None:
            absent = subject_of(order.schema).opt_out(order.settings.opt_out)
            noun = "key was" if absent.lines == 1 else "keys were"
            job.notes.append(f"{absent.lines} {noun} read from the opt-out list")
        return list(subject_of(order.schema).deal(order, absent, report))


class SampleStage:
    """The synthetic table is drawn from the run, and nothing else is read."""

    name = "sample"
    purpose = "draw the synthetic table from the run"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return rows and seed: with the run, they make the table."""
        return {"rows": order.settings.rows, "seed": order.settings.seed}

    def result(self, order: ResolvedSettings) -> Path:
        """Return the table."""
        return order.table

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether what is there is what the run records as drawn for these settings.

        If not, it is drawn again: the same run, number and seed give the same table.
        """
        return subject_of(job.order.schema).is_drawn(job.order)

    def carry_out(self, job: Job) -> list[Path]:
        """Draw it, and record it in the run."""
        words = subject_of(job.order.schema).draw(job)
        if words is not None:
            job.notes.append(words)
        return []
