"""What a ledger says at one moment, without its key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpsynth.errors import InputError
from dpsynth.ledger import Adopted, LedgerFile, Spent, State, installed_version, past_of
from dpsynth.ledger.statements.balances import Account, accounts
from dpsynth.policy import CapUsage, room
from dpsynth.policy.fits import YEAR
from dpsynth.policy.rules import ROLLING

FORMAT = "dpsynth-ledger"
VERSION = 1
_MAX_TIMES = 200


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
    def of(cls, book: LedgerFile, now: datetime) -> Snapshot:
        """Read a ledger at a moment, with its time zone.

        Raises:
            InputError: the moment has no time zone.
            BudgetError: the ledger was changed by something else than dpsynth.
        """
        if now.utcoffset() is None:
            raise InputError("the time of an export carries its time zone; give it in UTC")
        state, at = book.state(), now.astimezone(UTC)
        balances = accounts(state, at, compose=True)
        return cls(book.id, book.facts.created, at, installed_version(), state, balances)

    def history(self, account: Account, meter: CapUsage | None) -> list[tuple[datetime, float]]:
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
        points = []
        for moment in sorted(times)[:: -max(1, math.ceil(len(times) / _MAX_TIMES))][::-1]:
            if meter is None or self.state.policy is None:
                until = [entry for at, _, entry in entered if at <= moment]
                points.append((moment, Spent.of(until).epsilon_sum))
            else:
                then = [past for at, past, _ in entered if at <= moment]
                meters = room(self.state.policy, then, account.name, None, moment)
                points += [(moment, m.used) for m in meters if m.name == meter.name]
        return points

    def to_dict(self) -> dict[str, Any]:
        """Give the snapshot in plain JSON values; a cap that is infinitely overdrawn is null."""
        adopted = [_adopted(record) for record in self.state.adopted]
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
            "accounts": {record.name: record.to_dict() for record in self.accounts},
            "entries": [entry.to_dict() for entry in self.state.entries],
        }


def _adopted(record: Adopted) -> dict[str, Any]:
    return {
        "document": record.policy.to_dict(),
        "digest": record.policy.digest,
        "adopted": {"at": record.at, "who": record.who},
    }
