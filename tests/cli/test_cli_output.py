"""JSON for scripts, silence when asked for, and progress for people."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dpsynth.ledger import Ledger

from ..support.command_line import BUDGET, COMMANDS, Cli
from ..support.reservations import reserve

ENTRY = "0123456789abcdef" * 2

POLICY = """\
dpsynth_policy: 1
name: Test
delta: 1.0e-5
caps: {total: {epsilon: 9, basis: "the board"}}
"""


@pytest.fixture
def office(cli: Cli, made_ledger: Path, made_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy file, and a ledger with an entry of somebody else's that never began to read."""
    shutil.copyfile(made_ledger, "ledger.sqlite")
    Path("office.policy.yaml").write_text(POLICY)
    with monkeypatch.context() as patch:
        patch.setenv("DPSYNTH_USER", "somebody")
        patch.setattr("uuid.uuid4", lambda: UUID(ENTRY))
        reserve(Ledger(), "ward", epsilon=1, model="mixture", population=100)


@dataclass(frozen=True)
class Call:
    """A command line on the fixtures' files, and the kind of its JSON."""

    line: str
    kind: str
    internal: bool = False
    steps: tuple[str, ...] = ()


CALLS = [
    Call("plan cardio --epsilon 1 --delta 1e-6", "dpsynth.plan"),
    Call("schema list", "dpsynth.schemas"),
    Call("schema check cardio", "dpsynth.schema.check"),
    Call("schema check demo cohort.csv", "dpsynth.schema.check", internal=True, steps=("reading",)),
    Call(
        f"fit demo cohort.csv {' '.join(BUDGET)} --model independent -o fitted",
        "dpsynth.fit",
        steps=("reading", "histograms"),
    ),
    Call("rules run -o rules.yaml", "dpsynth.rules"),
    Call("sample run -o table.csv --rows 20 --seed 1", "dpsynth.sample", steps=("sampling",)),
    Call(
        "split demo cohort.csv -o sides --seed 1",
        "dpsynth.split",
        internal=True,
        steps=("splitting",),
    ),
    Call("release run -o released --rows 50 --seed 1", "dpsynth.release", steps=("bundle",)),
    Call("verify bundle", "dpsynth.verify"),
    Call("release bundle --dpia draft.txt", "dpsynth.release"),
    Call("release run --dpia draft.txt", "dpsynth.release"),
    Call("plan cardio --epsilon 1 --delta 1e-6 --policy office.policy.yaml", "dpsynth.plan"),
    Call("ledger show", "dpsynth.ledger", internal=True),
    Call("ledger policy office.policy.yaml", "dpsynth.ledger-policy", internal=True),
    Call("ledger create new.sqlite", "dpsynth.ledger-create", internal=True),
    Call("ledger verify", "dpsynth.ledger-verify", internal=True),
    Call("ledger backup copy.sqlite", "dpsynth.ledger-backup", internal=True),
    Call("ledger export -o ledger.json", "dpsynth.ledger-export", internal=True),
    Call(f"ledger sign {ENTRY}", "dpsynth.ledger-sign", internal=True),
    Call(f"ledger void {ENTRY} --reason test", "dpsynth.ledger-void", internal=True),
]

LINES = [call.line for call in CALLS]


def test_every_command_with_json_is_tested() -> None:
    with_json = {
        path
        for path, command in COMMANDS.items()
        if any("--json" in p.opts for p in command.params)
    }
    tested = {path for path in COMMANDS for line in LINES if line.startswith(" ".join(path))}
    # these have files of their own
    elsewhere = {("demo",), ("run",), ("ledger", "close"), ("evaluate",), ("compare",), ("audit",)}
    elsewhere |= {
        ("keygen",),
        ("sign",),
        ("stats",),
        ("labels",),
        ("linkage",),
        ("local", "perturb"),
        ("local", "estimate"),
        ("ledger", "forfeit"),
        ("schema", "draft"),
    }
    assert with_json - tested == elsewhere


@pytest.mark.parametrize("call", CALLS, ids=LINES)
def test_json_has_kind_and_version_and_nothing_else_is_written(
    cli: Cli, office: None, cohort: Path, run_folder: Path, bundle: Path, call: Call
) -> None:
    ended = cli(*shlex.split(call.line), "--json")
    assert ended.code == 0 and ended.err == ""
    assert ended.json["kind"] == call.kind and ended.json["version"] == 1
    assert ended.json.get("internal", False) is call.internal


@pytest.mark.parametrize("call", CALLS, ids=LINES)
def test_quiet_is_silent_on_stderr(
    cli: Cli, office: None, cohort: Path, run_folder: Path, bundle: Path, call: Call
) -> None:
    ended = cli(*shlex.split(call.line), "--quiet")
    assert ended.code == 0 and ended.err == ""
    assert ended.out.strip()


@pytest.mark.parametrize("call", CALLS, ids=LINES)
def test_off_a_terminal_each_stage_is_one_line_without_numbers(
    cli: Cli, office: None, cohort: Path, run_folder: Path, bundle: Path, call: Call
) -> None:
    ended = cli(*shlex.split(call.line))
    assert ended.code == 0 and "\r" not in ended.err
    stages = [line for line in ended.err.splitlines() if line.endswith(" ...")]
    assert stages == [f"{stage} ..." for stage in call.steps]
    assert not re.search(r"\d", "".join(stages))
    assert not any(stage in ended.out for stage in stages)


def test_on_a_terminal_there_is_a_bar_in_per_cent(cohort: Path) -> None:
    """Per cent and the time left, never numbers of rows."""
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsynth", "schema", "check", "demo", str(cohort)],
        stderr=other_end,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(other_end)
    screen = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        screen += part
    os.close(terminal)
    assert process.wait(timeout=60) == 0
    text = screen.decode()
    assert "reading" in text and "100%" in text and "#" in text
    assert not re.search(r"\d+/\d+", text)
