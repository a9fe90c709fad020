"""Tables of any kind, or a DataFrame, read in chunks of the columns that a schema needs.

Opening checks the file, the names in its header and the types of its columns, before any cell is
read; of a workbook, also whether each formula has a value, and of a text file, whether each record
has as many fields as the header. Nothing is sniffed: separator, quote,
encoding and decimal sign are the schema's. Columns that the schema does not need are not given out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import pandas as pd

from dpsynth._util.arguments import path_text
from dpsynth._util.formatting import counted
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import file_digest
from dpsynth.errors import TableError
from dpsynth.schema import (
    ChildTable,
    Column,
    Dialect,
    LinkedSchema,
    PrivacyUnit,
    Schema,
    file_stem,
    published_tables,
    table_name,
)
from dpsynth.schema.cell_forms import DEFAULT
from dpsynth.schema.linked.facts import HIDDEN
from dpsynth.tables.cell_kinds import check_frame
from dpsynth.tables.checks import Progress, check_file, check_names, chunk_rows, no_rows
from dpsynth.tables.formats import format_of, suffix_of, suffixes, table_kind
from dpsynth.tables.frames import NamedSource, Source, as_source, as_sources
from dpsynth.tables.records import RecordLog
from dpsynth.tables.reference import Reference, is_url, open_reference
from dpsynth.tables.rows_where import ChosenTable
from dpsynth.tables.writer import check_output, write_table

__all__ = ["Table", "as_written", "check_output", "open_synthetic", "open_table", "write_table"]


class Table(Protocol):
    """Rows of the needed columns, in chunks; may be read more than once."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of every chunk, in the schema's order."""

    @property
    def header(self) -> tuple[str, ...]:
        """The names of all columns of the source; private, since a file may lack a header."""

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of at most 65 536 rows, of text cells (CSV) or typed ones.

        Args:
            progress: called with the fraction of the source that has been read.

        Raises:
            TableError: the source is damaged, of another encoding, or without rows.
        """


@runtime_checkable
class Divisible(Protocol):
    """A file that can be cut into parts: tables with some of its rows each, in order."""

    path: Path

    def parts(self, count: int) -> Sequence[Table]:
        """Cut it into about so many parts; there are none if it cannot be cut."""


@runtime_checkable
class Recorded(Protocol):
    """A text file, whose records are told apart before their cells are read."""

    @property
    def log(self) -> RecordLog | None:
        """Where irregular records are noted and left out; without it, they are errors."""

    def check_records(self) -> None:
        """Refuse a file with an irregular record."""

    def logged(self, key: str | None) -> Recorded:
        """Return the table, to be read once, with a log; of the key's column by name."""

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames as a `Table` does."""


def require_records(table: Table) -> Table:
    """Return a table, unless it is a text file with an irregular record.

    A fit asks before the ledger is charged: a record that is broken in two would be two patients,
    and a fit that stops while it reads has been paid for.

    Raises:
        TableError: at the first such record, with its line (see `dpsynth.tables.records`).
    """
    if isinstance(table, Recorded):
        table.check_records()
    return table


def open_table(source: Source, schema: Schema) -> Table:
    """Open a private table after checking that it exists and has the schema's columns.

    A table is a file, a part of a file, or a table or query of a database; docs/sources.md shows
    how each is named.

    The needed columns are the modelled ones, the privacy unit's, those that name units of
    measurement, those by which rows are chosen, and the order column where whole windows of a
    unit's rows are kept.

    Raises:
        TableError: no such file, another kind of file, columns that are missing or occur twice, a
            text file with an irregular record, or
            columns whose cells have to be text and are not (see `dpsynth.tables.cell_kinds`); or a
            database that cannot be reached.
    """
    return require_records(open_columns(source, schema, needed_columns(schema), private=True))


def open_synthetic(source: Source, schema: Schema) -> Table:
    """Open a synthetic table as `write_table` writes it: the modelled columns, RFC 4180.

    Raises:
        TableError: as `open_table`; but a public table may have columns of any type.
    """
    rows = PrivacyUnit(column=None, max_rows=1, max_rows_basis=None)
    plain = replace(as_written(schema), unit=rows)
    return open_columns(source, plain, tuple(c.name for c in plain.modelled), private=False)


def as_written(schema: Schema) -> Schema:
    """Return the schema by which the cells of a synthetic table are read: as `write_table` does.

    Its decimal sign is a point, no number has thousands separators, and dates are in ISO 8601; a
    declared format is read, too. The codes are those of the schema. Were a synthetic table read
    like the source, 12.125 would be no number where the source has a decimal comma, and 12125
    where it has a point between thousands.
    """
    return replace(
        schema,
        dialect=Dialect(),
        rows_where=(),
        columns=tuple(column_as_written(column) for column in schema.columns),
    )


def column_as_written(column: Column) -> Column:
    """Return one column as a synthetic table has it."""
    declared = column.forms.formats or ((column.format,) if column.format else ())
    formats = (DEFAULT, *(one for one in declared if one != DEFAULT)) if declared else ()
    forms = replace(column.forms, thousands="", formats=formats)
    return replace(column, format=None if formats else column.format, forms=forms)


def open_columns(
    source: Source, schema: Schema, needed: tuple[str, ...], *, private: bool
) -> Table:
    """Open a table to read some columns of a schema.

    Of a private one, the types of its columns are checked, and its rows are those that the schema
    chooses (`Schema.rows_where`).
    """
    source = as_source(source)
    if private and schema.rows_where:
        return _of_table(source, schema, needed)
    if isinstance(source, pd.DataFrame):
        check_names(list(source.columns), needed, "the DataFrame")
        if private:
            check_frame(source, needed, schema)
        return FrameTable(source, needed)
    if not private:
        return _synthetic(Path(source), needed, schema)
    return cast(Table, open_reference(Reference.of(source), needed, schema))


def _of_table(source: NamedSource, schema: Schema, needed: tuple[str, ...]) -> Table:
    """Open a private table whose rows are some of those of its source."""
    read = dict.fromkeys((*needed, *(name for name, _ in schema.rows_where)))
    whole = open_columns(source, replace(schema, rows_where=()), tuple(read), private=True)
    return ChosenTable(whole, schema, needed)


def _synthetic(path: Path, needed: tuple[str, ...], schema: Schema) -> Table:
    """Open a synthetic table as dpsynth writes them, whatever the types of its columns."""
    check_file(path)
    table_kind(path)
    reference = Reference.of(path)
    return cast(
        Table, open_reference(reference, needed, None if reference.format.typed else schema)
    )


def needed_columns(schema: Schema) -> tuple[str, ...]:
    """Return the names of the columns of a private table to read, in the schema's order.

    A status is read from the cells of its own column, whatever else the table holds.
    """
    extra = {schema.unit.column, *(name for name, _ in schema.rows_where)}
    extra |= {c.forms.unit.column for c in schema.modelled if c.forms.unit is not None}
    if schema.unit.keep == "window":
        extra.add(schema.order_column)
    read = {c.name for c in schema.columns if c.is_read and c.status_of is None} | extra
    return tuple(column.name for column in schema.columns if column.name in read)


@dataclass(frozen=True)
class FrameTable:
    """A DataFrame in memory."""

    frame: pd.DataFrame
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        """Show no cell: the rows may be real."""
        return short_repr(self, counted(len(self.columns), "column"))

    @property
    def header(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.frame.columns)

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield slices of the frame; its index is not looked at."""
        rows = len(self.frame)
        if rows == 0:
            raise no_rows("the DataFrame")
        needed, step = list(self.columns), chunk_rows(len(self.columns))
        for start in range(0, rows, step):
            yield self.frame.iloc[start : start + step][needed]
            if progress is not None:
                progress(min(1.0, (start + step) / rows))


def linked_sources(
    data: Source | Mapping[str, Source], schema: LinkedSchema
) -> dict[str, NamedSource]:
    """Return the source of every table of a schema, wherever they lie together.

    Args:
        data: a mapping from the name of each table to it; a folder with a file for each; or a file
            or database that has a part for each: a DuckDB or SQLite file, a workbook with a sheet
            for each table, or the URL of a database, perhaps with one of its own schemas after the
            ``#``. Files and parts have the names of the tables. Where each table chooses its rows
            (`Schema.rows_where`), also one table that has the rows of all.
        schema: of the tables.

    Raises:
        TableError: it is none of these, or has no part for a table, or several.
    """
    if isinstance(data, Mapping):
        return as_sources(data)
    if (whole := _one_table(data, schema)) is not None:
        return dict.fromkeys(schema.table_names, whole)
    expected = (
        f"a folder, database or workbook with the tables of schema {schema.name}, or a mapping "
        "from the name of each table to it"
    )
    place = path_text(data, expected, TableError)
    together = Reference.of_parts(place)
    if together is None:
        return linked_files(place, schema)
    together.check()
    noun, parts = together.format.part, together.format.tables.parts_in(together)
    whole = place if together.part is None else place.rpartition("#")[0]
    sources: dict[str, NamedSource] = {}
    for table in schema.table_names:
        present = [name for name in parts if _is_named(name, table) and "#" not in name]
        if not present:
            raise TableError(
                f"{together.place} has no {noun} for table {table} of schema {schema.name}; call "
                f"it {table}; it may have no rows{_elsewhere(together)}"
            )
        _require_one(together.place, f"{noun}s", table, present)
        sources[table] = f"{whole}#{parts[present[0]]}"
    return sources


def _one_table(data: Source, schema: LinkedSchema) -> NamedSource | None:
    """Return the table that has the rows of all tables; None where each has one of its own."""
    if not all(own.rows_where for own in (schema.patients, *(c.schema for c in schema.children))):
        return None
    source = as_source(data)
    if isinstance(source, pd.DataFrame):
        return source
    if is_url(str(source)):
        return source if "#" in str(source) else None
    if Path(source).is_dir():
        return None
    reference = Reference.of(source)
    if not reference.format.part or reference.part is not None:
        return source
    reference.check()
    parts = reference.format.tables.parts_in(reference)
    named = any(_is_named(name, table) for name in parts for table in schema.table_names)
    return None if named or len(parts) > 1 else source


def linked_files(
    folder: str | Path, schema: LinkedSchema, *, synthetic: bool = False
) -> dict[str, NamedSource]:
    """Find the file of every table in a folder: its name is the table's, such as ``labs.csv.gz``.

    Args:
        folder: of the files.
        schema: of the tables.
        synthetic: whether the tables are synthetic: then the name of a file may also say so, as
            ``synthetic-labs.csv.gz`` does. Of two files of a table, as a bundle has them, the
            typed one is taken.

    Raises:
        TableError: it is no folder; or a table has no file there, or several.
    """
    place = Path(folder)
    if not place.is_dir():
        what = "is a file and not a folder" if place.exists() else "does not exist"
        lacking = [
            own.name
            for own in (schema.patients, *(child.schema for child in schema.children))
            if not own.rows_where
        ]
        raise TableError(
            f"{place} {what}: the tables of schema {schema.name} are files in one folder, "
            f"each with the name of its table, such as {schema.table_names[0]}.csv, or parts of "
            "one database or workbook"
            + (
                "; they may also share one file if each says by rows_where which rows are its own, "
                f"and {listed(lacking)} {'does' if len(lacking) == 1 else 'do'} not"
                if 0 < len(lacking) < len(schema.table_names)
                else ""
            )
        )
    paths = sorted(path for path in place.iterdir() if not path.name.startswith(HIDDEN))
    files: dict[str, NamedSource] = {}
    for table in schema.table_names:
        named = (table, file_stem(table)) if synthetic else (table,)
        present = [path for path in paths if any(_holds(path, one) for one in named)]
        typed = [path for path in present if (found := format_of(path)) and found.typed]
        if synthetic and len(typed) == 1:  # a bundle has each table twice, typed and as text
            present = typed
        _require_one(place, "files", table, [path.name for path in present])
        if not present:
            raise TableError(
                f"{place} has no file for table {table} of schema {schema.name}; it is called "
                f"{table}.csv, or ends in another of {listed(suffixes())}. A table without rows is "
                "a file with a header"
            )
        files[table] = present[0]
    return files


def _elsewhere(together: Reference) -> str:
    """Say where else tables of a database may be."""
    if together.format.part != "table" or together.part is not None:
        return ""
    return ". If the database has schemas of its own, write the name of one after a #"


def _holds(path: Path, table: str) -> bool:
    """Tell whether a file has the name of a table and a suffix that is read, or is its folder."""
    suffix = suffix_of(path)
    stem = path.name[: -len(suffix)] if suffix else path.name
    return _is_named(stem, table) and format_of(path) is not None


def _is_named(name: str, table: str) -> bool:
    """Tell whether a file or part has the name of a table, in any case."""
    return table.lower() in (name.lower(), table_name(name).lower())


def _require_one(place: object, what: str, table: str, present: Sequence[str]) -> None:
    if len(present) > 1:
        raise TableError(
            f"{place} has several {what} for table {table}: {listed(present)}; keep one of them"
        )


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
