"""Environment variables of dpsynth: set, not set, and never set to nothing."""

from __future__ import annotations

import os

from dpsynth._util.messages import is_text
from dpsynth.errors import InputError

NAMES = (
    *("DPSYNTH_DATASET", "DPSYNTH_DEBUG", "DPSYNTH_KEY_PASSPHRASE"),
    *("DPSYNTH_LEDGER", "DPSYNTH_POLICY", "DPSYNTH_USER"),
)

SECRET = ("DPSYNTH_KEY_PASSPHRASE",)  # taken byte by byte, as openssl does


def variable(name: str) -> str | None:
    """Return the value of an environment variable; None if it is not set.

    Raises:
        InputError: it is set and blank, as a script leaves it whose own variable is empty. What
            was meant is not known, so nothing is put in its place. Or it is not UTF-8.
    """
    value = os.environ.get(name)
    if value is not None and not value.strip():
        raise InputError(f"{name} is set and empty: give it a value, or unset it (unset {name})")
    if value is not None and name not in SECRET and not is_text(value):
        raise InputError(f"{name} is not UTF-8 text; write it in UTF-8, or rename what it names")
    return value


def require_none_blank() -> None:
    """Refuse any variable of dpsynth that is set and unusable, before a command goes without it.

    Raises:
        InputError: the first one of them.
    """
    for name in NAMES:
        variable(name)
