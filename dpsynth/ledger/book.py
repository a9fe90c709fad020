"""A ledger as a book: what is written in it, and the one way to write more.

Whoever writes sees the ledger first (`View`), under a lock that keeps it as it is until the new
record is on the disk. A write reads the end of the chain, the sums that it seals, and the records
of one entry: it costs the same however long the ledger is. Whoever lists the ledger reads all of
it, and checks it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import BudgetError, DpsynthWarning, InputError
from dpsynth.ledger import LedgerFacts, Store, database, default_path
from dpsynth.ledger.chain import Record, linked
from dpsynth.ledger.entry import POLICY, YEARS, Disorder, Entry, user
from dpsynth.ledger.marks import note, require_as_seen, require_never_seen, seen_at
from dpsynth.ledger.state import State, View, adopted_in, changed, spendings
from dpsynth.ledger.tally import Spending, Tally, pointer


class Transaction(View):
    """One transaction that writes: the ledger as it found it, and `write`."""

    def write(self, kind: str, entry: str, body: Mapping[str, Any]) -> Entry:
        """Add a record about an entry, and return the entry.

        Raises:
            BudgetError: the clock is out of all reason, and a record of it could not be undone; or
                the record does not follow from those before it.
        """
        known = self._records(entry)
        draft = self._next(kind, entry, body)
        before, after = self._replayed(known), self._replayed([*known, draft()])
        tally = self.tally.changed(*(_spent(fits) for fits in (before, after)))
        record = self._append(draft, tally)
        return self._replayed([*known, record])[-1]

    def adopt(self, body: Mapping[str, Any]) -> None:
        """Add a record that puts a policy in force.

        Raises:
            BudgetError: the clock is out of all reason, or the policy cannot be read.
        """
        draft = self._next(POLICY, "", body)
        try:
            adopted_in(draft())
        except Disorder as error:
            raise changed(self.place, str(error)) from error
        self._append(draft, replace(self.tally, policy=pointer(draft())))

    def summed(self, orders: Iterable[int]) -> Tally:
        """Return the tally with divergences of these orders; they are summed from now on."""
        if not self.tally.covers(orders):
            self.tally = self._summed_anew(self.tally, orders)
        return self.tally

    def datasets_of(self, digest: str) -> set[str]:
        """Read under which names what has this keyed digest was read."""
        return self._store.datasets_of(self._connection, digest)

    def add_source(self, entry: Entry, digest: str) -> None:
        """Add the keyed digest of what an entry's fit reads; it is no record of the chain."""
        self._store.add_source(self._connection, entry.id, entry.dataset, digest)

    def _next(self, kind: str, entry: str, body: Mapping[str, Any]) -> partial[Record]:
        """Return what makes the next record; times never run backwards in a ledger."""
        now = self._store.database.now(self._connection)
        if now.year not in YEARS:
            raise BudgetError(f"the clock says {now.date()}; set it right, then try again")
        at = max(now.isoformat(timespec="seconds"), self.latest)
        return partial(linked, self.head, kind=kind, entry=entry, at=at, who=user(), body=body)

    def _append(self, draft: partial[Record], tally: Tally) -> Record:
        record = draft(state=tally.save())
        self.nodes.flush(record.state)
        self._store.append(self._connection, record)
        self.tally, self.head, self.latest = tally, record.head, record.at
        return record


class LedgerFile:
    """The records of a ledger, in a SQLite file or on a PostgreSQL server.

    To open a ledger makes none: see `create`.

    Args:
        location: a path, a ``sqlite:///`` or a ``postgresql://`` URL; default: the environment
            variable ``DPSYNTH_LEDGER``, else a file in the user's state folder.

    Attributes:
        made: whether it was made just now.
        noted: whether it is noted for this user how far the ledger has come; see `ledger.marks`.

    Raises:
        InputError: there is no ledger there, or it is empty, damaged, or of another version.
        BudgetError: the ledger cannot be reached; nothing is fitted without it.
    """

    def __init__(self, location: str | Path | None = None) -> None:
        """Open a ledger that is there."""
        self.location = str(database.default_location() if location is None else location)
        self.made = self.noted = False
        self.store = Store.open(database.database_at(self.location))
        self.facts: LedgerFacts = self.store.facts()

    def __repr__(self) -> str:
        """Say where it lies, without a password."""
        return short_repr(self, self.place)

    @classmethod
    def create(cls, location: str | Path | None = None) -> Self:
        """Make a new ledger, where there is nothing or what is there is empty.

        Raises:
            InputError: there is a ledger, or something else.
            BudgetError: it cannot be made there.
        """
        chosen = database.default_location() if location is None else location
        Store.create(database.database_at(chosen, must_exist=False))
        book = cls(chosen)
        book.made = book.noted = True
        with book.looking() as view:
            if (earlier := seen_at(view.place)) is not None:
                warnings.warn(
                    f"{view.place} held ledger {earlier.ledger} with {earlier.number} records when "
                    "you last used it; it was emptied or removed. Budget spent in it still counts, "
                    "and this new ledger does not know of it: restore the earlier one if you can",
                    DpsynthWarning,
                    stacklevel=2,
                )
            note(view)
        return book

    @classmethod
    def default(cls) -> Self:
        """Open the default ledger; make it if it is the user's own file, and there never was one.

        Raises:
            InputError: ``DPSYNTH_LEDGER`` names a place without a ledger, or the file is empty.
            BudgetError: the ledger cannot be made or reached, or is not as it was last seen.
        """
        book = cls.existing()
        if book is not None:
            return book
        place = default_path()
        require_never_seen(str(place))
        with suppress(InputError):  # another process was quicker, or what is wrong is said below
            book = cls.create(place)
        return book or cls.present()

    @classmethod
    def present(cls) -> Self:
        """Open the default ledger, which must be there.

        Raises:
            InputError: there is none.
        """
        book = cls.existing()
        if book is None:
            raise InputError(
                f"there is no ledger at {database.default_location()}; the first fit creates "
                "one, or set DPSYNTH_LEDGER"
            )
        return book

    @classmethod
    def existing(cls) -> Self | None:
        """Open the default ledger; None if it is the user's own file, and there is none.

        Raises:
            InputError: ``DPSYNTH_LEDGER`` names a place without a ledger.
            BudgetError: the ledger cannot be reached, or is not as this user last saw it.
        """
        place = default_path()
        if database.default_location() == str(place) and not os.path.lexists(place):
            return None
        book = cls()
        with book.looking() as view:
            require_as_seen(view)
        book.noted = True
        return book

    @property
    def place(self) -> str:
        """Where the ledger lies; no password."""
        return self.store.place

    @property
    def id(self) -> str:
        """The ledger's own random identity, drawn when it was made."""
        return self.facts.id

    @property
    def key(self) -> bytes:
        """The ledger's secret, for keyed digests of files. It goes into no output."""
        return self.facts.key

    def records(self) -> list[Record]:
        """Read all records as they are stored, whether or not they hold together."""
        return self.store.records()

    def state(self) -> State:
        """Read what all records say.

        Raises:
            BudgetError: they do not hold together.
        """
        return self.read(self.records())

    def read(self, records: Sequence[Record]) -> State:
        """Read what records of this ledger say, as `state` does."""
        return State.of(self.facts, records, self.place)

    @contextmanager
    def looking(self) -> Iterator[View]:
        """Look at the end of the chain, sums and single entries; nobody has to wait.

        Raises:
            BudgetError: the end of the chain does not hold.
        """
        with self.store.reading() as connection:
            yield View(self.store, self.facts, connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a transaction that no other writer can enter before it is on the disk.

        Raises:
            BudgetError: the end of the chain does not hold, or the ledger cannot be written to.
        """
        with self.store.writing() as connection:
            pen = Transaction(self.store, self.facts, connection)
            yield pen
        if self.noted:
            note(pen)


def _spent(fits: Sequence[Entry]) -> list[Spending]:
    return [spending for fit in fits for spending in spendings(fit)]
