"""What became of a fit, as its entry in a ledger holds it: one value for each kind of record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpsynth._util.strict_json import sha256_text, whole
from dpsynth.ledger.fields import line


@dataclass(frozen=True)
class Status:
    """What an entry became, when (UTC), by whom, and why."""

    at: str
    status: str
    note: str
    who: str = ""


@dataclass(frozen=True)
class Signature:
    """Who signed a fit's entry for release, and when (UTC)."""

    at: str
    who: str
    note: str


@dataclass(frozen=True)
class ReleasedNote:
    """When (UTC) a bundle of a fit was written, by whom, and its manifest's SHA-256."""

    at: str
    who: str
    manifest: str


@dataclass(frozen=True)
class MeasuredNote:
    """When (UTC) the share for public quality figures was spent, by whom, and on which table.

    ``figures`` is the SHA-256 of the file with the answers, recorded at ``ended``; None if none
    came out of it so far.
    """

    at: str
    who: str
    table: str
    figures: str | None = None
    ended: str | None = None


@dataclass(frozen=True)
class Forfeited:
    """When (UTC) it was given up to spend what was left of a share for quality, by whom, and why.

    No figures are measured or recorded afterwards.
    """

    at: str
    who: str
    note: str


@dataclass(frozen=True)
class CheckpointNote:
    """When (UTC) a fit saved where it stands, after how many private steps, and the file's SHA-256.

    All that was released to that file is spent; the fit goes on from it and from no other.
    """

    at: str
    step: int
    sha256: str

    @classmethod
    def of(cls, at: str, body: Mapping[str, Any], place: str) -> Self:
        """Read a record's body.

        Raises:
            ArtifactError: it holds something else.
        """
        step = whole(body["step"], f"{place}: step", minimum=0)
        return cls(at, step, sha256_text(body["sha256"], f"{place}: sha256"))


@dataclass(frozen=True)
class ResumedNote:
    """When (UTC) a process went on with a fit that had stopped, by whom, and which process."""

    at: str
    who: str
    host: str
    process: int

    @classmethod
    def of(cls, at: str, who: str, body: Mapping[str, Any], place: str) -> Self:
        """Read a record's body.

        Raises:
            ArtifactError: it holds something else.
        """
        process = whole(body["process"], f"{place}: process", minimum=0)
        return cls(at, who, line(body["host"], f"{place}: host"), process)
