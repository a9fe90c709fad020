"""The tables of a schema of linked tables, opened together: of patients, and of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dpsynth._util.arguments import path_text
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth._util.strict_json import file_digest
from dpsynth.errors import TableError
from dpsynth.schema import (
    ChildTable,
    LinkedSchema,
    Schema,
    file_stem,
    published_tables,
    table_name,
)
from dpsynth.schema.linked.table_names import HIDDEN
from dpsynth.tables.frames import NamedSource, Source, as_sources
from dpsynth.tables.sources.reference import FILES
from dpsynth.tables.table import (
    Table,
    as_written,
    column_as_written,
    needed_columns,
    open_columns,
    require_records,
)


def linked_files(
    folder: str | Path, schema: LinkedSchema, *, synthetic: bool = False
) -> dict[str, NamedSource]:
    """Find the file of every table in a folder: its name is the table's, such as ``labs.csv.gz``.

    Args:
        folder: of the files.
        schema: of the tables.
        synthetic: whether the tables are synthetic: then the name of a file may also say so, as
            ``synthetic-labs.csv.gz`` does. Of two files of a table, as a bundle has them, the
            Parquet file is taken.

    Raises:
        TableError: it is no folder; or a table has no file there, or several.
    """
    place = Path(folder)
    if not place.is_dir():
        what = "is a file and not a folder" if place.exists() else "does not exist"
        raise TableError(
            f"{place} {what}: the tables of schema {schema.name} are files in one folder, "
            f"each with the name of its table, such as {schema.table_names[0]}.csv"
        )
    names = sorted(path.name for path in place.iterdir() if not path.name.startswith(HIDDEN))
    files: dict[str, NamedSource] = {}
    for table in schema.table_names:
        named = (table, file_stem(table)) if synthetic else (table,)
        present = [name for name in names if any(_holds(name, one) for one in named)]
        typed = [name for name in present if name.lower().endswith(".parquet")]
        if synthetic and len(typed) == 1:  # a bundle has each table twice, typed and as text
            present = typed
        if len(present) > 1:
            raise TableError(
                f"{place} has several files for table {table}: {listed(present)}; keep one of them"
            )
        if not present:
            raise TableError(
                f"{place} has no file for table {table} of schema {schema.name}; it is called "
                f"{table}.csv, or ends in another of {listed(FILES)}. A table without rows is a "
                "file with a header"
            )
        files[table] = place / present[0]
    return files


def _holds(file: str, table: str) -> bool:
    """Tell whether a file has the name of a table, in any case, and a suffix that is read."""
    lowered = file.lower()
    suffixes = [suffix for suffix in FILES if lowered.endswith(suffix)]
    stems = [file[: -len(suffix)] for suffix in suffixes]
    return any(table.lower() in (stem.lower(), table_name(stem).lower()) for stem in stems)


def linked_sources(
    data: Source | Mapping[str, Source], schema: LinkedSchema
) -> dict[str, NamedSource]:
    """Return the source of every table, from a folder of files or a mapping.

    Raises:
        TableError: it is neither; or as `linked_files`.
    """
    if isinstance(data, Mapping):
        return as_sources(data)
    expected = (
        f"a folder with a file for each table of schema {schema.name}, or a mapping from the name "
        "of each table to it"
    )
    return linked_files(path_text(data, expected, TableError), schema)


def linked_digests(folder: str | Path, schema: LinkedSchema) -> dict[str, str]:
    """Return the SHA-256 (hex) of each synthetic table's file; an error as `linked_files`."""
    files = linked_files(folder, schema, synthetic=True)
    return {name: file_digest(Path(str(file))) for name, file in files.items()}


def open_linked(
    sources: Mapping[str, Source], schema: LinkedSchema, *, whole: bool = True
) -> dict[str, Table]:
    """Open every table of a schema, after checking each as `open_table` does.

    Args:
        sources: a file, an address or a DataFrame by the name of its table.
        schema: of the linked tables.
        whole: whether a text file with an irregular record is refused now, and not when it is read.

    Returns:
        The tables by name, that of patients first.

    Raises:
        TableError: a table is not given, or no table has such a name; or as `open_table`.
    """
    sources = as_sources(sources)
    _check_names(sources, schema)
    opened = {schema.patients.name: _opened(sources, schema.patients, (schema.origin,))}
    for child in schema.children:
        opened[child.name] = _opened(sources, child.schema, child.needed)
    if whole:
        for table in opened.values():
            require_records(table)
    return opened


def open_synthetic_linked(sources: Mapping[str, Source], schema: LinkedSchema) -> dict[str, Table]:
    """Open the tables of a synthetic cohort, as `write_linked` writes them; see `as_written`.

    Raises:
        TableError: as `open_linked`; but the columns of a synthetic table may have any type.
    """
    sources = as_sources(sources)
    _check_names(sources, schema)
    written = written_schema(schema)
    rows = {own.name: own for own in (written.patients, *(c.schema for c in written.children))}
    return {
        name: open_columns(
            sources[name], rows[name], tuple(c.name for c in own.modelled), private=False
        )
        for name, own in published_tables(schema).items()
    }


def written_schema(schema: LinkedSchema) -> LinkedSchema:
    """Return the schema by which the cells of a synthetic cohort are read; see `as_written`."""
    return replace(
        schema,
        patients=as_written(schema.patients),
        children=tuple(map(_child_as_written, schema.children)),
    )


def _child_as_written(child: ChildTable) -> ChildTable:
    tests = child.series
    if tests is not None:
        tests = replace(tests, columns=tuple(map(column_as_written, tests.columns)))
    return replace(child, schema=as_written(child.schema), series=tests)


def _check_names(sources: Mapping[str, NamedSource], schema: LinkedSchema) -> None:
    names = schema.table_names
    for name in sources:
        if name not in names:
            meant = did_you_mean(name, names) if isinstance(name, str) else ""
            # a key that is like none of the names may be that of a patient
            called = f"{shown(name)}{meant}" if meant else "of a name that is given"
            raise TableError(
                f"schema {schema.name} has no table {called}; its tables are {listed(names)}"
            )
    absent = [name for name in names if name not in sources]
    if absent:
        raise TableError(
            f"no file is given for {', '.join(absent)} of schema {schema.name}; a table without "
            "rows is a file with a header"
        )


def columns_of(child: ChildTable) -> tuple[str, ...]:
    """Return the columns of a child table that are read, in the schema's order."""
    return _needed(child.schema, child.needed)


def _opened(
    sources: Mapping[str, NamedSource], schema: Schema, more: tuple[str | None, ...]
) -> Table:
    needed = _needed(schema, more)
    return open_columns(sources[schema.name], schema, needed, private=True)


def _needed(schema: Schema, more: tuple[str | None, ...]) -> tuple[str, ...]:
    wanted = {*needed_columns(schema), *more}
    return tuple(column.name for column in schema.columns if column.name in wanted)
