"""P06: categories, decimals, types and widths come from the schema, never from the rows.

The check: a table and its neighbours with one unseen category, one more decimal, one NaN or another
type of cell are coded and written with the same sizes, types and layout.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding import Codec
from dpsynth.schema import Schema
from dpsynth.tables import open_table, write_table

from ..support.schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 90, "basis": "made for this test"}
FIELDS: list[dict[str, Any]] = [
    {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"], "required": True}},
    {"name": "ward", "type": "string", "constraints": {"enum": ["A", "B", "C"]}},
    {"name": "arm", "type": "integer", "constraints": {"enum": [1, 2]}},
    schema_field("weight", "number", BASIS | {"step": 0.5}, minimum=30, maximum=200),
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
    {
        "name": "born",
        "type": "date",
        "constraints": {"minimum": "1900-01-01", "maximum": "2020-12-31"},
    },
    {"name": "smoker", "type": "boolean", "constraints": {"required": True}},
]
SCHEMA = Schema.from_dict(
    {
        "fields": [{"dpsynth": BASIS} | field for field in FIELDS],
        "dpsynth": {"version": 1, "population": NUMBER, "rows": NUMBER},
    }
)
ROWS = pd.DataFrame(
    {
        "sex": ["F", "M", "F", "M"],
        "ward": ["A", "B", "A", "B"],
        "arm": ["1", "2", "1", "2"],
        "weight": ["70", "80.5", "65", "90"],
        "age": ["30", "40", "50", "60"],
        "born": ["1990-01-01", "1980-05-05", "1970-02-03", "1960-07-08"],
        "smoker": ["true", "false", "true", "false"],
    }
)
NEIGHBOURS = {
    "an unseen category that is declared": ("ward", "C"),
    "an undeclared category": ("sex", "X"),
    "an undeclared number": ("arm", "7"),
    "one more decimal": ("weight", "70.123456789"),
    "NaN": ("weight", np.nan),
    "None": ("arm", None),
    "an empty cell where none may be": ("smoker", ""),
    "a fraction among integers": ("age", "30.5"),
    "text among numbers": ("age", "unknown"),
    "text among dates": ("born", "spring"),
    "an outlier": ("age", "9999999999999999999999"),
}

Structure = dict[str, Any]


def declared_structure(frame: pd.DataFrame, folder: Path) -> Structure:
    """What the real code shows of its layout, after it has seen the rows."""
    table = open_table(frame, SCHEMA)
    codec = Codec(SCHEMA)
    codes = codec.encode(next(iter(table.chunks())))
    decoded = codec.decode(codes, np.random.default_rng(1))
    write_table([decoded], folder / "out.csv", SCHEMA, overwrite=True)
    write_table([decoded], folder / "out.parquet", SCHEMA, overwrite=True)
    lines = (folder / "out.csv").read_text().splitlines()
    weights = [line.split(",")[3] for line in lines[1:]]
    return {
        "names": codec.names,
        "sizes": codec.sizes,
        "lattices": [codec.lattice(name) for name in codec.names],
        "points": codec.points,
        "codes": (codes.shape[1], codes.dtype),
        "dtypes": decoded.dtypes.astype(str).tolist(),
        "csv": lines[0],
        "decimals": {len(weight.partition(".")[2]) for weight in weights if weight},
        "parquet": str(pq.read_schema(folder / "out.parquet")),
    }


def inferred_structure(frame: pd.DataFrame, folder: Path) -> Structure:
    """Broken twin: types, categories, decimals and nullability as pandas finds them in the rows."""
    text = frame.to_csv(index=False)
    table = pd.read_csv(io.StringIO(text), parse_dates=["born"], date_format="%Y-%m-%d")
    digits = frame["weight"].astype(str).str.partition(".")[2].str.len()
    return {
        "names": tuple(table.columns),
        "sizes": tuple(int(table[name].nunique(dropna=False)) for name in table),
        "dtypes": table.dtypes.astype(str).tolist(),
        "decimals": int(digits.max()),
        "nullable": table.isna().any().tolist(),
    }


def depends_on_rows(
    structure: Callable[[pd.DataFrame, Path], Structure], neighbour: pd.DataFrame, folder: Path
) -> bool:
    return structure(ROWS, folder) != structure(neighbour, folder)


def neighbour_of(column: str, cell: Any) -> pd.DataFrame:
    frame = ROWS.astype(object)
    frame.loc[0, column] = cell
    return frame


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_structure_is_declared(name: str, tmp_path: Path) -> None:
    assert not depends_on_rows(declared_structure, neighbour_of(*NEIGHBOURS[name]), tmp_path)


@pytest.mark.parametrize("name", [name for name in NEIGHBOURS if name != "another type"])
def test_the_check_catches_inference(name: str, tmp_path: Path) -> None:
    assert depends_on_rows(inferred_structure, neighbour_of(*NEIGHBOURS[name]), tmp_path)


def test_one_row_shows_what_many_rows_show(tmp_path: Path) -> None:
    assert not depends_on_rows(declared_structure, ROWS.iloc[:1], tmp_path)
    assert depends_on_rows(inferred_structure, ROWS.iloc[:1], tmp_path)


def test_columns_that_the_schema_does_not_name_are_not_read(tmp_path: Path) -> None:
    wider = ROWS.assign(secret=["a", "b", "c", "d"])
    assert not depends_on_rows(declared_structure, wider, tmp_path)
    assert depends_on_rows(inferred_structure, wider, tmp_path)
    assert open_table(wider, SCHEMA).columns == tuple(ROWS.columns)
