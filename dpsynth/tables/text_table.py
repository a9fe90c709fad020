"""The cells of a file as text: the way to hand a private table over as a DataFrame.

pandas and others infer a column's type from all of its cells, so that one patient can change how
the others are coded, and `open_table` refuses such frames. What is read here it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from dpsynth.files import write_private
from dpsynth.schema import Column, Schema
from dpsynth.tables.checks import Progress
from dpsynth.tables.frames import Source, as_source
from dpsynth.tables.table import needed_columns, open_columns
from dpsynth.tables.text_columns import is_typed, texts_of

ISO_DATE = 10  # characters


def read_table(path: Source, schema: Schema | str | Path) -> pd.DataFrame:
    """Read a private table into a DataFrame of text, for `fit`, `split` or an evaluation.

    No type is inferred, so what a cell becomes depends on no other cell. CSV is read in the
    schema's dialect. Columns of other kinds may have the types that `fit` takes, and become text.

    Args:
        path: the file, a part of one, or the URL of a database: see docs/sources.md; or a DataFrame
            of pandas, polars or Arrow.
        schema: a `Schema`, the path of one, or the name of a shipped one.

    Returns:
        The columns of the schema that the file has, in the schema's order, without those of role
        drop. Cells are objects: the text as it stands in the file, None where there is none.

    Raises:
        TableError: the file cannot be read, has no rows, lacks a column that a fit needs, or has a
            column that must be text and is not.
        SchemaError: the schema has mistakes.

    >>> from dpsynth.tables import simulate
    >>> simulate(200, seed=1).to_csv("extract.csv", index=False)
    >>> read_table("extract.csv", "demo")["age"].map(type).unique()
    array([<class 'str'>], dtype=object)
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    return pd.concat(text_chunks(path, schema), ignore_index=True)


def text_chunks(
    path: Source, schema: Schema, progress: Progress | None = None
) -> Iterator[pd.DataFrame]:
    """Yield what `read_table` returns, chunk by chunk.

    Raises:
        TableError: as `read_table`.
    """
    path, needed = as_source(path), needed_columns(schema)
    header = open_columns(path, schema, needed, private=True).header
    columns = [
        column
        for column in schema.columns
        if column.name in needed or ("drop" not in column.roles and column.name in header)
    ]
    names = tuple(column.name for column in columns)
    for chunk in open_columns(path, schema, names, private=True).chunks(progress):
        yield pd.DataFrame({column.name: _texts(chunk[column.name], column) for column in columns})


def _texts(cells: pd.Series[Any], column: Column) -> npt.NDArray[np.object_]:
    """Return the text of each cell, None where it is empty."""
    objects: npt.NDArray[np.object_]
    texts = texts_of(cells, boolean=column.kind.is_truth)
    if column.kind.drops_time and is_typed(cells):
        texts = pc.utf8_slice_codeunits(texts, 0, ISO_DATE)
    objects = texts.to_numpy(zero_copy_only=False).astype(object)
    objects[objects == ""] = None
    return objects


def copy_as_text(
    source: str | Path, schema: Schema, target: Path, progress: Progress | None = None
) -> None:
    """Copy a private table, as text, to a Parquet file that only its owner can read.

    A database may give its rows in another order, or other rows, when it is asked again. So a split
    reads it once, into this copy.

    Args:
        source: the table, of any kind.
        schema: which names the columns to copy; those with role drop are left out.
        target: the file to make.
        progress: called with the fraction that is read.

    Raises:
        TableError: as `dpsynth.tables.open_table`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_private(target, b"")
    with ExitStack() as stack:
        writer: Any = None
        for chunk in text_chunks(source, schema, progress):
            layout = pa.schema([(name, pa.large_string()) for name in chunk.columns])
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(target, layout, compression="zstd"))
            columns = [pa.array(chunk[name], pa.large_string()) for name in chunk.columns]
            writer.write_table(pa.Table.from_arrays(columns, schema=layout))
