"""What commands say of codes that a fit discovers: before the data is opened, and after the fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.command_line import Cli
from ..support.discovered_cohort import discovered_cohort
from ..support.discovered_ward import RARE, discovered_ward, ward

BUDGET = ("--epsilon", "8", "--delta", "1e-6", "--model", "independent")


@pytest.fixture
def schema(tmp_path: Path) -> str:
    discovered_ward().save(tmp_path / "ward.schema.yaml")
    ward().to_csv(tmp_path / "ward.csv", index=False)
    return "ward.schema.yaml"


def test_a_plan_says_what_will_be_found_and_missed(cli: Cli, schema: str) -> None:
    ended = cli("plan", schema, *BUDGET)
    assert ended.code == 0, ended.err
    for words in (
        "code discovery",
        "a code is published if the noisy number of units that have it is at least",
        "found with probability 50 %:",
        "the most that count:",
        "false codes: 0",
        "with probability at most 1e-7",
        "diagnosis: of 1,000 codes, about",
        "proportional to 1/i",
    ):
        assert words in ended.out, words
    values = cli("plan", schema, *BUDGET, "--json").json["discovery"]
    assert values["delta"] == 1e-7 and values["most_codes"] == 4
    assert values["half"][0] < values["almost_sure"][0] < values["almost_sure"][1]
    assert [one["column"] for one in values["columns"]] == ["diagnosis", "device"]
    for one in values["columns"]:
        assert one["found"] + one["missed"] == pytest.approx(1000, abs=0.11)
    assert "discovery" not in cli("plan", "demo", *BUDGET, "--json").json


def test_a_fit_says_it_before_it_reads_and_counts_what_it_found(cli: Cli, schema: str) -> None:
    refused = cli("fit", schema, "nowhere.csv", *BUDGET, "--dataset", "d", "-o", "run")
    assert refused.code == 2 and "a code is published if" in refused.err  # no data was opened
    ended = cli("fit", schema, "ward.csv", *BUDGET, "--dataset", "d", "-o", "run", "--no-ledger")
    assert ended.code == 0, ended.err
    assert "found by column: diagnosis 3, device 2" in ended.out
    assert RARE not in ended.out + ended.err


def test_a_check_takes_codes_that_may_be_found_as_valid(cli: Cli, schema: str) -> None:
    ended = cli("schema", "check", schema, "ward.csv")
    assert ended.code == 0 and "device: " not in ended.out and "diagnosis: " not in ended.out


def test_a_forecast_knows_the_groups_alone(cli: Cli, schema: str) -> None:
    ended = cli("plan", schema, *BUDGET, "--forecast", "--json")
    assert ended.code == 0, ended.err
    assert len(ended.json["forecast"]["columns"]["each"]) == 3


def test_a_plan_of_linked_tables_says_it_too(cli: Cli, tmp_path: Path) -> None:
    discovered_cohort(("stays", "drugs")).save(tmp_path / "ward.package.yaml")
    (tmp_path / "empty").mkdir()
    plan = cli("plan", "ward.package.yaml", "--epsilon", "8", "--delta", "1e-6")
    assert plan.code == 0, plan.err
    for words in (
        "patients.device: of 20 codes, about",
        "stays.code: of 20 codes, about",
        "and rows of a patient, a quarter of the cap: 1 in patients, 1 in stays, 1 in drugs",
        "if each of them has 9 different codes, the most that count",
    ):
        assert words in plan.out, words
    budget = ("--epsilon", "8", "--delta", "1e-6", "--dataset", "d")
    fit = cli("fit", "ward.package.yaml", "empty", *budget, "-o", "run")
    assert fit.code == 2 and "a code is published if" in fit.err  # before any table was opened
