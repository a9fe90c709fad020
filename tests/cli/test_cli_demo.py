"""`dpsynth demo`: one table and linked ones, from simulated patients to checked bundles."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.cli.commands.demo import course_lines
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate_cohort

from ..support.command_line import Cli
from ..support.short_training import shorten_histories, shorten_mixture, shorten_training


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few patients and steps, for the time that it takes."""
    monkeypatch.setattr("dpsynth.cli.commands.demo.PATIENTS", 200)
    monkeypatch.setattr("dpsynth.cli.commands.demo.PATIENTS", 200)
    monkeypatch.setattr("dpsynth.cli.commands.demo.HOLDOUT", 60)
    for shorten in (shorten_mixture, shorten_training, shorten_histories):
        shorten(monkeypatch)
    monkeypatch.setattr("dpsynth.models.generators.training.WARM_BATCH", 200)


@pytest.mark.long
def test_the_demo_goes_all_the_way(cli: Cli, quick: None) -> None:
    ended = cli("demo", "-o", "demo", "--json")
    assert ended.code == 0 and ended.err == ""
    document = ended.json
    assert document["kind"] == "dpsynth.demo" and document["version"] == 1
    assert document["internal"] is True
    for score in document["scores"].values():
        assert set(score) == {"value", "floor", "ceiling"}
        assert all(0 <= part <= 1 for part in score.values())
    clinic = document["clinic"]
    assert cli("verify", document["bundle"]).code == cli("verify", clinic["bundle"]).code == 0
    assert "<svg" in Path(clinic["page"]).read_text()
    assert {use["verdict"] for use in clinic["uses"]} <= {
        "fit", "with care", "not fit", "not measured"
    }  # fmt: skip
    entries = Ledger(Path("demo/ledger.sqlite")).entries()
    assert [(entry.dataset, entry.status) for entry in entries] == [
        ("demo", "charged"),
        ("clinic", "charged"),
    ]
    assert Ledger().entries() == []  # the user's own is left alone


def test_the_demo_replaces_nothing_but_a_demo(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refused = cli("demo", "-o", "mine")
    assert refused.code == 2 and "not a demo" in refused.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_courses_in_words() -> None:
    lines = course_lines(simulate_cohort(60, seed=1))
    assert lines[0] == "male, 63, without diabetes: 147 144 155 167; stroke on day 61"
    assert len(lines) == 3 and any("with diabetes" in line for line in lines)
