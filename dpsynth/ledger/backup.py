"""A backup of a ledger: a copy of the whole file as of one moment, while others may write."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger.book import LedgerFile

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
