"""Every released table says that it is synthetic, also when it is passed on alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth.bundle import export_meds, verify
from dpsynth.errors import TableError, VerificationError
from dpsynth.schema import synthetic_tables, text_keys
from dpsynth.tables import linked_files

from ..support.clinic import clinic_schema
from ..support.clinic_office import clinic_office
from ..support.forger import Forger

NOTE = {b"synthetic": b"true", b"generator": b"dpsynth"}


def marked(path: Path) -> bool:
    metadata = pq.read_schema(path).metadata or {}
    return NOTE.items() <= metadata.items()


def test_a_bundle_of_one_table_says_so_in_names_metadata_and_a_note(bundle: Path) -> None:
    assert {path.name for path in (bundle / "data").iterdir()} == {
        "SYNTHETIC.txt",
        "synthetic.csv",
        "synthetic.parquet",
    }
    assert marked(bundle / "data/synthetic.parquet")
    assert "no row describes a real person" in (bundle / "data/SYNTHETIC.txt").read_text()


def test_a_parquet_file_without_the_mark_is_found(bundle: Path, forger: Forger) -> None:
    """The broken twin: the same rows, without the metadata."""
    path = bundle / "data/synthetic.parquet"
    plain = pq.read_table(path).replace_schema_metadata(None)
    with pq.ParquetWriter(path, plain.schema, compression="zstd") as writer:
        writer.write_table(plain, row_group_size=1 << 16)
    forger.relist()
    with pytest.raises(VerificationError, match=r"data/synthetic\.parquet"):
        verify(bundle)


def test_linked_tables_say_so_in_names_metadata_and_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.bundle import release
    from dpsynth.ledger import Ledger

    office = clinic_office(tmp_path)
    ledger = Ledger(office / "ledger.sqlite")
    bundle = release(office / "run", office / "bundle", size=12, seed=7, ledger=ledger)
    for name, table in synthetic_tables(clinic_schema()).items():
        typed, text = (bundle / f"data/synthetic-{name}{kind}" for kind in (".parquet", ".csv"))
        assert marked(typed)
        keys = pd.read_csv(text, dtype=str)[table.key or ""]
        assert keys.str.fullmatch("synthetic-[0-9]+").all()
    assert not any(path.name.startswith("patients") for path in (bundle / "data").iterdir())
    with pytest.raises(TableError, match="has no file for table patients"):
        linked_files(bundle / "data", clinic_schema())  # synthetic files are no source
    export_meds(bundle, tmp_path / "events")
    assert all(marked(path) for path in (tmp_path / "events").rglob("*.parquet"))
    dataset = (tmp_path / "events/metadata/dataset.json").read_text()
    assert "ynthetic" in dataset


def test_a_key_without_its_prefix_is_not_a_number() -> None:
    table = synthetic_tables(clinic_schema())["patients"]
    column = table.schema.column("patient")
    frame = pd.DataFrame({"patient": ["synthetic-3", "3", "Miller"]})
    assert list(table.numbers(frame, column)) == ["3", "?3", "?Miller"]
    assert list(text_keys(np.array([3]))) == ["synthetic-3"]
