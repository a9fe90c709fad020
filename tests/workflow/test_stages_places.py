"""Where the results of a run go, what it does without a holdout, and how many processes work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.bundle import sign, verify
from dpsynth.bundle.format import create_key
from dpsynth.errors import (
    InputError,
    VerificationError,
)
from dpsynth.synthesis import Execution, fitting
from dpsynth.workflow import run_stages, subjects
from dpsynth.workflow.runner import KEPT

from ..support.workflow_office import Office, states


@pytest.mark.parametrize("place", ["bundle", "bundle.internal", "bundle.work"])
def test_what_is_in_the_way_is_refused_before_anything_is_spent(office: Office, place: str) -> None:
    office.path(place).mkdir()
    (office.path(place) / "thesis.txt").write_text("years")
    with pytest.raises(InputError, match="exists"):
        office.run()
    assert office.statuses == []
    assert [path.name for path in office.path(place).iterdir()] == ["thesis.txt"]


def test_a_bundle_whose_work_folder_is_gone_is_left_alone(finished: Office) -> None:
    finished.work.rename(finished.path("gone"))
    finished.path("bundle.internal").rename(finished.path("gone.internal"))
    with pytest.raises(InputError, match="was not written from"):
        finished.run()
    assert finished.statuses == ["charged"]


def test_a_bundle_that_was_changed_is_noticed(finished: Office) -> None:
    table = finished.path("bundle") / "data" / "synthetic.csv"
    table.write_text(table.read_text() + "\n")
    with pytest.raises(VerificationError):
        finished.run()


def test_the_bundle_of_another_run_is_refused(finished: Office, tmp_path: Path) -> None:
    finished.run(output=tmp_path / "other")
    finished.path("bundle").rename(tmp_path / "first")
    (tmp_path / "other").rename(finished.path("bundle"))
    with pytest.raises(InputError, match="the bundle of another run"):
        finished.run()


def test_a_bundle_may_be_signed_between(finished: Office, tmp_path: Path) -> None:
    private, public = create_key(tmp_path / "office.key", None)
    sign(finished.path("bundle"), private)
    assert set(states(finished.run()).values()) == {KEPT}
    assert verify(finished.path("bundle"), key=public)


def test_folders_do_not_lie_in_one_another(office: Office) -> None:
    for changes in (
        {"work": office.path("bundle") / "work"},
        {"internal": office.path("bundle")},
        {"output": office.path("x"), "work": office.path("w"), "internal": office.path("w/in")},
    ):
        with pytest.raises(InputError, match="three separate folders"):
            office.run(**changes)


def test_two_at_once_are_refused(office: Office) -> None:
    stages: list[str] = []

    def second(stage: str, fraction: float) -> None:
        if stage == "sample":
            with pytest.raises(InputError, match="another process is working"):
                office.run()
            stages.append(stage)

    run_stages(office.settings, progress=second)
    assert stages == ["sample"] and office.statuses == ["charged"]


def test_without_a_holdout_the_source_is_fitted_and_only_the_training_attacked(
    office: Office,
) -> None:
    outcome = office.run(holdout=0.0)
    assert states(outcome)["split"] == "not needed" and not (office.work / "split").exists()
    (_, evaluated), (_, audited) = office.calls
    assert evaluated["source"] == office.settings.data and evaluated["holdout"] is None
    assert audited["real"] is None and audited["trained"].canaries == 60
    certificate = json.loads((office.path("bundle") / "privacy.json").read_text())
    assert certificate["population"] == 100


def test_without_a_holdout_the_split_only_leaves_out(office: Office, cohort: pd.DataFrame) -> None:
    gone = cohort["patient_id"].unique()[:3]
    office.path("gone.csv").write_text("\n".join(["patient_id", *gone]))
    outcome = office.run(holdout=0.0, opt_out=office.path("gone.csv"))
    assert states(outcome)["split"] == "done"
    train = pd.read_csv(office.work / "split" / "train.csv")
    assert set(train["patient_id"]) == set(cohort["patient_id"]) - set(gone)
    assert office.calls[0][1]["source"] == office.work / "split" / "train.csv"
    assert not (office.work / "split" / "holdout.csv").exists()


def test_as_many_processes_as_asked_do_what_can_be_shared(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(verb: Any) -> Any:
        def carried_out(
            *given: Any, workers: int = 0, execution: Execution | None = None, **options: Any
        ) -> Any:
            asked.append(workers if execution is None else execution.workers)
            return verb(*given, **options)

        return carried_out

    monkeypatch.setattr(fitting, "fit", counted(fitting.fit))
    for verb in ("write_drawn", "evaluate", "audit"):
        monkeypatch.setattr(subjects, verb, counted(getattr(subjects, verb)))
    run_stages(office.settings, workers=3)
    assert asked == [3, 3, 3, 3]
