"""Keys of an office and its signatures: what is written, what is refused, what openssl says."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.bundle.format import (
    create_key,
    fingerprint,
    load_private,
    load_public,
    problem,
    signed,
)
from dpsynth.bundle.format.signature import LENGTH
from dpsynth.errors import InputError

from ..support.keys import KEY, private_pem, written

PHRASE = "correct horse, Pferd größer als 1"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def openssl() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run openssl, of a version that signs and verifies raw input."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl to check signatures with")
    version = subprocess.run([program, "version"], capture_output=True, text=True).stdout
    match = re.match(r"OpenSSL (\d+)\.", version)
    if match is None or int(match[1]) < 3:
        pytest.skip(f"{version.strip()} is too old for pkeyutl -rawin with Ed25519")

    def run(*arguments: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [program, *map(str, arguments)],
            capture_output=True,
            env={**os.environ, "PHRASE": PHRASE},
        )

    return run


@pytest.mark.smoke
@pytest.mark.parametrize("passphrase", [None, PHRASE])
def test_a_key_pair_signs_and_verifies(tmp_path: Path, passphrase: str | None) -> None:
    private, public = create_key(tmp_path / "keys" / "office.key", passphrase)
    signature = signed(b"manifest", load_private(private, passphrase))
    assert len(signature) == LENGTH == 64
    assert problem(b"manifest", signature, load_public(public)) is None
    assert (private.name, public.name) == ("office.key", "office.key.pub")
    assert sorted(p.name for p in private.parent.iterdir()) == ["office.key", "office.key.pub"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_can_read_the_private_key(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        private, public = create_key(tmp_path / "office.key", None)
    finally:
        os.umask(before)
    assert mode(private) == 0o600
    assert mode(public) == 0o666 & ~umask


def test_a_passphrase_encrypts_the_private_key(tmp_path: Path) -> None:
    protected, _ = create_key(tmp_path / "protected.key", PHRASE)
    plain, _ = create_key(tmp_path / "plain.key", None)
    assert protected.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    assert plain.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(InputError, match="is encrypted; its passphrase is needed"):
        load_private(protected)
    with pytest.raises(InputError, match="the passphrase does not open"):
        load_private(protected, PHRASE + " ")


def test_a_passphrase_is_asked_for_only_if_it_is_needed(tmp_path: Path) -> None:
    asked = []

    def ask() -> str:
        asked.append("once")
        return PHRASE

    plain, _ = create_key(tmp_path / "plain.key", None)
    protected, _ = create_key(tmp_path / "protected.key", PHRASE)
    load_private(plain, ask)
    load_private(plain, PHRASE)  # as where the environment has one for another key
    assert asked == []
    load_private(protected, ask)
    assert asked == ["once"]


@pytest.mark.parametrize("passphrase", ["", "x" * 1024, "ü" * 512])
def test_a_passphrase_that_openssl_could_not_take_is_refused(
    tmp_path: Path, passphrase: str
) -> None:
    with pytest.raises(InputError, match="a passphrase has 1 to 1023 bytes"):
        create_key(tmp_path / "office.key", passphrase)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_passphrase_works(tmp_path: Path) -> None:
    private, _ = create_key(tmp_path / "office.key", "x" * 1023)
    load_private(private, "x" * 1023)


@pytest.mark.parametrize("taken", ["office.key", "office.key.pub"])
def test_no_key_is_ever_overwritten(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("precious")
    with pytest.raises(InputError, match=f"{taken} exists"):
        create_key(tmp_path / "office.key", None)
    assert [p.name for p in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "precious"


@pytest.mark.parametrize("taken", ["office.key", "office.key.pub"])
def test_no_key_is_overwritten_that_appears_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    """Somebody else's file comes between the check and the writing."""
    link = os.link

    def late(source: Path, target: Path) -> None:
        if target.name == taken:
            target.write_text("precious")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InputError, match="it exists; choose another name"):
        create_key(tmp_path / "office.key", None)
    assert [p.name for p in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "precious"


def test_an_interrupt_leaves_no_half_a_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def interrupted(source: Path, target: Path) -> None:
        if target.name == "office.key.pub":
            raise KeyboardInterrupt
        link(source, target)

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create_key(tmp_path / "office.key", None)
    assert list(tmp_path.iterdir()) == []


def test_keys_stay_out_of_bundles(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "way-in").symlink_to(bundle / "data")
    for place in (bundle / "office.key", bundle / "data" / "x", tmp_path / "way-in" / "x"):
        with pytest.raises(InputError, match="is inside the bundle .* keep keys elsewhere"):
            create_key(place, None)
    assert not list(bundle.rglob("*.pub"))
    inside = written(bundle / "office.key", private_pem(KEY))
    with pytest.raises(InputError, match="is inside the bundle .* keep keys elsewhere"):
        load_private(inside)


@pytest.mark.parametrize("permissions", [0o640, 0o604, 0o620, 0o644, 0o610, 0o666])
def test_a_private_key_that_others_can_reach_is_refused(tmp_path: Path, permissions: int) -> None:
    path = written(tmp_path / "office.key", private_pem(KEY), permissions)
    with pytest.raises(InputError, match=f"has mode {permissions:04o}, .*chmod 600 "):
        load_private(path)
    path.chmod(0o400)
    load_private(path)


@given(content=st.binary(max_size=200), data=st.data())
def test_a_change_of_any_bit_is_noticed(content: bytes, data: st.DataObject) -> None:
    signature, public = signed(content, KEY), KEY.public_key()
    assert problem(content, signature, public) is None
    bit = data.draw(st.integers(0, 8 * LENGTH - 1))
    forged = bytearray(signature)
    forged[bit // 8] ^= 1 << bit % 8
    assert problem(content, bytes(forged), public) == "is not this key's signature of this manifest"
    other = data.draw(st.binary(max_size=200).filter(lambda b: b != content))
    assert problem(other, signature, public) is not None
    assert problem(content, signature, Ed25519PrivateKey.generate().public_key()) is not None


@pytest.mark.parametrize("length", [0, 63, 65, 128])
def test_a_signature_of_another_length_is_named(length: int) -> None:
    message = problem(b"x", b"\0" * length, KEY.public_key())
    assert message == f"has {length} bytes; a signature has 64"


def test_a_signature_is_the_one_of_rfc_8032() -> None:
    """Section 7.1, test 2: one byte, 72 hex."""
    secret = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
    expected = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
    assert signed(b"\x72", key).hex() == expected


Openssl = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.mark.parametrize("passphrase", [None, PHRASE])
def test_openssl_makes_the_same_signature_with_our_key(
    tmp_path: Path, openssl: Openssl, passphrase: str | None
) -> None:
    private, public = create_key(tmp_path / "office.key", passphrase)
    manifest = tmp_path / "datapackage.json"
    manifest.write_bytes(b"a manifest\n" * 1000)
    ours = signed(manifest.read_bytes(), load_private(private, passphrase))
    unlock = ["-passin", "env:PHRASE"] if passphrase else []
    signature = openssl(
        *("pkeyutl", "-sign", "-inkey", private, *unlock, "-rawin", "-in", manifest),
        *("-out", tmp_path / "theirs"),
    )
    assert signature.returncode == 0, signature.stderr
    assert (tmp_path / "theirs").read_bytes() == ours
    (tmp_path / "ours").write_bytes(ours)
    check = ("pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", manifest)
    assert openssl(*check, "-sigfile", tmp_path / "ours").returncode == 0
    manifest.write_bytes(b"another manifest\n")
    assert openssl(*check, "-sigfile", tmp_path / "ours").returncode != 0


def test_keys_that_openssl_made_are_ours_too(tmp_path: Path, openssl: Openssl) -> None:
    private, public = tmp_path / "office.key", tmp_path / "office.key.pub"
    cipher = ("-aes-256-cbc", "-pass", "env:PHRASE")
    assert openssl("genpkey", "-algorithm", "ed25519", *cipher, "-out", private).returncode == 0
    unlock = ("-passin", "env:PHRASE")
    assert openssl("pkey", "-in", private, *unlock, "-pubout", "-out", public).returncode == 0
    private.chmod(0o600)
    signature = signed(b"manifest", load_private(private, PHRASE))
    assert problem(b"manifest", signature, load_public(public)) is None


def test_the_fingerprint_is_the_one_that_openssl_gives(tmp_path: Path, openssl: Openssl) -> None:
    _, public = create_key(tmp_path / "office.key", None)
    openssl("pkey", "-pubin", "-in", public, "-outform", "DER", "-out", tmp_path / "der")
    output = openssl("dgst", "-sha256", "-r", tmp_path / "der").stdout.split()[0].decode()
    assert fingerprint(load_public(public)) == output
