"""The stage that spends the budget: one fit, charged once, and never again without being told.

Before a fit may read, its entry in the ledger is noted in the work folder. A rerun therefore knows
what an interrupted fit has cost: an entry that came to ``reading`` counts for good, and fitting
again is charged again. A network keeps checkpoints there, from which a rerun goes on
within the same entry.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpsynth._util.strict_yaml import yaml_text
from dpsynth.bundle import ledger_of
from dpsynth.certificate import Certificate, Charge
from dpsynth.errors import ArtifactError, BudgetError, DpsynthWarning, InputError, Note
from dpsynth.files import check_vacant, is_leftover
from dpsynth.ledger import Ledger, LedgerFile, Mark, default_ledger
from dpsynth.ledger.entry import FAILED, READING
from dpsynth.ledger.ledger import Entry, Reservation
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import AnyRun, load_run
from dpsynth.tables import linked_files
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of
from dpsynth.workflow.subjects import subject_of
from dpsynth.workflow.work_folder import SCHEMA, Attempt, StageRecord

CHECKPOINTS = "checkpoints"


class FitStage:
    """A generator learns from the private rows, and the ledger is charged."""

    name = "fit"
    purpose = "learn from the private rows; the ledger is charged"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return the source, and all that the ledger and the certificate hold of the fit."""
        settings = order.settings
        return {
            "file: data": order.data_sha256,
            "file: opt_out": digest_of(order.settings.opt_out),
            "holdout": order.settings.holdout,
            "file: schema": order.fitted.hash(),
            **{name: getattr(settings, name) for name in ("dataset", "epsilon", "delta", "model")},
            **{name: getattr(settings, name) for name in ("publish_quality", "tier", "purpose")},
        }

    def result(self, order: ResolvedSettings) -> Path:
        """Return the run's folder."""
        return order.run

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether there is a run that the ledger charged.

        Raises:
            ArtifactError: the run is damaged, or is another one.
            BudgetError: the ledger that charged it is not at hand.
        """
        order = job.order
        if not os.path.lexists(order.run):
            return False
        run = load_run(order.run)
        charge = _require_ours(run, order)
        if charge.entry not in {attempt.entry for attempt in job.work.log.fits}:
            raise ArtifactError(
                f"{order.run} is not the run that was fitted here; put the right one back, or take "
                "another work folder"
            )
        book = ledger_of(run, job.ledger)
        _require_as_seen(job, book)
        entry = book.state().entry(charge.entry, book.place)
        if entry.status == READING:
            warnings.warn(
                f"the fit's entry {entry.id} in the ledger is still open; before the release: "
                f"dpsynth ledger close {order.run}",
                DpsynthWarning,
                stacklevel=4,
            )
        return entry.status != FAILED  # interrupted after its run was written: never released

    def carry_out(self, job: Job) -> list[Path]:
        """Fit, unless an earlier fit of this work folder may have read rows and cannot go on.

        Raises:
            BudgetError: one may have, and it was not asked to fit again; or the ledger or its
                policy refuses.
        """
        order, settings = job.order, job.order.settings
        book = job.ledger or default_ledger(stacklevel=4)
        kept = job.work.path / CHECKPOINTS
        if job.fit_again and kept.is_dir():
            shutil.rmtree(kept)  # the fit that it was of counts, and is given up
        goes_on = kept.is_dir() and any(not is_leftover(path) for path in kept.iterdir())
        if not goes_on:
            _require_unspent(job, book)
        _require_as_seen(job, book)
        for folder in (order.internal, order.bundle):
            check_vacant(folder)  # what is there is about another run
        _move_away(order.run)
        job.work.write(SCHEMA, yaml_text(order.fitted.to_dict()).encode())
        before = len(job.work.log.fits)
        try:
            subject_of(order.schema).fit(
                job,
                epsilon=settings.epsilon,
                delta=settings.delta,
                dataset=settings.dataset,
                model=settings.model,
                purpose=settings.purpose,
                tier=settings.tier,
                policy=order.policy,
                ledger=_Noted(
                    book, lambda entry: job.work.add_fit(book.id, entry.id), _originals(order)
                ),
                output=order.run,
                progress=job.told(self.name),
                advise=job.advise,
                any_memory=job.any_memory,
                **({"checkpoints": kept} if _keeps_checkpoints(order) else {}),
            )
        except BaseException as error:
            tried = job.work.log.fits[before:]
            if goes_on or any(_may_have_read(book, attempt) for attempt in tried):
                error.add_note(
                    Note("to fit again, and be charged again: the same command with --fit-again")
                )
            raise
        _require_as_seen(job, book)
        return []


def _originals(order: ResolvedSettings) -> Sequence[str | Path]:
    """List the files that the office was given, where the fit reads copies that were split off."""
    if not order.splits:
        return ()
    if isinstance(order.schema, LinkedSchema):
        return [str(file) for file in linked_files(order.settings.data, order.schema).values()]
    return [order.settings.data]


class _Noted(Ledger):
    """A ledger that tells of each entry that it reserves, before its fit may read."""

    def __init__(
        self, book: Ledger, tell: Callable[[Entry], None], originals: Sequence[str | Path]
    ) -> None:
        super().__init__(book.location)
        self.noted = book.noted
        self._tell, self.originals = tell, originals

    def reserve_all(self, asked: Sequence[Reservation]) -> list[Entry]:
        entries = super().reserve_all(asked)
        for entry in entries:
            self._tell(entry)
        return entries


def _keeps_checkpoints(order: ResolvedSettings) -> bool:
    """Whether a fit of these settings can go on after it was stopped."""
    return bool(getattr(order.prepared.generator(), "resumable", False))


def _require_ours(run: AnyRun, order: ResolvedSettings) -> Charge:
    """Refuse a run that says of itself anything but what was ordered; return what it says else."""
    settings = order.settings
    if run.certificate is None or run.stamps:
        raise ArtifactError(
            f"{order.run} is stamped {', '.join(run.stamps)}, so this command did not fit it"
        )
    claim = Certificate.from_dict(run.certificate)
    actual = (claim.epsilon, claim.delta, run.generator, run.schema.hash())
    ordered = (settings.epsilon, settings.delta, settings.model, order.fitted.hash())
    charge = claim.ledger
    if actual != ordered or charge is None or charge.dataset.lower() != settings.dataset.lower():
        raise ArtifactError(
            f"{order.run} does not match the settings; put the right run back, or choose another "
            "work folder"
        )
    return charge


def _require_as_seen(job: Job, book: LedgerFile) -> None:
    """Refuse a ledger that is not the one this work folder has seen; then note how far it is.

    Raises:
        BudgetError: it is another, or shorter, or was written anew.
    """
    known = job.work.log.ledger
    with book.looking() as view:
        difference = None if known is None else known.difference(view)
        if difference:
            raise BudgetError(
                f"ledger {book.place} is not as {job.work.path} saw it: {difference}. Set "
                "DPSYNTH_LEDGER to the right one, or restore it from the newest backup"
            )
        job.work.note_ledger(Mark.of(view))


def _require_unspent(job: Job, book: Ledger) -> None:
    """Refuse to be charged a second time, unless that is wanted."""
    fits = job.work.log.fits
    if elsewhere := [attempt for attempt in fits if attempt.ledger != book.id]:
        raise BudgetError(
            f"a fit of {job.work.path} was charged to ledger {elsewhere[-1].ledger}, but "
            f"{book.place} is another ledger; set DPSYNTH_LEDGER to the first one"
        )
    spent = [attempt for attempt in fits if _may_have_read(book, attempt)]
    settings = job.order.settings
    if spent and not job.fit_again:
        times = "a fit" if len(spent) == 1 else f"{len(spent)} fits"
        entries = ", ".join(attempt.entry[:12] for attempt in spent)
        raise BudgetError(
            f"{times} of {job.work.path} may have read rows, and left no run that can be released. "
            f"The cost stays charged to dataset '{settings.dataset}' (entry {entries}). To fit "
            f"again, and be charged another epsilon {settings.epsilon:g}, use --fit-again"
        )
    for entry in book.state().of_dataset(settings.dataset):  # also of a fit that was never noted
        if entry.voidable and entry.counts:
            warnings.warn(
                f"an earlier fit of '{settings.dataset}' reserved epsilon {entry.epsilon:g} and "
                "read no row. It counts until you void it. If it is no longer running: dpsynth "
                f"ledger void {entry.id[:12]} --reason ...",
                DpsynthWarning,
                stacklevel=5,
            )


def _may_have_read(book: Ledger, attempt: Attempt) -> bool:
    """Whether a fit counts for good; one that the ledger does not know may well have read."""
    entry = _entry(book, attempt)
    return entry is None or (entry.counts and not entry.voidable)


def _entry(book: Ledger, attempt: Attempt) -> Entry | None:
    try:
        return book.state().entry(attempt.entry, book.place)
    except InputError:
        return None


def _move_away(run: Path) -> None:
    """Keep a run that was charged and can never be released under another name."""
    number = 1
    if os.path.lexists(run):
        while os.path.lexists(aside := run.with_name(f"{run.name}-interrupted-{number}")):
            number += 1
        run.rename(aside)
