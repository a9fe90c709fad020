"""What `evaluate` and `audit` are about: a run, or the schema of tables from other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dpsynth.schema import AnySchema
    from dpsynth.synthesis import Run


def run_or_schema(subject: str, command: str) -> tuple[AnySchema, Run | None]:
    """Read a run with its schema, or a schema alone; of one table, or of linked ones.

    Raises:
        InputError: it is neither; ``command`` is named where a table was given first.
    """
    from dpsynth.schema import load_any, shipped_packages, shipped_schemas
    from dpsynth.synthesis import Run
    from dpsynth.synthesis.run import DOCUMENT
    from dpsynth.tables import names_table

    if (Path(subject) / DOCUMENT).exists():
        run = Run.load(subject)
        return run.schema, run
    shipped = {*shipped_schemas(), *shipped_packages()}
    if Path(subject).is_dir() and subject not in shipped:  # such as what `dpsynth demo` wrote
        raise InputError(f"{subject} is a folder but not a run; give a run or a schema")
    if subject.endswith("/") and not Path(subject).exists():
        raise InputError(f"{subject} is not a run folder: it does not exist")
    if names_table(subject):
        raise InputError(f"{subject} is a table; the order is: {command} RUN|SCHEMA DATA")
    return load_any(subject), None
