"""Files of statistics programs: SPSS (``.sav``), SAS (``.sas7bdat``) and Stata (``.dta``).

The type of a column is in the file's dictionary, whatever its rows hold. Numbers there are 64-bit
floating-point numbers or whole numbers of 8 to 32 bits; what keeps fewer digits is refused, as in
Parquet. Each cell becomes text, by itself alone. Missing values that the dictionary declares are
missing.

Value labels are used where the schema says so (``dialect: {labels: true}``), in columns of type
string and boolean; columns of other types have codes in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth._util.dependencies import need
from dpsynth.errors import TableError
from dpsynth.schema import Column, Schema
from dpsynth.tables.cell_kinds import Held, check_kinds
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.sources.statistical_dates import (
    clock_text,
    date_text,
    is_clock,
    is_other_time,
    is_time,
)
from dpsynth.tables.text_columns import cell_text

_READERS = {".sav": "read_sav", ".sas7bdat": "read_sas7bdat", ".dta": "read_dta"}
_PROGRAMS = {".sav": "SPSS", ".sas7bdat": "SAS", ".dta": "Stata"}
_HELD = {"string": Held.TEXT, "double": Held.FLOAT, "float": Held.SINGLE} | dict.fromkeys(
    ("int8", "int16", "int32"), Held.WHOLE
)
_REMEDIES = {
    ".sav": "make it a string variable in SPSS (ALTER TYPE), and check leading zeros; or, if its "
    "value labels are the categories, write dialect: {labels: true} in the schema",
    ".sas7bdat": "make it a character variable, or a number of length 8, in SAS",
    ".dta": "keep it as str or double in Stata (import delimited with stringcols or asdouble); or, "
    "if its value labels are the categories, write dialect: {labels: true} in the schema",
}
_BYTES = 8  # of a number of full precision

Text = Callable[[Any], str | None]


@dataclass(frozen=True)
class StatisticalTable:
    """A file whose dictionary has been checked."""

    path: Path
    kind: str
    columns: tuple[str, ...]
    header: tuple[str, ...]
    schema: Schema
    formats: Mapping[str, str]
    labels: Mapping[str, Mapping[Any, str]]

    @classmethod
    def open(
        cls, path: Path, kind: str, needed: tuple[str, ...], schema: Schema
    ) -> StatisticalTable:
        """Read the file's dictionary, and check names and types.

        Raises:
            TableError: not such a file, or damaged; columns are missing or of a type that is not
                allowed.
        """
        facts = _read(path, kind, schema, metadataonly=True)[1]
        header = tuple(facts.column_names)
        check_names(header, needed, str(path))
        formats = {name: str(facts.original_variable_types.get(name) or "") for name in needed}
        labels: dict[str, Mapping[Any, str]] = {}
        if schema.dialect.labels:
            labels = {
                name: facts.variable_value_labels[name]
                for name in needed
                if name in facts.variable_value_labels and _takes_labels(schema, name)
            }
        kinds = {
            name: Held.TEXT if name in labels else _held(facts, name, formats[name], kind)
            for name in needed
        }
        check_kinds(kinds, schema, str(path), _REMEDIES[kind])
        return cls(path, kind, needed, header, schema, formats, labels)

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is missing."""
        texts = {name: self._text(self.schema.column(name)) for name in self.columns}
        size, done, width = chunk_rows(len(self.columns)), 0, list(self.columns)
        while True:
            cells, facts = _read(
                self.path, self.kind, self.schema, usecols=width, row_offset=done, row_limit=size
            )
            rows = len(cells[width[0]]) if width[0] in cells else 0
            if not rows:
                break
            yield pd.DataFrame(
                {
                    name: pd.Series(list(map(text, cells[name])), dtype=object)
                    for name, text in texts.items()
                }
            )
            done += rows
            if progress is not None and facts.number_rows:
                progress(min(1.0, done / facts.number_rows))
            if rows < size:
                break
        if not done:
            raise no_rows(str(self.path))

    def _text(self, column: Column) -> Text:
        """Return what makes a text of a cell of a column."""
        labels = self.labels.get(column.name, {})
        decimal, program = self.schema.dialect.decimal, _PROGRAMS[self.kind]
        form = self.formats[column.name]
        dated, clocked = is_time(form, program), is_clock(form, program)

        def text(value: Any) -> str | None:
            if value in labels:
                return labels[value]
            if isinstance(value, str) or value is None:
                return value
            if dated:
                return date_text(value, form, program)
            if clocked:
                return clock_text(value, program)
            return cell_text(value, decimal=decimal)

        return text


def _takes_labels(schema: Schema, name: str) -> bool:
    column = schema.column(name)
    words = column.kind.text_only or column.kind.is_truth
    return words and name != schema.unit.column


def _held(facts: Any, name: str, form: str, kind: str) -> Held:
    """Return what a column holds, by the dictionary."""
    content = _HELD.get(facts.readstat_variable_types.get(name, ""), Held.OTHER)
    program = _PROGRAMS[kind]
    if content is Held.TEXT:
        return content
    if is_other_time(form, program):
        return Held.OTHER
    if is_clock(form, program):
        return Held.CLOCK
    if is_time(form, program):
        return Held.TIME
    if kind == ".sas7bdat" and facts.variable_storage_width.get(name, _BYTES) < _BYTES:
        return Held.SINGLE
    return content


def _read(path: Path, kind: str, schema: Schema, **options: Any) -> tuple[Any, Any]:
    """Read a part of a file: lists of plain values, by column; and its dictionary.

    Raises:
        TableError: it is damaged or of another encoding. The reader's text may quote cells.
    """
    need("pyreadstat")
    import pyreadstat

    declared = schema.dialect.encoding
    if declared.lower() not in ("utf-8", "utf8"):
        options["encoding"] = declared
    reader = getattr(pyreadstat, _READERS[kind])
    try:
        read: tuple[Any, Any] = reader(
            path, output_format="dict", disable_datetime_conversion=True, **options
        )
    except Exception as error:
        raise TableError(
            f"{path} is not a file of {_PROGRAMS[kind]}, is damaged or encrypted, or has texts in "
            "another encoding than it states; in the last case, declare dialect.encoding "
            f"({type(error).__name__})"
        ) from None
    return read
