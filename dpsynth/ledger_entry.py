"""What a ledger's records say: each fit with its history, and the sum of fits.

A fit is ``reserved`` before it may read; ``reading`` is recorded before its first private byte;
then it is ``charged`` if it ended well and ``failed`` if not. All of these count as spent. Only a
fit that never came to ``reading`` can be ``voided``, and then does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

from dpsynth.ledger_chain import Head, Record

RESERVED, READING, CHARGED, FAILED, VOIDED = (
    "reserved",
    "reading",
    "charged",
    "failed",
    "voided",
)
STATUSES = (RESERVED, READING, CHARGED, FAILED, VOIDED)
SIGNED, RELEASED, POLICY = "signed", "released", "policy"
KINDS = (*STATUSES, SIGNED, RELEASED, POLICY)

FOLLOWS = {
    RESERVED: (),
    READING: (RESERVED,),
    CHARGED: (RESERVED, READING),
    FAILED: (RESERVED, READING),
    VOIDED: (RESERVED, FAILED),
}


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
class Released:
    """When (UTC) a bundle of a fit was written, by whom, and its manifest's SHA-256."""

    at: str
    who: str
    manifest: str


@dataclass(frozen=True)
class Entry:
    """One fit on a dataset, as the ledger knows it.

    Attributes:
        head: the end of the chain when the fit was reserved.
        host: the machine that reserved it.
        process: its process there.
        policy: digest of the policy that admitted it; None if there was none.
    """

    id: str
    dataset: str
    at: str
    who: str
    purpose: str
    tier: str | None
    model: str
    schema_hash: str
    epsilon: float
    delta: float
    plan: dict[str, Any]
    allow_refuse: bool
    population: int
    policy: str | None
    version: str
    host: str
    process: int
    head: Head
    history: tuple[Status, ...]
    signatures: tuple[Signature, ...] = field(default=())
    releases: tuple[Released, ...] = field(default=())

    @property
    def status(self) -> str:
        """The latest status."""
        return self.history[-1].status

    @property
    def note(self) -> str:
        """The note of the latest status."""
        return self.history[-1].note

    @property
    def counts(self) -> bool:
        """Whether it counts as spent."""
        return self.status != VOIDED

    @property
    def voidable(self) -> bool:
        """Whether the record proves that no private read began."""
        statuses = {status.status for status in self.history}
        return statuses <= {RESERVED, FAILED}

    def to_dict(self) -> dict[str, Any]:
        """Give the entry in plain JSON values, for the office."""
        return asdict(self) | {"status": self.status, "note": self.note, "counts": self.counts}


@dataclass(frozen=True)
class Spent:
    """What all entries of a dataset have spent together, by basic composition."""

    fits: int
    epsilon_sum: float
    delta_sum: float

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Spent:
        """Add up, in decimal as budgets are written: three fits of 0.1 are 0.3."""
        counted = [entry for entry in entries if entry.counts]
        return cls(
            fits=len(counted),
            epsilon_sum=float(sum((Decimal(repr(e.epsilon)) for e in counted), Decimal(0))),
            delta_sum=float(sum((Decimal(repr(e.delta)) for e in counted), Decimal(0))),
        )


class Disorder(Exception):
    """Records that cannot have been written by a ledger; says which and why."""


def replayed(records: Iterable[Record]) -> list[Entry]:
    """Read entries out of records, in the order in which they were reserved.

    Raises:
        Disorder: a record is about an entry that is not there, or follows what it cannot follow.
    """
    entries: dict[str, Entry] = {}
    for record in records:
        if record.kind == POLICY:
            continue
        try:
            _apply(entries, record)
        except (KeyError, TypeError, ValueError) as error:
            raise Disorder(f"record {record.number} cannot be read") from error
    return list(entries.values())


def _apply(entries: dict[str, Entry], record: Record) -> None:
    if record.kind not in KINDS:
        raise Disorder(f"record {record.number} is of no known kind")
    body = record.document
    known = entries.get(record.entry)
    if record.kind == RESERVED:
        if known is not None:
            raise Disorder(f"record {record.number} reserves an entry a second time")
        entries[record.entry] = _reserved(record, body)
        return
    if known is None:
        raise Disorder(f"record {record.number} is about an entry that was never reserved")
    if record.kind in STATUSES:
        if known.status not in FOLLOWS[record.kind] or (
            record.kind == VOIDED and not known.voidable
        ):
            raise Disorder(
                f"record {record.number}: an entry that is {known.status} cannot be {record.kind}"
            )
        status = Status(record.at, record.kind, str(body.get("note", "")), record.who)
        entries[record.entry] = replace(known, history=(*known.history, status))
    elif record.kind == SIGNED:
        signature = Signature(record.at, record.who, str(body.get("note", "")))
        entries[record.entry] = replace(known, signatures=(*known.signatures, signature))
    else:
        released = Released(record.at, record.who, str(body["manifest"]))
        entries[record.entry] = replace(known, releases=(*known.releases, released))


def _reserved(record: Record, body: dict[str, Any]) -> Entry:
    epsilon, delta = float(body["epsilon"]), float(body["delta"])
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1):
        raise ValueError("no budget")
    return Entry(
        id=record.entry,
        at=record.at,
        who=record.who,
        head=record.head,
        history=(Status(record.at, RESERVED, "", record.who),),
        **(body | {"epsilon": epsilon, "delta": delta}),
    )
