"""The exceptions of dpsynth, and the exit code that each one means.

::

    DpsynthError                 1   anything dpsynth raises on purpose
    ├── InputError               2   the user's input has to change
    │   ├── SchemaError          2   a schema has mistakes; all of them are listed
    │   ├── TableError           2   a data file is not the table the schema describes
    │   │   └── NoRowsError      2   it has the columns, and no row
    │   ├── RefusedCellError     2   a cell broke a column's opt-in `refuse` policy
    │   └── ArtifactError        2   a run is damaged, foreign or of another version
    ├── GateError                3   a gate failed
    ├── BudgetError              4   the budget, the ledger or the policy refuses
    │   └── ClosedEntryError     4   somebody closed the entry of a fit that was still at work
    └── VerificationError        5   a bundle is not what its certificate says

A message says what is wrong, where, and what to do. It may name columns, rules, files and line
numbers; it never quotes a cell of a private table.

What a message names may come from anybody: a file in a received folder, a key of a document. So a
message is one line, with its unprintable characters escaped; only an error that lists ``items`` has
more, one indented line each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SPACES = "\u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""Spaces that Python does not call printable; they do no harm on a screen or in a file."""


def printable(text: str, keep: str = "") -> str:
    """Escape characters that a terminal obeys or hides: controls, line breaks, bidirectional marks.

    Args:
        text: of anybody.
        keep: unprintable characters that stay as they are.

    >>> printable("a" + chr(9) + "b") == "a" + chr(92) + "tb"
    True
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in keep
        else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )


class Note(str):
    """What dpsynth adds to an error on its way out, by ``add_note``; safe to show.

    Notes of others are not shown: a library may quote a cell in one.
    """


class DpsynthWarning(UserWarning):
    """What went well, and yet should be known. As safe to show as an error's message."""

    def __str__(self) -> str:
        """Return the message as one line, as an error's is."""
        return printable(super().__str__())


class DpsynthError(Exception):
    """Base of every error that dpsynth raises on purpose.

    Attributes:
        items: what the message lists below its first line.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, items: Iterable[object] = ()) -> None:
        """Keep the first line, and what follows it."""
        super().__init__(message)
        self.items = tuple(map(str, items))

    def __str__(self) -> str:
        """Return the message: no name in it can make a line of its own, or obey a terminal."""
        first = " ".join(map(str, self.args)).replace(":\n  ", ": ").replace("\n  ", "; ")
        return "\n".join([printable(first), *(f"  {printable(item)}" for item in self.items)])


class InputError(DpsynthError):
    """The user's input is wrong: a path, an option, a schema, a table."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
    """One mistake in a document: its place (such as ``fields[3].constraints``) and remedy."""

    place: str
    message: str

    def __str__(self) -> str:
        """Return ``place: message``."""
        return f"{self.place}: {self.message}"


class SchemaError(InputError):
    """A schema has mistakes. ``problems`` lists them all, in the order of the document."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        """Keep the problems and word them, one a line."""
        self.source = source
        self.problems = tuple(problems)
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(f"schema {source} has {count}:", items=problems)


class TableError(InputError):
    """A data file is not the table that the schema describes."""


class NoRowsError(TableError):
    """A table has the columns that the schema describes, and no row."""


class RefusedCellError(InputError):
    """A cell broke the rule of a column that declares ``refuse``."""


class ArtifactError(InputError):
    """A run folder is damaged, foreign, or of a version that this dpsynth does not read."""


class GateError(DpsynthError):
    """A gate with a threshold failed."""

    exit_code = 3


class BudgetError(DpsynthError):
    """The budget, the ledger or the policy does not allow this."""

    exit_code = 4


class ClosedEntryError(BudgetError):
    """The entry of a fit was closed while it was at work: what the fit made is discarded."""


class VerificationError(DpsynthError):
    """A bundle is not what its certificate says. ``findings`` lists every difference."""

    exit_code = 5

    def __init__(self, findings: list[Problem]) -> None:
        """Keep the findings and word them, one a line."""
        self.findings = tuple(findings)
        count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
        super().__init__(f"verification failed with {count}:", items=findings)
