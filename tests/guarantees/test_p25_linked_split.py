"""P25: a split of linked tables has each patient on one side, with all her rows in all tables.

Who is held out is compared with who was fitted. Were each table dealt out by itself, the visits of
a patient of train would be in the holdout. Were an opt-out list applied to the table of patients
alone, the rows of somebody who objected would stay in the others. Both broken versions are here.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pandas as pd
import pytest

from dpsynth import split
from dpsynth.errors import TableError
from dpsynth.schema import LinkedSchema
from dpsynth.tables import OptOut, split_file, splitting
from dpsynth.tables.splitting import SeenRows

from ..support.clean_ward import tables, ward

SCHEMA = LinkedSchema.from_dict(ward())
Tables = dict[str, pd.DataFrame]


def keys(part: Tables) -> set[str]:
    return {key for frame in part.values() for key in frame["id"]}


def by_table(frames: Tables) -> tuple[Tables, Tables]:
    """Deal each table out by coins of its own: the broken version."""
    train, rest = {}, {}
    for name in frames:
        train[name], rest[name] = (part[name] for part in split(frames, SCHEMA))
    return train, rest


def test_a_patient_is_on_one_side_in_all_tables() -> None:
    train, rest = split(tables(), SCHEMA, holdout=0.4)
    assert not keys(train) & keys(rest)
    assert keys(train) | keys(rest) == set(tables()["patients"]["id"])
    train, rest = by_table(tables())
    assert keys(train) & keys(rest)


def test_one_more_patient_moves_nobody_else() -> None:
    larger = tables()
    for one in ("00103", "00142"):
        smaller = {name: frame[frame["id"] != one] for name, frame in larger.items()}
        turned = {name: frame[::-1] for name, frame in larger.items()}
        for seed in range(10):
            held = [keys(split(t, SCHEMA, seed=seed)[1]) for t in (larger, smaller, turned)]
            assert held[0] ^ held[1] <= {one} and held[0] == held[2]


def test_who_opted_out_is_in_no_table() -> None:
    gone = tables()["patients"]["id"][::7].tolist()
    opt_out = OptOut.of(gone, SCHEMA.patients)
    train, rest = split(tables(), SCHEMA, opt_out=opt_out)
    assert not (keys(train) | keys(rest)) & set(gone)
    patients_only = split(tables(), SCHEMA)
    for part in patients_only:  # the broken version
        part["patients"] = part["patients"][~part["patients"]["id"].isin(gone)]
    assert (keys(patients_only[0]) | keys(patients_only[1])) & set(gone)


def files(folder: Path) -> dict[str, Path]:
    folder.mkdir()
    paths = {name: folder / f"{name}.csv" for name in SCHEMA.table_names}
    for name, path in paths.items():
        tables()[name].to_csv(path, index=False)
    return paths


def change_between(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Let somebody else sort a file anew after the first reading of it."""
    deal = splitting.deal

    def late(*facts: object) -> None:
        tables()["labs"][::-1].to_csv(path, index=False)
        deal(*facts)  # type: ignore[arg-type]

    monkeypatch.setattr(splitting, "deal", late)


def test_a_file_that_changes_between_both_readings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = files(tmp_path / "extract")
    gone = OptOut.of(tables()["patients"]["id"][:9].tolist(), SCHEMA.patients)
    change_between(monkeypatch, paths["labs"])
    with pytest.raises(TableError, match="changed while it was split"):
        split_file(paths, SCHEMA, tmp_path / "split", opt_out=gone)
    assert [path.name for path in tmp_path.iterdir()] == ["extract"]
    tables()["labs"].to_csv(paths["labs"], index=False)
    monkeypatch.setattr(SeenRows, "digest", property(lambda seen: b"the same"))  # broken
    train, rest = split_file(paths, SCHEMA, tmp_path / "split", opt_out=gone)
    labs = pd.concat([pd.read_csv(part / "labs.csv", dtype=str) for part in (train, rest)])
    assert set(labs["id"]) & gone.keys


def test_both_sides_are_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: dict[str, int] = {}
    deal = splitting.deal

    def seen(path: object, dialect: object, dealt: object, outputs: object, part: object) -> None:
        for target in outputs.values():  # type: ignore[attr-defined]
            modes[f"{target.parent.name}/{target.name}"] = stat.S_IMODE(target.stat().st_mode)
        deal(path, dialect, dealt, outputs, part)  # type: ignore[arg-type]

    monkeypatch.setattr(splitting, "deal", seen)
    split_file(files(tmp_path / "extract"), SCHEMA, tmp_path / "split")
    assert len(modes) == 10 and set(modes.values()) == {0o600}  # before a row is in them
    for path in (tmp_path / "split").rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted
    assert stat.S_IMODE((tmp_path / "split").stat().st_mode) == 0o700
