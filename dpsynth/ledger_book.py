"""A ledger as a book: what is written in it, and the one way to write more.

Whoever writes sees the whole state first, under a lock that keeps it true until the new record is
on the disk. Writing on a chain that does not hold is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from dpsynth import ledger_places
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger_chain import Record, linked
from dpsynth.ledger_checks import user
from dpsynth.ledger_fields import YEARS
from dpsynth.ledger_state import State
from dpsynth.ledger_store import Facts, Store


@dataclass
class Pen:
    """One transaction that writes: the state it found, and `write`."""

    state: State
    _book: Book
    _connection: sa.Connection

    def write(self, kind: str, entry: str, body: Mapping[str, Any]) -> State:
        """Add a record and return the new state; time never runs backwards in a ledger.

        Raises:
            BudgetError: the clock is out of all reason, and a record of it could not be undone.
        """
        now = self._book.store.database.now(self._connection)
        if now.year not in YEARS:
            raise BudgetError(f"the clock says {now.date()}; set it right, then try again")
        at = max(now.isoformat(timespec="seconds"), self.state.latest)
        record = linked(self.state.head, kind=kind, entry=entry, at=at, who=user(), body=body)
        self._book.store.append(self._connection, record)
        self.state = self._book.read((*self.state.records, record))
        return self.state

    def sources(self) -> dict[str, str]:
        """Read the keyed digest of what each entry's fit read."""
        return self._book.store.sources(self._connection)

    def add_source(self, entry: str, digest: str) -> None:
        """Add the keyed digest of what an entry's fit reads; it is no record of the chain."""
        self._book.store.add_source(self._connection, entry, digest)


class Book:
    """The records of a ledger, in a SQLite file or on a PostgreSQL server.

    Args:
        location: a path, a ``sqlite:///`` or a ``postgresql://`` URL; default: the environment
            variable ``DPSYNTH_LEDGER``, else a file in the user's state folder.

    Raises:
        InputError: there is no ledger there, or it is damaged, or of another version.
        BudgetError: the ledger cannot be made or reached; nothing is fitted without it.
    """

    def __init__(self, location: str | Path | None = None) -> None:
        """Open the ledger; make it where there is none."""
        self.location = str(location or ledger_places.default_location())
        self.made = not ledger_places.exists(self.location)
        self.store = Store.open(ledger_places.database_at(self.location))
        self.facts: Facts = self.store.facts()

    @classmethod
    def present(cls) -> Self:
        """Open the default ledger, which must be there: what only looks makes none.

        Raises:
            InputError: there is none.
        """
        book = cls.existing()
        if book is None:
            raise InputError(
                f"there is no ledger at {ledger_places.default_location()}; the first fit makes "
                "one, or set DPSYNTH_LEDGER"
            )
        return book

    @classmethod
    def existing(cls, location: str | Path | None = None) -> Self | None:
        """Open a ledger if there is one; None where a file would have to be made."""
        chosen = location or ledger_places.default_location()
        return cls(chosen) if ledger_places.exists(chosen) else None

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
    def writing(self) -> Iterator[Pen]:
        """Open a transaction that no other writer can enter before it is on the disk.

        Raises:
            BudgetError: the records do not hold together, or the ledger cannot be written to.
        """
        with self.store.writing() as connection:
            yield Pen(self.read(self.store.records(connection)), self, connection)
