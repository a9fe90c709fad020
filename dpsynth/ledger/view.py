"""A ledger as of one moment, without reading all of it: what a fit's records cost and need.

A view reads the last record, the tally that it seals (`tally`), and single entries by an
index. What it reads is checked: the last record against the one before, nodes of the tally against
the hash that the last record seals, an entry's records against their predecessors. The chain as a
whole is what `dpsynth ledger verify` and every listing read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import sqlalchemy as sa

from dpsynth.ledger.chain import Head, Record, breaks
from dpsynth.ledger.entry import Disorder, Entry, replayed
from dpsynth.ledger.state import Spent, State, adopted_in, changed, only, spendings
from dpsynth.ledger.storage import LedgerFacts, Store
from dpsynth.ledger.sums import StoredNodes, Tally, pointer
from dpsynth.ledger.sums.tally import RULE
from dpsynth.policy import Policy


class View:
    """What one transaction sees of a ledger."""

    def __init__(self, store: Store, facts: LedgerFacts, connection: sa.Connection) -> None:
        """Read the end of the chain.

        Raises:
            BudgetError: the last record does not follow from the one before it.
        """
        self._store, self._facts, self._connection = store, facts, connection
        self.nodes = StoredNodes(store, connection)
        before, last = store.last(connection)
        self.head = facts.origin if last is None else last.head
        self.latest = "" if last is None else last.at
        if last is not None:
            start = facts.origin if before is None else before.head
            self._require(breaks(start, [last]))
        self._root = "" if last is None else last.state

    @property
    def id(self) -> str:
        """The ledger's id."""
        return self._facts.id

    @cached_property
    def tally(self) -> Tally:
        """What counts as spent, by the rule of this dpsynth."""
        stored = Tally.read(self.nodes, self._root)
        return stored if stored.rule == RULE else self._summed_anew(stored)

    @property
    def place(self) -> str:
        """Where the ledger is, for messages."""
        return self._store.place

    @cached_property
    def state(self) -> State:
        """All that the records say; reads every one of them.

        Raises:
            BudgetError: they do not hold together.
        """
        return State.of(self._facts, self._store.records(self._connection), self.place)

    @property
    def policy(self) -> Policy | None:
        """The policy in force."""
        if self.tally.policy is None:
            return None
        record = self.record(self.tally.policy[0])
        if record is None or pointer(record) != self.tally.policy:
            raise changed(self.place, "the record of the policy in force is another")
        try:
            return adopted_in(record).policy
        except Disorder as error:
            raise changed(self.place, str(error)) from error

    def scope(self, dataset: str) -> tuple[str, ...]:
        """Return the names, in lower case, that share the budget of a dataset."""
        policy = self.policy
        return (dataset.lower(),) if policy is None else policy.members(dataset)

    def entry(self, entry_id: str) -> Entry:
        """Find an entry by its id or by the beginning of it.

        Raises:
            InputError: there is none, or more than one.
            BudgetError: its records were changed.
        """
        begins = entry_id.lower()
        plain = re.fullmatch("[0-9a-f]{6,32}", begins)
        return only(self._replayed(self._records(begins) if plain else []), entry_id, self.place)

    def record(self, number: int) -> Record | None:
        """Read one record; None where there is none."""
        return self._store.record(number, self._connection)

    def spent(self, names: Iterable[str]) -> Spent:
        """Add up what datasets (in lower case) have spent."""
        return _spent(self.tally, names)

    def spent_by(self, number: int, names: Iterable[str]) -> Spent | None:
        """Add up what datasets had spent by a record; None where there is no such record."""
        record = self.record(number)
        return None if record is None else _spent(Tally.read(self.nodes, record.state), names)

    def _records(self, begins: str) -> list[Record]:
        """Read the records of entries whose id begins so, each checked against the one before."""
        records = []
        for before, record in self._store.records_of(begins, self._connection):
            start = self._facts.origin if record.number == 1 else Head(record.number - 1, before)
            self._require(breaks(start, [record]))
            records.append(record)
        return records

    def _replayed(self, records: Sequence[Record]) -> list[Entry]:
        try:
            return replayed(records)
        except Disorder as error:
            raise changed(self.place, str(error)) from error

    def _summed_anew(self, stored: Tally, orders: Iterable[int] = ()) -> Tally:
        """Add up all fits, by this rule, at more orders than those that were kept."""
        fits = [spending for entry in self.state.entries for spending in spendings(entry)]
        all_orders = tuple(sorted({*stored.orders, *orders}))
        return Tally.of(self.nodes, fits, all_orders, stored.policy)

    def _require(self, findings: Sequence[str]) -> None:
        if findings:
            raise changed(self.place, findings[0])


def _spent(tally: Tally, names: Iterable[str]) -> Spent:
    sums = tally.spent(names)
    return Spent(sums.fits, float(sums.epsilon), float(sums.delta))
