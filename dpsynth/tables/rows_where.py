"""The rows of a source that are those of a table, where several tables lie in one source.

A schema names a column and what it holds in the rows of the table (``rows_where``). Which tables a
row belongs to depends on the cells of that row alone, compared as text without blanks around it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth._util.messages import listed
from dpsynth.errors import NoRowsError
from dpsynth.tables.checks import Progress
from dpsynth.tables.records import RecordLog
from dpsynth.tables.text_columns import texts_of, trimmed

if TYPE_CHECKING:
    from dpsynth.schema import Schema

Bools = npt.NDArray[np.bool_]
Conditions = Sequence[tuple[str, Sequence[str]]]


def cells_of(chunk: pd.DataFrame, column: str) -> Any:
    """Return the trimmed text of each cell, empty where it is missing."""
    return pc.fill_null(trimmed(texts_of(chunk[column])), "")


def chosen(chunk: pd.DataFrame, conditions: Conditions) -> Bools:
    """Tell which rows have one of the texts in each of the columns.

    >>> frame = pd.DataFrame({"form": ["labs", None, " labs "]})
    >>> chosen(frame, [("form", ["labs"])]).tolist(), chosen(frame, [("form", [""])]).tolist()
    ([True, False, True], [False, True, False])
    """
    found: Bools = np.ones(len(chunk), dtype=bool)
    for column, texts in conditions:
        among = pc.is_in(cells_of(chunk, column), value_set=pa.array(texts, pa.large_string()))
        found &= among.to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True)
class ChosenTable:
    """The rows of a source that are those of a table.

    Attributes:
        whole: a `dpsynth.tables.Table` of all rows, with the columns by which they are chosen.
        schema: of the table.
        columns: those that are read.
    """

    whole: Any
    schema: Schema
    columns: tuple[str, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The names of all columns of the source."""
        return tuple(self.whole.header)

    @property
    def log(self) -> RecordLog | None:
        """That of the source, if it is a text file that notes irregular records."""
        return cast(RecordLog | None, getattr(self.whole, "log", None))

    def check_records(self) -> None:
        """Refuse a text file with an irregular record, in the rows of whatever table."""
        if hasattr(self.whole, "check_records"):
            self.whole.check_records()

    def logged(self, key: str | None) -> ChosenTable:
        """Return the table, to be read once, with a log if it lies in a text file."""
        if not hasattr(self.whole, "logged"):
            return self
        logged = self.whole.logged(key)
        logged.log.chosen = array("q")
        return replace(self, whole=logged)

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of the rows of the table.

        Raises:
            NoRowsError: it has none.
            TableError: as the source.
        """
        conditions, before, is_empty = self.schema.rows_where, 0, True
        for chunk in self.whole.chunks(progress):
            rows = np.flatnonzero(chosen(chunk, conditions))
            if self.log is not None and self.log.chosen is not None:
                self.log.chosen.extend((rows + before).tolist())
            before += len(chunk)
            if len(rows):
                is_empty = False
                yield chunk[list(self.columns)].iloc[rows].reset_index(drop=True)
        if is_empty:
            columns = listed(name for name, _ in conditions)
            raise NoRowsError(
                f"no row of the source belongs to table {self.schema.name}: none has in {columns} "
                "what rows_where says; compare it with the source, letter by letter"
            )
