"""The tables of a synthetic cohort, written together into a folder, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from dpsynth._util.strict_json import file_digest
from dpsynth.files import atomic_folder, write_private
from dpsynth.schema import NOTE_FILE, Schema, file_stem
from dpsynth.tables.checks import SUFFIXES, table_kind
from dpsynth.tables.writer import SHAPES, WRITERS, RowBlocks

_NOTE = (
    "The tables in this folder are synthetic. dpsynth drew them; no row describes a real person.\n"
    "Keep this note with the tables when you pass them on.\n"
)


def write_linked(
    blocks: Iterable[Mapping[str, pd.DataFrame]],
    folder: str | Path,
    tables: Mapping[str, Schema],
    *,
    kind: str = ".csv",
    private: bool = False,
    overwrite: bool = False,
    note: bool = True,
) -> dict[str, str]:
    """Write decoded frames of all tables into a new folder, a file for each; see `write_table`.

    The name of each file says that it is synthetic, such as ``synthetic-labs.csv``, and so does a
    note beside them.

    Args:
        blocks: a frame of each table, for some patients at a time.
        folder: the destination.
        tables: the schema of each table as it is written, by name; see `published_tables`.
        kind: suffix of the files: .csv, .csv.gz or .parquet.
        private: whether the folder is for its owner alone.
        overwrite: replace a folder that is there, if it holds files of these tables alone.
        note: whether the folder gets the note `NOTE_FILE`; a bundle writes one of its own.

    Returns:
        The SHA-256 (hex) of each file, by the name of its table.

    Raises:
        InputError: the folder exists and is not replaced, or cannot be written.
        TableError: the suffix is unknown.
        ValueError: a frame lacks a column.
    """
    table_kind(Path(f"table{kind}"))
    names = {name: f"{file_stem(name)}{kind}" for name in tables}
    replaced = table_files(tables) if overwrite else ()
    with atomic_folder(folder, private=private, replaced=replaced) as temporary:
        with ExitStack() as stack:
            rows = {name: RowBlocks(schema) for name, schema in tables.items()}
            shape = {name: SHAPES[kind](schema) for name, schema in tables.items()}
            put = {}
            for name, schema in tables.items():
                file = stack.enter_context((temporary / names[name]).open("wb"))
                put[name] = stack.enter_context(WRITERS[kind](file, schema))
            for frames in blocks:
                for name, frame in frames.items():
                    for block in rows[name].add(frame):
                        put[name](shape[name](block))
            for name, waiting in rows.items():
                for block in waiting.rest():
                    put[name](shape[name](block))
        if note:
            write = write_private if private else Path.write_bytes
            write(temporary / NOTE_FILE, _NOTE.encode())
        return {name: file_digest(temporary / file) for name, file in names.items()}


def table_files(tables: Iterable[str]) -> list[str]:
    """Return the names that files of tables may have, whatever their kind, and that of the note."""
    return [NOTE_FILE, *(file_stem(name) + suffix for name in tables for suffix in SUFFIXES)]
