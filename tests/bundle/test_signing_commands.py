"""Keys and signatures by commands: what they show, and what they never show."""

from __future__ import annotations

import json
import os
import select
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.bundle.format import create_key, load_private, signed
from dpsynth.cli import main

PHRASE = "a phrase of the office"
MANIFEST, SIGNATURE = "datapackage.json", "datapackage.json.sig"
pytestmark = pytest.mark.usefixtures("no_passphrase_at_hand")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command; give its code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return int(stop.value.code or 0), shown.out, shown.err

    return run


Command = Callable[..., tuple[int, str, str]]


def test_from_key_to_verified_signature_by_commands(
    bundle: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_KEY_PASSPHRASE", PHRASE)
    key = tmp_path / "office.key"
    code, out, err = command("keygen", key)
    assert code == 0 and f"{key}: encrypted" in out and "publish it" in out
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert f"dpsynth sign bundle/ --key {key}" in err
    code, out, err = command("sign", bundle, "--key", key)
    assert (code, out.strip()) == (0, str(bundle / SIGNATURE))
    assert f"dpsynth verify {bundle} --key {key}.pub" in err
    code, out, _ = command("verify", bundle, "--key", f"{key}.pub")
    assert code == 0 and "signed with the key that was given" in out


def test_json_for_scripts(bundle: Path, tmp_path: Path, command: Command) -> None:
    key = tmp_path / "office.key"
    code, out, err = command("keygen", key, "--no-passphrase", "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result["kind"] == "dpsynth.keygen" and result["encrypted"] is False
    assert (result["private"], result["public"]) == (str(key), f"{key}.pub")
    assert len(result["fingerprint"]) == 64
    code, out, err = command("sign", bundle, "--key", key, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["signature"] == str(bundle / SIGNATURE)


def test_no_secret_is_shown(tmp_path: Path, command: Command, bundle: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSYNTH_KEY_PASSPHRASE", PHRASE)
        shown = [*command("keygen", tmp_path / "k"), *command("sign", bundle, "--key", "nowhere")]
        patch.setenv("DPSYNTH_KEY_PASSPHRASE", "wrong phrase")
        shown += command("sign", bundle, "--key", tmp_path / "k")
    text = "\n".join(map(str, shown))
    assert "phrase does not open" in text  # the last one did fail
    assert PHRASE not in text and "wrong phrase" not in text and "BEGIN" not in text


@pytest.mark.parametrize("value", [None, ""])
def test_without_terminal_and_environment_nothing_is_made(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """An empty variable is none: it must not make a key that nothing protects."""
    if value is not None:
        monkeypatch.setenv("DPSYNTH_KEY_PASSPHRASE", value)
    code, out, err = command("keygen", tmp_path / "office.key")
    assert (code, out) == (2, "")
    message = (
        "set DPSYNTH_KEY_PASSPHRASE, or run this command in a terminal; use --no-passphrase"
        if value is None
        else "DPSYNTH_KEY_PASSPHRASE is set and empty"
    )
    assert message in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_without_terminal_and_environment_nothing_is_signed(
    bundle: Path, tmp_path: Path, command: Command
) -> None:
    key, _ = create_key(tmp_path / "office.key", PHRASE)
    code, out, err = command("sign", bundle, "--key", key)
    assert (code, out) == (2, "")
    assert "set DPSYNTH_KEY_PASSPHRASE, or run this command in a terminal" in err
    assert "--no-passphrase" not in err and len(err.splitlines()) == 1
    assert not (bundle / SIGNATURE).exists()


WRONG_KEYS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda key: key.write_bytes(b""),
    "huge": lambda key: key.write_bytes(b"x" * 2**20),
    "public": lambda key: shutil.copyfile(f"{key}.pub", key),
    "readable by others": lambda key: key.chmod(0o644),
    "a link": lambda key: key.symlink_to(key.rename(f"{key}.moved")),
}


@pytest.mark.parametrize("case", WRONG_KEYS)
def test_a_wrong_key_ends_with_one_sentence_and_code_2(
    bundle: Path, key: Path, command: Command, case: str
) -> None:
    WRONG_KEYS[case](key)
    code, out, err = command("sign", bundle, "--key", key)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1 and str(key) in err
    assert not (bundle / SIGNATURE).exists()


def test_a_bundle_that_does_not_verify_ends_with_code_5(
    bundle: Path, key: Path, command: Command
) -> None:
    (bundle / "schema.json").write_text("{}")
    code, out, err = command("sign", bundle, "--key", key)
    assert (code, out) == (5, "") and "schema.json" in err
    assert not (bundle / SIGNATURE).exists()


def test_force_replaces_a_signature(bundle: Path, key: Path, command: Command) -> None:
    assert command("sign", bundle, "--key", key)[0] == 0
    assert command("sign", bundle, "--key", key)[0] == 2
    assert command("sign", bundle, "--key", key, "--force")[0] == 0


def at_terminal(answers: list[tuple[str, str]], *arguments: object) -> tuple[int, str]:
    """Run a command at a terminal of its own; type each answer once its prompt stands there.

    Returns:
        Its exit code, and all that the screen showed.
    """
    ours, theirs = os.openpty()
    program = "import sys; from dpsynth.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen, shown, waiting = "", 0, list(answers)
    while select.select([ours], [], [], 60)[0]:
        try:
            screen += os.read(ours, 4096).decode()
        except OSError:  # the command has ended
            break
        if waiting and f"{waiting[0][0]}: " in screen[shown:]:
            shown = len(screen)
            os.write(ours, waiting.pop(0)[1].encode() + b"\n")
    else:
        process.kill()
    os.close(ours)
    return process.wait(timeout=60), screen


ASKED, AGAIN = "Passphrase of the key", "Repeat the passphrase"


@pytest.mark.long
def test_at_a_terminal_a_passphrase_is_asked_for_twice_and_hidden(
    tmp_path: Path, bundle: Path
) -> None:
    key = tmp_path / "office.key"
    code, screen = at_terminal([(ASKED, PHRASE), (AGAIN, PHRASE)], "keygen", key)
    assert code == 0 and f"{AGAIN}: " in screen, screen
    assert PHRASE not in screen
    load_private(key, PHRASE)
    code, screen = at_terminal([(ASKED, PHRASE)], "sign", bundle, "--key", key)
    assert code == 0 and PHRASE not in screen
    expected = signed((bundle / MANIFEST).read_bytes(), load_private(key, PHRASE))
    assert (bundle / SIGNATURE).read_bytes() == expected


def test_at_a_terminal_a_slip_of_the_finger_makes_no_key(tmp_path: Path) -> None:
    slip = [(ASKED, PHRASE + "x"), (AGAIN, PHRASE)]
    code, screen = at_terminal(
        [*slip, (ASKED, PHRASE), (AGAIN, PHRASE)], "keygen", tmp_path / "office.key"
    )
    assert code == 0 and "do not match" in screen, screen
    load_private(tmp_path / "office.key", PHRASE)
