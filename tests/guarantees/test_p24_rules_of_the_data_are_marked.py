"""P24: a rule that was read off the data passes for one of documents.

The check: an added rule with source ``data`` is refused without a policy that allows it; with one,
certificate, card, page and `verify` say that the guarantee does not cover it. The twins let it pass
as covered, or release it without a policy; both are seen.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth.bundle import evidence, release, verify
from dpsynth.certificate import AddedRule
from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, adopt
from dpsynth.policy import Policy
from dpsynth.synthesis import Run, Sampler, record_sample
from dpsynth.tables import write_table

from ..support.forger import Forger

RULE = "not (sex == 'F' and grade == 3)"
BASIS, BY = "no real row has it", "A. Meier"
OFFICE = {
    "dpsynth_policy": 1,
    "name": "office",
    "delta": 1e-4,
    "caps": {"total": {"epsilon": 100, "basis": "board"}},
}


@pytest.fixture
def table(run_folder: Path, made_run: Run, tmp_path: Path) -> Path:
    """A table that keeps a rule of the data, recorded in the run."""
    return drawn(run_folder, made_run, tmp_path / "drawn.parquet", "data")


def drawn(folder: Path, run: Run, place: Path, source: str) -> Path:
    added = AddedRule(RULE, source, BASIS, BY)
    kept = run.kept_to([added])
    write_table(Sampler.of(kept).frames(200, seed=1), place, kept.schema)
    record_sample(folder, place, size=200, seed=1, rules=[added])
    return place


def allow() -> None:
    ledger = Ledger.default()
    adopt(ledger, Policy.from_dict(OFFICE | {"allow_rules_from_rows": True}, "office"))


def test_it_is_not_released_without_a_policy(run_folder: Path, table: Path, tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="read off the data, which the guarantee does not cover"):
        release(run_folder, tmp_path / "bundle", table=table)
    assert not (tmp_path / "bundle").exists()
    adopt(Ledger.default(), Policy.from_dict(OFFICE, "office"))  # by default it does not allow it
    with pytest.raises(BudgetError, match="allow_rules_from_rows"):
        release(run_folder, tmp_path / "bundle", table=table)


def test_every_document_says_that_it_is_not_covered(
    run_folder: Path, table: Path, tmp_path: Path
) -> None:
    allow()
    bundle = release(run_folder, tmp_path / "bundle", table=table)
    [entry] = json.loads((bundle / "privacy.json").read_text())["added_rules"]
    assert (entry["source"], entry["covered"], entry["confirmed_by"]) == ("data", False, BY)
    for name in ("CARD.md", "report.html"):
        assert "NOT COVERED by the guarantee" in (bundle / name).read_text(), name
    assert any("NOT COVERED by the guarantee" in check for check in verify(bundle))


def test_a_declared_rule_is_covered_and_kept(
    run_folder: Path, made_run: Run, tmp_path: Path
) -> None:
    place = drawn(run_folder, made_run, tmp_path / "other.parquet", "declared")
    bundle = release(run_folder, tmp_path / "bundle", table=place)
    [entry] = json.loads((bundle / "privacy.json").read_text())["added_rules"]
    assert entry["covered"] is True
    assert "NOT COVERED" not in (bundle / "CARD.md").read_text()
    assert any(RULE in check for check in verify(bundle))


def test_a_twin_that_asks_no_policy_is_seen(
    run_folder: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "require_allowed", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        with pytest.raises(BudgetError):
            release(run_folder, tmp_path / "bundle", table=table)


@pytest.mark.parametrize("twin", ["covered", "gone", "broken"])
def test_a_bundle_that_says_otherwise_is_refused(
    twin: str, run_folder: Path, table: Path, tmp_path: Path
) -> None:
    allow()
    bundle = release(run_folder, tmp_path / "bundle", table=table)
    forger = Forger(bundle)
    other = "not (sex == 'F' and grade == 2)"  # which the rows do not keep
    if twin == "covered":
        forger.edit("privacy.json", lambda one: one["added_rules"][0].update(covered=True))
    elif twin == "gone":
        forger.edit("privacy.json", lambda one: one.update(added_rules=[]))
    else:
        forger.edit("privacy.json", lambda one: one["added_rules"][0].update(rule=other))
        forger.edit(
            "datapackage.json",
            lambda one: one["dpsynth"]["drawing"]["rules"][0].update(rule=other),
        )
    expected = {"covered": "covered", "gone": "added rules", "broken": "rules"}
    assert expected[twin] in forger.findings()
