r"""The office's signature of a bundle: Ed25519 (RFC 8032) over the bytes of its manifest.

The manifest holds the SHA-256 of every other file, so one signature of it covers the bundle. The
office has a key of its own: a private file that stays with it, and a public file that it publishes
somewhere that readers trust, such as its web site. Neither is ever in a bundle: a key that came
along with what it signs would prove nothing.

Why Ed25519 keys in PEM files. A reader can check them without dpsynth, with what most machines
have; the signature is the plain one of the manifest, 64 bytes::

    openssl pkeyutl -verify -pubin -inkey office.key.pub -rawin \
        -in datapackage.json -sigfile datapackage.json.sig

minisign has no well-kept Python library, and its signatures need its own program. sigstore needs a
network, and enters who signed, and when, in a public log for good; an office of a hospital may be
allowed neither.

A signature says that the holder of the key vouched for this manifest. It has no date, and it cannot
be taken back: a key that is lost or stolen is replaced, and the office says so where it published
the old one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_plain_bytes, require_plain_file
from dpsynth.bundle.format.layout import MANIFEST, PRIVACY, SIGNATURE, SIGNATURE_BYTES
from dpsynth.errors import InputError
from dpsynth.files import check_vacant, write_new

__all__ = [
    "LENGTH",
    "SIGNATURE",
    "Passphrase",
    "check_key_place",
    "create_key",
    "fingerprint",
    "load_private",
    "load_public",
    "problem",
    "signed",
]

LENGTH = SIGNATURE_BYTES
_MAX_KEY_BYTES = 2**14  # bytes of a key file; ours have under 400
_MAX_PASSPHRASE_BYTES = 1023  # bytes of a passphrase; OpenSSL takes no more

Passphrase = str | Callable[[], str] | None
"""Of a private key: the text, or what asks for it, called only if the key is encrypted."""


def create_key(path: str | Path, passphrase: str | None) -> tuple[Path, Path]:
    """Make a key pair: the private key at ``path``, the public one beside it as ``path.pub``.

    The private file is PEM (PKCS#8) with mode 0600, encrypted if there is a passphrase; the public
    one is PEM (SubjectPublicKeyInfo). Either both are written or none; nothing is overwritten.

    Returns:
        The two paths.

    Raises:
        InputError: one of them exists, lies in a bundle or cannot be written, or the passphrase is
            empty or too long.
    """
    private_path, public_path = check_key_place(path)
    key = Ed25519PrivateKey.generate()
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(_usable(passphrase))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_new(private_path, private, mode=0o600)
    try:
        write_new(public_path, public)
    except BaseException:
        private_path.unlink()
        raise
    return private_path, public_path


def check_key_place(path: str | Path) -> tuple[Path, Path]:
    """Refuse a place for a key pair that is taken or lies in a bundle; give its two paths.

    Worth calling before a person is asked for a passphrase.

    Raises:
        InputError: with the reason and the remedy.
    """
    private = path_of(path)
    public = Path(f"{private}.pub")
    for place in (private, public):
        _require_outside_bundles(place)
        check_vacant(place)
    return private, public


def load_private(path: str | Path, passphrase: Passphrase = None) -> Ed25519PrivateKey:
    """Read a private key that only its owner can read.

    Raises:
        InputError: it is no such key, lies in a bundle, others can read it, or the passphrase does
            not open it.
    """
    place = path_of(path)
    _require_outside_bundles(place)
    require_plain_file(place, largest=_MAX_KEY_BYTES)
    content = _content(place)
    if b"PUBLIC KEY-----" in content:
        raise InputError(f"{place} is a public key; sign with the private key")
    mode = os.lstat(place).st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        raise InputError(
            f"{place} has mode {mode:04o}, so other users can read or change it and sign for you; "
            f"if that may have happened, make a new key; otherwise run: chmod 600 {place}"
        )
    secret = None
    if b"ENCRYPTED" in content:
        password = passphrase() if callable(passphrase) else passphrase
        if password is None:
            raise InputError(f"{place} is encrypted; its passphrase is needed")
        secret = _usable(password)
    try:
        key = serialization.load_pem_private_key(content, secret)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if secret is not None:
            raise InputError(
                f"the passphrase does not open {place}, or the file is damaged"
            ) from error
        raise InputError(
            f"{place} is not a private key in PEM (PKCS#8); make one with: dpsynth keygen FILE"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{place} is a key of another kind; dpsynth signs with Ed25519 alone")
    return key


def load_public(path: str | Path) -> Ed25519PublicKey:
    """Read the public key of an office.

    Raises:
        InputError: it is no such key, or holds several.
    """
    place = path_of(path)
    content = _content(place)
    if b"PRIVATE KEY-----" in content:
        raise InputError(
            f"{place} is a private key, which only its office should have; check a signature with "
            "the public key"
        )
    if content.count(b"-----BEGIN") > 1:
        raise InputError(f"{place} has several keys; give a file with only the publisher's key")
    try:
        key = serialization.load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(
            f"{place} is not a public key in PEM (SubjectPublicKeyInfo); get it from the publisher"
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{place} is a key of another kind; bundles are signed with Ed25519 alone")
    return key


def signed(content: bytes, private: Ed25519PrivateKey) -> bytes:
    """Sign bytes; the same key and bytes give the same 64 bytes."""
    return private.sign(content)


def problem(content: bytes, signature: bytes, public: Ed25519PublicKey) -> str | None:
    """Say what is wrong with a signature of these bytes by this key; None if nothing is."""
    if len(signature) != LENGTH:
        return f"has {len(signature)} bytes; a signature has {LENGTH}"
    try:
        public.verify(signature, content)
    except InvalidSignature:
        return "is not this key's signature of this manifest"
    return None


def fingerprint(public: Ed25519PublicKey) -> str:
    """Give the SHA-256 (hex) of a public key, for people to compare.

    The same as ``openssl pkey -pubin -in office.key.pub -outform DER | sha256sum``.
    """
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def _content(path: Path) -> bytes:
    content = read_plain_bytes(path, largest=_MAX_KEY_BYTES)
    if not content.strip():
        raise InputError(f"{path} is empty, so it is not a key")
    return content


def _usable(passphrase: str) -> bytes:
    """Encode a passphrase as openssl reads it from the same environment or terminal."""
    secret = passphrase.encode(errors="surrogateescape")
    if not 0 < len(secret) <= _MAX_PASSPHRASE_BYTES:
        raise InputError(
            f"a passphrase has 1 to {_MAX_PASSPHRASE_BYTES} bytes; this one has {len(secret)}"
        )
    return secret


def _require_outside_bundles(path: Path) -> None:
    """Refuse a key in a folder that others are given, through links too."""
    above = {*Path(os.path.abspath(path)).parents, *Path(os.path.realpath(path)).parents}
    for folder in sorted(above):
        if (folder / MANIFEST).is_file() and (folder / PRIVACY).is_file():
            raise InputError(
                f"{path} is inside the bundle {folder}, which other people receive; keep keys "
                "elsewhere"
            )
