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
    └── VerificationError        5   a bundle is not what its certificate says

A message says what is wrong, where, and what to do. It may name columns, rules, files and line
numbers; it never quotes a cell of a private table.
"""

from __future__ import annotations

from dataclasses import dataclass


class Note(str):
    """What dpsynth adds to an error on its way out, by ``add_note``; safe to show.

    Notes of others are not shown: a library may quote a cell in one.
    """


class DpsynthWarning(UserWarning):
    """What went well, and yet should be known. As safe to show as an error's message."""


class DpsynthError(Exception):
    """Base of every error that dpsynth raises on purpose."""

    exit_code = 1


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
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"schema {source} has {count}:\n{lines}")


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


class VerificationError(DpsynthError):
    """A bundle is not what its certificate says. ``findings`` lists every difference."""

    exit_code = 5

    def __init__(self, findings: list[Problem]) -> None:
        """Keep the findings and word them, one a line."""
        self.findings = tuple(findings)
        count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
        lines = "\n".join(f"  {finding}" for finding in findings)
        super().__init__(f"verification failed with {count}:\n{lines}")
