"""What all records of a ledger say together: its head, its fits, its policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger.chain import Head, Record, breaks
from dpsynth.ledger.entry import POLICY, Disorder, Entry, replayed
from dpsynth.ledger.storage import LedgerFacts
from dpsynth.ledger.sums import Spending
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

    The sums are for one of those whom all of them count; see `dpsynth.policy.one_unit`.
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
