"""What became of a fit, as its entry in a ledger holds it: one value for each kind of record."""

from __future__ import annotations

from dataclasses import dataclass


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
