"""Which cases of a test `make test` runs; all others are left to `make test-all`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dpsynth.models.registry import NAMES

COUNTED = ("independent", "mixture")


def each_generator(network: str) -> list[Any]:
    """Return every generator of flat tables; of the networks, `make test` runs only one."""
    assert network in NAMES and network not in COUNTED
    return [
        name if name in COUNTED or name == network else pytest.param(name, marks=pytest.mark.long)
        for name in NAMES
    ]


def some_of(cases: Sequence[Any], *, every: int) -> list[Any]:
    """Return all cases of one kind, such as damaged files; `make test` runs every so many."""
    assert len(cases) > every
    return [
        case if place % every == 0 else pytest.param(case, marks=pytest.mark.long)
        for place, case in enumerate(cases)
    ]
