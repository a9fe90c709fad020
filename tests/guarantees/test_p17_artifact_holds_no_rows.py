"""P17: a run holds weights and public facts; its size does not know how many rows there were."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle import release
from dpsynth.encoding import Codec
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from ..support.quick_fit import quick_fit

TEXT, NUMBER = "CANARY-qx7z", 123.456789012345
Fit = Callable[[int, Path], Run]


def rows_with_canaries(count: int) -> pd.DataFrame:
    """Private rows; a text and a number among them are like nothing else in the world."""
    frame = pd.DataFrame(
        {
            "key": [f"patient {i // 2}" for i in range(count)],
            "age": [18 + i % 80 for i in range(count)],
            "weight": [50.0 + i % 100 for i in range(count)],
            "grade": ["2"] * count,
            "sex": ["F"] * count,
            "smoker": ["true"] * count,
            "admitted": ["2016-01-01"] * count,
            "discharged": ["2016-01-02"] * count,
            "measured": ["2015-01-05T00:00:00"] * count,
            "born": ["1950"] * count,
            "note": ["free text"] * count,  # not in the schema
        }
    )
    frame.loc[3, ["key", "sex", "born", "note"]] = TEXT
    frame.loc[3, "weight"] = NUMBER
    return frame


@pytest.fixture
def fit(every_type: Schema) -> Fit:
    def fit_rows(count: int, folder: Path) -> Run:
        folder.mkdir(parents=True, exist_ok=True)
        return quick_fit(
            rows_with_canaries(count),
            every_type,
            dataset="cohort",
            ledger=Ledger.create(folder / "ledger.sqlite"),
        )

    return fit_rows


@pytest.fixture
def broken_fit(fit: Fit, every_type: Schema) -> Fit:
    """The broken twin keeps the table that it was fitted on, as codes and as numbers."""

    def fit_and_keep(count: int, folder: Path) -> Run:
        rows, run = rows_with_canaries(count), fit(count, folder)
        kept = {
            "codes": Codec(every_type).encode(rows),
            "weight": rows["weight"].to_numpy(dtype=np.float64),
        }
        return replace(
            run, arrays=run.arrays | kept, config={"example": rows.astype(str).iloc[3].to_dict()}
        )

    return fit_and_keep


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def size_knows_rows(fit: Fit, folder: Path) -> bool:
    for count in (20, 2000):
        fit(count, folder / str(count)).save(folder / str(count) / "run")
    return sizes(folder / "20" / "run") != sizes(folder / "2000" / "run")


def test_the_size_of_a_run_does_not_know_the_number_of_rows(
    fit: Fit, broken_fit: Fit, tmp_path: Path
) -> None:
    assert size_knows_rows(broken_fit, tmp_path / "broken")
    assert not size_knows_rows(fit, tmp_path / "real")


def spellings() -> list[bytes]:
    """How the canaries would look in a file."""
    return [
        TEXT.encode(),
        TEXT.encode("utf-16-le"),
        TEXT[-4:].encode(),
        f"{NUMBER:.4f}".encode(),
        struct.pack("<d", NUMBER),
        struct.pack("<f", NUMBER),
        b"free text",
        b"patient 1",
    ]


def canaries_in(folder: Path) -> set[bytes]:
    """Search every file, as it is and unpacked."""
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for unpack in (bytes, gzip.decompress, zlib.decompress, parquet_cells):
                try:
                    text = unpack(content)
                except (OSError, EOFError, zlib.error, ValueError):
                    continue
                found |= {spelling for spelling in spellings() if spelling in text}
    return found


def parquet_cells(content: bytes) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return str(pq.read_table(io.BytesIO(content)).to_pydict()).encode()
    except pa.ArrowException as error:
        raise ValueError from error


def test_no_canary_is_in_a_run_or_a_bundle(fit: Fit, broken_fit: Fit, tmp_path: Path) -> None:
    broken: Any = broken_fit(100, tmp_path / "a")
    broken.save(tmp_path / "broken")
    assert {TEXT.encode(), struct.pack("<d", NUMBER)} <= canaries_in(tmp_path / "broken")

    fit(100, tmp_path / "b").save(tmp_path / "run")
    office = Ledger(tmp_path / "b" / "ledger.sqlite")
    release(tmp_path / "run", tmp_path / "bundle", size=100, seed=1, ledger=office)
    assert canaries_in(tmp_path / "run") == set()
    assert canaries_in(tmp_path / "bundle") == set()
