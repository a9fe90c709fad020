"""`dpsynth plan --forecast`: the terminal, JSON, the folder and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dpsynth import forecast
from dpsynth.forecasts import forecast_page

from ..support.command_line import Cli
from ..support.forecast_table import forecast_schema
from ..support.page_reader import Reader, said

BUDGET = ("--epsilon", "3", "--delta", "1e-4", "--model", "independent")


@pytest.fixture
def schema(tmp_path: Path) -> str:
    (tmp_path / "ward.schema.yaml").write_text(yaml.safe_dump(forecast_schema().to_dict()))
    return "ward.schema.yaml"


def test_a_forecast_is_a_table_a_document_and_a_page(cli: Cli, schema: str, tmp_path: Path) -> None:
    ended = cli("plan", schema, *BUDGET, "--forecast", "--wanted-error", ".1", "-o", "out")
    assert ended.code == 0, ended.err
    for words in ("no private row was read", "a pair of columns", "smoker", "from 3", "wanted"):
        assert words in ended.out or words == "from 3", words
    document = json.loads((tmp_path / "out" / "forecast.json").read_text())
    assert document["format"] == "dpsynth-forecast" and document["wanted"]["error"] == 0.1
    page = (tmp_path / "out" / "forecast.html").read_text()
    assert page == forecast_page(document)
    assert "No private row was read" in said(page) and Reader(page).all("svg")
    assert not Reader(page).all("script")


def test_json_holds_the_whole_forecast(cli: Cli, schema: str) -> None:
    values = cli("plan", schema, *BUDGET, "--forecast", "--json").json
    assert len(values["forecast"]["pairs"]["each"]) == 6 and values["plan"]["epsilon"] == 3
    assert "forecast" not in cli("plan", schema, *BUDGET, "--json").json


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--like", "run"), "--like belongs to --forecast"),
        (("--wanted-error", "0.1"), "--wanted-error belongs to --forecast"),
        (("-o", "out"), "--output belongs to --forecast"),
        (("--forecast", "--wanted-error", "-1"), "above 0 and below 1"),
        (("--forecast", "--error-of", "agee"), "no column 'agee'"),
        (("--forecast", "--like", "nowhere"), "neither a run nor a bundle"),
        (("--forecast", "-o", "."), "choose another"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    cli: Cli, schema: str, options: tuple[str, ...], words: str
) -> None:
    refused = cli("plan", schema, *BUDGET, *options)
    assert refused.code == 2 and words in refused.err, refused.err


def test_a_name_of_a_column_cannot_change_the_page() -> None:
    document = forecast(forecast_schema(), epsilon=3, delta=1e-4, model="independent")
    document["columns"]["each"][0]["name"] = "<script>alert(1)</script>"
    document["pairs"]["each"] = []
    assert "<script>" not in forecast_page(document)
