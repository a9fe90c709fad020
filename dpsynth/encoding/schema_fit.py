"""How a private table fits its schema: shares of cells and units that a fit takes specially.

The figures are exact and not private: they are for the office that writes the schema, never leave
it, and nothing in a fit reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.encoding.relations import related
from dpsynth.schema import Schema, coded_schema
from dpsynth.tables import Keys, Progress, open_table, units_beside
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CellShares:
    """Shares of a column's cells that the codec does not take as they stand.

    Attributes:
        missing: absent, or a declared missing value; where the column is required, too.
        clipped: outside the declared bounds.
        unknown: a category that is not declared.
        bad: not of the declared type.
    """

    missing: float
    clipped: float
    unknown: float
    bad: float


@dataclass(frozen=True)
class UnitShares:
    """How the rows divide into privacy units.

    Attributes:
        keyless_rows: number of rows without a key.
        over_max_rows: share of the units that have more rows than ``max_rows``.
    """

    keyless_rows: int
    over_max_rows: float


@dataclass(frozen=True)
class Review:
    """What a review found: cells by column; units, None where each row is one. Internal."""

    cells: dict[str, CellShares]
    units: UnitShares | None


def review(
    source: str | Path | pd.DataFrame, schema: Schema, progress: Progress | None = None
) -> dict[str, CellShares]:
    """Return the shares of cells of each modelled column; see `review_table`."""
    return review_table(source, schema, progress).cells


def review_table(
    source: str | Path | pd.DataFrame, schema: Schema, progress: Progress | None = None
) -> Review:
    """Read a table once, in chunks, and count what the codec and the cohort would do with it.

    A cell that a column refuses is counted by what is wrong with it; nothing is refused here.

    Args:
        source: a CSV or Parquet file, or a DataFrame.
        schema: its declaration.
        progress: called with the fraction that has been read.

    Raises:
        TableError: the table cannot be read, or is not the one that the schema describes.
    """
    table = open_table(source, schema)
    columns = [column for column in coded_schema(schema).modelled if column.status_of is None]
    coders = {c.name: coder_of(c, schema.dialect.decimal) for c in columns}
    keys = Keys(schema)
    counts = np.zeros((len(coders), len(Kind)), dtype=np.int64)
    units: list[Ints] = []
    for chunk in table.chunks(progress):
        cells_of = related(chunk, schema)
        for place, (name, coder) in enumerate(coders.items()):
            kinds = coder.kinds(cells_of[name], units_beside(chunk, columns[place]))
            counts[place] += np.bincount(kinds, minlength=len(Kind))
        units.append(keys.units(chunk))
    cells = {name: _shares(row) for name, row in zip(coders, counts, strict=True)}
    if schema.unit.column is None:
        return Review(cells, None)
    return Review(cells, _unit_shares(np.concatenate(units), schema))


def _shares(counts: Ints) -> CellShares:
    """Turn a column's counts by `Kind` into shares of all its cells."""
    share = (counts / counts.sum()).tolist()
    return CellShares(
        missing=share[Kind.MISSING],
        clipped=share[Kind.CLIPPED],
        unknown=share[Kind.UNKNOWN],
        bad=share[Kind.BAD],
    )


def _unit_shares(units: Ints, schema: Schema) -> UnitShares:
    """Count rows without a key, and units that lose rows to the cap.

    Rows without a key are units of one row each if the schema says ``own``, else no unit at all.
    """
    keyless = int((units == NO_KEY).sum())
    rows_of_unit = np.bincount(units[units != NO_KEY])
    total = len(rows_of_unit) + (keyless if schema.unit.missing_key == "own" else 0)
    over = int((rows_of_unit > schema.unit.max_rows).sum())
    return UnitShares(keyless_rows=keyless, over_max_rows=over / total if total else 0.0)
