"""Private synthetic health data, from a table of patients to a bundle that can be released.

The names below load on first use, so that ``import dpsynth`` stays light.

>>> import dpsynth
>>> from dpsynth.tables import simulate
>>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
>>> run = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
>>> run.sample(5, seed=1).shape
(5, 15)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsynth._version import __version__

if TYPE_CHECKING:
    from dpsynth.assessment.attack_audit import Real, audit
    from dpsynth.assessment.evaluation import Candidate, compare, evaluate
    from dpsynth.bundle.verifier import verify
    from dpsynth.bundle.writer import release
    from dpsynth.forecasts.forecast import forecast
    from dpsynth.inspection.checking import check
    from dpsynth.ledger.ledger import Ledger
    from dpsynth.policy.policy import Policy
    from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan
    from dpsynth.schema.linked.linked_schema import LinkedSchema
    from dpsynth.schema.schema import Schema
    from dpsynth.stats.answering import statistics
    from dpsynth.stats.estimating import estimate
    from dpsynth.stats.labelling import labels
    from dpsynth.stats.linking import linkage
    from dpsynth.stats.perturbing import perturb
    from dpsynth.synthesis.execution import Execution
    from dpsynth.synthesis.fitting import fit, fit_not_private
    from dpsynth.synthesis.preparation import epsilon_for_risk
    from dpsynth.synthesis.run import Run
    from dpsynth.synthesis.sampler import sample
    from dpsynth.tables.splitting import split, split_file
    from dpsynth.tables.text_table import read_table

_HOMES = {
    "Candidate": "dpsynth.assessment.evaluation",
    "Execution": "dpsynth.synthesis.execution",
    "Ledger": "dpsynth.ledger.ledger",
    "LinkedSchema": "dpsynth.schema.linked.linked_schema",
    "Policy": "dpsynth.policy.policy",
    "PrivacyBudget": "dpsynth.privacy.plan",
    "PrivacyPlan": "dpsynth.privacy.plan",
    "Real": "dpsynth.assessment.attack_audit",
    "Run": "dpsynth.synthesis.run",
    "Schema": "dpsynth.schema.schema",
    "audit": "dpsynth.assessment.attack_audit",
    "check": "dpsynth.inspection.checking",
    "compare": "dpsynth.assessment.evaluation",
    "evaluate": "dpsynth.assessment.evaluation",
    "epsilon_for_risk": "dpsynth.synthesis.preparation",
    "estimate": "dpsynth.stats.estimating",
    "fit": "dpsynth.synthesis.fitting",
    "fit_not_private": "dpsynth.synthesis.fitting",
    "forecast": "dpsynth.forecasts.forecast",
    "labels": "dpsynth.stats.labelling",
    "linkage": "dpsynth.stats.linking",
    "perturb": "dpsynth.stats.perturbing",
    "read_table": "dpsynth.tables.text_table",
    "release": "dpsynth.bundle.writer",
    "sample": "dpsynth.synthesis.sampler",
    "split": "dpsynth.tables.splitting",
    "split_file": "dpsynth.tables.splitting",
    "statistics": "dpsynth.stats.answering",
    "verify": "dpsynth.bundle.verifier",
}

__all__ = [
    "__version__",
    "Candidate",
    "Execution",
    "Ledger",
    "LinkedSchema",
    "Policy",
    "PrivacyBudget",
    "PrivacyPlan",
    "Real",
    "Run",
    "Schema",
    "audit",
    "check",
    "compare",
    "evaluate",
    "epsilon_for_risk",
    "estimate",
    "fit",
    "fit_not_private",
    "forecast",
    "labels",
    "linkage",
    "perturb",
    "read_table",
    "release",
    "sample",
    "split",
    "split_file",
    "statistics",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpsynth' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
