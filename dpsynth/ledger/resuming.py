"""How a fit that stopped goes on within its own entry: from the last checkpoint, and only once.

A fit notes each checkpoint in its entry *before* its file is written: how many private steps it has
taken, and the SHA-256 of the file. Each note names the one before it. So the ledger accepts one
successor of a checkpoint, and what was drawn is in a file only if the ledger knows that file. An
older copy, or a file that was never recorded, is refused; of two processes that go on from the same
one, the second to get further stops.
"""

from __future__ import annotations

import os
import socket

from dpsynth.errors import BudgetError, ClosedEntryError, DpsynthError
from dpsynth.ledger.book import LedgerFile
from dpsynth.ledger.entry import CHARGED, CHECKPOINT, READING, RESERVED, RESUMED, Entry


def require_open(book: LedgerFile, *entries: Entry) -> None:
    """Refuse to go on where somebody has closed an entry since it was read.

    A fit that was given up leaves the 365 days by the time of that record, so nothing may be drawn
    or kept afterwards. Its process may be on another machine than whoever gave it up.

    A ledger that is out of reach stops nothing here, so that it loses no run: such a run cannot be
    released before ``dpsynth ledger close``, which asks the ledger again.

    Args:
        book: the ledger that charged them.
        entries: as they were when they were opened.

    Raises:
        ClosedEntryError: one is closed, so what its fit made has to be discarded.
    """
    try:
        with book.looking() as view:
            now = [view.entry(entry.id) for entry in entries]
    except DpsynthError:
        return
    for entry, earlier in zip(now, entries, strict=True):
        if not entry.may_still_spend(earlier):
            raise closed(entry)


def closed(entry: Entry) -> ClosedEntryError:
    """Word what becomes of a fit whose entry was closed while it was at work."""
    last = entry.forfeited or entry.history[-1]
    how = "another process ended this fit" if entry.status == CHARGED else "it was given up"
    how = "its share was given up" if entry.forfeited else how
    return ClosedEntryError(
        f"entry {entry.id[:12]} was closed by {last.who} on {last.at[:10]}, while this process was "
        f"still at work: {how}. So what this process made is discarded. The entry counts as spent; "
        "the same work again is a new charge"
    )


def enter_checkpoint(
    book: LedgerFile, entry_id: str, *, step: int, sha256: str, previous: str | None
) -> None:
    """Record a checkpoint, before its file is written.

    Args:
        book: the ledger that charged it.
        entry_id: its entry.
        step: private steps that it has taken.
        sha256: of the checkpoint.
        previous: of the checkpoint that was recorded before; None for the first.

    Raises:
        ClosedEntryError: the entry is closed.
        BudgetError: the fit went on elsewhere meanwhile, or the ledger cannot be written to.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if not entry.open:
            raise closed(entry)
        if not entry.precedes(step, previous):
            raise BudgetError(
                f"the fit of entry {entry.id} went on in another process; this one has to stop"
            )
        body = {"step": step, "sha256": sha256, "previous": previous}
        pen.write(CHECKPOINT, entry.id, body)


def continued(book: LedgerFile, entry_id: str, *, sha256: str) -> Entry:
    """Record that a process goes on with a fit that stopped, and return its entry.

    Args:
        book: the ledger that charged it.
        entry_id: its entry.
        sha256: of the checkpoint, which has to be the last one that was recorded.

    Raises:
        BudgetError: the entry is closed, or the checkpoint is not the last one.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if not entry.open:
            raise BudgetError(
                f"entry {entry.id} is {entry.status}, so its fit cannot go on; for a new fit, name "
                "another folder of checkpoints"
            )
        if entry.checkpoint is None or entry.checkpoint.sha256 != sha256:
            raise BudgetError(
                f"this is not the last checkpoint of entry {entry.id}, and no other is continued. "
                "If the folder is an older copy, take the newest. If the fit was killed just while "
                "it wrote its last checkpoint, it cannot go on: its entry counts, and you can give "
                f"it up by `dpsynth ledger forfeit {entry.id[:12]}`"
            )
        if entry.status == RESERVED:
            entry = pen.write(READING, entry.id, {"note": ""})
        body = {"host": socket.gethostname(), "process": os.getpid()}
        return pen.write(RESUMED, entry.id, body)


def recorded(book: LedgerFile, entry_id: str, sha256: str) -> bool:
    """Whether a checkpoint is the last one in the ledger; False if that cannot be asked."""
    try:
        with book.looking() as view:
            last = view.entry(entry_id).checkpoint
    except DpsynthError:
        return False
    return last is not None and last.sha256 == sha256
