"""The verb `sign`: the office vouches for a bundle, after the bundle was verified.

Verification comes first, so that nobody signs what the next reader will refuse. What is signed is
the manifest that was verified, byte by byte, and is still there after that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_plain_bytes
from dpsynth.bundle.format import Passphrase, load_private, signed
from dpsynth.bundle.format.layout import MANIFEST
from dpsynth.bundle.format.signature import SIGNATURE
from dpsynth.bundle.verifier import examine
from dpsynth.errors import InputError
from dpsynth.files import remove_leftovers, write_atomically, write_new


def sign(
    bundle: str | Path,
    key: str | Path,
    passphrase: Passphrase = None,
    *,
    overwrite: bool = False,
    before: Callable[[], None] | None = None,
) -> Path:
    """Write ``datapackage.json.sig`` into a bundle that verifies.

    Args:
        bundle: its folder.
        key: the office's private key, outside the bundle.
        passphrase: of the key, or what asks for it; used only if the key is encrypted.
        overwrite: replace a signature that is there.
        before: called when the bundle verified, before it is signed.

    Returns:
        The path of the signature.

    Raises:
        InputError: there is no such bundle, it is signed already, or the key or its passphrase is
            wrong; nothing was written.
        VerificationError: the bundle is not what its certificate says; nothing was written.
    """
    folder = path_of(bundle, "the folder of a bundle")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a bundle: there is no such folder")
    remove_leftovers(folder)
    target = folder / SIGNATURE
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{folder} is already signed; --force replaces its signature")
    if Path(os.path.realpath(folder)) in Path(os.path.realpath(key)).parents:
        raise InputError(f"{key} is inside the bundle that it would sign; keep keys elsewhere")
    private = load_private(key, passphrase)
    content = examine(folder, signed=False).manifest
    if read_plain_bytes(folder / MANIFEST) != content:
        raise InputError(f"{folder} changed while it was verified; nothing was signed, try again")
    if before is not None:
        before()
    write = write_atomically if overwrite else write_new
    write(target, signed(content, private))
    return target
