"""Keys of the tests, and how they lie in files."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY = Ed25519PrivateKey.generate()


def private_pem(key: object, kind: str = "PKCS8") -> bytes:
    return key.private_bytes(  # type: ignore[attr-defined,no-any-return]
        serialization.Encoding.PEM,
        getattr(serialization.PrivateFormat, kind),
        serialization.NoEncryption(),
    )


def written(path: Path, content: bytes, permissions: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(permissions)
    return path
