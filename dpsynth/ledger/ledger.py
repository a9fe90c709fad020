"""The ledger: what the patients of each dataset have spent, append-only and chained.

A fit is reserved before it reads its first private row, in one transaction with the check of the
policy, so that processes that race for the last of a budget cannot both have it. What becomes of it
is a record of its own. A fit that died counts as spent, since it may have read rows; only one whose
record proves that it never began to read can be voided.

The ledger is internal: it holds user names and times, and never leaves the office. Who somebody is,
is what the system's login or ``DPSYNTH_USER`` says: the ledger records it and does not prove it.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger.book import LedgerFile, Transaction
from dpsynth.ledger.entry import (
    CHARGED,
    FAILED,
    FOLLOWS,
    READING,
    RESERVED,
    Entry,
    Signature,
    Status,
    check_cost,
    check_request,
    installed_version,
    require_for,
)
from dpsynth.ledger.state import Spent, State, past_of
from dpsynth.ledger.tally import orders_of
from dpsynth.policy import Policy, Request, conflict, require
from dpsynth.privacy import Unit
from dpsynth.tables import Source

__all__ = ["Entry", "Ledger", "Signature", "Spent", "Status"]

_NOTE = re.compile(r"[A-Za-z0-9_ .-]{0,64}")


@dataclass(frozen=True)
class Reservation:
    """What a fit asks of the ledger; see `Ledger.reserve` for each.

    ``apart`` names datasets that must have a budget of their own: the fit assumes that nobody is in
    both. ``joined`` names datasets whose people may be the same: they must share one budget, in
    which the fit counts once for all of them.
    """

    dataset: str
    purpose: str
    plan: dict[str, Any]
    epsilon: float
    delta: float
    model: str
    schema_hash: str
    unit: Unit
    allow_refuse: bool
    population: int
    tier: str | None = None
    policy: Policy | None = None
    apart: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


class Ledger(LedgerFile):
    """An append-only book of fits; see `LedgerFile` for where it lies and how it is opened.

    Attributes:
        originals: sources that the next fit's rows were split off from. They hold the same people,
            so they are recognised as what the fit reads itself.

    >>> ledger = Ledger.create("office.sqlite")
    >>> ledger.entries(), ledger.spent("ward").fits
    ([], 0)
    """

    originals: Sequence[Source] = ()

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """List the fits, oldest first: all, or those of one dataset and its kin."""
        state = self.state()
        return list(state.entries if dataset is None else state.of_dataset(dataset))

    def spent(self, dataset: str) -> Spent:
        """Add up what a dataset and its kin have spent: every fit that is not voided."""
        return Spent.of(self.state().of_dataset(dataset))

    def reserve(
        self,
        dataset: str,
        *,
        purpose: str,
        plan: dict[str, Any],
        epsilon: float,
        delta: float,
        model: str,
        schema_hash: str,
        unit: Unit,
        allow_refuse: bool,
        population: int,
        tier: str | None = None,
        policy: Policy | None = None,
    ) -> Entry:
        """Enter a fit before its first private read, in one transaction.

        Args:
            dataset: the name under which these patients are counted; case does not matter.
            purpose: a few words of the user's.
            plan: the plan's document.
            epsilon: what the fit may spend, for one unit.
            delta: likewise.
            model: the generator's name.
            schema_hash: SHA-256 of the schema.
            unit: whose presence the budget is about; all fits of a budget count the same.
            allow_refuse: whether a column may refuse a cell, one bit outside the guarantee.
            population: the public number of privacy units.
            tier: the policy's name for the purpose, if it has tiers.
            policy: one that this fit is to keep as well; it must be the ledger's own if the ledger
                has adopted one.

        Raises:
            InputError: the name or the budget is not acceptable.
            BudgetError: the policy does not allow it, earlier fits count another unit, or the
                ledger cannot be written to. Then nothing was entered, and nothing may be read.
        """
        asked = Reservation(
            dataset=dataset,
            purpose=purpose,
            plan=plan,
            epsilon=epsilon,
            delta=delta,
            model=model,
            schema_hash=schema_hash,
            unit=unit,
            allow_refuse=allow_refuse,
            population=population,
            tier=tier,
            policy=policy,
        )
        return self.reserve_all([asked])[0]

    def reserve_all(self, asked: Sequence[Reservation]) -> list[Entry]:
        """Enter all of these, or none, in one transaction; see `reserve`.

        Those that are joined with an earlier one have no entry of their own: they are admitted
        with it, by the same rules, and its entry counts for all of them.

        Returns:
            The entries, one for each budget.

        Raises:
            InputError: as `reserve`.
            BudgetError: one of them is refused. Then none is entered, and nothing may be read.
        """
        for one in asked:
            check_request(one.dataset, one.purpose, one.tier, one.epsilon, one.delta)
            check_cost(one.unit, one.epsilon, one.delta)
        with self.writing() as pen:
            return [self._reserved(pen, group) for group in _together(asked)]

    def _reserved(self, pen: Transaction, group: Sequence[Reservation]) -> Entry:
        """Enter a fit, unless the policy or an earlier fit is against it.

        Args:
            pen: the transaction.
            group: what is asked; first the one that is entered, then those that are joined with it.
        """
        asked, *others = group
        dataset, tier, unit = asked.dataset, asked.tier, asked.unit
        binding = self._binding(pen.policy, asked.policy)
        for other in others:
            self._binding(pen.policy, other.policy)  # its own policy binds it, too
        tally = pen.summed(orders_of(binding))  # before this fit
        body = {
            "dataset": dataset,
            "purpose": asked.purpose,
            "tier": tier,
            "model": asked.model,
            "schema_hash": asked.schema_hash,
            "epsilon": float(asked.epsilon),
            "delta": float(asked.delta),
            "plan": asked.plan,
            "unit": unit.to_dict(),
            "allow_refuse": bool(asked.allow_refuse),
            "population": int(asked.population),
            "policy": None if binding is None else binding.digest,
            "sign_off": 0 if binding is None else binding.sign_off,
            "gates": [] if binding is None else list(binding.gates),
            "version": installed_version(),
            "host": socket.gethostname(),
            "process": os.getpid(),
        }
        names = pen.scope(dataset) if binding is None else binding.members(dataset)
        if {name.lower() for name in asked.apart} & set(names):
            raise BudgetError(
                f"the policy says that dataset '{dataset}' shares people with {asked.apart[0]}, "
                "and this fit assumes that nobody is in both. Nothing was charged"
            )
        _require_shared(pen, asked)
        counted = tally.units(names)
        for each in group:
            require_one_unit(each.dataset, each.unit, counted)
            counted = [*counted, each.unit]
        entry = pen.write(RESERVED, uuid.uuid4().hex, body)
        if binding is not None:
            spend, now = past_of(entry).spend, datetime.fromisoformat(entry.at)
            for one in group:
                request = Request(
                    *(one.dataset, one.tier, one.model, one.population, one.allow_refuse),
                    *(spend, one.unit),
                )
                try:
                    require(binding, tally.past(names, now), request, now)  # undoes the record
                except BudgetError:  # day by day, it also says when to ask again
                    require(binding, tally.past_by_days(names, now), request, now)
                    raise
        return entry

    def begin(self, entry_id: str, *others: str) -> None:
        """Record that private rows are about to be read; from here on a fit cannot be voided.

        An answer about two registers has two entries, which begin together or not at all.
        """
        self._close([entry_id, *others], READING, "")

    def saw(self, entry_id: str, digest: str) -> tuple[str, ...]:
        """Record the keyed digest of the file that a fit reads.

        Returns:
            The names of datasets, outside the scope of the fit's own, under which the same file was
            read before.
        """
        with self.writing() as pen:
            entry = pen.entry(entry_id)
            scope = pen.scope(entry.dataset)
            others = {name for name in pen.datasets_of(digest) if name.lower() not in scope}
            pen.add_source(entry, digest)
        return tuple(sorted(others))

    def twins(self, state: State) -> dict[str, tuple[str, ...]]:
        """Give, for each entry, datasets of another budget whose fits read the same file."""
        with self.store.reading() as connection:
            sources = self.store.sources(connection)
        return _twins(state, sources)

    def charge(self, entry_id: str, note: str = "", *, run: str | None = None) -> None:
        """Close an entry: the fit ended.

        Args:
            entry_id: the entry.
            note: as in `fail`.
            run: digest of the run that was made; no other is released in this entry's name.
        """
        self._close([entry_id], CHARGED, note, run=run)

    def fail(self, entry_id: str, note: str = "") -> None:
        """Close an entry: the fit died. It counts as spent nevertheless.

        Args:
            entry_id: the entry.
            note: a few plain words, such as the class of the error. Anything else could be text
                from private rows, and is withheld.
        """
        self._close([entry_id], FAILED, note)

    def _close(self, entry_ids: Sequence[str], kind: str, note: str, **more: str | None) -> None:
        plain = note if _NOTE.fullmatch(note) else "note withheld"
        with self.writing() as pen:
            for entry in map(pen.entry, entry_ids):
                if entry.status not in FOLLOWS[kind]:
                    raise InputError(f"entry {entry.id} is {entry.status} already; it stays so")
                pen.write(kind, entry.id, {"note": plain, **more})

    def _binding(self, adopted: Policy | None, policy: Policy | None) -> Policy | None:
        """Return the policy that a fit has to keep: the adopted one, or the one that was named."""
        if adopted is not None and policy is not None and adopted.digest != policy.digest:
            raise BudgetError(
                f"ledger {self.place} has adopted the policy '{adopted.name}', and another one was "
                "named; leave it out, or adopt it: dpsynth ledger policy FILE"
            )
        binding = adopted or policy
        if binding is not None:
            require_for(binding, self.id, self.place)
        return binding


def require_one_unit(dataset: str, unit: Unit, others: Iterable[Unit]) -> None:
    """Refuse a fit that counts something else than the fits it would be added to.

    Raises:
        BudgetError: it says what the two count, and what to do.
    """
    reason = conflict(unit, others)
    if reason is not None:
        raise BudgetError(f"dataset '{dataset}': {reason}. Nothing was charged")


def _together(asked: Sequence[Reservation]) -> list[list[Reservation]]:
    """Put each reservation with the one that it is joined with.

    Raises:
        InputError: it would cost another amount than the one that is entered.
    """
    groups: list[list[Reservation]] = []
    for one in asked:
        first = [
            group
            for group in groups
            if one.dataset.lower() in {name.lower() for name in group[0].joined}
        ]
        if not first:
            groups.append([one])
            continue
        [group] = first
        costs = [each.unit.cost(each.epsilon, each.delta) for each in (group[0], one)]
        if one.plan != group[0].plan or costs[0] != costs[1]:
            raise InputError("what is joined in one budget costs the same for each of its people")
        group.append(one)
    return groups


def _require_shared(pen: Transaction, asked: Reservation) -> None:
    """Refuse a fit that counts once for people of several datasets which have several budgets.

    The policy that the ledger has adopted says which datasets share one: it also holds for every
    later fit.

    Raises:
        BudgetError: it says what to declare.
    """
    names = (asked.dataset, *asked.joined)
    if set(map(str.lower, names)) <= set(pen.scope(asked.dataset)):
        return
    listed = ", ".join(names)
    raise BudgetError(
        f"a person may be in all of {listed}, so these datasets must share one budget, in which "
        "this counts once; otherwise that person could spend the budget of each. Let the ledger "
        f"adopt a policy with a group of them (datasets: {{people: [{listed}]}}; dpsynth ledger "
        "policy FILE), or declare that nobody is in both, if that is so. Nothing was charged"
    )


def _twins(state: State, sources: dict[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """Give, for each entry, datasets outside its scope under which one of its digests was read."""
    named: dict[str, set[str]] = {}
    for entry in state.entries:
        for digest in sources.get(entry.id, ()):
            named.setdefault(digest, set()).add(entry.dataset)
    twins = {}
    for entry in state.entries:
        scope = state.scope(entry.dataset)
        same = {name for digest in sources.get(entry.id, ()) for name in named[digest]}
        if names := tuple(sorted(name for name in same if name.lower() not in scope)):
            twins[entry.id] = names
    return twins


_NO_COPY = "the backup of {} differs from it; nothing was written, so try again"


def back_up(book: LedgerFile, target: str | Path) -> Path:
    """Copy a ledger in a file, its key included, into a new file of mode 0600; check the copy.

    A backup is put back by copying it to the ledger's place while nothing is fitted.

    Raises:
        InputError: the target exists, or the ledger is on a server, whose own tools back it up.
        BudgetError: the copy cannot be made or read.
    """
    target = Path(target)
    book.store.database.backup(target, partial(_check, book))
    return target


def _check(book: LedgerFile, place: Path) -> None:
    """Hold a copy against its ledger, which may have gone on meanwhile.

    Raises:
        BudgetError: it is not a copy, or its chain does not hold.
    """
    try:
        copy = LedgerFile(place)
    except InputError as error:
        raise BudgetError(_NO_COPY.format(book.place)) from error
    records, copied = book.records(), copy.records()
    copy.state()
    if copy.facts != book.facts or copied != records[: len(copied)]:
        raise BudgetError(_NO_COPY.format(book.place))
