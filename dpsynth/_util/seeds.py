"""Public seeds: drawn where none is given, and held to their range."""

from __future__ import annotations

import secrets

from dpsynth.errors import InputError

SEEDS = 2**63


def fresh_seed() -> int:
    """Return a public seed for a table whose user gave none; it is recorded with the table."""
    return secrets.randbelow(SEEDS)


MAX_DRAWN = 10**12
"""Rows or patients of one table; more fill any disk."""


def check_seed(seed: int) -> None:
    """Refuse a seed outside 0 to 2^63 - 1."""
    if not 0 <= seed < SEEDS:
        raise InputError(f"seed must lie between 0 and {SEEDS - 1}, not {seed}")


def check_drawn(count: int, noun: str = "rows") -> None:
    """Refuse to draw none, or more than any disk holds, before a number overflows."""
    if count < 1:
        number = f", not {count}" if count > -MAX_DRAWN else ""
        raise InputError(f"{noun} must be at least 1{number}")
    if count > MAX_DRAWN:
        raise InputError(f"{noun} must be at most {MAX_DRAWN:,}")
