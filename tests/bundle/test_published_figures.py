"""Quality figures of a bundle: paid for, about its table, strictly read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.formatting import figure
from dpsynth.assessment import publish_quality
from dpsynth.bundle import evidence_by_folder, release, verify
from dpsynth.bundle.format import Quality, read_quality, write_quality
from dpsynth.bundle.format.quality import ColumnDistance, TargetQuality
from dpsynth.errors import ArtifactError, BudgetError, GateError, VerificationError
from dpsynth.ledger import Ledger, verify_ledger
from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ..support.forger import Forger
from ..support.page_reader import said
from ..support.public_quality_example import QUALITY
from ..support.small_office import small_office


@dataclass(frozen=True)
class Measured:
    """A run, and a table that was drawn from it and measured."""

    run: Path
    table: Path

    def release(self, output: Path, **more: Any) -> Path:
        return release(self.run, output, **({"table": self.table} | more))


@pytest.fixture(scope="module")
def _measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, demo = tmp_path_factory.mktemp("measured"), Schema.load("demo")
    source = simulate(300, seed=1)
    small_office(folder, source, demo, rows=300, seed=7, epsilon=20.0, publish_quality=0.3)
    ledger = Ledger(folder / "ledger.sqlite")
    shutil.copyfile(folder / "ledger.sqlite", folder / "before.sqlite")
    publish_quality(folder / "run", folder / "out.parquet", source, ledger=ledger)
    return folder


@pytest.fixture
def measured(_measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """A copy of the test's own, with its ledger at hand."""
    copy_of_run = shutil.copytree(_measured, tmp_path / "office")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(copy_of_run / "ledger.sqlite"))
    return Measured(copy_of_run / "run", copy_of_run / "out.parquet")


def edited(run: Path, **change: Any) -> None:
    quality = read_quality(run)
    assert quality is not None
    write_quality(run / "quality.json", replace(quality, **change))


def test_paid_figures_travel_along(measured: Measured, tmp_path: Path) -> None:
    bundle = measured.release(tmp_path / "made")
    figures = Quality.from_dict(json.loads((bundle / "quality.json").read_text()))
    assert figures == read_quality(measured.run)
    page = said((bundle / "report.html").read_text())
    assert figure(figures.statistics[1].value) in page and "two columns at a time" in page
    assert "the quality figures are about a table of this bundle" in verify(bundle)
    assert verify_ledger(Ledger(), evidence_by_folder([bundle, measured.run]))


def test_figures_of_another_table_are_refused(measured: Measured, tmp_path: Path) -> None:
    with pytest.raises(GateError, match="figures of another table"):
        measured.release(tmp_path / "made", table=None, size=300, seed=8)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": "nothing"}, "set no budget aside"),
        ({"event": "one-way histograms"}, "set no budget aside"),
        ({"columns": (ColumnDistance("patient_id", 0, 0, 0, None),)}, "names a column"),
        ({"targets": (TargetQuality("patient_id", "x", 0, 0, 0, ()),)}, "names a target"),
        ({"rows": 10**6}, "another number of rows"),
    ],
)
def test_figures_that_do_not_fit_the_plan_are_refused(
    measured: Measured, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    edited(measured.run, **change)
    with pytest.raises(GateError, match=message):
        measured.release(tmp_path / "made")


def test_figures_that_the_ledger_did_not_see_are_refused(
    measured: Measured, tmp_path: Path
) -> None:
    edited(measured.run, note="Better than they are.")
    with pytest.raises(BudgetError, match="has no payment for"):
        measured.release(tmp_path / "made")
    with pytest.raises(VerificationError, match="does not hold its quality figures"):
        verify_ledger(Ledger(), evidence_by_folder([measured.run]))


def test_figures_from_another_copy_of_the_ledger_are_refused(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever measures on copies could take the mean of many answers."""
    monkeypatch.setenv("DPSYNTH_LEDGER", str(measured.run.parent / "before.sqlite"))
    with pytest.raises(BudgetError, match="has no payment for"):
        measured.release(tmp_path / "made")


def test_unpaid_figures_in_a_bundle_are_found(
    measured: Measured, tmp_path: Path, forger: Forger
) -> None:
    forger = type(forger)(measured.release(tmp_path / "made"))
    forger.edit("quality.json", lambda document: document.update(event="nothing"))
    assert "set no budget aside for it" in forger.findings()


def test_figures_of_a_table_that_is_not_there_are_found(
    measured: Measured, tmp_path: Path, forger: Forger
) -> None:
    forger = type(forger)(measured.release(tmp_path / "made"))
    forger.edit("quality.json", lambda document: document.update(table_sha256="a" * 64))
    assert "is about a table that is not in the bundle" in forger.findings()


QUALITY_MISTAKES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an unknown key": lambda d: d.update(source="x"),
    "another version": lambda d: d.update(version=2),
    "no SHA-256": lambda d: d.update(table_sha256="x"),
    "no rows": lambda d: d.update(rows=0),
    "a figure that is text": lambda d: d["statistics"][0].update(value="0.1"),
    "an interval upside down": lambda d: d["statistics"][0].update(low=1, high=0),
    "a chance that is true": lambda d: d["columns"][0].update(chance=True),
    "a calibration of three": lambda d: d["targets"][0]["calibration"][0].update(rows=[1]),
    "no list": lambda d: d.update(columns={}),
    "a list too long": lambda d: d.update(columns=d["columns"] * 10_001),
}


@pytest.mark.parametrize("name", QUALITY_MISTAKES)
def test_quality_is_read_strictly(name: str) -> None:
    document = json.loads(json.dumps(QUALITY.to_dict()))
    assert Quality.from_dict(document) == QUALITY
    QUALITY_MISTAKES[name](document)
    with pytest.raises(ArtifactError, match=r"quality\.json"):
        Quality.from_dict(document)
