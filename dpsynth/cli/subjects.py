"""What `evaluate` and `audit` are about: a run, or the schema of tables from other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dpsynth.schema import AnySchema, Schema
    from dpsynth.synthesis import AnyRun, Run


def any_run_or_schema(subject: str, command: str) -> tuple[AnySchema, AnyRun | None]:
    """Read a run with its schema, or a schema alone; of one table, or of linked ones.

    Raises:
        InputError: it is neither; ``command`` is named where a table was given first.
    """
    from dpsynth.schema import load_any
    from dpsynth.synthesis import load_run
    from dpsynth.synthesis.artifact import DOCUMENT
    from dpsynth.tables import names_table

    if (Path(subject) / DOCUMENT).exists():
        run = load_run(subject)
        return run.schema, run
    if Path(subject).is_dir():
        raise InputError(f"{subject} is a folder but not a run; give a run or a schema")
    if names_table(subject):
        raise InputError(f"{subject} is a table; the order is: {command} RUN|SCHEMA DATA")
    return load_any(subject), None


def run_or_schema(subject: str, command: str) -> tuple[Schema, Run | None]:
    """Read a run of one table with its schema, or such a schema alone.

    Raises:
        InputError: it is neither, or is of linked tables.
    """
    from dpsynth.schema import Schema
    from dpsynth.synthesis import Run

    schema, run = any_run_or_schema(subject, command)
    if not isinstance(schema, Schema):
        raise InputError(f"{subject} is of linked tables, which {command} does not take yet")
    return schema, run if isinstance(run, Run) else None
