"""A copy of a table as Parquet, with the schema's columns as text.

A database may give its rows in another order, or other rows, when it is asked again. So a split
reads it once, into this copy.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dpsynth.files import write_private
from dpsynth.schema import Schema
from dpsynth.tables.checks import Progress
from dpsynth.tables.text_table import text_chunks


def copy_as_text(
    source: str | Path, schema: Schema, target: Path, progress: Progress | None = None
) -> None:
    """Copy a private table to a Parquet file that only its owner can read.

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
