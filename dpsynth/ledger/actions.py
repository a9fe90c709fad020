"""The office's verbs on a ledger: adopt a policy, void, sign, close, forfeit; permit a release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from dpsynth.certificate import Certificate
from dpsynth.errors import BudgetError
from dpsynth.ledger.balances import at_work
from dpsynth.ledger.book import LedgerFile
from dpsynth.ledger.entry import (
    CHARGED,
    FAILED,
    FIGURES,
    FORFEITED,
    MEASURED,
    READING,
    RELEASED,
    SIGNED,
    VOIDED,
    Entry,
    check_text,
    require_for,
    require_person,
    same_person,
)
from dpsynth.ledger.evidence import Evidence, ViewedAccount, differences
from dpsynth.ledger.state import View
from dpsynth.policy import Policy, kinds
from dpsynth.privacy import LinkCounts, described


class ChargedRun(Protocol):
    """What a ledger asks of a run; `dpsynth.synthesis.run.Run` is one."""

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Return the document of its certificate; None for a fit without privacy."""

    @property
    def stamps(self) -> tuple[str, ...]:
        """Return the reasons why it may not be released."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 by which the run is known."""


def adopt(book: LedgerFile, policy: Policy) -> None:
    """Put a policy in force for every later fit and release.

    Raises:
        InputError: nobody is named who adopts it.
        BudgetError: it is for another ledger, or a group joins datasets whose fits count different
            units, or it takes apart datasets for which something was counted once.
    """
    require_person("adopts a policy")
    require_for(policy, book.id, book.place)
    with book.writing() as pen:
        _require_kept_together(pen, policy)
        for group in policy.groups:
            fits = [entry for entry in pen.state.entries if entry.dataset.lower() in group.members]
            counted = kinds(entry.unit for entry in fits if entry.counts)
            if len(counted) > 1:
                first, second = (described(unit) for unit in counted[:2])
                raise BudgetError(
                    f"group '{group.name}' joins fits that count {first} with fits that count "
                    f"{second}: epsilons of different units do not add up. Leave the group out, "
                    "and lower the caps by what either has spent"
                )
        pen.adopt({"policy": policy.to_dict()})


def _require_kept_together(view: View, policy: Policy) -> None:
    """Refuse to take a group apart in which linkage of its people was counted once.

    The entry has the name of one dataset alone, so the others would no longer count it.

    Raises:
        BudgetError: it names the datasets that have to stay together.
    """
    before = view.policy
    groups = () if before is None else before.groups
    if all(set(group.members) <= set(policy.members(group.name)) for group in groups):
        return
    for entry in view.state.entries:
        scope = view.scope(entry.dataset)
        events = entry.plan.get("events")
        linked = isinstance(events, list) and any(
            isinstance(event, dict)
            and (event.get("kind"), event.get("records")) == (LinkCounts.kind, 2)
            for event in events
        )
        kept = set(policy.members(entry.dataset))
        if linked and entry.counts and not set(scope) <= kept:
            raise BudgetError(
                f"entry {entry.id[:12]} is linkage of people who may be in several of "
                f"{', '.join(scope)}, and was counted once for all of them: the new policy must "
                "keep these datasets in one group"
            )


def void(book: LedgerFile, entry_id: str, reason: str) -> Entry:
    """Take an entry out of the sums: its fit provably never began to read.

    Raises:
        InputError: nobody is named, or no reason is given.
        BudgetError: the record does not prove it.
    """
    require_person("voids an entry")
    check_text("a reason", reason, needed=True)
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if not entry.voidable:
            why = "its fit may have read private rows, so it stays charged"
            raise BudgetError(
                f"entry {entry.id} is {entry.status}: "
                + (why if entry.counts else "it does not count already")
            )
        return pen.write(VOIDED, entry.id, {"note": reason})


def sign(book: LedgerFile, entry_id: str, note: str = "") -> Entry:
    """Sign a fit's entry for release, as somebody other than who fitted it.

    Raises:
        InputError: nobody is named.
        BudgetError: the user fitted it, has signed it already, or it is voided.
    """
    who = require_person("signs an entry")
    check_text("a note", note)
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if same_person(entry.who, who):
            raise BudgetError(f"entry {entry.id} was made by {who}; another person must sign it")
        if any(same_person(signature.who, who) for signature in entry.signatures):
            raise BudgetError(f"{who} has already signed entry {entry.id}; another person must")
        if not entry.counts:
            raise BudgetError(f"entry {entry.id} is voided, so it needs no signature")
        return pen.write(SIGNED, entry.id, {"note": note})


def close(book: LedgerFile, run: ChargedRun, *, figures: str | None = None) -> Entry:
    """Close the entry of a run whose fit ended, but could not reach the ledger.

    Args:
        book: the ledger that charged it.
        run: what the fit made.
        figures: SHA-256 of the run's public quality figures; None if it has none.

    Raises:
        InputError: nobody is named.
        BudgetError: the run is not the one that the ledger has an open entry for.
    """
    require_person("closes an entry")
    if run.stamps:
        raise BudgetError(
            f"the run is stamped {', '.join(run.stamps)}: it is not the result of a charged fit"
        )
    evidence = replace(_evidence(run), figures=figures)
    with book.writing() as pen:
        entries = charged_entries(book, pen, evidence)
        waiting = [entry for entry in entries if entry.status == READING]
        if not waiting:
            entry = entries[0]
            raise BudgetError(f"entry {entry.id} is already {entry.status} and cannot be closed")
        body = {"note": "closed by hand", "run": run.digest}
        return [pen.write(CHARGED, entry.id, body) for entry in waiting][0]


def forfeit(book: LedgerFile, entry_id: str, reason: str) -> Entry:
    """Give up what a fit may still spend, so that it leaves the 365 days in time.

    A fit that is reserved or reading is closed as failed: no run is released in its name. Of one
    that ended, the share for public quality figures is given up. What was spent stays spent. A
    process on another machine is not seen here; it finds its entry closed, and keeps nothing.

    Raises:
        InputError: nobody is named, or no reason is given.
        BudgetError: the fit can spend nothing more, or its process is still at work.
    """
    require_person("gives up what a fit may still spend")
    check_text("a reason", reason, needed=True)
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if entry.ended is not None:
            raise BudgetError(f"entry {entry.id} is {entry.status}: it has nothing left to give up")
        if not entry.owes and at_work(entry):
            raise BudgetError(
                f"the process of entry {entry.id} ({entry.process} on this machine) is still "
                "running; wait until it ends, or stop it first"
            )
        kind = FORFEITED if entry.owes else FAILED
        return pen.write(kind, entry.id, {"note": reason})


def permit(book: LedgerFile, run: ChargedRun) -> tuple[Entry, ...]:
    """Refuse the release of a run that its ledger or its policies do not allow.

    The stricter of the policy that admitted the fit and of the one in force counts.

    Returns:
        The run's entry; of an answer about two registers, that of each.

    Raises:
        BudgetError: the run is not the one that the ledger charged, its entry is open or voided, or
            signatures are missing.
    """
    evidence = _evidence(run)
    with book.looking() as view:
        entries, policy = charged_entries(book, view, evidence), view.policy
    for entry in entries:
        _require_permitted(entry, policy)
    return entries


def _require_permitted(entry: Entry, policy: Policy | None) -> None:
    if entry.status == READING:
        raise BudgetError(
            f"entry {entry.id} is still open: its fit could not close it. If the fit completed, "
            "run `dpsynth ledger close` on the run"
        )
    if entry.run is None:
        raise BudgetError(f"entry {entry.id} is {entry.status}: it has no run to release")
    needed = max(entry.sign_off, 0 if policy is None else policy.sign_off)
    missing = needed - len(entry.signatures)
    if missing > 0:
        people = "1 more person" if missing == 1 else f"{missing} more people"
        raise BudgetError(
            f"the policy requires {people} to sign before the release: "
            f"dpsynth ledger sign {entry.id[:12]}"
        )


def required_gates(book: LedgerFile, entry: Entry) -> tuple[str, ...]:
    """List the public gates that a release must pass, whether or not they stop one by themselves.

    As with signatures, the policy that admitted the fit and the one in force both count.
    """
    with book.looking() as view:
        policy = view.policy
    return tuple(sorted({*entry.gates, *(() if policy is None else policy.gates)}))


def charged_entry(book: LedgerFile, view: View, evidence: Evidence) -> Entry:
    """Return the entry of a run that says of the ledger what the ledger says itself.

    Raises:
        BudgetError: it says something else; the first difference is named.
    """
    return charged_entries(book, view, evidence)[0]


def charged_entries(book: LedgerFile, view: View, evidence: Evidence) -> tuple[Entry, ...]:
    """Return the entry of a run, or those of an answer about two registers; see `charged_entry`."""
    findings = differences(book, ViewedAccount(view), evidence)
    if findings:
        raise BudgetError(f"ledger {book.place} did not charge this run: {findings[0]}")
    charges = [one.ledger for one in evidence.certificate.registers]
    names = dict.fromkeys(charge.entry for charge in charges if charge is not None)
    return tuple(map(view.entry, names))


def _evidence(run: ChargedRun) -> Evidence:
    return Evidence(Certificate.from_dict(run.certificate), run.digest)


def spend_quality(book: LedgerFile, run: ChargedRun, table: str) -> Entry:
    """Record that the share of a fit for quality figures is spent now; before any row is read.

    Args:
        book: the ledger that charged the fit.
        run: the fit's run.
        table: SHA-256 of the synthetic table that the figures are about.

    Raises:
        BudgetError: the run is not one that the ledger charged, or the share was spent before, or
            given up.
    """
    evidence = _evidence(run)
    with book.writing() as pen:
        entry = charged_entry(book, pen, evidence)
        if entry.status != CHARGED:
            left_open = entry.status == READING
            remedy = "; if its fit completed: dpsynth ledger close RUN" if left_open else ""
            raise BudgetError(
                f"entry {entry.id} is {entry.status}: it has no share to spend{remedy}"
            )
        if not entry.share or entry.forfeited is not None:
            gone = (
                f"given up on {entry.forfeited.at[:10]}" if entry.forfeited else "never set aside"
            )
            raise BudgetError(f"the share for quality figures of entry {entry.id} was {gone}")
        if entry.measured is not None:
            raise BudgetError(
                f"the share for quality figures of entry {entry.id} was spent on "
                f"{entry.measured.at[:10]}; a second look would need a new fit"
            )
        return pen.write(MEASURED, entry.id, {"table": table})


def enter_figures(book: LedgerFile, entry_id: str, sha256: str) -> None:
    """Record which figures came out of the one measurement: the SHA-256 of their file.

    Raises:
        BudgetError: nothing was measured for the entry, or its figures are recorded already.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if entry.measured is None or not entry.owes:
            raise BudgetError(f"entry {entry.id} waits for no quality figures; none are recorded")
        pen.write(FIGURES, entry.id, {"sha256": sha256})


def enter_release(book: LedgerFile, entry_id: str, manifest: str) -> None:
    """Record that a bundle is written; ``manifest`` is the SHA-256 of its manifest."""
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        pen.write(RELEASED, entry.id, {"manifest": manifest})
