"""Who is attacked in the games on networks of linked tables, and fits that take milliseconds.

The neighbour has as many rows as count in each of four tables, all alike, so that the gradients of
her steps point one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from audit_histories import Patients

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.models import Feature
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories import HistoryDomain, HistoryTable, Series, drawn_steps
from dpsynth.models.histories.networks import autoregressive, choice, scoring
from dpsynth.models.histories.networks.patient_units import KEPT
from dpsynth.models.histories.persons import network as person_network
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps import fit as step_fit
from dpsynth.models.histories.steps.events import StepSettings
from dpsynth.models.marginals import MergedBins
from dpsynth.models.presets import STEPS
from dpsynth.privacy import PoissonSgd, Share
from dpsynth.privacy.events import UNDECIDED

OTHERS = 4
TABLES = ("visits", "stays", "tests", "drugs")
MOST = KEPT + 1  # rows of the patient: as many steps as count
TINY = HistorySettings(3, 3, 1, 1.0, 1.0, StepSettings(3, 3, 1, 1.0))
TRAINING = Share(PoissonSgd(STEPS, 0.25, 6, UNDECIDED), 0.5)


def patients() -> Patients:
    """Return a few patients, and the same with one more, who has as many steps as count."""
    rng = np.random.default_rng(3)
    tables = []
    for _ in TABLES:
        who = np.repeat(np.arange(OTHERS + 1), [*rng.integers(2, 5, OTHERS), MOST])
        values = rng.integers(0, 2, (len(who), 2)).astype(np.uint16)
        values[who == OTHERS] = (2, 1)
        tables.append((SeriesRows(who, np.zeros(len(who), np.int64), values),))
    codes = np.zeros((OTHERS + 1, 1), dtype=np.uint16)
    codes[-1] = 2
    ends, nothing = np.zeros(OTHERS + 1, np.int64), np.empty((OTHERS + 1, 0), np.int64)
    within = Histories(codes, ends, nothing, tuple(tables))
    return within.take(np.arange(OTHERS)), within


def domain() -> HistoryDomain:
    """Return four tables of rows of one kind."""
    columns = (Feature("ward", 3, 0), Feature("drug", 2, 0))
    tables = tuple(
        HistoryTable(name, (Series(name, columns, MOST),), False, 1, (False, False))
        for name in TABLES
    )
    return HistoryDomain((Feature("age", 3, 0),), (), tables, 0, 0, OTHERS + 1)


@contextmanager
def tiny() -> Iterator[None]:
    """Fit in some milliseconds."""
    torch.set_num_threads(1)
    few: list[tuple[Any, str, Any]] = [
        (HistorySettings, "of", lambda *_: TINY),
        (choice, "scoring", lambda _: TRAINING),
        (scoring, "STEPS", 3),
        (drawn_steps, "ROWS", 200),
        (autoregressive, "REHEARSAL", 50),
        (autoregressive, "PATIENTS", 50),
        (autoregressive, "distilled", _untaught),
        (autoregressive, "trained_tables", lambda _: range(len(TABLES))),
        (person_network, "distilled", _untaught),
        (step_fit, "merge", _a_bin_each),
    ]
    patches = [mock.patch.object(*one) for one in few]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def _untaught(products: Any, rng: np.random.Generator, *, given: int, **_: Any) -> Any:
    shape = Shape(products.sizes, 0, given)
    return Network(shape, generator=torch.Generator().manual_seed(0))


def _a_bin_each(leaves: Any, **_: Any) -> MergedBins:
    """Keep all codes apart: among so few patients noise would merge them into one bin."""
    codes = len(leaves.leaf_of)
    return MergedBins(np.arange(codes), np.full(codes, 1 / codes))
