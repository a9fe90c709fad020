"""A stage of a run: what it takes, how it is recognised as done, and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpsynth._util.strict_json import file_digest
from dpsynth.errors import InputError
from dpsynth.synthesis import unadvised
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.work_folder import StageRecord, WorkFolder

if TYPE_CHECKING:
    from dpsynth.certificate import Override
    from dpsynth.ledger import Ledger

Progress = Callable[[str, float], None]


@dataclass
class Job:
    """An order at work.

    Attributes:
        order: what is to be done.
        work: the work folder, for this process alone.
        ledger: to charge; None for the default one.
        fit_again: whether to fit again where an earlier fit is charged and left no run.
        override: who answers for public gates that stop the release, and why.
        progress: called with a stage and its fraction done.
        workers: processes that read, draw, evaluate and attack at once; None for one for each core
            where there is much to do. The results do not depend on it.
        advise: called before the charge of the fit with what it will take.
        any_memory: whether a fit is tried that needs more memory than there is.
        notes: what a person should know when all is done; internal.
    """

    order: ResolvedSettings
    work: WorkFolder
    ledger: Ledger | None
    fit_again: bool
    override: Override | None
    progress: Progress
    workers: int | None = 1
    advise: Callable[[str], None] = unadvised
    any_memory: bool = False
    notes: list[str] = field(default_factory=list)

    def told(self, stage: str) -> Progress:
        """Return a progress callback that says which stage it is."""
        return lambda part, fraction: self.progress(f"{stage}: {part}", fraction)


class Stage(Protocol):
    """One step of a run. Its result appears whole or not at all."""

    name: str
    purpose: str

    def needed(self, order: ResolvedSettings) -> bool:
        """Whether this order has the stage at all."""

    def facts(self, order: ResolvedSettings) -> dict[str, Any]:
        """Return the settings that it takes; of a file, under ``file: NAME``, its SHA-256."""

    def result(self, order: ResolvedSettings) -> Path:
        """Return what is there once it is done."""

    def complete(self, job: Job, record: StageRecord) -> bool:
        """Whether its result is there, and whole.

        Raises:
            InputError: what is there is not what the stage made.
        """

    def carry_out(self, job: Job) -> list[Path]:
        """Make the result.

        Returns:
            Files whose digests are to be kept.
        """


def digest_of(path: Path | None) -> str | None:
    """Return the SHA-256 of a file that may not be named.

    Raises:
        InputError: it is named and cannot be read.
    """
    try:
        return None if path is None else file_digest(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def require_unchanged(job: Job, record: StageRecord) -> None:
    """Refuse files of the work folder that are not as a stage left them.

    Raises:
        InputError: one was changed or removed.
    """
    for name, sha256 in record.files.items():
        path = job.work.path / name
        if not path.is_file() or file_digest(path) != sha256:
            raise InputError(
                f"{path} was changed or removed since it was written; put it back, or choose "
                "another work folder"
            )
