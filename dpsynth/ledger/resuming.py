"""How a fit that stopped goes on within its own entry: from the last checkpoint, and only once.

A fit notes each checkpoint in its entry: how many private steps it has taken, and the SHA-256 of
the file. Each note names the one before it. So the ledger accepts one successor of a checkpoint: an
older copy of the file is refused, and of two processes that go on from the same one, the second to
get further stops.
"""

from __future__ import annotations

import os
import socket

from dpsynth.errors import BudgetError
from dpsynth.ledger.book import LedgerFile, Transaction
from dpsynth.ledger.entry import CHECKPOINT, READING, RESERVED, RESUMED, Entry


def enter_checkpoint(
    book: LedgerFile, entry_id: str, *, step: int, sha256: str, previous: str | None
) -> None:
    """Record that a fit has saved where it stands.

    Args:
        book: the ledger that charged it.
        entry_id: its entry.
        step: private steps that it has taken.
        sha256: of the checkpoint.
        previous: of the checkpoint that was recorded before; None for the first.

    Raises:
        BudgetError: the entry is closed, or the fit went on elsewhere meanwhile.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if not entry.precedes(step, previous):
            raise BudgetError(
                f"entry {entry.id} was closed, or its fit went on in another process; this one "
                "has to stop"
            )
        _enter(pen, entry, step, sha256, previous)


def continued(
    book: LedgerFile, entry_id: str, *, step: int, sha256: str, previous: str | None
) -> Entry:
    """Record that a process goes on with a fit that stopped, and return its entry.

    The checkpoint is the last one that was recorded, or the next one: a process may be killed
    between writing a checkpoint and recording it.

    Args:
        book: the ledger that charged it.
        entry_id: its entry.
        step: private steps that the checkpoint says were taken.
        sha256: of the checkpoint.
        previous: of the checkpoint before, as this one names it.

    Raises:
        BudgetError: the entry is closed, or the checkpoint is not the last one.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if entry.status not in (RESERVED, READING):
            raise BudgetError(
                f"entry {entry.id} is {entry.status}, so its fit cannot go on; for a new fit, name "
                "another folder of checkpoints"
            )
        if entry.status == RESERVED:
            entry = pen.write(READING, entry.id, {"note": ""})
        if entry.checkpoint is None or entry.checkpoint.sha256 != sha256:
            if not entry.precedes(step, previous):
                raise BudgetError(
                    f"this is not the last checkpoint of entry {entry.id}: the folder is an older "
                    "copy, or the fit went on from another one. A checkpoint is used once: go on "
                    "from the newest"
                )
            _enter(pen, entry, step, sha256, previous)
        body = {"host": socket.gethostname(), "process": os.getpid()}
        return pen.write(RESUMED, entry.id, body)


def _enter(pen: Transaction, entry: Entry, step: int, sha256: str, previous: str | None) -> None:
    body = {"step": step, "sha256": sha256, "previous": previous}
    pen.write(CHECKPOINT, entry.id, body)
