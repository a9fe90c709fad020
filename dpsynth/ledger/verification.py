"""Verification of a ledger: does its chain hold, and is it the one that certificates speak of.

What the chain alone shows: a record that was edited, removed from the middle, inserted or reordered
without writing all later hashes anew. What only a certificate shows: a chain that was written anew
from some record on, or that was cut off at its end, or a ledger that was put back from an old
backup. Each bundle (and each run) holds one, written when its fit began to read: the newest
protects all records up to that moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from dpsynth.errors import BudgetError, Problem, VerificationError
from dpsynth.ledger.book import LedgerFile
from dpsynth.ledger.chain import Record, breaks
from dpsynth.ledger.entry import POLICY, Disorder, Entry, replayed
from dpsynth.ledger.evidence import Evidence, ReplayedAccount, differences
from dpsynth.ledger.marks import other_than_seen
from dpsynth.ledger.state import State, spendings
from dpsynth.ledger.sum_tree import MemoryNodes
from dpsynth.ledger.tally import RULE, Tally, pointer

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
