"""The ledger: what the patients of each dataset have spent, append-only.

A fit is entered before it reads its first private row. The entry is one row that is never edited;
what becomes of it is a row of its own (reserved, then charged or failed). All three count as spent:
a fit that died may have read rows. The triggers of the database refuse edits and deletions, which
stops mistakes, not a person who owns the file.

Entries add up by basic composition: the sum of epsilons and of deltas is a valid, if cautious,
guarantee for everything fitted on the dataset. Sums are taken in decimal, as budgets are written,
so that three fits of 0.1 fit a cap of 0.3.

The ledger is internal: it holds user names and times, and never leaves the office.
"""

from __future__ import annotations

import getpass
import json
import math
import os
import re
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger_entry import Entry, Spent, Status
from dpsynth.ledger_store import ENTRIES, LEDGER, STATUSES, Store

if TYPE_CHECKING:
    from dpsynth.plan import PrivacyBudget

__all__ = ["Entry", "Ledger", "Spent", "Status"]

_DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NOTE = re.compile(r"[A-Za-z0-9_ .-]{0,64}")
_LONGEST_PURPOSE = 200


class Ledger:
    """An append-only book of fits in one SQLite file.

    Args:
        location: a path or a ``sqlite:///`` URL; default: the environment variable
            ``DPSYNTH_LEDGER``, else a file in the user's state folder.

    Raises:
        InputError: the file is no ledger, is damaged, or is of another version.
        BudgetError: the ledger cannot be made there, or is locked; nothing is fitted without it.
    """

    def __init__(self, location: str | Path | None = None) -> None:
        """Open the ledger; make it where there is none."""
        self._store = Store.open(location or os.environ.get("DPSYNTH_LEDGER") or _default())

    @property
    def path(self) -> Path:
        """Where the ledger lies."""
        return self._store.path

    @property
    def id(self) -> str:
        """The ledger's own random identity, drawn when it was made."""
        with self._store.reading() as connection:
            return str(connection.execute(sa.select(LEDGER.c.id)).scalar_one())

    def reserve(
        self,
        dataset: str,
        *,
        purpose: str,
        plan: dict[str, Any],
        epsilon: float,
        delta: float,
        model: str,
        schema_hash: str,
        allow_refuse: bool,
        cap: PrivacyBudget | None = None,
    ) -> Entry:
        """Enter a fit before its first private read, in one transaction.

        Args:
            dataset: the name under which these patients are counted; case does not matter.
            purpose: a few words of the user's.
            plan: the plan's document.
            epsilon: what the fit may spend.
            delta: likewise.
            model: the generator's name.
            schema_hash: SHA-256 of the schema.
            allow_refuse: whether a column may refuse a cell, one bit outside the guarantee.
            cap: the most that all entries of the dataset may spend together.

        Raises:
            InputError: the name or the budget is not acceptable.
            BudgetError: the cap would be passed, or the ledger cannot be written to. Then nothing
                was entered, and nothing may be read.
        """
        _check(dataset, purpose, epsilon, delta)
        entry: dict[str, Any] = {
            "id": uuid.uuid4().hex,
            "dataset": dataset,
            "at": _now(),
            "who": _who(),
            "purpose": purpose,
            "model": model,
            "schema_hash": schema_hash,
            "epsilon": float(epsilon),
            "delta": float(delta),
            "plan": json.dumps(plan, sort_keys=True, allow_nan=False),
            "allow_refuse": bool(allow_refuse),
        }
        with self._store.writing() as connection:
            if cap is not None:
                _check_cap(_spent(connection, dataset), entry, cap)
            connection.execute(ENTRIES.insert().values(entry))
            _append(connection, entry["id"], "reserved", "")
            return _entries(connection, ENTRIES.c.id == entry["id"])[0]

    def charge(self, entry_id: str, note: str = "") -> None:
        """Close an entry: the fit ended."""
        self._close(entry_id, "charged", note)

    def fail(self, entry_id: str, note: str = "") -> None:
        """Close an entry: the fit died. It counts as spent nevertheless.

        Args:
            entry_id: the entry.
            note: a few plain words, such as the class of the error. Anything else could be text
                from private rows, and is withheld.
        """
        self._close(entry_id, "failed", note)

    def _close(self, entry_id: str, status: str, note: str) -> None:
        plain = note if _NOTE.fullmatch(note) else "note withheld"
        with self._store.writing() as connection:
            found = _entries(connection, ENTRIES.c.id == entry_id)
            if not found:
                raise InputError(f"ledger {self.path} has no entry {entry_id}")
            if found[0].status != "reserved":
                raise InputError(f"entry {entry_id} is {found[0].status} already; it stays so")
            _append(connection, entry_id, status, plain)

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """List the fits, oldest first: all, or those of one dataset."""
        chosen = sa.true() if dataset is None else _is(dataset)
        with self._store.reading() as connection:
            return _entries(connection, chosen)

    def spent(self, dataset: str) -> Spent:
        """Add up what a dataset has spent: reserved, charged and failed fits alike."""
        with self._store.reading() as connection:
            return _spent(connection, dataset)


def _check(dataset: str, purpose: str, epsilon: float, delta: float) -> None:
    """Refuse an entry that could not be counted."""
    if not _DATASET.fullmatch(dataset):
        raise InputError(
            "a dataset's name has 1 to 64 letters, digits, dots, hyphens and underscores, and "
            "starts with a letter or digit"
        )
    if len(purpose) > _LONGEST_PURPOSE or not purpose.isprintable():
        raise InputError(f"a purpose is one line of at most {_LONGEST_PURPOSE} characters")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon must be a finite number above 0")
    if not 0 < delta < 1:
        raise InputError("delta must lie between 0 and 1")


def _check_cap(spent: Spent, entry: dict[str, Any], cap: PrivacyBudget) -> None:
    """Refuse an entry that would pass the cap, in epsilon or in delta."""
    for name, used, limit in (
        ("epsilon", spent.epsilon_sum, cap.epsilon),
        ("delta", spent.delta_sum, cap.delta),
    ):
        if _decimal(used) + _decimal(entry[name]) > _decimal(limit):
            fits = "1 fit has" if spent.fits == 1 else f"{spent.fits} fits have"
            raise BudgetError(
                f"dataset '{entry['dataset']}': {fits} spent {name} {used:g} of {limit:g}, and "
                f"{entry[name]:g} more would pass it; ask for less, or have the cap raised"
            )


def _is(dataset: str) -> sa.ColumnElement[bool]:
    """Match a dataset by name, whatever its case: two spellings must not be two budgets."""
    return sa.func.lower(ENTRIES.c.dataset) == dataset.lower()


def _append(connection: sa.Connection, entry_id: str, status: str, note: str) -> None:
    row = {"entry_id": entry_id, "at": _now(), "status": status, "note": note}
    connection.execute(STATUSES.insert().values(row))


def _entries(connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> list[Entry]:
    history: dict[str, list[Status]] = {}
    joined = STATUSES.join(ENTRIES, STATUSES.c.entry_id == ENTRIES.c.id)
    statuses = sa.select(STATUSES).select_from(joined).where(chosen).order_by(STATUSES.c.number)
    for row in connection.execute(statuses).mappings():
        history.setdefault(row["entry_id"], []).append(
            Status(row["at"], row["status"], row["note"])
        )
    rows = connection.execute(sa.select(ENTRIES).where(chosen).order_by(ENTRIES.c.number))
    entries = []
    for row in rows.mappings():
        fields = {name: value for name, value in row.items() if name != "number"}
        fields["plan"] = json.loads(fields["plan"])
        opened = [Status(row["at"], "reserved", "")]  # an entry counts, whatever its history
        entries.append(Entry(**fields, history=tuple(history.get(row["id"], opened))))
    return entries


def _spent(connection: sa.Connection, dataset: str) -> Spent:
    rows = connection.execute(
        sa.select(ENTRIES.c.epsilon, ENTRIES.c.delta).where(_is(dataset))
    ).all()
    return Spent(
        fits=len(rows),
        epsilon_sum=float(sum((_decimal(row.epsilon) for row in rows), Decimal(0))),
        delta_sum=float(sum((_decimal(row.delta) for row in rows), Decimal(0))),
    )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _who() -> str:
    """Name the user: ``DPSYNTH_USER``, else the login name, else ``unknown``."""
    try:
        name = os.environ.get("DPSYNTH_USER") or getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = "unknown"
    return name[:64]


def _default() -> Path:
    from platformdirs import user_state_dir

    return Path(user_state_dir("dpsynth")) / "ledger.sqlite"
