"""A backup of a ledger: a copy of the whole file as of one moment, while others may write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dpsynth.errors import BudgetError, InputError
from dpsynth.files import atomic_file, check_apart
from dpsynth.ledger.book import Book
from dpsynth.ledger.storage import sqlite_path

_NO_COPY = "the backup of {} differs from it; nothing was written, so try again"


def back_up(book: Book, target: str | Path) -> Path:
    """Copy a SQLite ledger, its key included, into a new file of mode 0600; check the copy.

    A backup is put back by copying it to the ledger's place while nothing is fitted.

    Raises:
        InputError: the target exists, or the ledger is on a server, whose own tools back it up.
        BudgetError: the copy cannot be made or read.
    """
    target = Path(target)
    if book.store.shared:
        raise InputError("back up a ledger on PostgreSQL with the server's own tools: pg_dump")
    check_apart(target)
    if target.exists():
        raise InputError(f"{target} exists; choose a new file for the backup")
    try:
        with atomic_file(target, private=True) as temporary:
            place = sqlite_path(book.location).absolute().as_uri()  # quotes what a URI forbids
            source = sqlite3.connect(f"{place}?mode=ro", uri=True)
            copy = sqlite3.connect(temporary)
            try:
                source.backup(copy)
            finally:
                copy.close()
                source.close()
            _check(book, temporary)
    except (OSError, sqlite3.Error) as error:
        raise BudgetError(
            f"the backup {target} cannot be written ({type(error).__name__}); choose another place"
        ) from error
    return target


def _check(book: Book, place: Path) -> None:
    """Hold a copy against its ledger, which may have gone on meanwhile.

    Raises:
        BudgetError: it is not a copy, or its chain does not hold.
    """
    try:
        copy = Book(place)
    except InputError as error:
        raise BudgetError(_NO_COPY.format(book.place)) from error
    records, copied = book.records(), copy.records()
    copy.state()
    if copy.facts != book.facts or copied != records[: len(copied)]:
        raise BudgetError(_NO_COPY.format(book.place))
