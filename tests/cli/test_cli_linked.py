"""`schema check`, `split` and `schema draft` with the folder of a package."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from dpsynth.schema import LinkedSchema, declared_texts
from dpsynth.tables import simulate_cohort

from ..support.clean_ward import tables, ward
from ..support.clinic import write_clinic
from ..support.command_line import Cli
from ..support.declared_tables import declared
from ..support.history_cohorts import grow_few_trees

CELL = "Quokka-4711"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "extract"
    place.mkdir()
    for name, frame in tables().items():
        frame.to_csv(place / f"{name}.csv", index=False)
    LinkedSchema.from_dict(ward()).save(tmp_path / "ward.package.yaml")
    return place


def test_tables_that_fit(cli: Cli, folder: Path) -> None:
    ended = cli("schema", "check", "ward.package.yaml", "extract")
    assert ended.code == 0, ended.out + ended.err
    assert "schema ward: 5 tables, 11 columns, unit id: no mistakes" in ended.out
    assert "INTERNAL: exact figures of real rows; do not release" in ended.out
    assert "The tables fit the schema: no finding in" in ended.out
    alone = cli("schema", "check", "ward.package.yaml", "--json")
    assert alone.code == 0 and alone.json["tables"][0] == "patients"


def test_findings_and_the_file_of_values(cli: Cli, folder: Path, tmp_path: Path) -> None:
    frame = tables()["labs"]
    frame.loc[:40, "id"] = CELL
    frame.loc[(frame["test"] == "hdl") & (frame.index > 200), "value"] = CELL
    frame.to_csv(folder / "labs.csv", index=False)
    words = ("schema", "check", "ward.package.yaml", "extract")
    ended = cli(*words, "--show-values", "values.yaml")
    assert ended.code == 3 and "2 serious findings: correct the schema" in ended.err
    assert "serious  labs: 17.1 % (41 of 240 rows) have a key that no patient" in ended.out
    assert CELL not in ended.out + ended.err
    path = tmp_path / "values.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = yaml.safe_load(path.read_text())
    assert document["labs"]["strangers"]["values"] == [{"value": CELL, "cells": 41}]
    assert document["labs.hdl"]["unreadable"]["values"][0]["value"] == CELL
    found = cli(*words, "--json")
    assert found.code == 3 and found.json["internal"] is True
    assert {"labs:strangers", "labs.hdl:unreadable"} == set(found.json["serious"])
    assert CELL not in found.out


def test_a_folder_that_is_not_one(cli: Cli, folder: Path) -> None:
    (folder / "labs.csv").unlink()
    ended = cli("schema", "check", "ward.package.yaml", "extract", "--json")
    assert ended.code == 2 and "no file for table labs" in ended.json["problems"][0]["message"]
    ended = cli("schema", "check", "ward.package.yaml", "ward.package.yaml")
    assert ended.code == 2 and "each with the name of its table" in ended.err


def test_packages_are_listed_and_shown(cli: Cli) -> None:
    listed = cli("schema", "list")
    assert "nafld" in listed.out and "3 linked tables" in listed.out
    shown = cli("schema", "show", "nafld")
    assert LinkedSchema.from_dict(yaml.safe_load(shown.out)) == LinkedSchema.load("nafld")


def test_a_plan_says_what_is_lost_of_the_calendar(cli: Cli, folder: Path) -> None:
    planned = cli("plan", "ward.package.yaml", "--epsilon", "3", "--delta", "1e-6")
    assert planned.code == 0, planned.err
    [line] = [line for line in planned.out.splitlines() if line.startswith("not kept")]
    assert line.startswith("not kept    visits.date: the weekday and the month of its days")
    checked = cli("schema", "check", "ward.package.yaml", "--json").json
    assert [note["place"] for note in checked["notes"]] == ["visits.date"]


def test_a_check_lists_what_the_schema_declares(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "declared.package.yaml").write_text(yaml.safe_dump(declared()))
    lines = cli("schema", "check", "declared.package.yaml").out.splitlines()
    said = [line for line in lines if line.startswith("declared: ")]
    assert "declared: each row of drugs lies on a day of a row of stays" in said
    assert said == [
        f"declared: {text}" for text in declared_texts(LinkedSchema.from_dict(declared()))
    ]


def test_split_makes_two_folders_of_the_same_files(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.txt").write_text("00100\n00101\n")
    words = ("split", "ward.package.yaml", "extract", "--opt-out", "gone.txt", "-o", "split")
    ended = cli(*words, "--holdout", "0.3")
    assert ended.code == 0, ended.err
    assert "each patient with probability 0.3, with all rows in all tables" in ended.out
    assert "2 keys read from gone.txt: no row with such a key is left" in ended.out
    names = {f"{name}.csv" for name in tables()}
    for part in ("train", "holdout"):
        assert {path.name for path in (tmp_path / "split" / part).iterdir()} == names
        for path in (tmp_path / "split" / part).iterdir():
            assert "00100" not in path.read_text()
    again = cli(*words[:-1], "other", "--json")
    assert again.json["tables"] == ["patients", "labs", "events", "visits", "orders"]
    assert again.json["rows_without_key"] == "drop" and again.json["internal"] is True
    checked = cli("schema", "check", "ward.package.yaml", "split/train")
    assert checked.code == 0


def test_a_draft_of_a_folder(cli: Cli, folder: Path) -> None:
    drawn = cli("schema", "draft", "--from-header", "extract", "-o", "mine.package.yaml")
    assert drawn.code == 0 and "wrote mine.package.yaml" in drawn.out
    assert "columns:" in drawn.err and "00100" not in drawn.out + drawn.err
    checked = cli("schema", "check", "mine.package.yaml")
    assert checked.code == 2 and "this is a draft" in checked.err


def test_quality_figures_of_linked_tables_are_refused_in_words(cli: Cli, tmp_path: Path) -> None:
    budget = ["--epsilon", "3", "--delta", "1e-6", "--publish-quality", "0.1"]
    planned = cli("plan", "clinic", *budget)
    assert planned.code == 2
    assert "quality figures are published of a single table only" in planned.err
    fitted = cli("fit", "clinic", ".", *budget, "--dataset", "x", "-o", "run")
    assert fitted.code == 2 and "--publish-quality is for a single table" in fitted.err
    assert not (tmp_path / "run").exists()


def test_checkpoints_are_for_networks_of_linked_tables(cli: Cli, tmp_path: Path) -> None:
    budget = ["--epsilon", "3", "--delta", "1e-6", "--dataset", "x", "-o", "run"]
    kept = ("--checkpoints", "kept")
    write_clinic(tmp_path / "tables")
    fitted = cli("fit", "clinic", "tables", *budget, *kept, "--model", "cohort")
    assert fitted.code == 2 and "model 'cohort' keeps no checkpoints" in fitted.err
    exact = cli("fit", "demo", "x.csv", "--not-private", "-o", "run", *kept)
    assert exact.code == 2 and "--checkpoints is for a fit under a budget" in exact.err
    assert not (tmp_path / "run").exists() and not (tmp_path / "kept").exists()


@pytest.mark.parametrize("option", [("--workers", "2"), ("--publish",)])
def test_options_of_one_table_are_refused_for_linked_tables(
    cli: Cli, option: tuple[str, ...]
) -> None:
    judged = cli("evaluate", "clinic", ".", "--synthetic", ".", *option)
    assert judged.code == 2 and f"{option[0]} is for a single table" in judged.err


def test_facts_differences_and_gates_of_linked_tables_are_printed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow_few_trees(monkeypatch)
    write_clinic(tmp_path / "source")
    drawn = simulate_cohort(400, seed=5)
    drawn["labs"]["value"] = drawn["labs"]["value"].sample(frac=1, random_state=1).to_numpy()
    write_clinic(tmp_path / "drawn", drawn)
    (tmp_path / "mine.yaml").write_text(
        "version: 1\ngates:\n  - {key: calendar, at_most: -1, reason: nothing passes this one}\n"
    )
    command = ("evaluate", "clinic", "source", "--synthetic", "drawn", "--gates", "mine.yaml")
    ended = cli(*command, "-o", "internal")
    assert ended.code == 3 and "internal gates failed: values" in ended.err
    assert "calendar" in ended.err and "the cohort is not fit for" in ended.err
    lines = ended.out.splitlines()
    for start in ("values  ", "effects  ", "differs  ", "gate  ", "FAILED  "):
        assert any(line.startswith(start) for line in lines), start
    page = (tmp_path / "internal" / "histories.html").read_text()
    assert "Where they differ most from the source" in page and "Facts of patients" in page
