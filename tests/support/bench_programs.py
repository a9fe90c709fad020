"""Programs of bench/ for tests: what both play and read is written there once."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def bench_module(name: str) -> ModuleType:
    """Import a module of bench/ as the programs beside it do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        return import_module(name)
