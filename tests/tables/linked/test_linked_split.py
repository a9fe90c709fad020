"""A split of linked tables: files of the same kinds and names, and no row of a patient is lost."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pandas as pd
import pytest

from dpsynth import split
from dpsynth.errors import DpsynthWarning, InputError, TableError
from dpsynth.schema import LinkedSchema
from dpsynth.tables import (
    OptOut,
    leave_out,
    linked_files,
    open_linked,
    split_file,
)

from ...support.clean_ward import tables, ward

SCHEMA = LinkedSchema.from_dict(ward())
NAMES = SCHEMA.table_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of several kinds."""
    place = tmp_path / "extract"
    place.mkdir()
    frames = tables()
    frames["patients"].to_csv(place / "patients.csv", index=False)
    frames["labs"].to_csv(place / "labs.csv.gz", index=False)
    frames["events"].to_parquet(place / "events.parquet", index=False)
    frames["visits"].to_excel(place / "visits.xlsx", index=False)
    frames["orders"].to_csv(place / "orders.tsv", index=False, sep="\t")
    return place


def read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype=str, sep="\t" if ".tsv" in path.name else ",")


def sides(output: tuple[Path, Path]) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    train, rest = ({p.name.split(".")[0]: read(p) for p in part.iterdir()} for part in output)
    return train, rest


def test_files_keep_their_kind_and_every_row_its_patient(folder: Path, tmp_path: Path) -> None:
    files = linked_files(folder, SCHEMA)
    output = split_file(files, SCHEMA, tmp_path / "split", holdout=0.4)
    names = {"patients.csv", "labs.csv.gz", "events.parquet", "visits.parquet", "orders.tsv"}
    assert [part.name for part in output] == ["train", "holdout"]
    assert all({path.name for path in part.iterdir()} == names for part in output)
    assert {path.name for path in (tmp_path / "split").iterdir()} == {"train", "holdout"}
    train, rest = sides(output)
    for name, frame in tables().items():
        together = pd.concat([train[name], rest[name]])
        assert len(together) == len(frame)
        assert sorted(together["id"]) == sorted(frame["id"])
    for part in output:  # both can be read again, as the schema has them
        open_linked(linked_files(part, SCHEMA), SCHEMA)


def test_text_is_copied_as_it_stands(folder: Path, tmp_path: Path) -> None:
    source = (folder / "patients.csv").read_text().splitlines(keepends=True)
    output = split_file(linked_files(folder, SCHEMA), SCHEMA, tmp_path / "split")
    parts = [(part / "patients.csv").read_text().splitlines(keepends=True) for part in output]
    assert all(part[0] == source[0] for part in parts)
    assert sorted(parts[0][1:] + parts[1][1:]) == sorted(source[1:])
    with gzip.open(output[0] / "labs.csv.gz", "rt") as file:
        assert file.readline() == "id,days,test,value,fasting\n"


def test_files_and_frames_are_split_alike(folder: Path, tmp_path: Path) -> None:
    output = split_file(linked_files(folder, SCHEMA), SCHEMA, tmp_path / "split", seed=5)
    frames = split(tables(), SCHEMA, seed=5)
    for files, expected in zip(sides(output), frames, strict=True):
        for name in NAMES:
            assert files[name]["id"].tolist() == expected[name]["id"].tolist()
    again = split(tables(), SCHEMA, seed=5)
    assert all(frames[0][name].equals(again[0][name]) for name in NAMES)
    assert not frames[0]["patients"].equals(split(tables(), SCHEMA)[0]["patients"])


def test_rows_of_a_key_without_a_patient_are_kept_and_rows_without_a_key_are_not() -> None:
    frames = tables()
    frames["labs"].loc[:3, "id"] = "nobody"
    frames["labs"].loc[4:7, "id"] = ""
    train, rest = split(frames, SCHEMA)
    counts = [(part["labs"]["id"] == "nobody").sum() for part in (train, rest)]
    assert sorted(counts) == [0, 4]
    assert len(train["labs"]) + len(rest["labs"]) == len(frames["labs"]) - 4


def test_a_table_without_rows_stays_a_table(folder: Path, tmp_path: Path) -> None:
    for name, path in linked_files(folder, SCHEMA).items():
        if name != "patients":
            empty = tables()[name][:0]
            kind = {".xlsx": empty.to_excel, ".parquet": empty.to_parquet}
            kind.get(Path(str(path)).suffix, empty.to_csv)(
                path, index=False, **({"sep": "\t"} if ".tsv" in str(path) else {})
            )
    output = split_file(linked_files(folder, SCHEMA), SCHEMA, tmp_path / "split")
    train, rest = sides(output)
    for name in NAMES[1:]:
        assert len(train[name]) == len(rest[name]) == 0
        assert "id" in train[name].columns


def test_who_opted_out_is_in_no_table(folder: Path, tmp_path: Path) -> None:
    gone = tables()["patients"]["id"][:9].tolist()
    opt_out = OptOut.of(gone, SCHEMA.patients)
    files = linked_files(folder, SCHEMA)
    output = split_file(files, SCHEMA, tmp_path / "split", opt_out=opt_out)
    alone = leave_out(files, SCHEMA, tmp_path / "alone", opt_out)
    assert [path.name for path in alone.parent.iterdir()] == ["train"]
    for part in (*sides(output), sides((alone, alone))[0]):
        assert all(not set(frame["id"]) & set(gone) for frame in part.values())
    assert len(sides((alone, alone))[0]["patients"]) == 51
    with pytest.warns(DpsynthWarning, match="9 of 10 keys of the opt-out list"):
        more = OptOut.of([*gone, "absent"], SCHEMA.patients)
        split_file(files, SCHEMA, tmp_path / "again", opt_out=more)
    with pytest.raises(InputError, match="no key on the opt-out list is in the table"):
        split(tables(), SCHEMA, opt_out=OptOut.of(["absent"], SCHEMA.patients))
    everybody = OptOut.of(tables()["patients"]["id"].tolist(), SCHEMA.patients)
    with pytest.raises(InputError, match="every patient is on the opt-out list"):
        leave_out(files, SCHEMA, tmp_path / "none", everybody)


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    files = linked_files(folder, SCHEMA)
    with pytest.raises(InputError, match="a share of the units"):
        split_file(files, SCHEMA, tmp_path / "split", holdout=1)
    with pytest.raises(InputError, match="too few patients"):
        split({name: frame[:1] for name, frame in tables().items()}, SCHEMA)
    with pytest.raises(TableError, match="no row has a key in column 'id'"):
        split(tables() | {"patients": tables()["patients"].assign(id="")}, SCHEMA)
    with pytest.raises(InputError, match="split DataFrames by split"):
        split_file(tables(), SCHEMA, tmp_path / "split")
    with pytest.raises(TableError, match="no file is given for labs"):
        split_file({n: f for n, f in files.items() if n != "labs"}, SCHEMA, tmp_path / "split")
    (folder / "labs.csv.gz").write_bytes(b"broken")
    with pytest.raises(TableError):
        split_file(files, SCHEMA, tmp_path / "split")
    shutil.rmtree(folder)
    assert list(tmp_path.iterdir()) == []
