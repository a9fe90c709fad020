"""Files that are no key are refused in one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed448, rsa, x25519

from dpsynth.bundle.format import create_key, load_private, load_public
from dpsynth.errors import InputError

from ..support.keys import KEY, private_pem, written


def public_pem(key: object) -> bytes:
    return key.public_key().public_bytes(  # type: ignore[attr-defined,no-any-return]
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


RSA = rsa.generate_private_key(65537, 2048)

NO_PRIVATE_KEYS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty, so it is not a key"),
    "blank": (b" \n\n", "is empty, so it is not a key"),
    "huge": (private_pem(KEY) + b"\n" * 2**14, "is larger than 16 KiB"),
    "text": (b"not a key\n", "is not a private key in PEM"),
    "bytes": (bytes(range(256)), "is not a private key in PEM"),
    "cut": (private_pem(KEY)[:60], "is not a private key in PEM"),
    "a changed letter": (private_pem(KEY).replace(b"MC4C", b"MC9C"), "is not a private key in PEM"),
    "DER": (
        KEY.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        "is not a private key in PEM",
    ),
    "public": (public_pem(KEY), "is a public key; sign with the private key"),
    "RSA": (private_pem(RSA), "is a key of another kind; dpsynth signs with Ed25519 alone"),
    "RSA, old": (private_pem(RSA, "TraditionalOpenSSL"), "is a key of another kind"),
    "Ed448": (private_pem(ed448.Ed448PrivateKey.generate()), "is a key of another kind"),
    "X25519": (private_pem(x25519.X25519PrivateKey.generate()), "is a key of another kind"),
    "OpenSSH": (private_pem(KEY, "OpenSSH"), "is not a private key in PEM"),
}


@pytest.mark.parametrize("case", NO_PRIVATE_KEYS)
def test_what_is_no_private_key_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    content, expected = NO_PRIVATE_KEYS[case]
    path = written(tmp_path / "office.key", content)
    with pytest.raises(InputError, match=re.escape(expected)) as caught:
        load_private(path, "a passphrase")
    assert caught.value.exit_code == 2
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


NO_PUBLIC_KEYS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty, so it is not a key"),
    "huge": (public_pem(KEY) + b"\n" * 2**14, "is larger than 16 KiB"),
    "text": (b"not a key\n", "is not a public key in PEM"),
    "private": (private_pem(KEY), "is a private key, which only its office should have"),
    "RSA": (public_pem(RSA), "is a key of another kind"),
    "X25519": (public_pem(x25519.X25519PrivateKey.generate()), "is a key of another kind"),
}


@pytest.mark.parametrize("case", NO_PUBLIC_KEYS)
def test_what_is_no_public_key_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    content, expected = NO_PUBLIC_KEYS[case]
    path = written(tmp_path / "office.key.pub", content)
    with pytest.raises(InputError, match=re.escape(expected)) as caught:
        load_public(path)
    assert caught.value.exit_code == 2
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("load", [load_private, load_public])
def test_links_pipes_folders_and_nothing_are_refused(
    tmp_path: Path, load: Callable[[Path], object]
) -> None:
    private, public = create_key(tmp_path / "office.key", None)
    (tmp_path / "link").symlink_to(private if load is load_private else public)
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(0o700)
    for name in ("link", "pipe", "folder"):
        with pytest.raises(InputError, match=f"{name} is not a plain file"):
            load(tmp_path / name)
    with pytest.raises(InputError, match="nowhere is missing"):
        load(tmp_path / "nowhere")


def test_signing_with_the_public_key_says_so(tmp_path: Path) -> None:
    """Whatever its mode is: it may be read by all."""
    _, public = create_key(tmp_path / "office.key", None)
    public.chmod(0o644)
    with pytest.raises(InputError, match="is a public key"):
        load_private(public)


def test_a_file_with_several_public_keys_is_refused(tmp_path: Path) -> None:
    """Readers of PEM take the first; a person who looks may mean another."""
    keys = [create_key(tmp_path / name, None)[1] for name in ("one", "two")]
    both = tmp_path / "both.pub"
    both.write_bytes(b"".join(key.read_bytes() for key in keys))
    with pytest.raises(InputError, match="several keys"):
        load_public(both)
