"""What a command of the test's own process leaves behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What a command left behind: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def is_clear(self) -> bool:
        """Whether it ended as a command may, without a traceback or a warning."""
        unclear = "Traceback" in self.err or "Warning" in self.err
        return self.code in (0, 2, 3) and not unclear

    def quotes(self, traces: tuple[str, ...]) -> list[str]:
        """The traces of private cells that were printed."""
        return [trace for trace in traces if trace in self.out + self.err]
