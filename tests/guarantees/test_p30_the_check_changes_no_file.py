"""P30: a check of exact rows before the charge, whose findings reach a file that is released.

The check may decide one thing, whether a run goes on. Two runs differ in what was found and in
what was accepted, and in nothing else: the fit, its noise and the ledger are the same. Their
bundles must be the same, byte by byte. The broken twins write what was accepted, or the number of
findings, into the bundle. Another test looks at the order: nothing is in the ledger when the check
stops a run; its twin checks after the fit.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.errors import GateError
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.tables import simulate
from dpsynth.workflow import run_stages, runner, stages

from ..support.workflow_office import Office, office_in

pytestmark = pytest.mark.filterwarnings("ignore:a new ledger was created")
ACCEPTED = ("sex:unknown", "age:clipped")
CELL = "Quokka7Zx"


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """A run with quick internal stages, whose table does not fit."""
    frame = simulate(60, seed=1).astype(str).replace({"nan": "", "<NA>": ""})
    frame.loc[frame.index[:20], "sex"] = CELL
    frame.loc[frame.index[:20], "age"] = "1000"
    folder = tmp_path / "office"
    folder.mkdir()
    return office_in(folder, frame, monkeypatch, holdout=0.0, rows=100, seed=7)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def bundles(office: Office, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Fit once; then go on to a bundle twice: with findings that are accepted, and without any."""
    with pytest.raises(KeyboardInterrupt):
        office.run(at="release", accept=ACCEPTED)
    shutil.copytree(office.folder, office.folder.with_name("other"))
    other = office.folder.with_name("other")
    document = json.loads((other / "bundle.work/check.json").read_text())
    assert set(document["serious"]) == {*ACCEPTED}
    (other / "bundle.work/check.json").write_text(
        json.dumps(document | {"serious": [], "findings": [], "level": "clean"})
    )
    office.run(accept=ACCEPTED)
    run_stages(
        replace(
            office.settings,
            data=other / "cohort.csv",
            schema=str(other / "small.schema.yaml"),
            output=other / "bundle",
        )
    )
    return office.folder / "bundle", other / "bundle"


def test_what_is_found_and_accepted_changes_no_byte(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_findings, without = bundles(office, monkeypatch)
    assert files(with_findings) == files(without)
    assert len(files(without)) > 5
    assert all(CELL.encode() not in content for content in files(with_findings).values())


@pytest.mark.parametrize("leak", ["accepted", "findings"])
def test_a_twin_that_tells_of_it_is_seen(
    leak: str, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = stages.ReleaseStage.carry_out

    def telling(self: Any, job: Any) -> Any:
        document = json.loads((job.work.path / "check.json").read_text())
        words = job.order.settings.accept if leak == "accepted" else document["findings"]
        done = carry_out(self, job)
        (job.order.bundle / "README").write_text(f"{len(words)} findings")
        return done

    monkeypatch.setattr(stages.ReleaseStage, "carry_out", telling)
    with_findings, without = bundles(office, monkeypatch)
    assert files(with_findings) != files(without)


def test_the_fit_gets_the_same_whatever_was_found(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.synthesis import fitting

    calls: list[dict[str, Any]] = []

    def noted(*words: Any, **more: Any) -> Any:
        calls.append({"words": words, **{k: v for k, v in more.items() if k not in _ITS_OWN}})
        raise KeyboardInterrupt

    _ITS_OWN = ("ledger", "progress", "output")
    monkeypatch.setattr(fitting, "fit", noted)
    with pytest.raises(KeyboardInterrupt):
        office.run(accept=ACCEPTED)
    monkeypatch.setattr(stages, "require_accepted", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        office.run()
    assert calls[0] == calls[1]


def stopped(office: Office) -> list[Any]:
    with pytest.raises(GateError, match="does not fit"):
        office.run()
    return Ledger().entries()


def test_nothing_is_charged_when_it_stops(office: Office) -> None:
    assert stopped(office) == []


def test_a_twin_that_checks_after_the_fit_is_seen(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, fit = runner.STAGES[0], runner.STAGES[2]
    monkeypatch.setattr(runner, "STAGES", (fit, check, *runner.STAGES[3:]))
    monkeypatch.setattr(stages, "_is_late", lambda job: False)
    assert len(stopped(office)) == 1


def test_what_a_stop_says_depends_on_columns_and_kinds_alone(office: Office) -> None:
    """No figure and no cell: the message may end in a log."""
    messages = []
    for rows in (20, 33):
        frame = pd.read_csv(office.settings.data, dtype=str, keep_default_na=False)
        frame.loc[: rows - 1, "sex"] = f"{CELL}{rows}"
        frame.to_csv(office.settings.data, index=False)
        with pytest.raises(GateError) as stop:
            office.run()
        messages.append(str(stop.value))
    assert messages[0] == messages[1] and CELL not in messages[0]
    assert Schema.load(office.settings.schema).column("sex").name in messages[0]
