"""The office's own verbs on a ledger: adopt a policy, void, sign, permit and enter a release."""

from __future__ import annotations

from dpsynth.errors import BudgetError
from dpsynth.ledger_book import Book
from dpsynth.ledger_checks import check_text, require_person
from dpsynth.ledger_entry import POLICY, RELEASED, SIGNED, VOIDED, Entry
from dpsynth.policy import Policy


def adopt(book: Book, policy: Policy) -> None:
    """Put a policy in force for every later fit and release.

    Raises:
        InputError: nobody is named who adopts it.
    """
    require_person("adopts a policy")
    with book.writing() as pen:
        pen.write(POLICY, "", {"policy": policy.to_dict()})


def void(book: Book, entry_id: str, reason: str) -> Entry:
    """Take an entry out of the sums: its fit provably never began to read.

    Raises:
        InputError: nobody is named, or no reason is given.
        BudgetError: the record does not prove it.
    """
    require_person("voids an entry")
    check_text("a reason", reason, needed=True)
    with book.writing() as pen:
        entry = pen.state.entry(entry_id, book.place)
        if not entry.voidable:
            why = "its fit may have read private rows, so it counts for good"
            raise BudgetError(
                f"entry {entry.id} is {entry.status}: "
                + (why if entry.counts else "it is out of the sums already")
            )
        return pen.write(VOIDED, entry.id, {"note": reason}).entry(entry.id, book.place)


def sign(book: Book, entry_id: str, note: str = "") -> Entry:
    """Sign a fit's entry for release, as somebody other than who fitted it.

    Raises:
        InputError: nobody is named.
        BudgetError: the user fitted it, has signed it already, or it is voided.
    """
    who = require_person("signs an entry")
    check_text("a note", note)
    with book.writing() as pen:
        entry = pen.state.entry(entry_id, book.place)
        if entry.who.casefold() == who.casefold():
            raise BudgetError(f"entry {entry.id} was made by {who}; somebody else has to sign")
        if who.casefold() in {one.who.casefold() for one in entry.signatures}:
            raise BudgetError(f"{who} has signed entry {entry.id} already; somebody else has to")
        if not entry.counts:
            raise BudgetError(f"entry {entry.id} is voided; there is nothing to sign for")
        return pen.write(SIGNED, entry.id, {"note": note}).entry(entry.id, book.place)


def permit(book: Book, entry_id: str) -> None:
    """Refuse the release of a run that the policy in force does not allow.

    Raises:
        BudgetError: the entry is voided, signatures are missing, or a gate is required that the run
            has no verdict of.
    """
    state = book.state()
    entry, policy = state.entry(entry_id, book.place), state.policy
    if not entry.counts:
        raise BudgetError(f"entry {entry.id} was voided: a run of it cannot be released")
    if policy is None:
        return
    missing = policy.sign_off - len(entry.signatures)
    if missing > 0:
        people = "1 more person" if missing == 1 else f"{missing} more people"
        raise BudgetError(
            f"the policy '{policy.name}' asks for {people} to sign before the release: "
            f"dpsynth ledger sign {entry.id[:12]}"
        )
    if policy.gates:
        raise BudgetError(
            f"the policy '{policy.name}' requires gates that this run has no verdict of: "
            f"{', '.join(policy.gates)}"
        )


def enter_release(book: Book, entry_id: str, manifest: str) -> None:
    """Record that a bundle is written; ``manifest`` is the SHA-256 of its manifest."""
    with book.writing() as pen:
        entry = pen.state.entry(entry_id, book.place)
        pen.write(RELEASED, entry.id, {"manifest": manifest})
