"""What an attack found, how sure that is, and what it could have seen: never one alone.

An attack that finds nothing says something only if it would have found something. So each brings,
beside its figures, findings (whether it succeeded beyond chance) and its power (the least leak that
it would have seen).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpsynth.eval.core import PartResult

ALARM = 1e-3  # chance at most that one finding accuses a table that leaks nothing
SURE = 0.9  # probability with which a leak of the stated size would have been found
SURELY = f"with probability {SURE * 100:.0f} %"


@dataclass(frozen=True)
class Finding:
    """Whether an attack succeeded beyond what chance explains.

    Attributes:
        key: by which controls and scripts know it, such as ``membership:density``.
        title: a few words for people.
        found: whether it succeeded; of a table that leaks nothing, with probability `ALARM` at
            most.
        sentence: what was seen, with its figures; one plain sentence.
        chance: probability at most that chance alone does so well, over all tests of the finding;
            None where it is not known. It is not written down.
    """

    key: str
    title: str
    found: bool
    sentence: str
    chance: float | None = None

    def found_at(self, alarm: float) -> bool:
        """Tell whether it succeeded at a stricter level than `ALARM`, for tests that share one.

        What claims success without support by its own figure succeeded at every level.

        >>> finding = Finding("echo", "Echo", True, "it echoed", chance=4e-4)
        >>> finding.found_at(1e-3), finding.found_at(1e-3 / 30)
        (True, False)
        """
        return self.found and not (self.chance is not None and alarm <= self.chance < ALARM)

    def to_dict(self) -> dict[str, Any]:
        """Give the finding in JSON types."""
        return {name: getattr(self, name) for name in ("key", "title", "found", "sentence")}


@dataclass(frozen=True)
class Power:
    """The least leak that an attack would have found with probability `SURE`.

    Attributes:
        key: of the finding.
        least: the leak, in ``unit``; None where no leak would have been found.
        unit: ``auc``, ``share`` (of members, above control) or ``epsilon``.
        sentence: the same in words.
    """

    key: str
    least: float | None
    unit: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Give the power in JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Attack:
    """All that one kind of attack has to say.

    Attributes:
        part: its figures, and details for tables and pictures.
        findings: what it found, or did not.
        powers: what it could have found.
    """

    part: PartResult
    findings: tuple[Finding, ...] = ()
    powers: tuple[Power, ...] = ()

    def finding(self, key: str) -> Finding | None:
        """Return the finding of a key, if the attack could be made."""
        return next((finding for finding in self.findings if finding.key == key), None)
