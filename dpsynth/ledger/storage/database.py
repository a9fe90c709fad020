"""What a kind of database has to offer to hold a ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from dpsynth.errors import BudgetError, InputError

WAIT_SECONDS = 300
"""How long a writer waits for others."""


class Database(Protocol):
    """What a kind of database has to say for itself."""

    @property
    def place(self) -> str:
        """Where it is, for messages; without a password."""

    @property
    def engine(self) -> sa.Engine:
        """Connections to it, each for one transaction."""

    @property
    def server(self) -> bool:
        """Whether it is on a server, where other tables may lie beside the ledger's."""

    def is_file(self, path: Path) -> bool:
        """Whether a path leads to the database itself, which no output may replace."""

    def backup(self, target: Path, check: Callable[[Path], None]) -> None:
        """Copy the database as of one moment into a new file of mode 0600.

        Args:
            target: the file, which must not exist.
            check: is called with the copy before it gets its name; what it raises ends the backup.

        Raises:
            InputError: the target exists, or the server's own tools have to make the backup.
            BudgetError: the copy cannot be written.
        """

    def appear(self, fill: Callable[[sa.Connection], None]) -> bool:
        """Make a place that is there whole or not at all; False where there is one to fill."""

    def lock(self, connection: sa.Connection) -> None:
        """Make this transaction the only writer, before its first read."""

    def now(self, connection: sa.Connection) -> datetime:
        """Tell the time, with its zone."""

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Have the database refuse to edit or delete rows of a new table."""

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word an error of the database, whose own text may hold statements with their values."""
