"""The stages of a run: check, split, fit, draw, evaluate, audit, release.

The stage that looks at the private table before anything is charged: does it fit its schema.

It reads exact rows and spends nothing, so only the office may learn what it finds. It decides one
thing: whether the run goes on. Where it does, every later stage gets what it would have got without
this stage: the settings and the same file. So no released file depends on what was found or
accepted. That a run stopped is one bit that the guarantee does not cover, as with ``refuse``.

The stage that spends the budget: one fit, charged once, and never again without being told.

Before a fit may read, its entry in the ledger is noted in the work folder. A rerun therefore knows
what an interrupted fit has cost: an entry that came to ``reading`` counts for good, and fitting
again is charged again. A network keeps checkpoints there, from which a rerun goes on
within the same entry.

The stages that stay in the office: evaluation and audit of the table that will be released.

They share the folder ``<bundle>.internal``. What they find never decides whether the bundle is
written, nor what is in it; a person reads it before the bundle goes out. That includes that they
find nothing: where the real rows cannot be evaluated or attacked (too few people, a refused cell,
whatever it is), the internal page says why, and the run goes on to the same bundle.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth._util.strict_json import as_object, read_document, written
from dpsynth._util.strict_yaml import yaml_text
from dpsynth.assessment.results_folder import AUDIT
from dpsynth.bundle import ledger_of, release, verify
from dpsynth.bundle.format import About, read_audits
from dpsynth.bundle.format.layout import MANIFEST, PRIVACY
from dpsynth.certificate import Certificate, Charge, Override
from dpsynth.errors import ArtifactError, BudgetError, DpsynthWarning, GateError, InputError, Note
from dpsynth.eval.attacks import all_blind, false_alarms
from dpsynth.eval.report import BoardAnswer, answer
from dpsynth.files import check_vacant, is_leftover
from dpsynth.inspection import require_accepted
from dpsynth.ledger import Ledger, LedgerFile, Mark, default_ledger
from dpsynth.ledger.entry import FAILED, READING
from dpsynth.ledger.ledger import Entry, Reservation
from dpsynth.models import spec_of
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Execution, Run, run_digest
from dpsynth.tables import linked_sources
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.stage import Job, digest_of, require_unchanged
from dpsynth.workflow.subjects import Subject
from dpsynth.workflow.work_folder import SCHEMA, Attempt, StageRecord

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
        absent = None if path is None else Subject(order.schema).opt_out(path)
        check = Subject(order.schema).check(order, absent, report)
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
            absent = Subject(order.schema).opt_out(order.settings.opt_out)
            noun = "key was" if absent.lines == 1 else "keys were"
            job.notes.append(f"{absent.lines} {noun} read from the opt-out list")
        return list(Subject(order.schema).deal(order, absent, report))


class SampleStage:
    """The synthetic table is drawn from the run, and nothing else is read."""

    name = "sample"
    purpose = "draw the synthetic table from the run"

    def needed(self, order: ResolvedSettings) -> bool:
        """Always."""
        return True

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return rows, seed and confirmed rules: with the run, they make the table."""
        return {
            "rows": order.settings.rows,
            "seed": order.settings.seed,
            "file: rules": digest_of(order.settings.rules),
        }

    def result(self, order: ResolvedSettings) -> Path:
        """Return the table."""
        return order.table

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether what is there is what the run records as drawn for these settings.

        If not, it is drawn again: the same run, number and seed give the same table.
        """
        return Subject(job.order.schema).is_drawn(job.order)

    def carry_out(self, job: Job) -> list[Path]:
        """Draw it, and record it in the run."""
        words = Subject(job.order.schema).draw(job)
        if words is not None:
            job.notes.append(words)
        return []


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
        run = Run.load(order.run)
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
            Subject(order.schema).fit(
                job,
                Execution(
                    checkpoints=kept if _keeps_checkpoints(order) else None,
                    any_memory=job.any_memory,
                ),
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
        return [
            *dict.fromkeys(map(str, linked_sources(order.settings.data, order.schema).values()))
        ]
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
    return spec_of(order.prepared.model).resumable


def _require_ours(run: Run, order: ResolvedSettings) -> Charge:
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
        return order.internal / Subject(order.schema).evaluation

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether this very table was evaluated, as far as it can be."""
        return _about(self.result(job.order), job.order)

    def carry_out(self, job: Job) -> list[Path]:
        """Hold what was drawn against the real rows."""
        Subject(job.order.schema).evaluate(job)
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
        Subject(job.order.schema).audit(job)
        return []


def answer_of(order: ResolvedSettings) -> BoardAnswer:
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
    return Subject(order.schema).failed(_evaluation(order))


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
    return dict(read_document(order.internal / Subject(order.schema).evaluation))


def _audit(order: ResolvedSettings) -> dict[str, Any]:
    return dict(read_document(order.internal / AUDIT))


def _about(path: Path, order: ResolvedSettings) -> bool:
    """Whether a document is there and about this table."""
    if not path.is_file():
        return False
    document = read_document(path)
    about = (document.get("tables") or {}).get("synthetic") or document.get("not_done") or {}
    return bool(about.get("sha256") == Subject(order.schema).sha256(order))


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
        if not (is_ours and Subject(order.schema).is_released(order)):
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
