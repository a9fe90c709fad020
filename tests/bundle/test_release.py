"""A bundle: complete, described, verified before it has a name, and the same bytes twice."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import socket
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth.bundle import release, verify
from dpsynth.encoding import Codec
from dpsynth.errors import BudgetError, GateError, InputError, TableError
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, Sampler, record_sample
from dpsynth.tables import write_table

from ..support.bundle_files import FILES, Files, manifest_of


def test_a_bundle_has_its_files_and_a_true_list_of_them(bundle: Path, files_of: Files) -> None:
    files = files_of(bundle)
    assert sorted(files) == sorted([*FILES, "datapackage.json"])
    listed = {item["path"]: item for item in manifest_of(bundle)["resources"]}
    assert sorted(listed) == FILES
    for path, item in listed.items():
        counted = "dpsynth:bytes" if path.endswith(".parquet") else "bytes"
        assert item[counted] == len(files[path])
        assert item["hash"] == "sha256:" + hashlib.sha256(files[path]).hexdigest()


def test_schema_and_certificate_are_those_of_the_run(bundle: Path, made_run: Run) -> None:
    assert json.loads((bundle / "privacy.json").read_text()) == made_run.certificate
    assert Schema.from_dict(json.loads((bundle / "schema.json").read_text())) == made_run.schema
    drawing = manifest_of(bundle)["dpsynth"]["drawing"]
    assert (drawing["size"], drawing["seed"], drawing["model"]) == (300, 7, "independent")


def test_tables_have_the_declared_types_and_only_modelled_columns(bundle: Path) -> None:
    types = {
        field.name: str(field.type) for field in pq.read_schema(bundle / "data/synthetic.parquet")
    }
    assert types == {
        "age": "int64",
        "weight": "double",
        "grade": "int64",
        "sex": "string",
        "smoker": "bool",
        "admitted": "date32[day]",
        "discharged": "date32[day]",
        "measured": "timestamp[us]",
        "born": "int64",
    }
    text = pd.read_csv(bundle / "data/synthetic.csv", dtype=str, keep_default_na=False)
    assert list(text.columns) == list(types)
    assert len(text) == 300 == pq.read_metadata(bundle / "data/synthetic.parquet").num_rows
    assert set(text["sex"]) == {"F", "M, or other", ""}


def test_the_same_run_and_seed_give_the_same_bytes(
    run_folder: Path, tmp_path: Path, files_of: Files
) -> None:
    for name in ("one", "two", "other"):
        release(run_folder, tmp_path / name, size=200, seed=3 if name == "other" else 2)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert files_of(tmp_path / "one") != files_of(tmp_path / "other")


def test_rows_and_seed_have_public_defaults(
    run_folder: Path, tmp_path: Path, files_of: Files
) -> None:
    first = manifest_of(release(run_folder, tmp_path / "one"))["dpsynth"]["drawing"]
    second = manifest_of(release(run_folder, tmp_path / "two"))["dpsynth"]["drawing"]
    assert first["size"] == second["size"] == 700  # the schema's, never the table's
    assert first["seed"] != second["seed"]  # equal with a chance of 2^-63
    release(run_folder, tmp_path / "again", seed=first["seed"])
    assert files_of(tmp_path / "again") == files_of(tmp_path / "one")


@pytest.mark.long
def test_a_bundle_does_not_depend_on_user_machine_path_or_time(
    bundle: Path,
    run_folder: Path,
    tmp_path: Path,
    files_of: Files,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, host = time.time(), "host-of-curie"
    monkeypatch.setattr(time, "time", lambda: now + 1e7)
    monkeypatch.setattr(platform, "node", lambda: host)
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    for name in ("USER", "LOGNAME", "DPSYNTH_USER", "HOSTNAME"):
        monkeypatch.setenv(name, "curie")
    monkeypatch.chdir(tmp_path)
    elsewhere = shutil.copytree(run_folder, tmp_path / "home-of-curie" / "run")
    release(elsewhere, tmp_path / "home-of-curie" / "bundle", size=300, seed=7)
    assert files_of(tmp_path / "home-of-curie" / "bundle") == files_of(bundle)
    assert not any(b"curie" in content for content in files_of(bundle).values())


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_a_table_that_was_drawn_earlier_is_released_as_it_is(
    run_folder: Path, made_run: Run, tmp_path: Path, suffix: str, files_of: Files
) -> None:
    table = tmp_path / f"synthetic{suffix}"
    write_table(Sampler.of(made_run).frames(150, seed=11), table, made_run.schema)
    record_sample(run_folder, table, size=150, seed=11)
    bundle = release(run_folder, tmp_path / "bundle", table=table)
    drawing = manifest_of(bundle)["dpsynth"]["drawing"]
    assert (drawing["size"], drawing["seed"]) == (150, 11)
    fresh = release(run_folder, tmp_path / "fresh", size=150, seed=11)
    assert files_of(bundle) == files_of(fresh)
    if suffix != ".csv.gz":
        assert (bundle / f"data/synthetic{suffix}").read_bytes() == table.read_bytes()


def test_a_table_of_unknown_origin_is_refused(
    run_folder: Path, made_run: Run, tmp_path: Path
) -> None:
    table = tmp_path / "synthetic.csv"
    write_table(Sampler.of(made_run).frames(50, seed=11), table, made_run.schema)
    with pytest.raises(GateError, match=r"is not recorded in .*run/samples\.json") as caught:
        release(run_folder, tmp_path / "bundle", table=table)
    assert "without --balance or --like, whose rows cannot be released" in str(caught.value)
    record_sample(run_folder, table, size=50, seed=11)
    table.write_text(table.read_text().replace("F", "M, or other"))
    with pytest.raises(GateError, match="was changed since"):
        release(run_folder, tmp_path / "bundle", table=table)
    with pytest.raises(TableError, match="no such file"):
        release(run_folder, tmp_path / "bundle", table=tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="either a table, or a size and a seed"):
        release(run_folder, tmp_path / "bundle", table=table, seed=1)
    assert sorted(os.listdir(tmp_path)) == ["run", "synthetic.csv"]


@pytest.mark.parametrize("wish", [{"size": 0}, {"size": -5}, {"seed": -1}, {"seed": 2**63}])
def test_impossible_wishes_are_refused(
    run_folder: Path, tmp_path: Path, wish: dict[str, int]
) -> None:
    with pytest.raises(InputError, match="must"):
        release(run_folder, tmp_path / "bundle", **wish)
    assert os.listdir(tmp_path) == ["run"]


def test_a_bundle_never_takes_the_place_of_anything(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with pytest.raises(InputError, match="exists; choose another name"):
        release(run_folder, tmp_path / "bundle")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_release_leaves_nothing(
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
) -> None:
    def interrupted(bundle: Path) -> None:
        assert (bundle / "datapackage.json").exists()
        raise error

    monkeypatch.setattr("dpsynth.bundle.writer.verify", interrupted)
    with pytest.raises(error):
        release(run_folder, tmp_path / "bundle", size=10, seed=1)
    assert os.listdir(tmp_path) == ["run"]


def test_a_long_table_is_parquet_alone(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_of: Files
) -> None:
    for module in ("writer", "checks.tables"):
        monkeypatch.setattr(f"dpsynth.bundle.{module}.MAX_CSV_ROWS", 100)
    bundle = release(run_folder, tmp_path / "bundle", size=101, seed=1)
    assert "data/synthetic.csv" not in files_of(bundle)
    verify(bundle)


def test_a_table_of_several_blocks_is_released(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("synthesis.sampler.BLOCK", "tables.writer.CHUNK"):
        monkeypatch.setattr(f"dpsynth.{size}", 4_096)
    bundle = release(run_folder, tmp_path / "bundle", size=9_000, seed=1)
    table = pq.read_metadata(bundle / "data/synthetic.parquet")
    assert table.num_rows == 9_000 and table.num_row_groups == 3


@pytest.mark.parametrize("file", ["data/synthetic.csv", "datapackage.json"])
def test_frictionless_finds_the_bundle_valid(bundle: Path, file: str) -> None:
    frictionless = pytest.importorskip("frictionless")
    package = frictionless.Package(str(bundle / "datapackage.json"))
    if file == "datapackage.json":
        report = frictionless.Package.metadata_validate(manifest_of(bundle))
        assert list(report) == []
        return
    report = package.get_resource("synthetic-csv").validate()
    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])[:5]


def test_frictionless_would_notice_a_cell_out_of_bounds(bundle: Path) -> None:
    """The broken twin of the test above."""
    frictionless = pytest.importorskip("frictionless")
    path = bundle / "data/synthetic.csv"
    lines = path.read_text().splitlines()
    lines[1] = "17" + lines[1][lines[1].index(",") :]
    path.write_text("\n".join(lines) + "\n")
    package = frictionless.Package(str(bundle / "datapackage.json"))
    report = package.get_resource("synthetic-csv").validate()
    assert "constraint-error" in {row[0] for row in report.flatten(["type"])}


def test_declared_spellings_of_missing_and_true_stay_valid(
    made_run: Run, every_type: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source may write ``?`` and ``yes``; whatever the bundle writes, its schema must say."""
    frictionless = pytest.importorskip("frictionless")
    document = every_type.to_dict()
    document["missingValues"] = ["?"]
    for field in document["fields"]:
        if field["name"] == "smoker":
            field |= {"trueValues": ["yes"], "falseValues": ["no"]}
    schema = Schema.from_dict(document)
    assert Codec(schema).sizes == Codec(every_type).sizes
    certificate = made_run.certificate | {"schema_sha256": schema.hash()}
    replace(made_run, schema=schema, certificate=certificate).save(tmp_path / "run")
    with pytest.raises(BudgetError, match="has another schema"):
        release(tmp_path / "run", tmp_path / "bundle", size=200, seed=1)
    # as a ledger would that charged such a run
    granted = SimpleNamespace(enter=lambda manifest: None, rules=lambda rules: None, gates=())
    monkeypatch.setattr("dpsynth.bundle.writer.Permission.of", lambda run, book: granted)
    bundle = release(tmp_path / "run", tmp_path / "bundle", size=200, seed=1)
    package = frictionless.Package(str(bundle / "datapackage.json"))
    report = package.get_resource("synthetic-csv").validate()
    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])[:5]
