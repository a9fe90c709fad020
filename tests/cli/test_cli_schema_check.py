"""`dpsynth schema check` with a table: what it shows, writes and answers."""

from __future__ import annotations

import stat
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ..support.command_line import Cli

CELL = "Kardiologie-Quokka"


@pytest.fixture
def visits(tmp_path: Path) -> pd.DataFrame:
    frame = simulate(100, seed=1).astype(object)
    frame["sex"] = [str(sex).upper() for sex in frame["sex"]]
    frame.loc[frame.index[:3], "ward"] = CELL
    frame.to_csv(tmp_path / "visits.csv", index=False)
    return frame


def test_findings_come_first_and_exit_code_3(cli: Cli, visits: pd.DataFrame) -> None:
    ended = cli("schema", "check", "demo", "visits.csv")
    assert ended.code == 3
    lines = [line for line in ended.out.splitlines() if line.startswith(("serious", "warning"))]
    assert lines[0].startswith("serious  sex: 100 %") and "ward: " in ended.out
    assert "differ from a category only by upper and lower case" in ended.out
    assert "add to the column: dpsynth: {case: false}" in ended.out
    assert "1 serious finding: correct the schema or the extract" in ended.err
    assert CELL not in ended.out + ended.err


def test_a_clean_table_says_so_in_one_line(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("demo").to_dict()
    document["dpsynth"]["population"]["value"] = 100
    document["dpsynth"]["rows"]["value"] = 190
    Schema.from_dict(document).save(tmp_path / "mine.json")
    simulate(100, seed=1).to_csv(tmp_path / "visits.csv", index=False)
    ended = cli("schema", "check", "mine.json", "visits.csv")
    assert ended.code == 0, ended.out
    assert "The table fits the schema: 2 notes in 15 columns." in ended.out
    assert "rows), do not count" in ended.out
    assert "unreadable" not in ended.out


def test_json_is_written_with_the_code_of_a_finding(cli: Cli, visits: pd.DataFrame) -> None:
    ended = cli("schema", "check", "demo", "visits.csv", "--json")
    document = ended.json
    assert ended.code == 3 and document["level"] == "serious" and document["problems"] == []
    assert document["serious"] == ["sex:unknown"]
    (finding,) = [one for one in document["findings"] if one["place"] == "sex"]
    assert finding["causes"][0]["cause"] == "case" and finding["count"] == len(visits)
    assert CELL not in ended.out


def test_json_is_written_where_the_schema_is_wrong(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("cardio").to_dict()
    document["fields"][2]["type"] = "integr"
    del document["fields"][1]["constraints"]["minimum"]
    (tmp_path / "mine.schema.yaml").write_text(yaml.safe_dump(document))
    ended = cli("schema", "check", "mine.schema.yaml", "--json")
    assert ended.code == 2 and ended.json["kind"] == "dpsynth.schema.check"
    places = [problem["place"] for problem in ended.json["problems"]]
    assert len(places) == 2 and all(place.startswith("fields[") for place in places)
    for words in (("nowhere.yaml",), ("cardio", "absent.csv")):
        ended = cli("schema", "check", *words, "--json")
        assert ended.code == 2 and len(ended.json["problems"]) == 1


def test_values_go_into_a_file_for_its_owner_alone(
    cli: Cli, visits: pd.DataFrame, tmp_path: Path
) -> None:
    words = ("schema", "check", "demo", "visits.csv", "--show-values", "values.yaml")
    ended = cli(*words)
    path = tmp_path / "values.yaml"
    assert ended.code == 3 and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "delete it when you are done" in ended.err and CELL not in ended.out + ended.err
    document = yaml.safe_load(path.read_text())
    values = document["sex"]["unknown"]["values"]
    counts = [value["cells"] for value in values]
    assert counts == sorted(counts, reverse=True) and sum(counts) == len(visits)
    assert {value["value"] for value in values} == {"FEMALE", "MALE"} and values[0][
        "cause"
    ] == "case"
    line = document["sex"]["unknown"]["lines for the column"]["case"]
    assert line.startswith("dpsynth: {values: {") and '"FEMALE": "female"' in line
    assert document["ward"]["unknown"]["values"] == [{"value": CELL, "cells": 3}]
    again = cli(*words)  # it is not replaced
    assert again.code == 2 and "values.yaml exists" in again.err
    alone = cli("schema", "check", "demo", "--show-values", "other.yaml")
    assert alone.code == 2 and "name DATA too" in alone.err


def test_a_schema_without_a_target_gets_a_tip(cli: Cli, tmp_path: Path) -> None:
    assert "the role target" not in cli("schema", "check", "demo").out
    document = Schema.load("demo").to_dict()
    for field in document["fields"]:
        roles = field.get("dpsynth", {}).get("role")
        if roles == "target" or "target" in (roles or []):
            del field["dpsynth"]["role"]
    (tmp_path / "aimless.yaml").write_text(yaml.safe_dump(document))
    ended = cli("schema", "check", "aimless.yaml")
    assert ended.code == 0 and "tip      no column has the role target" in ended.out
