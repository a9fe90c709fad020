"""The accounts of a ledger: what each budget has spent and has left, for people."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpsynth.errors import InputError
from dpsynth.ledger import Adopted, LedgerFile, Spent, State, installed_version, past_of
from dpsynth.ledger.entry import READING, RESERVED, Entry
from dpsynth.policy import CapUsage, Policy, room
from dpsynth.policy.rules import ROLLING, YEAR
from dpsynth.privacy import (
    AttackRates,
    Event,
    Unit,
    counted_of,
    rates_of_claim,
    worst_case_rates,
)


@dataclass(frozen=True)
class Account:
    """One budget: the datasets that share it, their fits, and what the policy leaves them.

    Attributes:
        name: of the group, or of the dataset if it is in none.
        datasets: names under which there are fits or which the policy groups, in lower case.
        spent: by basic composition.
        composed: epsilon of all events of all fits at ``delta`` by privacy loss distributions, for
            information: it is not valid for budgets that were chosen after earlier results. None
            if it was not asked for, or a fit has events that are not known.
        delta: of ``composed``.
        composed_rates: attack rates of all events of all fits, under the same conditions.
        meters: each cap of the policy in force, and what is left of it.
        entries: oldest first.
    """

    name: str
    datasets: tuple[str, ...]
    spent: Spent
    composed: float | None
    delta: float | None
    composed_rates: AttackRates | None
    meters: tuple[CapUsage, ...]
    entries: tuple[Entry, ...]

    @property
    def attack_rates(self) -> AttackRates | None:
        """Attack rates of all fits that count, from the sums of basic composition; None before any.

        They bound whatever costs so much together, with noise of any kind.
        """
        if not self.spent.fits:
            return None
        return rates_of_claim(self.spent.epsilon_sum, min(1.0, self.spent.delta_sum))

    @property
    def units(self) -> tuple[Unit, ...]:
        """What the fits that count are about, each way to tell it apart once."""
        return tuple(dict.fromkeys(entry.unit for entry in self.entries if entry.counts))

    @property
    def counts(self) -> str | None:
        """Name one of those for whom the epsilons are; None before any fit."""
        named = [unit for unit in self.units if unit.person is not None]
        return next((counted_of(unit) for unit in (*named, *self.units)), None)

    def to_dict(self) -> dict[str, Any]:
        """Give the account in plain JSON values."""
        return {
            "datasets": list(self.datasets),
            "counts": self.counts,
            "units": [unit.to_dict() for unit in self.units],
            "fits": self.spent.fits,
            "epsilon": self.spent.epsilon_sum,
            "delta": self.spent.delta_sum,
            "composed_epsilon": self.composed,
            "composed_delta": self.delta,
            "attack_rates": _rates(self.attack_rates),
            "composed_attack_rates": _rates(self.composed_rates),
            "room": [_finite(vars(meter)) for meter in self.meters],
        }


def accounts(
    state: State, now: datetime, *, dataset: str | None = None, compose: bool
) -> tuple[Account, ...]:
    """Give every account, or that of one dataset, in the order of their names.

    Args:
        state: of the ledger.
        now: the time, with its zone; what is left of a cap on 365 days depends on it.
        dataset: a name; its whole group is meant. None for all that have fits, and all groups of
            the policy.
        compose: whether to compose all events; seconds where there are many fits.
    """
    policy = state.policy
    names = {entry.dataset.lower() for entry in state.entries} if dataset is None else {dataset}
    groups = {name.lower() if policy is None else policy.group_of(name) for name in names}
    if policy is not None and dataset is None:
        groups |= {group.name for group in policy.groups}
    return tuple(_account(state, group, now, compose) for group in sorted(groups))


def explained(entry: Entry) -> str:
    """Say what an entry's state means where it needs a word; empty where it does not."""
    alive = _alive(entry)
    if entry.status == RESERVED and not alive:
        return "its process ended before it read any data, so you can void it"
    if entry.status == READING and not alive and entry.checkpoint is not None:
        return (
            f"its process ended after {entry.checkpoint.step} private steps; the same command goes "
            "on from its checkpoint, or you can forfeit it: it counts as spent either way"
        )
    if entry.status == READING and not alive:
        return (
            "its process ended while it could read data, so it stays charged; it counts as of "
            "today until you forfeit it"
        )
    if entry.owes:
        share = "can still be spent" if entry.measured is None else "is being spent"
        note = f"its budget for quality figures {share}, so it counts as of today"
        return "; ".join(filter(None, (entry.note, note)))
    return entry.note


def _account(state: State, name: str, now: datetime, compose: bool) -> Account:
    entries = state.of_dataset(name)
    counted = [entry for entry in entries if entry.counts]
    spent = Spent.of(counted)
    delta = None
    if compose and counted:
        delta = spent.delta_sum if state.policy is None else state.policy.delta
    return Account(
        name=name,
        datasets=state.scope(name),
        spent=spent,
        composed=None if delta is None else _composed(counted, delta),
        delta=delta,
        composed_rates=None if delta is None else _composed_rates(counted),
        meters=() if state.policy is None else _meters(state.policy, state, name, now),
        entries=entries,
    )


def _meters(policy: Policy, state: State, name: str, now: datetime) -> tuple[CapUsage, ...]:
    """The general caps first, then those of each tier."""
    past = state.past()
    general = room(policy, past, name, None, now)
    by_tier = [room(policy, past, name, tier.name, now)[len(general) :] for tier in policy.tiers]
    return (*general, *(meter for meters in by_tier for meter in meters))


def _composed(entries: Sequence[Entry], delta: float) -> float | None:
    """Compose all events by privacy loss distributions; None where some are not known."""
    from dpsynth.privacy import epsilon

    events = _events(entries)
    return epsilon(events, delta) if events and delta < 1 else None


def _composed_rates(entries: Sequence[Entry]) -> AttackRates | None:
    """Bound the attack rates of all events together; None where some are not known."""
    events = _events(entries)
    return worst_case_rates(events) if events else None


def _events(entries: Sequence[Entry]) -> tuple[Event, ...]:
    """List the events of all fits; none where those of one are not known."""
    each = [past_of(entry).spend.events for entry in entries]
    return tuple(event for events in each for event in events) if all(each) else ()


def _rates(rates: AttackRates | None) -> dict[str, float] | None:
    return None if rates is None else dict(vars(rates))


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Put null in the place of infinity, which JSON cannot say."""
    infinite = {key for key, value in values.items() if value == math.inf}
    return values | dict.fromkeys(infinite)


def at_work(entry: Entry) -> bool:
    """Whether the process that reserved an entry runs on this machine."""
    return entry.host == socket.gethostname() and _alive(entry)


def _alive(entry: Entry) -> bool:
    """Whether the process that reserved an entry may still run; of other machines nobody knows."""
    if entry.host != socket.gethostname():
        return True
    try:
        os.kill(entry.process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


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
