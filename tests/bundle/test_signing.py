"""`keygen` and `sign`: only what verifies is signed, and what is wrong leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import sign, signing, verify
from dpsynth.bundle.format import create_key, fingerprint, load_public, problem, signed
from dpsynth.bundle.verifier import Examined, examine
from dpsynth.errors import InputError, VerificationError

from ..support.forger import Forger

pytestmark = pytest.mark.usefixtures("no_passphrase_at_hand")


PHRASE = "a phrase of the office"

MANIFEST, SIGNATURE = "datapackage.json", "datapackage.json.sig"


def public_of(key: Path) -> Path:
    return Path(f"{key}.pub")


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
    message = "\n".join(verify(bundle, key=public_of(key)))
    assert "signed with the key that was given" in message
    assert fingerprint(load_public(public_of(key))) in message
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
        checks = examine(folder, **more)
        (folder / MANIFEST).write_text("{}")
        return checks

    monkeypatch.setattr(signing, "examine", slow)
    with pytest.raises(InputError, match="changed while it was verified; nothing was signed"):
        sign(bundle, key)
    assert not (bundle / SIGNATURE).exists()


def test_what_is_signed_is_what_was_verified(
    bundle: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest that is exchanged before the verification and put back after it."""
    signature = (bundle / MANIFEST).read_bytes()
    contents: list[bytes] = []

    def exchanged(content: bytes, private: Any) -> bytes:
        contents.append(content)
        return signed(content, private)

    def verified(folder: Path, **more: Any) -> Examined:
        checks = examine(folder, **more)
        return Examined(checks.manifest + b" ", checks.checks)

    monkeypatch.setattr(signing, "signed", exchanged)
    sign(bundle, key)
    assert contents == [signature]
    monkeypatch.setattr(signing, "examine", verified)
    with pytest.raises(InputError, match="changed while it was verified"):
        sign(bundle, key, overwrite=True)
    assert contents == [signature]


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
        checks = examine(folder, **more)
        (folder / SIGNATURE).write_text("late")
        return checks

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
