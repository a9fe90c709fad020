"""The chain of a ledger: numbered records, each sealed with the hash of all before it.

A record's hash is SHA-256 over its own fields and the hash of the record before; the first one's
predecessor is the hash of the ledger's own facts. Whoever edits, removes, reorders or inserts a
record therefore has to write every later hash anew, and whoever cuts the end off leaves a chain
that is sound but shorter. Neither shows from the chain alone; both show against a head (number and
hash) that was written down elsewhere: each certificate holds one, under a seal.

The construction is that of Haber and Stornetta, How to Time-Stamp a Digital Document, Journal of
Cryptology 3, 1991, section 5.1 (linking), without its clients.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpsynth._util.strict_json import digest, parsed

MISTYPED = "mistyped"
"""The kind of a record of which a stored column is of a wrong type; no ledger writes it."""


@dataclass(frozen=True)
class Head:
    """The end of a chain: the number of records, and the hash over them all."""

    number: int
    hash: str

    def seal(self, key: bytes) -> str:
        """Return what may leave the office: a keyed hash, which tells nothing without the key.

        The records say how fits ended, and that may depend on private rows. HMAC-SHA-256 under the
        ledger's secret key is a pseudo-random function of them: the office can hold its ledger
        against a seal, and nobody else can hold a guess against it.
        """
        return hmac.new(key, f"{self.number} {self.hash}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Record:
    """One line of a ledger, as it is stored.

    Attributes:
        number: 1, 2, 3 and so on, without gaps.
        kind: what happened: ``reserved``, ``reading``, ``charged`` and so on.
        entry: the fit that it is about; empty for a record about the ledger as a whole.
        at: when, UTC, ISO 8601.
        who: the user.
        body: what else is to be said, as JSON text. The text itself is sealed.
        state: hash of the sums over all fits that count, this record included; see `tally`.
        hash: the seal, SHA-256 in hex.
    """

    number: int
    kind: str
    entry: str
    at: str
    who: str
    body: str
    state: str
    hash: str

    @classmethod
    def stored(cls, row: Mapping[str, Any]) -> Record:
        """Take a row as a database holds it, whoever wrote it.

        SQLite keeps a BLOB where a text belongs. What is of a wrong type is left empty, and the
        record is `MISTYPED`, so that whatever is done with records can rely on their types.
        """
        kinds = {name: int if name == "number" else str for name in cls.__dataclass_fields__}
        wrong = {name: kind() for name, kind in kinds.items() if type(row[name]) is not kind}
        return cls(**{**row, **wrong, "kind": MISTYPED} if wrong else row)

    @property
    def document(self) -> dict[str, Any]:
        """The body, parsed.

        Raises:
            ArtifactError: it is no object in strict JSON.
        """
        body = self.body.encode(errors="surrogatepass")
        return parsed(body, f"record {self.number}", lenient=True)

    @property
    def head(self) -> Head:
        """The chain's end if this record is the last."""
        return Head(self.number, self.hash)


def origin(ledger_id: str, version: int, created: str, key: bytes) -> Head:
    """Return the head of a ledger without records; the key enters by its own hash."""
    facts = {
        "id": ledger_id,
        "version": version,
        "created": created,
        "key": hashlib.sha256(key).hexdigest(),
    }
    return Head(0, digest(facts))


def linked(
    head: Head,
    *,
    kind: str,
    entry: str,
    at: str,
    who: str,
    body: Mapping[str, Any],
    state: str = "",
) -> Record:
    """Make the record that follows a head."""
    number = head.number + 1
    fields = (kind, entry, at, who, json.dumps(body, allow_nan=False), state)
    return Record(number, *fields, _seal(head, number, *fields))


def breaks(start: Head, records: Iterable[Record]) -> list[str]:
    """Name every place where records do not follow one another; empty if the chain is sound.

    Args:
        start: the head of the ledger without records.
        records: in the order of their numbers.
    """
    findings = []
    head = start
    for record in (Record.stored(vars(record)) for record in records):
        expected = head.number + 1
        if record.number > expected:
            gone = (
                f"record {expected} is"
                if record.number == expected + 1
                else (f"records {expected} to {record.number - 1} are")
            )
            findings.append(f"{gone} missing")
        elif record.number < expected:
            findings.append(f"record {record.number} occurs twice or before the first")
        elif record.kind == MISTYPED:
            findings.append(f"record {record.number} holds a value of a wrong type")
        else:
            fields = (record.kind, record.entry, record.at, record.who, record.body, record.state)
            if record.hash != _seal(head, record.number, *fields):
                findings.append(f"record {record.number} is not the one that was written there")
        head = record.head
    return findings


def _seal(head: Head, number: int, *fields: str) -> str:
    return digest([head.hash, number, *fields])
