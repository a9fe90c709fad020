"""Fits of several processes that ``torchrun`` starts: one entry, one plan, equal parameters.

P26 is tested with threads (`tests/guarantees/test_p26_ranks_draw_for_themselves.py`); here are the
processes, on the loopback device of this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from traceback import format_exception

import pytest
import torch

from dpsynth._util.torchrun import Place
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.models.dpsgd.ranks import RankLost, TorchRanks
from dpsynth.models.presets import STEPS
from dpsynth.schema import Schema
from dpsynth.synthesis import Execution, Run, prepare
from dpsynth.synthesis.readers import shards_folder
from dpsynth.tables import simulate

from ..support.evaluated_office import call
from ..support.quick_fit import quick_fit

AMONG_TWO = {
    "TORCHELASTIC_RUN_ID": "here",
    "RANK": "0",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
}
# what each process runs: the command, with short training, and a note of what it ended with
PROCESS = """
import hashlib, os, pathlib, signal, sys
from dpsynth.models import presets
from dpsynth.models.dpsgd import trainer
from dpsynth.models.generators import training

training.WARM_BATCH = 50
shipped = presets.autoregressive_training
presets.autoregressive_training = lambda *size: shipped(*size) | {{"warm_steps": 2}}
dies = {dies}

def noting(kind):
    step = kind.step
    def noted(self, *words, **more):
        step(self, *words, **more)
        rank = self.ranks.place.rank
        if self.steps_taken == dies and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.steps_taken == self.event.steps:
            digest = hashlib.sha256(self.flat.values.numpy().tobytes()).hexdigest()
            pathlib.Path(f"ended-{{rank}}").write_text(f"{{digest}} {{self.steps_taken}}")
    kind.step = noted

noting(trainer.FirstRank)
noting(trainer.OtherRank)
from dpsynth.cli import main
main()
"""


def fit_by_two(folder: Path, *, dies: int = -1) -> subprocess.CompletedProcess[str]:
    """Fit with two processes; the second one dies after a step, if told to."""
    Ledger.create(folder / "ledger.sqlite")
    simulate(300, seed=1).to_csv(folder / "source.csv", index=False)
    (folder / "process.py").write_text(PROCESS.format(dies=dies))
    words = "fit demo source.csv --dataset clinic --epsilon 2 --delta 1e-6 -o run --quiet".split()
    started = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*started, "process.py", *words, "--model", "autoregressive"],
        cwd=folder,
        env=os.environ | {"DPSYNTH_LEDGER": str(folder / "ledger.sqlite"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.long
def test_two_processes_make_one_fit(tmp_path: Path) -> None:
    done = fit_by_two(tmp_path)
    assert done.returncode == 0, done.stderr
    [entry] = Ledger(tmp_path / "ledger.sqlite").entries()
    assert entry.status == "charged"
    certificate = Run.load(tmp_path / "run").certificate
    alone = prepare(Schema.load("demo"), epsilon=2, delta=1e-6, model="autoregressive")
    assert certificate is not None and certificate["epsilon"] == 2
    assert certificate["events"] == [event.to_dict() for event in alone.plan.events]
    digests = [(tmp_path / f"ended-{rank}").read_text().split() for rank in range(2)]
    assert digests[0] == digests[1]
    assert int(digests[0][1]) == alone.plan.event(STEPS).to_dict()["steps"]


@pytest.mark.long
def test_a_lost_process_ends_the_fit_and_the_ledger_counts_it(tmp_path: Path) -> None:
    for turn in range(3):
        folder = tmp_path / str(turn)
        folder.mkdir()
        done = fit_by_two(folder, dies=3)
        assert done.returncode != 0
        [entry] = Ledger(folder / "ledger.sqlite").entries()
        assert entry.counts and entry.status in ("reading", "failed")
        assert not (folder / "run").exists()
        if "another process of this fit has ended before its time" in done.stderr:
            assert entry.status == "failed"
            assert "the ledger counts epsilon 2 as spent" in done.stderr
            said = "only what we say of it"
            assert not re.search(r"Connection|gloo|RuntimeError", done.stderr), said
            return
    pytest.skip("torchrun ended the first process each time before it could say what it misses")


def test_what_the_library_says_of_a_lost_process_is_not_shown() -> None:
    def lost(tensor: torch.Tensor, rank: int) -> None:
        raise RuntimeError(f"gloo: 10.0.0.7 closed, {tensor} for {rank}")

    with pytest.raises(RankLost, match="another process of this fit has ended") as found:
        TorchRanks(Place(0, 2))._call(lost, torch.ones(3), 1)
    assert "gloo" not in "".join(format_exception(found.value))


@pytest.fixture
def among_two(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AMONG_TWO.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("among_two")
@pytest.mark.parametrize(
    "command", ["plan demo --epsilon 1 --delta 1e-6", "sample run -o table.csv", "run demo x.csv"]
)
def test_commands_that_each_process_would_repeat_are_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*command.split()) == 2
    assert "leave out torchrun" in capsys.readouterr().err


@pytest.mark.usefixtures("among_two")
def test_a_script_that_each_process_would_run_charges_nothing(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="each would make a fit of its own"):
        quick_fit(simulate(20, seed=1), "demo", ledger=ledger)
    assert ledger.entries() == []


def test_shards_are_refused_where_each_process_has_its_units_in_memory(tmp_path: Path) -> None:
    order = prepare(Schema.load("demo"), epsilon=3, delta=1e-6, model="autoregressive")
    with pytest.raises(InputError, match="leave out the folder for shards"):
        shards_folder("table.csv", order, Execution(shards=tmp_path, ranks=TorchRanks(Place(0, 2))))
    assert not list(tmp_path.iterdir())
