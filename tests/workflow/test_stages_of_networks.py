"""A whole run whose fit of a network is stopped goes on within its entry, and is charged once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.errors import InputError
from dpsynth.synthesis.checkpoints import NAME
from dpsynth.workflow.stages import CHECKPOINTS

from ..support.short_training import shorten_training
from ..support.workflow_office import Office, states

NETWORK = {"model": "autoregressive"}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_training(monkeypatch)


def checkpoint(office: Office) -> Path:
    return office.work / CHECKPOINTS / NAME


@pytest.mark.parametrize("stage", ["reading", "training"])
def test_the_same_command_goes_on(office: Office, stage: str) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        office.run(at=f"fit: {stage}", **NETWORK)
    assert any("goes on from there" in note for note in stopped.value.__notes__)
    assert office.statuses == ["reading"] and checkpoint(office).is_file()
    assert states(office.run(**NETWORK))["fit"] == "done"
    assert office.statuses == ["charged"]
    assert not checkpoint(office).parent.exists()


def test_a_fit_that_is_made_again_gives_its_checkpoint_up(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit: training", **NETWORK)
    assert states(office.run(again=True, **NETWORK))["fit"] == "done"
    assert office.statuses == ["reading", "charged"]


def test_a_damaged_checkpoint_is_no_new_fit(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit: training", **NETWORK)
    checkpoint(office).write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match="damaged") as refused:
        office.run(**NETWORK)
    assert any("--fit-again" in note for note in refused.value.__notes__)
    assert office.statuses == ["reading"]
