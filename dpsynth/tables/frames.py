"""Tables in memory: DataFrames of pandas, and whatever hands its columns over as Arrow does.

polars, PyArrow, DuckDB and others give their columns by the Arrow C stream interface
(``__arrow_c_stream__``), older libraries by the DataFrame interchange protocol. Types stay those
that the table declares, so its columns are judged and coded as those of a Parquet file. All else is
refused by the name of its type: what is not a table may be rows of patients, and no message shows
them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pandas as pd
import pyarrow as pa

from dpsynth._util.arguments import path_text, type_name
from dpsynth.errors import TableError

TYPED = "dpsynth: columns of the types that the table declares"
"""Where a DataFrame's ``attrs`` say that a typed table was made one here, not by pandas."""

_PATH = "the path of a table"
_EXPECTED = "give the path of a table, or a DataFrame of pandas, polars or Arrow"


@runtime_checkable
class ArrowTable(Protocol):
    """A table that hands its columns over as a stream of Arrow: of polars, PyArrow and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream as a capsule."""


NamedSource: TypeAlias = str | Path | pd.DataFrame
Source: TypeAlias = NamedSource | ArrowTable


def as_source(source: object) -> NamedSource:
    """Return a private or synthetic table as its name or as a DataFrame of pandas.

    Args:
        source: a path or address; or a table of pandas, polars, PyArrow, or of another library with
            the Arrow C stream interface. A stream that can be read only once is read here.

    Raises:
        TableError: it is none of these; the message names its type and quotes nothing.

    >>> as_source([{"patient": "0001"}])
    Traceback (most recent call last):
    dpsynth.errors.TableError: a list is not a table; give the path of a table, or a DataFrame ...
    """
    if isinstance(source, pd.DataFrame):
        return source
    if isinstance(source, str | os.PathLike):
        text = path_text(source, f"{_PATH}, or of a DataFrame", TableError)
        return text if isinstance(source, str) else Path(text)
    kind: Any = type(source)  # an attribute of the object itself may be made up as it is asked for
    if hasattr(kind, "collect") and not hasattr(kind, "__arrow_c_stream__"):
        raise TableError(f"{type_name(source)} is not a table yet; call collect() first")
    for protocol in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__"):
        if hasattr(kind, protocol):
            return _frame(source, interchange=protocol == "__dataframe__")
    raise TableError(f"{type_name(source)} is not a table; {_EXPECTED}")


def as_sources(sources: object) -> dict[str, NamedSource]:
    """Return the tables of a schema of linked tables, each as `as_source` does, by their names.

    Raises:
        TableError: it is not a mapping, or a table is none.
    """
    if not isinstance(sources, Mapping):
        raise TableError(
            f"{type_name(sources)} is not a set of linked tables; give a folder with a file for "
            "each, or a mapping from the name of each table to it"
        )
    return {name: as_source(source) for name, source in sources.items()}


def without_views(layout: pa.Schema) -> pa.Schema:
    """Return an Arrow schema without views of texts and bytes, on which few functions work."""
    return pa.schema(
        [field.with_type(_without_view(field.type)) for field in layout], layout.metadata
    )


def _without_view(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        values = _without_view(kind.value_type)
        return pa.dictionary(kind.index_type, values, kind.ordered)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _frame(source: Any, *, interchange: bool) -> pd.DataFrame:
    """Return a table as a DataFrame whose columns keep their Arrow types; texts may quote cells."""
    try:
        if interchange:
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(source)
        else:
            table = pa.table(source)
        table = table.cast(without_views(table.schema))
        frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    except Exception:  # of whatever library
        raise TableError(
            f"{type_name(source)} cannot be read as an Arrow table: a table needs named columns; "
            "cast columns of nested values, objects or 128-bit integers to text"
        ) from None
    if not interchange:
        frame.attrs[TYPED] = True
    return frame
