"""P27, end to end: a Parquet file whose columns have any type, good or bad, is quoted nowhere.

The check: a column of canaries of every kind of Parquet type takes the place of each declared
column in turn, on the way through `fit` and `schema check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.errors import TableError
from dpsynth.schema import Schema

Shell = Callable[..., Any]

COLUMNS = ("patient", "visited", "note", "sex", "ward", "weight", "age", "admitted")
PLACES = ("patient", "visited", "sex", "age", "weight", "admitted")
CELLS = [f"Quokka7Zx{i}" for i in range(20)]
TRACES = ("Quokka", "7Zx", "7141592", "71.4159", "\\xfc", "0xfc")


def parquet_columns(cells: list[str]) -> dict[str, Any]:
    """Columns of every kind of type, good and bad, that a Parquet file may have."""
    count = len(cells)
    numbers = [7141592653589 + i for i in range(count)]
    moments = pa.array([i * 10**15 for i in range(count)], pa.timestamp("us", tz="Asia/Quokka7Zx"))
    invalid = pa.array([b"Quokka7Zx\xfc\xff"] * count, pa.binary())
    return {
        "text": pa.array(cells),
        "large text": pa.array(cells, pa.large_string()),
        "dictionary": pa.array(cells).dictionary_encode(),
        "bytes": pa.array([cell.encode() for cell in cells]),
        "lists": pa.array([[cell] for cell in cells]),
        "structs": pa.array([{"Quokka7Zx": cell} for cell in cells]),
        "int64": pa.array(numbers),
        "uint64": pa.array([2**63 + number for number in numbers], pa.uint64()),
        "float64": pa.array([71.41592653 + number for number in numbers]),
        "not a number": pa.array([float("nan"), float("inf")] * (count // 2)),
        "decimal": pa.array(numbers).cast(pa.decimal128(38, 0)),
        "boolean": pa.array([None, True] * (count // 2)),
        "nothing": pa.nulls(count),
        "date": pa.array(numbers, pa.int64()).cast(pa.int32(), safe=False).cast(pa.date32()),
        "time": pa.array([10**15] * count, pa.time64("us")),
        "timestamp": pa.array(numbers, pa.timestamp("ns")),
        "zoned timestamp": moments,
        "duration": pa.array(numbers, pa.duration("us")),
        "invalid text": pa.Array.from_buffers(pa.string(), count, invalid.buffers()),
    }


KINDS = list(parquet_columns(["x", "y"]))


def write(kind: str, where: str, place: Path) -> None:
    """Write a table of canaries whose column ``where`` has cells of a kind."""
    table = pa.table(dict.fromkeys(COLUMNS, CELLS))
    table = table.set_column(COLUMNS.index(where), where, parquet_columns(CELLS)[kind])
    pq.write_table(table.replace_schema_metadata({"Quokka7Zx": "Quokka7Zx"}), place)


@pytest.fixture
def office(clinic: Schema, tmp_path: Path, quick_plans: None) -> Path:
    clinic.save(tmp_path / "clinic.schema.yaml")
    return tmp_path


CHECK = "schema check clinic.schema.yaml table.parquet".split()
FIT = "fit clinic.schema.yaml table.parquet --dataset clinic --epsilon 2 --delta 1e-5".split()
FIT += ["--model", "independent", "-o"]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_any_type_are_not_quoted(kind: str, office: Path, shell: Shell) -> None:
    for turn in range(4):
        where = PLACES[(KINDS.index(kind) + turn) % len(PLACES)]
        write(kind, where, office / "table.parquet")
        output = shell(office, *(CHECK if turn == 0 else [*FIT, f"run{turn}"]))
        assert output.quotes(TRACES) == [], where
        assert output.is_clear, (where, output)


def test_both_outcomes_occur(office: Path, shell: Shell) -> None:
    codes = []
    for kind in KINDS:
        write(kind, "age", office / "table.parquet")
        codes.append(shell(office, *CHECK).code)
    assert codes.count(0) + codes.count(3) > 3 and codes.count(2) > 3


def test_a_reader_whose_errors_go_out_is_caught(
    office: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: cells are converted by a library, and its message is an error of ours."""

    def naive(self: Any, progress: Any = None) -> Iterator[pd.DataFrame]:
        frame = pd.read_parquet(self.path)
        try:
            yield frame.assign(age=frame["age"].astype(float))
        except ValueError as error:
            raise TableError(f"{self.path}: {error}") from error

    monkeypatch.setattr("dpsynth.tables.parquet.ParquetTable.chunks", naive)
    write("text", "age", office / "table.parquet")
    assert shell(office, *FIT, "run").quotes(TRACES) == ["Quokka", "7Zx"]
