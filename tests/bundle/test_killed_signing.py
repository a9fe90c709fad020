"""`sign` that is killed at any step leaves a folder that the next command repairs or explains."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpsynth
from dpsynth.bundle import sign, verify
from dpsynth.bundle.format.signature import SIGNATURE
from dpsynth.errors import InputError, VerificationError
from dpsynth.files.atomic import temporary_file
from dpsynth.ledger import Ledger
from dpsynth.stats import StatisticsRequest, sign_answers, verify_answers
from dpsynth.tables import simulate

pytestmark = pytest.mark.usefixtures("no_passphrase_at_hand")

STEPS = ("fsync", "link", "unlink", "replace")
"""Calls of the operating system by which a signature is written."""

Kind = tuple[Path, Callable[..., Any], Callable[..., Any]]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Statistics of the demo's table."""
    entry = {"name": "sexes", "count": "patients", "by": ["sex"]}
    dpsynth.statistics(
        simulate(100, seed=1),
        StatisticsRequest.from_dict({"schema": "demo", "statistics": [entry]}),
        epsilon=1.0,
        delta=1e-6,
        dataset="cohort",
        ledger=Ledger.create(tmp_path / "answers.sqlite"),
        output=tmp_path / "answers",
    )
    return tmp_path / "answers"


@pytest.fixture(params=["rows", "statistics"])
def kind(request: pytest.FixtureRequest, bundle: Path, answers: Path) -> Kind:
    if request.param == "rows":
        return bundle, sign, verify
    return answers, sign_answers, verify_answers


def killed(folder: Path, write: Callable[..., Any], key: Path, step: str) -> bool:
    """Sign in a child that is killed before its first call of a step; say whether it was."""
    child = os.fork()
    if child == 0:
        setattr(os, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        try:
            write(folder, key, overwrite=step == "replace")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_sign_is_named_by_verify_and_repaired_by_sign(
    kind: Kind, key: Path, step: str
) -> None:
    folder, write, check = kind
    assert killed(folder, write, key, step)
    left = [path.name for path in folder.iterdir() if path.name.startswith(".tmp-")]
    if left:
        with pytest.raises(VerificationError, match="left of a command that was stopped"):
            check(folder)
    if (folder / SIGNATURE).exists():  # the name was given before the kill
        with pytest.raises(InputError, match="already signed"):
            write(folder, key)
    else:
        write(folder, key)
    assert not [path for path in folder.iterdir() if path.name.startswith(".tmp-")]
    check(folder, key=Path(f"{key}.pub"))
    assert left


def test_nothing_of_others_is_removed(kind: Kind, key: Path) -> None:
    """A living writer's file, another machine's, and a name that only looks like ours stay."""
    folder, write, _ = kind
    for name in (".tmp-0123456789abcdef-other", ".tmp-verified", "notes.txt"):
        (folder / name).write_text("theirs")
        with pytest.raises(VerificationError):
            write(folder, key)
        assert (folder / name).read_text() == "theirs"
        (folder / name).unlink()
    with temporary_file(folder / SIGNATURE) as held:
        with pytest.raises(VerificationError, match="of one that still writes"):
            write(folder, key)
        assert held.exists()


@pytest.mark.parametrize(
    "name", ["x\x1b[2J\x1b[Hok", "x\nbundle verified", "\u202eevil", "a\x9b2Jb", "z\u200bz"]
)
def test_a_foreign_name_obeys_no_terminal_and_makes_no_line(kind: Kind, name: str) -> None:
    folder, _, check = kind
    (folder / name).write_text("theirs")
    with pytest.raises(VerificationError) as caught:
        check(folder)
    first, *rest = str(caught.value).split("\n")
    assert len(rest) == 1 and (first + rest[0]).isprintable()
    assert name not in str(caught.value)
