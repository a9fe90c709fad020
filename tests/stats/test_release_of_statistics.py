"""Statistics leave an office as tables do: tiers, caps, signatures, gates, whom a ledger counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.errors import BudgetError, GateError
from dpsynth.ledger import Ledger, adopt, sign
from dpsynth.policy import Policy
from dpsynth.privacy.unit import group_cost
from dpsynth.stats import (
    Answers,
    StatisticsRequest,
    release_answers,
    verify_answers,
)

from ..support.discovered_ward import discovered_ward, ward

ENTRIES = [
    {"name": "by sex", "count": "patients", "by": ["sex"]},
    {"name": "visits by device", "count": "rows", "by": ["device"]},
]
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "dataset": "ward"}
BASIS = {"basis": "board"}


def request(**unit: Any) -> StatisticsRequest:
    """Two rows of a patient count; ``unit`` changes whom the schema protects."""
    document = discovered_ward(rows=2).to_dict()
    document["dpsynth"] |= unit
    return StatisticsRequest.from_dict({"schema": document, "statistics": ENTRIES})


def rows_alone() -> StatisticsRequest:
    """Each row is a unit, and a person has at most three."""
    document = discovered_ward(rows=1).to_dict()
    document["fields"] = [field for field in document["fields"] if field["name"] != "patient"]
    basis = "protocol: three visits"
    document["dpsynth"]["person"] = {
        "name": "patient",
        "max_units": {"value": 3, "basis": basis},
    }
    return StatisticsRequest.from_dict({"schema": document, "statistics": ENTRIES})


def policy(**keys: Any) -> Policy:
    document = {"dpsynth_policy": 1, "name": "office", "delta": 1e-4}
    document["caps"] = {"total": {"epsilon": 20.0} | BASIS}
    return Policy.from_dict(document | keys, "test")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_USER", "fitter")
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.fixture
def answered(ledger: Ledger, tmp_path: Path) -> Callable[..., Path]:
    def ask(asked: StatisticsRequest, data: pd.DataFrame | None = None, **changes: Any) -> Path:
        out = tmp_path / "out"
        table = ward(100) if data is None else data
        dpsynth.statistics(table, asked, **BUDGET | changes, ledger=ledger, output=out)
        return out

    return ask


def test_another_person_signs_before_statistics_leave(
    ledger: Ledger,
    answered: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adopt(ledger, policy(sign_off={"people": 1}))
    twice = pd.concat([ward(100)] * 3)  # three rows of a patient, of whom two count
    out, (entry,) = answered(request(), twice), ledger.entries()
    assert entry.unit.max_rows == 2
    with pytest.raises(BudgetError, match="requires 1 more person to sign"):
        release_answers(out, tmp_path / "bundle", ledger=ledger)
    with pytest.raises(BudgetError, match="another person must sign"):
        sign(ledger, entry.id)
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    sign(ledger, entry.id)
    bundle = release_answers(out, tmp_path / "bundle", ledger=ledger)
    assert len(verify_answers(bundle, ledger=ledger)) == 3
    assert len(ledger.entries()[0].releases) == 1
    found = Answers.load(bundle)
    assert found.table("by sex").set_index("sex").loc["F", "upper"] < 600  # patients, not rows


def test_a_tier_is_named_and_its_cap_binds(ledger: Ledger, answered: Callable[..., Path]) -> None:
    caps = {"release": {"epsilon": 0.5} | BASIS}
    adopt(ledger, policy(tiers={"figures": {"caps": caps}}))
    with pytest.raises(BudgetError, match="tier"):
        answered(request())
    with pytest.raises(BudgetError, match="tier figures"):
        answered(request(), tier="figures")
    assert answered(request(), tier="figures", epsilon=0.4).is_dir()
    assert [entry.tier for entry in ledger.entries()] == ["figures"]


def test_gates_that_a_policy_requires_stop_statistics(
    ledger: Ledger, answered: Callable[..., Path], tmp_path: Path
) -> None:
    out = answered(request(), epsilon=12.0)
    adopt(ledger, policy(gates=["audit", "constant"]))  # of synthetic tables: nothing to judge
    release_answers(out, tmp_path / "first", ledger=ledger)
    adopt(ledger, policy(gates=["epsilon"]))
    with pytest.raises(GateError, match="Epsilon is at most 10"):
        release_answers(out, tmp_path / "second", ledger=ledger)
    adopt(ledger, policy(gates=["membership"]))
    with pytest.raises(BudgetError, match="does not have: membership"):
        release_answers(out, tmp_path / "second", ledger=ledger)
    assert not (tmp_path / "second").exists()


def test_a_person_of_several_units_is_counted_as_such(
    ledger: Ledger, answered: Callable[..., Path], tmp_path: Path
) -> None:
    out, (entry,) = answered(rows_alone(), delta=1e-8), ledger.entries()
    assert (entry.unit.max_units, entry.cost) == (3, group_cost(1.0, 1e-8, 3))
    found = Answers.load(out)
    assert any("at most 3 units" in words for words in found.certificate.not_covered)
    page = (out / "report.html").read_text()
    assert "at most 3 rows" in page and "epsilon 2.99" in page  # for a person, beside one row
    release_answers(out, tmp_path / "bundle", ledger=ledger)
    strict = policy(caps={"total": {"epsilon": 2.5} | BASIS})
    with pytest.raises(BudgetError, match="epsilon"):  # 3 is asked for a person, 1 for a row
        dpsynth.statistics(
            ward(20), rows_alone(), **BUDGET | {"dataset": "other"}, policy=strict, ledger=ledger
        )
