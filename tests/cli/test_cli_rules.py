"""What the commands say of rules: which share of drawn rows met them, and which contradict."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ..support.command_line import Cli
from ..support.quick_fit import quick_fit


def test_sample_says_which_share_of_the_drawn_rows_met_the_rules(cli: Cli, tmp_path: Path) -> None:
    quick_fit(simulate(300, seed=1), "demo").save(tmp_path / "run")
    done = cli("sample", "run", "--rows", "50", "--seed", "1", "-o", "table.csv")
    [line] = [line for line in done.out.splitlines() if line.startswith("rules ")]
    assert "of the drawn rows met the rules, the others were drawn again" in line
    told = cli("sample", "run", "--rows", "50", "--seed", "1", "-o", "same.csv", "--json")
    share = json.loads(told.out)["met_rules"]
    assert 0 < share < 1 and f"{100 * share:.3g} %" in line
    document = Schema.load("demo").to_dict()
    del document["dpsynth"]["rules"]
    quick_fit(simulate(300, seed=1), Schema.from_dict(document)).save(tmp_path / "free")
    assert "rules" not in cli("sample", "free", "--rows", "50", "-o", "free.csv").out


def test_contradictory_rules_are_refused_with_exit_code_2(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("demo").to_dict()
    document["dpsynth"]["rules"] += ["age < 30", "age > 40", "bmi > 5"]
    (tmp_path / "own.schema.yaml").write_text(yaml.safe_dump(document))
    told = "no row with values of age can meet all of 'age < 30', 'age > 40'; correct or remove"
    for command in (
        ("schema", "check", "own.schema.yaml"),
        ("plan", "own.schema.yaml", "--epsilon", "3", "--delta", "1e-6"),
    ):
        ended = cli(*command)
        assert ended.code == 2 and told in ended.err and "bmi" not in ended.err
