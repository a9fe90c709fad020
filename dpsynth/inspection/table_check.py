"""How a private table fits its schema: exact figures, for the office that writes the schema.

The figures are not private: they never leave the office, and nothing in a fit reads them. The table
is read once, in chunks; what is kept of it is counts, hashes of rows, and up to 10,000 distinct
texts of each column that its codec does not take as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import related
from dpsynth.inspection.column_check import CellShares, ColumnCheck
from dpsynth.inspection.findings import SCHEMA, Finding, Level
from dpsynth.inspection.row_check import RowCheck, UnitShares
from dpsynth.inspection.schema_warnings import schema_warnings
from dpsynth.inspection.suspects import Suspects
from dpsynth.schema import Schema, coded_schema
from dpsynth.tables import Keys, OptOut, Progress, needed_columns, open_columns, units_beside


@dataclass(frozen=True)
class TableCheck:
    """What a check found; internal.

    Attributes:
        schema: what the table was compared with.
        cells: shares of cells by column.
        units: how the rows divide into units; None where each row is one.
        findings: the worst first, and in the schema's order.
        suspects: PRIVATE: by column, the cells that are not taken as they stand.
    """

    schema: Schema
    cells: dict[str, CellShares]
    units: UnitShares | None
    findings: tuple[Finding, ...]
    suspects: dict[str, Suspects] = field(repr=False)

    def __repr__(self) -> str:
        """Say what it is about; internal."""
        return short_repr(
            self,
            f"schema {self.schema.name}",
            "clean" if self.level is None else self.level.word,
            counted(len(self.findings), "finding"),
        )

    @property
    def level(self) -> Level | None:
        """The worst level; None where nothing was found."""
        return max((finding.level for finding in self.findings), default=None)

    @property
    def serious(self) -> tuple[str, ...]:
        """The keys of the serious findings, such as ``hba1c:unreadable``."""
        return tuple(one.key for one in self.findings if one.level is Level.SERIOUS)

    def to_dict(self) -> dict[str, Any]:
        """Write it without any cell; internal."""
        return {
            "level": "clean" if self.level is None else self.level.word,
            "serious": list(self.serious),
            "findings": [finding.to_dict() for finding in self.findings],
            "cells": {name: vars(shares) for name, shares in self.cells.items()},
            "units": None if self.units is None else vars(self.units),
        }


def check_fit(
    source: str | Path | pd.DataFrame,
    schema: Schema,
    *,
    opt_out: OptOut | None = None,
    progress: Progress | None = None,
) -> TableCheck:
    """Compare a private table with its schema.

    A cell that a column refuses is counted by what is wrong with it; nothing is refused here.

    Args:
        source: a CSV or Parquet file, or a DataFrame.
        schema: its declaration.
        opt_out: units that are left out.
        progress: called with the fraction that has been read.

    Returns:
        Findings, each with its level and likely causes; none for a table without a flaw.

    Raises:
        TableError: the table cannot be read, or is not the one that the schema describes.

    >>> from dpsynth.tables import simulate
    >>> frame = simulate(200, seed=1).astype(str).replace({"nan": "", "<NA>": ""})
    >>> frame["sex"] = frame["sex"].str.upper()
    >>> for finding in check_fit(frame, Schema.load("demo")).findings[:1]:
    ...     print(finding.key, finding.level.word, finding.causes[0].key)
    sex:unknown serious case
    """
    dates = {
        one.name: (one, schema.column(one.interval.base))
        for one in schema.modelled
        if one.interval is not None
    }
    columns = {
        column.name: ColumnCheck(column, schema.dialect.decimal, dates.get(column.name))
        for column in coded_schema(schema).modelled
        if column.status_of is None
    }
    rows = RowCheck(schema)
    keys = Keys(schema)
    for chunk in _chunks(source, schema, progress):
        units = keys.units(chunk)
        if opt_out is not None:
            gone = np.array([*(key in opt_out.keys for key in keys.texts), False])
            chunk, units = chunk[~gone[units]], units[~gone[units]]
        cells = related(chunk, schema)
        kinds = {
            name: column.add(
                cells[name],
                units_beside(chunk, column.column),
                chunk[name] if name in dates else None,
            )
            for name, column in columns.items()
        }
        rows.add(chunk, units, kinds, columns)
    used = any(column.suspects.has_decimals for column in columns.values())
    for column in columns.values():
        column.suspects.sign_is_used = used
    found = [finding for column in columns.values() for finding in column.findings()]
    found += rows.findings()
    found += [
        Finding(problem.place, SCHEMA, Level.WARNING, problem.message)
        for problem in schema_warnings(schema)
    ]
    return TableCheck(
        schema,
        {name: column.shares for name, column in columns.items()},
        rows.units,
        tuple(sorted(found, key=lambda finding: -finding.level)),
        {name: column.suspects for name, column in columns.items()},
    )


def _chunks(
    source: str | Path | pd.DataFrame, schema: Schema, progress: Progress | None
) -> Iterator[pd.DataFrame]:
    """Read what a fit reads, and the column of the order, by which visits are compared."""
    needed = {*needed_columns(schema), schema.order_column}
    names = tuple(column.name for column in schema.columns if column.name in needed)
    return open_columns(source, schema, names, private=True).chunks(progress)
