"""Private synthetic health data, from a table of patients to a bundle that can be released.

The names below load on first use, so that ``import dpsynth`` stays light.

>>> import dpsynth
>>> dpsynth.Schema.load("cardio").population.value  # doctest: +SKIP
70000
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsynth.pipeline import fit, fit_not_private, sample
    from dpsynth.plan import PrivacyBudget, PrivacyPlan
    from dpsynth.run import Run
    from dpsynth.schema import Schema
    from dpsynth.split_table import split, split_file
    from dpsynth.table_text import read_table

__version__ = "0.1.0"

_HOMES = {
    "PrivacyBudget": "dpsynth.plan",
    "PrivacyPlan": "dpsynth.plan",
    "Run": "dpsynth.run",
    "Schema": "dpsynth.schema",
    "fit": "dpsynth.pipeline",
    "fit_not_private": "dpsynth.pipeline",
    "read_table": "dpsynth.table_text",
    "sample": "dpsynth.pipeline",
    "split": "dpsynth.split_table",
    "split_file": "dpsynth.split_table",
}

__all__ = [
    "PrivacyBudget",
    "PrivacyPlan",
    "Run",
    "Schema",
    "fit",
    "fit_not_private",
    "read_table",
    "sample",
    "split",
    "split_file",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpsynth' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
