"""The table of a bundle, in two formats: is each what the schema says, and do they hold the same.

A table is read as numbers: a category as its place among the categories, a date as days, a missing
cell as NaN. So the same rows give the same digest, whether they are text or typed.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from dpsynth.encoding.any_table import canonical, rows_of_tests, typed_frame, values_of
from dpsynth.encoding.codec import published_lattice
from dpsynth.encoding.conformity import departures
from dpsynth.encoding.relations import strained
from dpsynth.errors import DpsynthError, NoRowsError, Problem, TableError
from dpsynth.schema import Schema, SyntheticTable, as_number, synthetic_tables
from dpsynth.tables import open_synthetic
from dpsynth.tables.records import MAX_LINE_LENGTH
from dpsynth.tables.writer import SYNTHETIC_NOTE

_MAX_PROBLEMS = 20  # of one table; a reader needs no more to see that it is another one


@dataclass(frozen=True)
class Content:
    """What a table holds, by value: its number of rows, and a digest of all cells."""

    rows: int
    sha256: str


def check_table(
    path: Path, schema: Schema | SyntheticTable
) -> tuple[Content | None, list[Problem]]:
    """Read a table of a bundle whole and compare every cell with the schema.

    Returns:
        The content (None if the table could not be read), and every problem by column.
    """
    table = _table(schema)
    columns = table.schema.modelled
    totals = [hashlib.sha256() for _ in columns]
    rows, problems = 0, dict.fromkeys(_header_problems(path, table.schema))
    try:
        for frame in _chunks(path, table):
            rows += len(frame)
            problems |= dict.fromkeys(_faults(frame, table))
            for total, column in zip(totals, columns, strict=True):
                total.update(canonical(values_of(frame, column, table)))
    except DpsynthError as error:
        return None, [*problems, Problem("table", str(error))][:_MAX_PROBLEMS]
    joined = "".join(total.hexdigest() for total in totals)
    content = Content(rows, hashlib.sha256(joined.encode()).hexdigest())
    return content, list(problems)[:_MAX_PROBLEMS]


def typed_frames(path: Path, schema: Schema | SyntheticTable) -> Iterator[pd.DataFrame]:
    """Read a synthetic table as frames of the declared types, whatever its format.

    Raises:
        TableError: a cell is not what the schema allows, or the file cannot be read.
    """
    table = _table(schema)
    for frame in _chunks(path, table):
        problems = _departures(frame, table)
        if problems:
            raise TableError(f"{path}: {problems[0]}; it is not a table of this run")
        yield typed_frame(frame, table)


def _chunks(path: Path, table: SyntheticTable) -> Iterator[pd.DataFrame]:
    """Read a table in chunks; one of rows that belong to patients may be empty."""
    try:
        yield from open_synthetic(path, table.schema).chunks()
    except NoRowsError:
        if table.child is None:
            raise
        yield pd.DataFrame(columns=[c.name for c in table.schema.modelled], dtype=object)


def _table(schema: Schema | SyntheticTable) -> SyntheticTable:
    """Return a single table for its schema."""
    if isinstance(schema, SyntheticTable):
        return schema
    return next(iter(synthetic_tables(schema).values()))


def _header_problems(path: Path, schema: Schema) -> list[Problem]:
    """Compare the columns of the file with those of the schema, and look for stowaways."""
    names = [column.name for column in schema.modelled]
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                header = next(csv.reader([file.readline(MAX_LINE_LENGTH)]), [])
            return [] if header == names else [_other_columns()]
        return _parquet_problems(path, schema)
    except (OSError, ValueError, csv.Error, pa.ArrowException):
        return [Problem("table", "its header cannot be read")]


def _parquet_problems(path: Path, schema: Schema) -> list[Problem]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        fields = [(field.name, str(field.type)) for field in file.schema_arrow]
        notes = set(file.metadata.metadata or {}) | set(file.schema_arrow.metadata or {})
        for column in file.schema_arrow:
            notes |= set(column.metadata or {})
    problems = []
    if [name for name, _ in fields] != [column.name for column in schema.modelled]:
        problems.append(_other_columns())
    elif fields != [(column.name, column.kind.arrow) for column in schema.modelled]:
        problems.append(Problem("table", "a column has another type than the schema gives it"))
    if notes - {b"ARROW:schema", b"PARQUET:field_id", *SYNTHETIC_NOTE}:
        problems.append(Problem("table", "the file holds notes beside its columns"))
    return problems


def _other_columns() -> Problem:
    return Problem("table", "its columns are not those of the schema, in the schema's order")


def _departures(frame: pd.DataFrame, table: SyntheticTable) -> list[Problem]:
    """List what the cells of a frame break: types, bounds, resolution, categories, relations."""
    others = [c for c in table.schema.modelled if not table.is_measured(c)]
    columns = [as_number(c) if table.is_number(c) else c for c in others]
    part = frame if table.series is None else frame[[c.name for c in others]]
    for key in (c for c in others if c.name == table.key):
        part = part.assign(**{key.name: table.numbers(frame, key)})
    problems = departures(part, columns, {c.name: published_lattice(c) for c in columns})
    if problems:
        return problems
    for test, rows in [] if table.series is None else rows_of_tests(frame, table):
        assert table.series is not None
        cells = pd.DataFrame({test.name: frame[table.series.value].iloc[rows]})
        problems += departures(cells, [test], {test.name: published_lattice(test)})
    return problems or strained(frame, table.schema)


def _faults(frame: pd.DataFrame, table: SyntheticTable) -> list[Problem]:
    """List what a frame breaks: the schema's columns, or, if those are sound, its rules."""
    problems, rules = _departures(frame, table), table.schema.rules
    if problems or not rules:
        return problems
    typed = typed_frame(frame, table, {name for rule in rules for name in rule.columns})
    return [
        Problem(f"rule '{rule.text}'", "some rows break it")
        for rule in rules
        if not rule.holds(typed).all()
    ]
