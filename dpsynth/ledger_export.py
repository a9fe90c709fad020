"""The ledger for those who do not run dpsynth: one JSON document, or one page for a board.

Both are internal: they name people, and say when what was fitted on whose data. Neither holds the
ledger's key or the keyed digests of files that were read.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpsynth.apart import check_apart
from dpsynth.atomic import write_atomically
from dpsynth.documents import written
from dpsynth.errors import InputError
from dpsynth.ledger_accounts import Account, accounts
from dpsynth.ledger_book import Book
from dpsynth.ledger_checks import installed_version
from dpsynth.ledger_entry import Spent
from dpsynth.ledger_places import sqlite_path
from dpsynth.ledger_state import Adopted, State, past_of
from dpsynth.policy_fits import YEAR
from dpsynth.policy_rules import ROLLING, Meter, room

FORMAT = "dpsynth-ledger"
VERSION = 1
_MOST_TIMES = 200


@dataclass(frozen=True)
class Snapshot:
    """What a ledger says at one moment, without its key.

    Attributes:
        id: of the ledger.
        created: when it was made (UTC).
        at: the moment, in UTC; what is left of a cap on 365 days depends on it.
        version: of this dpsynth.
        state: what its records say.
        accounts: every budget that was drawn on, and every group of the policy; with the caps of
            all tiers.
    """

    id: str
    created: str
    at: datetime
    version: str
    state: State
    accounts: tuple[Account, ...]

    @classmethod
    def of(cls, book: Book, now: datetime) -> Snapshot:
        """Read a ledger.

        Args:
            book: the ledger.
            now: the moment, with its time zone.

        Raises:
            InputError: the moment has no time zone.
            BudgetError: the ledger was changed by something else than dpsynth.
        """
        if now.utcoffset() is None:
            raise InputError("the time of an export carries its time zone; give it in UTC")
        state, at = book.state(), now.astimezone(UTC)
        found = accounts(state, at, compose=True)
        return cls(book.id, book.facts.created, at, installed_version(), state, found)

    def history(self, account: Account, meter: Meter | None) -> list[tuple[datetime, float]]:
        """Say what was used of a cap at each time when that changed, under the policy in force.

        Args:
            account: of this snapshot.
            meter: one of its general caps; None for the plain sum of epsilons.

        Returns:
            Times, oldest first, and epsilon used since; every second, third and so on is left out
            where there are more than 200.
        """
        fits = [(past_of(entry), entry) for entry in account.entries if entry.counts]
        entered = [(datetime.fromisoformat(entry.at), past, entry) for past, entry in fits]
        times = {at for at, _, _ in entered}
        if meter is not None and meter.name == ROLLING:
            leaving = {past.at + YEAR for past, _ in fits if past.at is not None}
            times |= {at for at in leaving if at <= self.at}
        found = []
        for moment in sorted(times)[:: -max(1, math.ceil(len(times) / _MOST_TIMES))][::-1]:
            if meter is None or self.state.policy is None:
                until = [entry for at, _, entry in entered if at <= moment]
                found.append((moment, Spent.of(until).epsilon_sum))
            else:
                then = [past for at, past, _ in entered if at <= moment]
                meters = room(self.state.policy, then, account.name, None, moment)
                found += [(moment, one.used) for one in meters if one.name == meter.name]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Give the snapshot in plain JSON values; a cap that is infinitely overdrawn is null."""
        adopted = [_adopted(one) for one in self.state.adopted]
        return {
            "format": FORMAT,
            "version": VERSION,
            "internal": True,
            "ledger": self.id,
            "created": self.created,
            "at": self.at.isoformat(timespec="seconds"),
            "dpsynth": self.version,
            "head": vars(self.state.head),
            "policy": adopted[-1] if adopted else None,
            "earlier_policies": adopted[:-1],
            "accounts": {one.name: one.to_dict() for one in self.accounts},
            "entries": [entry.to_dict() for entry in self.state.entries],
        }


def exported(
    ledger: Book, output: str | Path, *, html: bool = False, now: datetime | None = None
) -> Path:
    """Write a ledger into one file that only its owner can read; an existing file is replaced.

    Args:
        ledger: what to write.
        output: the file.
        html: a page for a board, in the place of JSON.
        now: the moment that it is about, with its time zone; default: this one. The same ledger
            and moment give the same bytes as long as no fit's process ends meanwhile.

    Raises:
        InputError: the file cannot be written, is a folder, or is the ledger itself.
        BudgetError: the ledger was changed by something else than dpsynth.
    """
    target = Path(output)
    if os.path.isdir(target):  # a root has no name that a temporary file could be named after
        raise InputError(f"cannot write {target}: it is a folder; name a file")
    if _is_ledger(ledger, target):
        raise InputError(f"{target} is the ledger itself; name another file for the export")
    snapshot = Snapshot.of(ledger, now or datetime.now(UTC))
    if html:
        from dpsynth.ledger_page import page

        content = page(snapshot).encode()
    else:
        content = written(snapshot.to_dict())
    check_apart(target)
    write_atomically(target, content, private=True)
    return target


def _adopted(one: Adopted) -> dict[str, Any]:
    return {
        "document": one.policy.to_dict(),
        "digest": one.policy.digest,
        "adopted": {"at": one.at, "who": one.who},
    }


def _is_ledger(book: Book, target: Path) -> bool:
    if book.store.shared or not os.path.exists(target):
        return False
    return os.path.samefile(target, sqlite_path(book.location))
