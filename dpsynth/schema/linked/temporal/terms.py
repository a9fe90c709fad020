"""What a temporal rule compares: a cell of the first, the last or each row, a count, an event."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dpsynth.schema.column import Column
from dpsynth.schema.schema import Schema

PATIENT, FIRST, LAST, EACH, NEXT = "patient", "first", "last", "each", "next"
COUNT, EVENT = "count", "event"
OF_ROWS = (FIRST, LAST, EACH, NEXT)
FUNCTIONS = (*OF_ROWS, COUNT, EVENT)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Term:
    """One operand of a temporal rule.

    Attributes:
        function: `PATIENT` for a cell of the table of patients, else one of `FUNCTIONS`.
        table: it is about; None for an event, whose table follows from its name.
        named: the test of a long table, or the event; None for rows of any.
        column: whose cell it is; None for a count or an event.

    >>> Term("last", "labs", "hdl", "value").text, Term("event", None, "death").text
    ('last(labs, hdl).value', 'event(death)')
    """

    function: str
    table: str | None
    named: str | None = None
    column: str | None = None

    @property
    def text(self) -> str:
        """The term as a rule writes it."""
        names = ", ".join(_written(name) for name in (self.table, self.named) if name is not None)
        start = names if self.function == PATIENT else f"{self.function}({names})"
        return start if self.column is None else f"{start}.{_written(self.column)}"

    @property
    def ranges(self) -> bool:
        """Whether the term has a value for each row, not one for each patient."""
        return self.function in (EACH, NEXT)


def _written(name: str) -> str:
    return name if _WORD.fullmatch(name) else f"`{name}`"


class RowTable(Protocol):
    """What a rule needs to know of a table of rows; see `dpsynth.schema.linked.facts`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def key(self) -> str:
        """The column of the patient's key."""

    @property
    def schema(self) -> Schema:
        """The schema of its columns."""

    @property
    def time(self) -> str | None:
        """The column of the day."""

    @property
    def order(self) -> str | None:
        """The column that orders rows of one day, or all of them."""

    @property
    def once(self) -> str | None:
        """The column of events."""

    @property
    def tests(self) -> tuple[Column, ...]:
        """The tests of a long table, each with what its values are."""

    @property
    def test_column(self) -> str | None:
        """The column that names the test."""

    @property
    def value_column(self) -> str | None:
        """The column that holds the value of a test."""


class Tables(Protocol):
    """What a rule needs to know of a package; see `dpsynth.schema.linked.facts`."""

    @property
    def patients(self) -> Schema:
        """The schema of the table of patients."""

    @property
    def key(self) -> str:
        """The column of its key."""

    @property
    def children(self) -> Sequence[RowTable]:
        """The tables of rows."""


def table_named(schema: Tables, name: str) -> RowTable:
    """Return a table of rows by name.

    Raises:
        KeyError: there is none; the reader of the schema has reported it.
    """
    for table in schema.children:
        if table.name == name:
            return table
    raise KeyError(name)


def event_tables(schema: Tables, event: str) -> list[RowTable]:
    """Return the tables that list an event."""
    return [
        table
        for table in schema.children
        if table.once is not None and event in table.schema.column(table.once).levels
    ]
