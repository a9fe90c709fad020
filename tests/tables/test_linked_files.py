"""The tables of a cohort as files in one folder: found by name, and written together or not."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsynth.errors import InputError, TableError
from dpsynth.schema import published_tables
from dpsynth.tables import linked_files, simulate_cohort, write_linked

from ..support.clinic import clinic_run, clinic_schema, write_clinic


def test_files_are_found_by_the_names_of_their_tables(tmp_path: Path) -> None:
    folder = write_clinic(tmp_path, simulate_cohort(20, seed=1))
    (folder / "notes.txt").write_text("not a table")
    (folder / "labs.csv").rename(folder / "LABS.CSV")
    files = linked_files(folder, clinic_schema())
    assert {name: Path(str(path)).name for name, path in files.items()} == {
        "patients": "patients.csv",
        "visits": "visits.csv",
        "labs": "LABS.CSV",
        "events": "events.csv",
    }


def test_two_files_of_a_table_are_refused(tmp_path: Path) -> None:
    folder = write_clinic(tmp_path, simulate_cohort(20, seed=1))
    simulate_cohort(20, seed=1)["labs"].to_parquet(folder / "labs.parquet")
    with pytest.raises(TableError, match=r"several files for table labs: .*labs\.csv.*parquet"):
        linked_files(folder, clinic_schema())


@pytest.mark.parametrize("kind", [".csv", ".csv.gz", ".parquet"])
def test_bytes_do_not_depend_on_how_rows_come(tmp_path: Path, kind: str) -> None:
    tables, cohort = published_tables(clinic_schema()), clinic_run().sample(60, seed=1)
    whole = write_linked([cohort], tmp_path / "whole", tables, kind=kind)
    parts = [
        {
            name: table[table["patient"].str.removeprefix("synthetic-").astype(int) % 3 == part]
            for name, table in cohort.items()
        }
        for part in range(3)
    ]
    joined = {name: pd.concat([part[name] for part in parts]) for name in cohort}
    assert write_linked(parts, tmp_path / "parts", tables, kind=kind) == write_linked(
        [joined], tmp_path / "joined", tables, kind=kind
    )
    assert sorted(path.name for path in (tmp_path / "whole").iterdir()) == sorted(
        ["SYNTHETIC.txt", *(f"synthetic-{name}{kind}" for name in whole)]
    )


def test_a_table_without_rows_is_a_header(tmp_path: Path) -> None:
    tables, cohort = published_tables(clinic_schema()), clinic_run().sample(5, seed=1)
    write_linked([cohort | {"events": cohort["events"].iloc[:0]}], tmp_path / "out", tables)
    assert (tmp_path / "out" / "synthetic-events.csv").read_text() == "patient,date,event\n"


def test_nothing_is_left_of_a_cohort_that_fails(tmp_path: Path) -> None:
    tables, cohort = published_tables(clinic_schema()), clinic_run().sample(5, seed=1)

    def blocks() -> object:
        yield cohort
        raise InputError("the rules leave nobody")

    with pytest.raises(InputError, match="leave nobody"):
        write_linked(blocks(), tmp_path / "out", tables)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    write_linked([cohort], tmp_path / "out", tables)
    with pytest.raises(InputError, match="exists"):
        write_linked([cohort], tmp_path / "out", tables)


def test_of_the_two_files_of_a_bundle_the_typed_one_is_taken(tmp_path: Path) -> None:
    tables, cohort = published_tables(clinic_schema()), clinic_run().sample(5, seed=1)
    for kind in (".csv", ".parquet"):
        write_linked([cohort], tmp_path / kind, tables, kind=kind)
    for path in (tmp_path / ".csv").iterdir():
        path.rename(tmp_path / ".parquet" / path.name)
    files = linked_files(tmp_path / ".parquet", clinic_schema(), synthetic=True)
    assert {Path(str(file)).suffix for file in files.values()} == {".parquet"}
