"""A whole run, from a private table to a bundle: stages in order, each of which can be resumed.

The order is the privacy argument. The table is compared with its schema first: a table that does
not fit stops the run before anything is charged, and changes nothing else. Who opted out is left
out, there as everywhere; the fit is charged before it reads; the synthetic table is drawn from the
run alone; the share for public figures is spent before anything else is known of that table;
evaluation and audit stay inside and decide nothing; the release goes by public gates. The bundle is
not signed: somebody reads what is internal before that.

The same settings again go on after the last stage that is done. What a stage took is noted before
it starts, and its result appears whole or not at all, so that nothing is done twice by mistake: not
the fit, above all, which would be charged twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth._util.formatting import counted
from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import file_digest
from dpsynth.assessment import check_canaries
from dpsynth.errors import GateError, InputError, Note
from dpsynth.files import check_apart, check_vacant, check_writable, remove_leftovers
from dpsynth.synthesis import unadvised
from dpsynth.tables import check_file
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.settings import Settings
from dpsynth.workflow.stage import Job, Progress, Stage, require_unchanged
from dpsynth.workflow.stages import (
    AuditStage,
    CheckStage,
    EvaluateStage,
    FitStage,
    ReleaseStage,
    SampleStage,
    SplitStage,
    answer_of,
    failed_gates,
    faults_of_audit,
    not_done,
    successful_attacks,
)
from dpsynth.workflow.subjects import Subject
from dpsynth.workflow.work_folder import SETTINGS, Log, WorkFolder, check_place

if TYPE_CHECKING:
    from dpsynth.certificate import Override
    from dpsynth.eval.report import BoardAnswer
    from dpsynth.ledger import Ledger

STAGES: tuple[Stage, ...] = (
    CheckStage(),
    SplitStage(),
    FitStage(),
    SampleStage(),
    EvaluateStage(),
    AuditStage(),
    ReleaseStage(),
)
DONE, KEPT, SKIPPED, WAITING = "done", "kept", "not needed", "to do"


@dataclass(frozen=True)
class RunState:
    """What became of a stage, and how many seconds it took now, if it did."""

    stage: str
    state: str
    seconds: float | None = None


@dataclass(frozen=True)
class Outcome:
    """A run that came to its end: a bundle was written.

    Attributes:
        order: what was ordered.
        states: of the stages, in their order.
        gates: internal gates that the table failed.
        attacks: that found more than chance explains.
        faults: why the audit as a whole says nothing, a few words each.
        not_done: what could not be done with the real rows, and why.
        notes: what a person should know; internal.
    """

    order: ResolvedSettings
    states: tuple[RunState, ...]
    gates: tuple[str, ...]
    attacks: tuple[str, ...]
    faults: tuple[str, ...]
    not_done: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Say where the bundle is; what was found is on the internal page."""
        return short_repr(self, f"bundle {self.order.bundle}", f"internal {self.order.internal}")

    def answer(self) -> BoardAnswer:
        """Return the answer for a board: what the table is fit for, and whether to release it."""
        return answer_of(self.order)

    def require_quiet(self) -> None:
        """Make sure that a person looks before a bundle goes out that should worry them.

        Raises:
            GateError: an internal gate failed, an attack succeeded, the audit says nothing, or the
                table could not be evaluated or attacked.
        """
        kinds = (
            (*Subject(self.order.schema).wanting, self.gates),
            ("attack", "succeeded", self.attacks),
        )
        findings = [
            f"{counted(len(keys), noun)} {verb} ({', '.join(keys)})"
            for noun, verb, keys in kinds
            if keys
        ]
        if self.faults:
            findings.append(f"the audit proves nothing: {'; '.join(self.faults)}")
        findings += [f"not done: {reason.rstrip('.')}" for reason in self.not_done]
        if findings:
            raise GateError(
                f"{'; '.join(findings)}. The bundle was still written to {self.order.bundle}: "
                "internal results use real rows, so they must not influence what is published. "
                f"Read {self.order.page} before you publish the bundle"
            )


@shown_in_notebooks
def run_stages(
    settings: Settings | ResolvedSettings,
    *,
    ledger: Ledger | None = None,
    fit_again: bool = False,
    override: Override | None = None,
    progress: Progress | None = None,
    workers: int | None = 1,
    tell: Callable[[RunState], None] | None = None,
    advise: Callable[[str], None] = unadvised,
    any_memory: bool = False,
) -> Outcome:
    """Make a bundle from a private table, or go on with one that was interrupted.

    Args:
        settings: what to do, or the order that was made of it.
        ledger: to charge; default: the default ledger.
        fit_again: fit again, and be charged again, where an earlier fit of the same work folder may
            have read rows and left no run. Where there is a run, nothing is fitted.
        override: who answers for public gates that stop the release, and why; public. It is no
            setting: it is decided on what a gate said.
        progress: called with a stage and its fraction done.
        workers: processes that read a large file, draw, evaluate and attack a single table at once;
            None for one for each core where there is much to do. They are spawned, so a script that
            asks for several needs its ``if __name__ == "__main__":``. They change no result.
        tell: called with what became of each stage.
        advise: called before the charge of the fit with what it will take.
        any_memory: try a fit also where it needs more memory than this process can have, about.

    Returns:
        Where everything is, and what the internal stages found; `Outcome.require_quiet` judges it.

    Raises:
        InputError: a setting, a file or a folder is wrong, or not what earlier stages took.
        BudgetError: the ledger or its policy refuses, or a fit would be charged a second time.
        GateError: the table does not fit its schema, or a public gate stops the release.
        VerificationError: a bundle that is there does not verify.
    """
    order = settings if isinstance(settings, ResolvedSettings) else ResolvedSettings.of(settings)
    _check(order)
    folder, seed = order.settings.work_folder, order.settings.seed
    assert seed is not None  # the settings are resolved
    with WorkFolder.open(folder, seed) as work:
        told = progress or _silent
        job = Job(
            *(order, work, ledger, fit_again, override, told, workers),
            advise=advise,
            any_memory=any_memory,
        )
        for path in (order.internal, order.bundle):
            remove_leftovers(path.parent, path.name)
        for stage in STAGES:  # before any of them is carried out
            record = work.record(stage.name)
            if record is not None and record.seconds is not None and _binds(stage, order):
                work.require_same(stage.name, stage.facts(order), _remedy(stage, order))
        states = []
        for stage in STAGES:
            state = _brought_about(stage, job)
            states.append(state)
            if tell is not None:
                tell(state)
        return Outcome(
            order,
            tuple(states),
            failed_gates(order),
            successful_attacks(order),
            faults_of_audit(order),
            not_done(order),
            tuple(job.notes),
        )


def planned(order: ResolvedSettings) -> tuple[RunState, ...]:
    """Say of each stage whether it is to do, from the log of the work folder alone."""
    log = Log.read(order.settings.work_folder)
    done = (
        {} if log is None else {k for k, record in log.stages.items() if record.seconds is not None}
    )
    return tuple(
        RunState(
            stage.name,
            SKIPPED if not stage.needed(order) else DONE if stage.name in done else WAITING,
        )
        for stage in STAGES
    )


def _brought_about(stage: Stage, job: Job) -> RunState:
    """Find a stage done, or carry it out."""
    order, work = job.order, job.work
    if not stage.needed(order):
        return RunState(stage.name, SKIPPED)
    record, facts = work.record(stage.name), stage.facts(order)
    known = record is not None and (record.seconds is not None or stage.result(order).exists())
    if record is not None and known and _binds(stage, order):
        work.require_same(stage.name, facts, _remedy(stage, order))
        if stage.complete(job, record):
            if record.seconds is None:  # it was interrupted between its result and its note
                work.finish(stage.name, {}, 0.0)
            return RunState(stage.name, KEPT)
    for earlier in work.log.stages.values():  # what a stage left is what the next one reads
        require_unchanged(job, earlier)
    started = time.monotonic()
    work.start(stage.name, facts)
    work.write(SETTINGS, order.settings.written(work.path))
    job.progress(stage.name, 0.0)
    try:
        files = stage.carry_out(job)
    except KeyboardInterrupt as stop:
        if stage.name != FitStage.name:  # which says itself what it cost
            stop.add_note(
                Note(
                    f"interrupted in stage {stage.name}; earlier results are kept. Run the same "
                    "command again to continue; nothing is charged again"
                )
            )
        raise
    seconds = time.monotonic() - started
    digests = {path.relative_to(work.path).as_posix(): file_digest(path) for path in files}
    work.finish(stage.name, digests, seconds)
    return RunState(stage.name, DONE, seconds)


def _binds(stage: Stage, order: ResolvedSettings) -> bool:
    """Whether what a stage took before still counts: of a release, while its bundle is there."""
    gone = stage.name == ReleaseStage.name and not os.path.lexists(order.bundle)
    return stage.needed(order) and not gone


def _remedy(stage: Stage, order: ResolvedSettings) -> str:
    """Say what to do about other settings than a stage took."""
    if stage.name in (SplitStage.name, FitStage.name):
        return (
            "Restore them, or choose another output and work folder for a new run; a new fit is "
            "charged"
        )
    if stage.name == ReleaseStage.name:
        return (
            f"Restore them; or move {order.bundle} away and run the same command, which writes it "
            "again with the new settings at no charge"
        )
    return (
        "Restore them; or run the steps after the fit one by one at no charge "
        f"(dpsynth sample, evaluate, audit, release) on {order.run}"
    )


def _check(order: ResolvedSettings) -> None:
    """Refuse what would stop a later stage, before anything is read or charged."""
    settings = order.settings
    order.references()  # each is there, or an error says so
    if settings.opt_out is not None:
        check_file(settings.opt_out)
    check_canaries(settings.canaries)
    check_apart(order.internal, order.bundle, order.run)
    check_apart(settings.work_folder, order.bundle)
    check_place(settings.work_folder)
    for path in (order.internal, order.bundle, order.run):
        check_writable(path)
    log = Log.read(settings.work_folder)
    known = set() if log is None else set(log.stages)
    if "evaluate" not in known:
        check_vacant(order.internal)
    if "release" not in known and order.bundle.exists():
        raise InputError(
            f"{order.bundle} exists but was not written from {settings.work_folder}; choose "
            "another output, so that nothing is lost"
        )
    if "release" not in known:
        check_vacant(order.bundle)


def _silent(stage: str, fraction: float) -> None:
    """Show no progress."""
