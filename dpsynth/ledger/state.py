"""What all records of a ledger say together: its head, its fits, its policy.

A ledger as of one moment, without reading all of it: what a fit's records cost and need.

A view reads the last record, the tally that it seals (`tally`), and single entries by an
index. What it reads is checked: the last record against the one before, nodes of the tally against
the hash that the last record seals, an entry's records against their predecessors. The chain as a
whole is what `dpsynth ledger verify` and every listing read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property

import sqlalchemy as sa

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import LedgerFacts, Store
from dpsynth.ledger.chain import Head, Record, breaks
from dpsynth.ledger.entry import POLICY, Disorder, Entry, replayed
from dpsynth.ledger.sum_tree import StoredNodes
from dpsynth.ledger.tally import RULE, Spending, Tally, pointer
from dpsynth.policy import Past, Policy
from dpsynth.privacy import Spend, event_from_dict


@dataclass(frozen=True)
class Adopted:
    """A policy, and who put it in force when (UTC)."""

    at: str
    who: str
    policy: Policy


@dataclass(frozen=True)
class Spent:
    """What all entries of a dataset have spent together, by basic composition.

    The sums are for one of those whom all of them count; see `dpsynth.policy.rules`.
    """

    fits: int
    epsilon_sum: float
    delta_sum: float

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Spent:
        """Add up exactly, in the decimals of the budgets: three fits of 0.1 are 0.3."""
        counted = [entry for entry in entries if entry.counts]
        return cls(
            fits=len(counted),
            epsilon_sum=float(sum((Fraction(repr(e.cost[0])) for e in counted), Fraction(0))),
            delta_sum=float(sum((Fraction(repr(e.cost[1])) for e in counted), Fraction(0))),
        )


@dataclass(frozen=True)
class State:
    """The ledger as of one moment.

    Attributes:
        head: the end of the chain.
        records: that it was read from.
        entries: the fits, oldest first.
        adopted: the policies, oldest first; the last one is in force.
    """

    head: Head
    records: tuple[Record, ...]
    entries: tuple[Entry, ...]
    adopted: tuple[Adopted, ...]

    def __repr__(self) -> str:
        """Say how much it holds."""
        return short_repr(self, counted(len(self.entries), "fit"), f"record {len(self.records)}")

    @classmethod
    def of(cls, facts: LedgerFacts, records: Sequence[Record], place: str) -> State:
        """Read records; sums over a chain that does not hold would mean nothing.

        Raises:
            BudgetError: the chain is broken, or a record cannot be read.
        """
        findings = breaks(facts.origin, records)
        try:
            entries = () if findings else tuple(replayed(records))
            adopted = () if findings else tuple(map(adopted_in, filter(_is_policy, records)))
        except Disorder as error:
            findings = [str(error)]
        if findings:
            raise changed(place, findings[0])
        head = records[-1].head if records else facts.origin
        return cls(head, tuple(records), entries, adopted)

    @property
    def latest(self) -> str:
        """Time of the last record; empty if there is none."""
        return self.records[-1].at if self.records else ""

    @property
    def policy(self) -> Policy | None:
        """The policy in force."""
        return self.adopted[-1].policy if self.adopted else None

    def scope(self, dataset: str) -> tuple[str, ...]:
        """Return the names, in lower case, that share the budget of a dataset."""
        return (dataset.lower(),) if self.policy is None else self.policy.members(dataset)

    def of_dataset(self, dataset: str) -> tuple[Entry, ...]:
        """Return the fits of a dataset and of those that share its patients."""
        names = self.scope(dataset)
        return tuple(entry for entry in self.entries if entry.dataset.lower() in names)

    def entry(self, entry_id: str, place: str) -> Entry:
        """Find an entry by its id or by the beginning of it.

        Raises:
            InputError: there is none, or more than one.
        """
        begins = entry_id.lower()
        return only([e for e in self.entries if e.id.startswith(begins)], entry_id, place)

    def past(self) -> tuple[Past, ...]:
        """Return what counts as spent, as the rules of a policy take it."""
        return tuple(past for entry in self.entries for _, _, past in spendings(entry))


MIN_ID_LENGTH = 6  # beginning of an entry's id
_MIN_MU, _MAX_MU = 1e-12, 1e7  # of an event; a plan's lies well between
_SECOND = timedelta(seconds=1)  # times of records are whole seconds, and a spending may be later
_UNREADABLE = (  # what reading a document may raise that no dpsynth wrote
    *(ArithmeticError, AttributeError, InputError, KeyError),
    *(RecursionError, TypeError, ValueError),
)


def spendings(entry: Entry) -> list[Spending]:
    """Return what a fit has spent, each part at its own moment; nothing where it is voided."""
    return [(entry.id, 0, past_of(entry))] if entry.counts else []


def past_of(entry: Entry) -> Past:
    """Return a fit as the rules of a policy take it.

    A fit whose events this dpsynth does not know, as a later one may have made them, counts by its
    epsilon and delta alone. So does one with noise that no plan has, and no float can compose.
    """
    try:
        events = tuple(event_from_dict(event) for event in entry.plan["events"])
        if not all(_MIN_MU <= event.mu() <= _MAX_MU for event in events):
            events = ()
    except _UNREADABLE:
        events = ()
    if entry.unit.max_units > 1:
        events = ()  # they are about one unit; what they cost several is bounded by the claim alone
    ended = None if entry.ended is None else datetime.fromisoformat(entry.ended) + _SECOND
    return Past(ended, entry.dataset, entry.tier, Spend(*entry.cost, events), entry.unit)


def changed(place: str, finding: str) -> BudgetError:
    """Word what was found in a ledger that something else than dpsynth wrote to."""
    return BudgetError(
        f"ledger {place} was changed by something other than dpsynth: {finding}. `dpsynth ledger "
        "verify` lists every finding; restore the ledger from a backup"
    )


def only(entries: Sequence[Entry], entry_id: str, place: str) -> Entry:
    """Return the entry that was found by the beginning of its id.

    Raises:
        InputError: the beginning is too short, or there is none, or more than one.
    """
    if len(entry_id) < MIN_ID_LENGTH:
        raise InputError(f"name an entry by at least {MIN_ID_LENGTH} characters of its id")
    if len(entries) == 1:
        return entries[0]
    problem = "has no entry" if not entries else "has several entries that begin with"
    raise InputError(f"ledger {place} {problem} {entry_id[:32]}; `dpsynth ledger show` lists them")


def _is_policy(record: Record) -> bool:
    return record.kind == POLICY


def adopted_in(record: Record) -> Adopted:
    """Read the policy that a record put in force.

    Raises:
        Disorder: it holds none that can be read.
    """
    try:
        policy = Policy.from_dict(record.document["policy"], f"record {record.number}")
    except _UNREADABLE as error:
        raise Disorder(f"record {record.number} holds no policy that can be read") from error
    return Adopted(record.at, record.who, policy)


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
