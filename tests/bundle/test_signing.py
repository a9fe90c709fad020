"""`keygen` and `sign`: only what verifies is signed, and what is wrong leaves nothing behind."""

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
from typing import Any

import pytest

from dpsynth.bundle import signing
from dpsynth.bundle.format.signature import (
    create_key,
    fingerprint,
    load_private,
    load_public,
    problem,
    signed,
)
from dpsynth.bundle.signing import sign
from dpsynth.bundle.verifier import Examined, examine, verify
from dpsynth.cli import main
from dpsynth.errors import InputError, VerificationError

Forger = Any  # tests/conftest.py
PHRASE = "a phrase of the office"
MANIFEST, SIGNATURE = "datapackage.json", "datapackage.json.sig"


@pytest.fixture(autouse=True)
def _no_passphrase_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSYNTH_KEY_PASSPHRASE", raising=False)
    monkeypatch.setattr(sys, "stdin", open(os.devnull))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key without a passphrase, its public half beside it."""
    return create_key(tmp_path / "keys" / "office.key", None)[0]


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


def public_of(key: Path) -> Path:
    return Path(f"{key}.pub")


# signing -----------------------------------------------------------------------------------------


def test_a_signature_is_of_the_manifest_and_changes_nothing_else(
    bundle: Path, key: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    before = files_of(bundle)
    assert sign(bundle, key) == bundle / SIGNATURE
    after = files_of(bundle)
    signature = after.pop(SIGNATURE)
    assert after == before
    assert problem(before[MANIFEST], signature, load_public(public_of(key))) is None


def test_a_signed_bundle_verifies_with_its_key_and_with_no_other(
    bundle: Path, key: Path, tmp_path: Path
) -> None:
    sign(bundle, key)
    verify(bundle)
    said = "\n".join(verify(bundle, key=public_of(key)))
    assert "signed with the key that was given" in said
    assert fingerprint(load_public(public_of(key))) in said
    _, other = create_key(tmp_path / "other.key", None)
    with pytest.raises(VerificationError, match="is not this key's signature of this manifest"):
        verify(bundle, key=other)


def test_a_forger_who_renews_every_hash_is_found_by_the_signature(
    bundle: Path, key: Path, forger: Forger
) -> None:
    sign(bundle, key)
    (bundle / "CARD.md").write_text("# Another card")
    forger.relist()
    with pytest.raises(VerificationError, match="is not this key's signature of this manifest"):
        verify(bundle, key=public_of(key))


def test_a_bundle_that_does_not_verify_is_not_signed(
    bundle: Path, key: Path, forger: Forger
) -> None:
    (bundle / "report.html").write_bytes(b"another page")
    with pytest.raises(VerificationError, match=r"report\.html: was changed"):
        sign(bundle, key)
    assert not (bundle / SIGNATURE).exists()


def test_a_manifest_that_changes_while_it_is_verified_is_not_signed(
    bundle: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(folder: Path, **more: Any) -> Examined:
        found = examine(folder, **more)
        (folder / MANIFEST).write_text("{}")
        return found

    monkeypatch.setattr(signing, "examine", slow)
    with pytest.raises(InputError, match="changed while it was verified; nothing was signed"):
        sign(bundle, key)
    assert not (bundle / SIGNATURE).exists()


def test_what_is_signed_is_what_was_verified(
    bundle: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest that is exchanged before the verification and put back after it."""
    own = (bundle / MANIFEST).read_bytes()
    seen: list[bytes] = []

    def exchanged(content: bytes, private: Any) -> bytes:
        seen.append(content)
        return signed(content, private)

    def verified(folder: Path, **more: Any) -> Examined:
        found = examine(folder, **more)
        return Examined(found.manifest + b" ", found.checks)

    monkeypatch.setattr(signing, "signed", exchanged)
    sign(bundle, key)
    assert seen == [own]
    monkeypatch.setattr(signing, "examine", verified)
    with pytest.raises(InputError, match="changed while it was verified"):
        sign(bundle, key, overwrite=True)
    assert seen == [own]


def test_a_damaged_signature_can_be_replaced(bundle: Path, key: Path) -> None:
    (bundle / SIGNATURE).write_bytes(b"short")
    with pytest.raises(VerificationError, match="is not a signature"):
        verify(bundle)
    sign(bundle, key, overwrite=True)
    verify(bundle, key=public_of(key))


def test_an_existing_signature_is_replaced_only_if_asked_to(
    bundle: Path, key: Path, tmp_path: Path
) -> None:
    sign(bundle, key)
    first = (bundle / SIGNATURE).read_bytes()
    other, other_public = create_key(tmp_path / "other.key", None)
    with pytest.raises(InputError, match="is already signed; --force replaces its signature"):
        sign(bundle, other)
    assert (bundle / SIGNATURE).read_bytes() == first
    sign(bundle, other, overwrite=True)
    verify(bundle, key=other_public)


def test_a_signature_that_appears_meanwhile_is_kept(
    bundle: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(folder: Path, **more: Any) -> Examined:
        found = examine(folder, **more)
        (folder / SIGNATURE).write_text("late")
        return found

    monkeypatch.setattr(signing, "examine", slow)
    with pytest.raises(InputError, match="exists; choose another name"):
        sign(bundle, key)
    assert (bundle / SIGNATURE).read_text() == "late"


def test_a_link_in_the_place_of_the_signature_is_not_written_through(
    bundle: Path, key: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (bundle / SIGNATURE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is already signed"):
        sign(bundle, key)
    with pytest.raises(VerificationError, match="is not a plain file"):
        sign(bundle, key, overwrite=True)
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_a_failed_replacement_leaves_the_old_signature(
    bundle: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(bundle, key)
    before = (bundle / SIGNATURE).read_bytes()

    def interrupted(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sign(bundle, key, overwrite=True)
    assert (bundle / SIGNATURE).read_bytes() == before
    assert not list(bundle.glob(".tmp-*"))


@pytest.mark.parametrize("place", ["office.key", "data/office.key"])
def test_a_key_inside_the_bundle_is_refused(bundle: Path, key: Path, place: str) -> None:
    shutil.move(key, bundle / place)
    (bundle / "privacy.json").unlink()  # no more a bundle by its looks, and still the one to sign
    with pytest.raises(InputError, match="is inside the bundle that it would sign"):
        sign(bundle, bundle / place)
    assert not (bundle / SIGNATURE).exists()


def test_what_is_wrong_with_the_bundle_is_said_before_a_passphrase_is_asked_for(
    tmp_path: Path, bundle: Path
) -> None:
    def ask() -> str:
        raise AssertionError("nobody should be asked")

    protected, _ = create_key(tmp_path / "office.key", PHRASE)
    with pytest.raises(InputError, match="there is no such folder"):
        sign(tmp_path / "nowhere", protected, ask)
    (bundle / SIGNATURE).write_bytes(b"")
    with pytest.raises(InputError, match="is already signed"):
        sign(bundle, protected, ask)


def test_openssl_verifies_a_signed_bundle(bundle: Path, key: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl to check the signature with")
    version = subprocess.run([program, "version"], capture_output=True, text=True).stdout
    if not version.startswith("OpenSSL ") or version.split()[1].split(".")[0] in ("0", "1"):
        pytest.skip(f"{version.strip()} is too old for pkeyutl -rawin with Ed25519")
    sign(bundle, key)
    check = [program, "pkeyutl", "-verify", "-pubin", "-inkey", str(public_of(key)), "-rawin"]
    check += ["-in", MANIFEST, "-sigfile", SIGNATURE]
    done = subprocess.run(check, cwd=bundle, capture_output=True, text=True)
    assert done.returncode == 0 and "Signature Verified Successfully" in done.stdout
    (bundle / MANIFEST).write_bytes((bundle / MANIFEST).read_bytes() + b"\n")
    assert subprocess.run(check, cwd=bundle, capture_output=True).returncode != 0


# commands ----------------------------------------------------------------------------------------


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
    made = json.loads(out)
    assert (code, err) == (0, "")
    assert made["kind"] == "dpsynth.keygen" and made["encrypted"] is False
    assert (made["private"], made["public"]) == (str(key), f"{key}.pub")
    assert len(made["fingerprint"]) == 64
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
    said = (
        "set DPSYNTH_KEY_PASSPHRASE, or run this command in a terminal; use --no-passphrase"
        if value is None
        else "DPSYNTH_KEY_PASSPHRASE is set and empty"
    )
    assert said in err
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
    screen, seen, waiting = "", 0, list(answers)
    while select.select([ours], [], [], 60)[0]:
        try:
            screen += os.read(ours, 4096).decode()
        except OSError:  # the command has ended
            break
        if waiting and f"{waiting[0][0]}: " in screen[seen:]:
            seen = len(screen)
            os.write(ours, waiting.pop(0)[1].encode() + b"\n")
    else:
        process.kill()
    os.close(ours)
    return process.wait(timeout=60), screen


ASKED, AGAIN = "Passphrase of the key", "Repeat the passphrase"


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
