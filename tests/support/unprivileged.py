"""A user without rights, for tests that run as root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unprivileged() -> Iterator[None]:
    """Act as a user without rights: permissions do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)
