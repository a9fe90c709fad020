"""Nodes of the sums that a ledger's records seal, in the ledger's database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from dpsynth.errors import BudgetError
from dpsynth.ledger.storage import Store
from dpsynth.ledger.storage.store import STATE

_MANY = 500  # rows of one statement


class StoredNodes:
    """Nodes of a ledger's sums in its database; new ones wait until a record seals them."""

    def __init__(self, store: Store, connection: sa.Connection) -> None:
        """Read and write in one transaction."""
        self._store, self._connection = store, connection
        self._known: dict[str, Any] = {}
        self._new: dict[str, str] = {}

    def read(self, name: str) -> Any:
        """Return a node's document.

        Raises:
            BudgetError: it is missing, or another one: the tally would mean nothing.
        """
        if name not in self._known:
            query = sa.select(STATE.c.text).where(STATE.c.hash == name)
            text = self._connection.execute(query).scalar()
            if type(text) is not str or hashlib.sha256(text.encode()).hexdigest() != name:
                raise BudgetError(
                    f"ledger {self._store.place} was changed by something other than dpsynth: sums "
                    f"that a record seals are {'missing' if text is None else 'others'}. Restore "
                    "the ledger from a backup"
                )
            self._known[name] = json.loads(text)
        return self._known[name]

    def write(self, text: str, name: str) -> None:
        """Keep a node until it is stored."""
        if name not in self._known:
            self._known[name] = json.loads(text)
            self._new[name] = text

    def flush(self, *roots: str) -> None:
        """Store the new nodes below some nodes, and these; what lay between is never sealed."""
        names = list(dict.fromkeys(self._new_below(list(roots))))
        for start in range(0, len(names), _MANY):
            some = names[start : start + _MANY]
            query = sa.select(STATE.c.hash).where(STATE.c.hash.in_(some))
            stored = set(self._connection.execute(query).scalars())
            rows = [{"hash": name, "text": self._new[name]} for name in some if name not in stored]
            if rows:
                self._connection.execute(STATE.insert(), rows)
        for name in names:
            del self._new[name]

    def _new_below(self, part: Any) -> Iterator[str]:
        """Name new nodes that a part of a document leads to."""
        if isinstance(part, str) and part in self._new:
            yield part
            yield from self._new_below(self._known[part])
        elif isinstance(part, list):
            for link in part:
                yield from self._new_below(link)
