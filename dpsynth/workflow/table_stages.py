"""The stages that make tables: the split of the private one, and the draw of the synthetic one."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import file_digest
from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.synthesis import Run, Sampler, read_samples, record_sample
from dpsynth.tables import OptOut, leave_out, split_file, write_table
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of, require_unchanged
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
        report, data = job.told(self.name), order.settings.data
        absent = None
        if order.settings.opt_out is not None:
            absent = OptOut.load(order.settings.opt_out, order.schema)
            noun = "key was" if absent.lines == 1 else "keys were"
            job.notes.append(f"{absent.lines} {noun} read from the opt-out list")
        if order.holdout is not None:
            return list(
                split_file(
                    data,
                    order.schema,
                    order.split,
                    holdout=order.settings.holdout,
                    opt_out=absent,
                    progress=lambda part: report("reading", part),
                )
            )
        assert absent is not None  # or else the stage is not needed
        return [
            leave_out(
                data,
                order.schema,
                order.split,
                absent,
                progress=lambda part: report("reading", part),
            )
        ]


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
        """Whether the table is there and is the one that the run's ``samples.json`` records.

        If not, it is drawn again: the same run, rows and seed give the same table.
        """
        order = job.order
        if not order.table.is_file():
            return False
        sha256 = file_digest(order.table)
        expected = (sha256, order.settings.rows, order.settings.seed, None, False)
        return any(
            (sample.sha256, sample.rows, sample.seed, sample.condition, sample.plain) == expected
            for sample in read_samples(order.run)
        )

    def carry_out(self, job: Job) -> list[Path]:
        """Draw the table, and record it in the run."""
        order, report = job.order, job.told(self.name)
        rows, seed = order.settings.rows, order.settings.seed
        assert rows is not None and seed is not None  # the settings are resolved
        run = Run.load(order.run)
        frames = Sampler.of(run).frames(
            rows, seed=seed, progress=lambda part: report("drawing", part)
        )
        sha256 = write_table(frames, order.table, run.schema, overwrite=True, private=True)
        record_sample(order.run, order.table, rows=rows, seed=seed, sha256=sha256)
        return []
