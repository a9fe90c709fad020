"""P07: missing is a code of its own; no cell of the table becomes a fill value or a constant.

The check: planted canaries (a number and texts that the schema does not allow, and an allowed but
unmistakable number in a column of a few wide cells) are found in no byte of what is written from
the codes; and the sizes do not tell whether a cell was missing or a column constant.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding import Codec
from dpsynth.schema import Schema
from dpsynth.tables import write_table

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 90, "basis": "made for this test"}


def schema_of(required: bool) -> Schema:
    fields: list[dict[str, Any]] = [
        {"name": "site", "type": "string", "constraints": {"enum": ["north", "south"]}},
        {"name": "dose", "type": "number", "constraints": {"minimum": 0, "maximum": 5000}},
        {"name": "count", "type": "integer", "constraints": {"minimum": 0, "maximum": 10**9}},
    ]
    for field in fields:
        field["constraints"]["required"] = required
        field["dpsynth"] = BASIS
    facts = {"version": 1, "population": NUMBER, "rows": NUMBER}
    return Schema.from_dict({"fields": fields, "dpsynth": facts})


CANARIES = ("Zanzibar", "918273", "847261539", "3141.59")
FRAME = pd.DataFrame(
    {
        "site": ["Zanzibar", None, "north", "", "Zanzibar"] * 20,
        "dose": ["918273", None, "3141.59", "x", ""] * 20,
        "count": ["847261539"] * 100,  # a constant column
    }
)

Write = Callable[[pd.DataFrame, Schema, Path], None]


def real(frame: pd.DataFrame, schema: Schema, folder: Path) -> None:
    codec = Codec(schema)
    decoded = codec.decode(codec.encode(frame), np.random.default_rng(4))
    for suffix in ("csv", "csv.gz", "parquet"):
        write_table([decoded], folder / f"out.{suffix}", schema)


def filling(frame: pd.DataFrame, schema: Schema, folder: Path) -> None:
    """Broken twin: bad and missing cells take the most frequent cell, constants are stored."""
    filled = frame.fillna(frame.mode().iloc[0])
    filled.to_csv(folder / "out.csv", index=False)


def bytes_of(folder: Path) -> bytes:
    """All bytes written, and what they are when decompressed."""
    parts = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        parts.append(content)
        if path.suffix == ".gz":
            parts.append(gzip.decompress(content))
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            parts.append(table.to_pandas().to_csv(index=False).encode())
            parts.append(str(table.schema).encode())
    return b"\n".join(parts)


def leaks(write: Write, schema: Schema, folder: Path) -> list[str]:
    write(FRAME, schema, folder)
    written = bytes_of(folder)
    return [canary for canary in CANARIES if canary.encode() in written]


@pytest.mark.parametrize("required", [False, True])
def test_no_canary_is_written(required: bool, tmp_path: Path) -> None:
    assert leaks(real, schema_of(required), tmp_path) == []


def test_the_check_catches_fill_values(tmp_path: Path) -> None:
    assert set(leaks(filling, schema_of(False), tmp_path)) == set(CANARIES)


def test_missing_has_a_code_whether_or_not_a_cell_is_missing() -> None:
    nullable, required = Codec(schema_of(False)), Codec(schema_of(True))
    assert required.sizes == (3, 1740, 4096), "north, south and other; no missing"
    assert nullable.sizes == (3, 1741, 4097)
    full = pd.DataFrame({"site": ["north"], "dose": ["1"], "count": ["1"]})
    gaps = pd.DataFrame({"site": [None], "dose": [None], "count": [None]})
    assert nullable.encode(gaps).tolist() == [[2, 1740, 4096]]
    assert (nullable.encode(full) < [2, 1740, 4096]).all()
    # A missing cell of a required column is a bad cell, and goes where the schema says.
    assert required.encode(gaps).tolist() == [[2, 0, 0]]


def test_missing_is_independent_of_the_other_cells() -> None:
    """Not imputed: the code of a missing cell does not depend on the column's other cells."""
    codec = Codec(schema_of(True))
    for others in (["1", "2"], ["4000", "4999"], ["x", ""]):
        frame = pd.DataFrame({"site": "north", "dose": [None, *others], "count": "1"})
        assert codec.encode(frame)[0, 1] == 0


def test_a_missing_code_decodes_to_a_missing_cell() -> None:
    schema = schema_of(False)
    decoded = Codec(schema).decode(np.array([[2, 1740, 4096]]), np.random.default_rng(0))
    assert decoded.isna().all(axis=None)
