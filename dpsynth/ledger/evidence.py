"""What runs and bundles say of the ledger that charged them, held against a ledger.

So a ledger is verified: does its chain hold, and is it the one that certificates speak of?

What the chain alone shows: a record that was edited, removed from the middle, inserted or reordered
without writing all later hashes anew. What only a certificate shows: a chain that was written anew
from some record on, or that was cut off at its end, or a ledger that was put back from an old
backup. Each bundle (and each run) holds one, written when its fit began to read: the newest
protects all records up to that moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from dpsynth.certificate import Certificate, Charge, OtherRegister
from dpsynth.errors import BudgetError, InputError, Problem, VerificationError
from dpsynth.ledger.book import LedgerFile
from dpsynth.ledger.chain import Head, Record, breaks
from dpsynth.ledger.entry import POLICY, VOIDED, Disorder, Entry, replayed
from dpsynth.ledger.marks import other_than_seen
from dpsynth.ledger.state import Spent, State, View, spendings
from dpsynth.ledger.sum_tree import MemoryNodes
from dpsynth.ledger.tally import RULE, Tally, pointer


@dataclass(frozen=True)
class Evidence:
    """What a run or a bundle says of the ledger that charged it.

    Attributes:
        certificate: its certificate.
        run: digest of the run.
        manifest: SHA-256 of a bundle's manifest; None for a run.
        figures: SHA-256 of public quality figures; None if it has none.
    """

    certificate: Certificate
    run: str
    manifest: str | None = None
    figures: str | None = None


class LedgerAccount(Protocol):
    """What a ledger says, however much of it was read."""

    @property
    def length(self) -> int:
        """The number of its records."""

    def heads(self, number: int) -> list[Head]:
        """Return the end of the chain as of a record."""

    def entry(self, entry_id: str) -> Entry | None:
        """Return an entry; None where there is none."""

    def spent_by(self, charge: Charge) -> Spent | None:
        """Add up what a charge's scope had spent by its record; None where nobody can tell."""


@dataclass(frozen=True)
class ReplayedAccount:
    """A ledger of which every record was read."""

    records: Sequence[Record]
    entries: Sequence[Entry]

    @property
    def length(self) -> int:
        """The number of records."""
        return len(self.records)

    def heads(self, number: int) -> list[Head]:
        """Return the end of the chain as of a record, or of several of the same number."""
        return [record.head for record in self.records if record.number == number]

    def entry(self, entry_id: str) -> Entry | None:
        """Return an entry; None where there is none."""
        return {entry.id: entry for entry in self.entries}.get(entry_id)

    def spent_by(self, charge: Charge) -> Spent | None:
        """Add up the entries as they were by then."""
        try:
            known = replayed(self.records[: charge.record])
        except Disorder:
            return None  # told already
        return Spent.of(entry for entry in known if entry.dataset.lower() in charge.scope)


@dataclass(frozen=True)
class ViewedAccount:
    """A ledger of which only what is asked for is read."""

    view: View

    @property
    def length(self) -> int:
        """The number of records, by the last one's own."""
        return self.view.head.number

    def heads(self, number: int) -> list[Head]:
        """Return the end of the chain as of a record."""
        record = self.view.record(number)
        return [] if record is None else [record.head]

    def entry(self, entry_id: str) -> Entry | None:
        """Return an entry; None where there is none."""
        try:
            return self.view.entry(entry_id)
        except InputError:
            return None

    def spent_by(self, charge: Charge) -> Spent | None:
        """Read the sums that the charge's record seals."""
        return self.view.spent_by(charge.record, charge.scope)


def differences(book: LedgerFile, account: LedgerAccount, evidence: Evidence) -> list[str]:
    """Name every way in which a ledger is not the one that charged a run or a bundle.

    An answer about pairs of two registers has a charge for each, and both are compared; or one, if
    people may be in both and the registers share a budget.
    """
    registers = evidence.certificate.registers
    if evidence.certificate.is_joint:
        registers = registers[:1]  # the other's facts are in what the entry's digest is of
    found = [differences_of(book, account, evidence, one) for one in registers]
    charged = [one.ledger.entry for one in registers if one.ledger is not None]
    twice = [] if len(set(charged)) == len(charged) else ["both registers name one entry"]
    return [message for messages in found for message in messages] + twice


def differences_of(
    book: LedgerFile, account: LedgerAccount, evidence: Evidence, register: OtherRegister
) -> list[str]:
    """Name every way in which a ledger differs from what is said of the charge of one register."""
    certificate, charge = evidence.certificate, register.ledger
    if charge is None:
        return ["no ledger was charged for it"]
    if charge.id != book.id:
        return [f"it was charged by another ledger, {charge.id}"]
    messages = _anchored(book, account, charge)
    entry = account.entry(charge.entry)
    if entry is None:
        return [*messages, f"its entry {charge.entry} is not in the ledger"]
    if entry.status == VOIDED:
        messages.append(f"its entry {charge.entry} was voided, though it was fitted")
    pairs = {
        "epsilon": (certificate.epsilon, entry.epsilon),
        "delta": (certificate.delta, entry.delta),
        "events": ([item.to_dict() for item in certificate.events], entry.plan.get("events")),
        "dataset": (charge.dataset, entry.dataset),
        "model": (certificate.model, entry.model),
        "schema": (register.schema_sha256, entry.schema_hash),
        "unit": (register.unit, entry.unit),
        "population": (register.population, entry.population),
        "policy": (charge.policy, entry.policy),
    }
    messages += [
        f"its entry {charge.entry} has another {name}"
        for name, (stated, in_entry) in pairs.items()
        if stated != in_entry
    ]
    if entry.run is not None and entry.run != evidence.run:
        messages.append(
            f"its entry {charge.entry} was charged for another run: this one was changed, or comes "
            "from another fit"
        )
    if evidence.manifest not in (None, *(item.manifest for item in entry.releases)):
        messages.append(f"its entry {charge.entry} has no release of this bundle")
    recorded = None if entry.measured is None else entry.measured.figures
    if evidence.figures not in (None, recorded):
        messages.append(
            f"its entry {charge.entry} does not hold its quality figures: they were changed, or "
            "measured with another copy of the ledger"
        )
    return messages + _totals(account, charge)


def _totals(account: LedgerAccount, charge: Charge) -> list[str]:
    """Compare the number of fits and their sums with the ledger as of the certificate."""
    spent = account.spent_by(charge)
    stated = Spent(charge.fits, charge.epsilon_total, charge.delta_total)
    if spent is None or spent == stated:
        return []
    return ["its fits or sums differ from those of the ledger when it was certified"]


def _anchored(book: LedgerFile, account: LedgerAccount, charge: Charge) -> list[str]:
    """Compare the chain with the head that a certificate holds."""
    if account.length < charge.record:
        return [
            f"the ledger ends at record {account.length}, but had {charge.record} when this was "
            "certified: its end was cut off, or it was replaced with an old backup"
        ]
    if charge.seal not in {head.seal(book.key) for head in account.heads(charge.record)}:
        return [
            f"record {charge.record} has another hash than when this was certified: it or an "
            "earlier record was rewritten"
        ]
    return []


_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def verify_ledger(
    book: LedgerFile, against: Mapping[str, Evidence] | None = None, *, as_seen: bool = False
) -> list[str]:
    """Check a ledger, and hold it against bundles or runs that it charged.

    Args:
        book: the ledger.
        against: what bundles and runs say, by the names of their folders.
        as_seen: whether it must also be the ledger that this user last saw at its place.

    Returns:
        The checks that passed, a sentence each.

    Raises:
        VerificationError: with everything that was found.
    """
    claims = dict(against or {})
    records = book.records()
    findings = [Problem("chain", finding) for finding in breaks(book.facts.origin, records)]
    findings += _out_of_time(records)
    entries: Sequence[Entry] = ()
    try:
        entries = replayed(records)
        if not findings:
            state = book.read(records)
            findings += [Problem("sums", finding) for finding in _other_sums(book, state)]
    except (Disorder, BudgetError) as disorder:
        findings.append(Problem("records", str(disorder)))
    if as_seen and not findings:
        with book.looking() as view:
            difference = other_than_seen(view)
        findings += [Problem("seen before", difference)] if difference else []
    for place, evidence in claims.items():
        messages = differences(book, ReplayedAccount(records, entries), evidence)
        findings += [Problem(place, message) for message in messages]
    if findings:
        raise VerificationError(findings)
    counted = "1 record" if len(records) == 1 else f"{len(records)} records"
    checks = [f"the chain of {counted} is whole, and each follows from the one before"]
    return checks + [f"it contains everything that {place} was charged for" for place in claims]


def _out_of_time(records: Sequence[Record]) -> list[Problem]:
    """Records are in the order of their times, and none is of a day to come."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    findings = [
        Problem("chain", f"record {after.number} is older than the one before it")
        for before, after in zip(records, records[1:], strict=False)
        if after.at < before.at
    ]
    ahead = [record.number for record in records if record.at > tomorrow]
    if ahead:
        findings.append(
            Problem("chain", f"record {ahead[0]} is of a time to come: a clock was set forward")
        )
    return findings


def _other_sums(book: LedgerFile, state: State) -> list[str]:
    """Add up all fits anew, and compare with the sums that the last record seals."""
    try:
        with book.looking() as view:
            stored = Tally.read(view.nodes, state.records[-1].state if state.records else "")
            stored.check()
    except (BudgetError, *_UNREADABLE):
        return ["the sums that the last record seals are missing, or cannot be read"]
    if stored.rule != RULE:
        return []  # of an earlier dpsynth: the next write adds them up anew
    fits = [spending for entry in state.entries for spending in spendings(entry)]
    policies = [record for record in state.records if record.kind == POLICY]
    policy = pointer(policies[-1]) if policies else None
    computed = Tally.of(MemoryNodes(), fits, stored.orders, policy)
    if (computed.accounts, computed.policy) != (stored.accounts, stored.policy):
        return ["the sums that the last record seals are not those of the records"]
    return []
