"""What a stage asks of the subject of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dpsynth.inspection import LinkedCheck, TableCheck
    from dpsynth.tables import OptOut
    from dpsynth.workflow.resolved_settings import ResolvedSettings
    from dpsynth.workflow.stage import Job, Progress


class Subject(Protocol):
    """A table, or tables, in the order of a run; see `ResolvedSettings` for its folders."""

    evaluation: str
    """Name of the document of the evaluation."""
    drawn: str
    """What a number of them is drawn."""
    wanting: tuple[str, str]
    """Noun and verb of what an evaluation found wanting."""

    def opt_out(self, path: Path) -> OptOut:
        """Read a list of who opted out."""

    def check(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> TableCheck | LinkedCheck:
        """Compare the private source with the schema."""

    def deal(
        self, order: ResolvedSettings, absent: OptOut | None, progress: Progress
    ) -> Iterable[Path]:
        """Leave out who opted out, hold out a share; return the files that were written."""

    def fit(self, job: Job, **terms: Any) -> None:
        """Learn from the side that is fitted, on such terms, which both verbs take."""

    def draw(self, job: Job) -> str | None:
        """Draw the synthetic rows, record them in the run, and say how many met the rules."""

    def sha256(self, order: ResolvedSettings) -> str | None:
        """Return the digest of what was drawn; None if it is not there."""

    def is_drawn(self, order: ResolvedSettings) -> bool:
        """Whether what is there is what the run records for these settings."""

    def is_released(self, order: ResolvedSettings) -> bool:
        """Whether the bundle that is there holds what was drawn, of this run."""

    def evaluate(self, job: Job) -> None:
        """Hold what was drawn against the real rows; keep what cannot be done as a reason."""

    def audit(self, job: Job) -> None:
        """Attack; keep what cannot be done as a reason."""

    def failed(self, document: dict[str, Any]) -> tuple[str, ...]:
        """List what an evaluation found wanting, by its keys."""
