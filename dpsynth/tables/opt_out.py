"""People who opted out: the keys of units that no part of a table may be made from.

A list is a text file with one key a line, or a table with the unit's column by name. Its keys are
compared as the schema declares for the table itself. It holds keys of real people, and is as
private as the source: no message quotes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import path_of
from dpsynth._util.short_repr import short_repr
from dpsynth._util.whole_files import read_whole
from dpsynth.errors import InputError
from dpsynth.schema import Schema
from dpsynth.tables.reference import Reference, names_table
from dpsynth.tables.table import open_table
from dpsynth.tables.unit_keys import Keys

MAX_TEXT = 2**30  # bytes
LISTS = (".txt", ".txt.gz")  # a key on each line, without a header


@dataclass(frozen=True)
class OptOut:
    """The list.

    Attributes:
        keys: as they are compared.
        lines: how many keys were read, whether or not they are different ones.
    """

    keys: frozenset[str]
    lines: int

    def __repr__(self) -> str:
        """Show no key."""
        return short_repr(self, "keys of units")

    @classmethod
    def load(cls, path: str | Path, schema: Schema) -> Self:
        """Read a list: a file of any kind of table as a table, anything else as text.

        Text is UTF-8, one key a line as it stands; lines that are blank, or mean a missing value in
        the unit's column, are passed over. A table is in the dialect of the source, with its
        header in the first line.

        Raises:
            InputError: the schema has no unit's column, or the file cannot be read or has no key.
        """
        column = _unit_column(schema)
        path = path_of(path, "the path of a list")
        if names_table(str(path)) and not str(path).lower().endswith(LISTS):
            Reference.of(path).check()
            dialect = replace(schema.dialect, header_row=1)
            only = replace(schema, columns=(schema.column(column),), rules=(), dialect=dialect)
            only = replace(only, rows_where=())
            return cls._of(open_table(path, only).chunks(), schema, f"opt-out list {path}")
        content = read_whole(
            path, largest=MAX_TEXT, noun="opt-out list", never="a list of keys is not"
        )
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"opt-out list {path} is not readable as UTF-8 text") from None
        return cls._of([pd.DataFrame({column: text.split("\n")})], schema, f"opt-out list {path}")

    @classmethod
    def of(cls, keys: Iterable[str], schema: Schema) -> Self:
        """Take keys as they stand in the table.

        Raises:
            InputError: the schema has no unit's column, or there is no key, or one is not text.
        """
        column, texts = _unit_column(schema), list(keys)
        if not all(isinstance(key, str) for key in texts):
            raise InputError(
                "the opt-out list has keys that are not text; write them exactly as in the table, "
                "with leading zeros"
            )
        return cls._of([pd.DataFrame({column: texts}, dtype=object)], schema, "opt-out list")

    @classmethod
    def _of(cls, chunks: Iterable[pd.DataFrame], schema: Schema, place: str) -> Self:
        keys, lines = Keys(schema), 0
        for chunk in chunks:
            lines += int((keys.units(chunk) >= 0).sum())
        if not lines:
            raise InputError(f"{place} has no key; leave it out if nobody has opted out")
        return cls(frozenset(keys.texts), lines)

    def of_units(self, keys: Keys, count: int) -> npt.NDArray[np.bool_]:
        """Tell of each of a table's units, by its number, whether it is on the list.

        Args:
            keys: the table's, after all of it was read.
            count: of units; those without a key come last, and are on no list.
        """
        opted_out = np.zeros(count, dtype=bool)
        opted_out[: len(keys.texts)] = [text in self.keys for text in keys.texts]
        return opted_out


def _unit_column(schema: Schema) -> str:
    if schema.unit.column is None:
        raise InputError(
            f"schema {schema.name} has no column with the role unit: rows have no key, so an "
            "opt-out list cannot match any row; declare the column, or leave out the list"
        )
    return schema.unit.column
