"""P02: something exact in the place of something released, anywhere in a fit.

A released thing (noisy shares, a noisy total, a declared size) is easily mistaken for the exact one
beside it. So the one place in which each mechanism looks at private rows is held fixed: the counts
of `mechanisms`, and the clipped sum of a step. All else of a fit runs as it is, with noise from
streams that do not depend on how much was drawn before. Two tables that have nothing in common must
then give the same run, to the byte: arrays, settings, certificate, progress, warnings and logs.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from dpsynth.models import presets
from dpsynth.models.dpsgd import DpSgd, Units
from dpsynth.models.generators import ctgan, target_weights, warm_started
from dpsynth.models.generators.tvae import Network
from dpsynth.models.marginals import InitialModel, adaptive_cells, measurement
from dpsynth.privacy import mechanisms
from dpsynth.schema import Schema

from ..support.exact_twins import (
    exact_columns,
    exact_margins,
    exact_pairs,
    exact_scores,
    exact_target,
)
from ..support.quick_fit import quick_fit
from ..support.some_cases import each_generator
from .streams import Streams

Visits = Callable[[int], pd.DataFrame]
Patch = pytest.MonkeyPatch


def public_counts(codes: Any, weights: Any, size: int) -> Any:
    """Counts that follow from the size of a histogram alone."""
    return (np.arange(size, dtype=np.int64) * 7 + size) % 11 * 40


@pytest.fixture(autouse=True)
def _nobody_is_seen(monkeypatch: Patch, few_steps: None, quick_plans: None) -> None:
    """Hold fixed what mechanisms see of private rows, and nothing of what they do with it."""

    summed = DpSgd.clipped_sum

    def same_sum(self: DpSgd, loss: Any, batch: Any, mask: Any) -> torch.Tensor:
        parts = batch if isinstance(batch, tuple) else (batch,)
        nobody = tuple(part[:0] for part in parts)
        nothing = summed(self, loss, nobody if isinstance(batch, tuple) else nobody[0], mask[:0])
        return torch.linspace(-1.0, 1.0, len(nothing)).to(nothing) * self.clipping_norm

    monkeypatch.setattr(mechanisms, "_weighted_counts", public_counts)
    monkeypatch.setattr(DpSgd, "clipped_sum", same_sum)
    for module in (warm_started, ctgan):
        monkeypatch.setattr(module, "REHEARSAL", 100)


def crowd(visits: Visits) -> pd.DataFrame:
    """More patients than are declared, so that batches are larger than expected."""
    return visits(420)


def stranger(visits: Visits) -> pd.DataFrame:
    """One patient with one visit, and every cell another than anybody's in the crowd."""
    return visits(1).iloc[:1].assign(patient="x", sex="", ward="C", weight="199.5", age="97")


def fitted(model: str, schema: Schema, frame: pd.DataFrame) -> dict[str, Any]:
    """All that a fit lets out."""
    progress: list[tuple[str, float]] = []
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            run = quick_fit(
                frame,
                schema,
                epsilon=2.0,
                delta=1e-5,
                model=model,
                entropy=Streams(5),
                progress=lambda stage, part: progress.append((stage, part)),
            )
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    return {
        "arrays": {name: (array.dtype, array.tobytes()) for name, array in run.arrays.items()},
        "config": run.config,
        "certificate": run.certificate,
        "stamps": run.stamps,
        "progress": progress,
        "said": [*messages, *(str(one.message) for one in warned)],
    }


def differing(model: str, schema: Schema, visits: Visits) -> set[str]:
    """Which parts of a run differ between the crowd and the stranger."""
    one, other = (fitted(model, schema, who(visits)) for who in (crowd, stranger))
    return {part for part in one if one[part] != other[part]}


@pytest.mark.parametrize("model", each_generator("tvae"))
def test_a_run_holds_nothing_that_no_mechanism_let_out(
    model: str, clinic: Schema, visits: Visits
) -> None:
    assert differing(model, clinic, visits) == set()


def test_nor_where_pairs_are_measured_again(
    clinic: Schema, visits: Visits, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(presets, "FEW_PAIRS", 3)
    assert differing("mixture", clinic, visits) == set()


def test_nor_where_a_target_is_learned_from_its_own_pairs(
    document: dict[str, Any], visits: Visits, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(presets, "MIN_UNITS", 0)
    monkeypatch.setattr(target_weights, "ROWS", 2_000)
    monkeypatch.setattr(target_weights, "TURNS", 10)
    document["fields"][-1]["dpsynth"]["role"] = "target"
    schema = Schema.from_dict(document)
    assert differing("distilled", schema, visits) == set()
    exact_target(monkeypatch)
    assert "arrays" in differing("distilled", schema, visits)


# Broken twins: each replaces one released thing by the exact one beside it -----------------------


def exact_marginals(patch: Patch) -> None:
    """The network starts at the exact shares of the private rows."""
    known: list[Any] = []
    of, start_at = Units.of.__func__, Network.start_at  # type: ignore[attr-defined]
    fit = InitialModel.fit.__func__  # type: ignore[attr-defined]

    def keeping(cls: Any, cohort: Any, *rest: Any) -> Any:
        generator = fit(cls, cohort, *rest)
        known.append(of(Units, cohort, generator.binning))
        return generator

    def exactly(self: Network, shares: Any) -> None:
        bins, weights = known[-1].bins, known[-1].weights
        start_at(
            self,
            [
                np.bincount(bins[..., j].ravel(), weights.ravel(), len(share)) / len(bins)
                for j, share in enumerate(shares)
            ],
        )

    patch.setattr(InitialModel, "fit", classmethod(keeping))
    patch.setattr(Network, "start_at", exactly)


def a_real_size(patch: Patch) -> None:
    """Rows to start from are as many as there are private ones."""
    sizes: list[int] = []
    visited, rows = measurement.cohort_with_visits, InitialModel.rows

    def counted(cohort: Any, *order: Any) -> Any:
        sizes.append(len(cohort.mask))
        return visited(cohort, *order)

    for module in (warm_started, ctgan):
        patch.setattr(module, "cohort_with_visits", counted)
    patch.setattr(InitialModel, "rows", lambda self, rng: rows(self, rng)[: 40 + sizes[-1]])


def a_rate_of_the_real_batch(patch: Patch) -> None:
    """The sum of a step is divided by the units that were in it."""
    summed = DpSgd.noisy_sum

    def divided(self: DpSgd, loss: Any, batch: Any, mask: Any) -> Any:
        return summed(self, loss, batch, mask) / max(1, len(mask))

    patch.setattr(DpSgd, "noisy_sum", divided)


def noise_where_somebody_is(patch: Patch) -> None:
    """No noise in a step that nobody is in."""
    summed = DpSgd.noisy_sum

    def skipping(self: DpSgd, loss: Any, batch: Any, mask: Any) -> Any:
        total = summed(self, loss, batch, mask)
        return total if len(mask) else self.clipped_sum(loss, batch, mask).float()

    patch.setattr(DpSgd, "noisy_sum", skipping)


def progress_in_units(patch: Patch) -> None:
    """Progress is told in steps of the units that were drawn."""
    batch = Units.batch

    def telling(self: Units, chosen: Any) -> Any:
        logging.getLogger("dpsynth").debug("%d units drawn", len(chosen))
        return batch(self, chosen)

    patch.setattr(Units, "batch", telling)


def an_exact_total(patch: Patch) -> None:
    """Shares are of the real number of rows."""
    released = measurement.joint_histograms
    totals: list[float] = []

    def counting(cohort: Any, *rest: Any) -> Any:
        totals.append(float(cohort.mask.sum()))
        return released(cohort, *rest)

    patch.setattr(measurement, "joint_histograms", counting)
    patch.setattr(measurement, "noisy_total", lambda noisy: totals[-1])


def exact_ends(patch: Patch) -> None:
    """The tails of a column are those of the counts without noise."""
    cohorts: list[Any] = []
    levelled, leaves_of = measurement.levelled, measurement.leaves_of
    tails_of = adaptive_cells.tails_of

    def keeping(cohort: Any, domain: Any) -> Any:
        cohorts.append(levelled(cohort, domain))
        return cohorts[-1]

    def exactly(domain: Any, counts: Any, **public: Any) -> Any:
        rows = cohorts[-1].codes[cohorts[-1].mask]
        exact = (np.bincount(rows[:, j], minlength=len(one)) for j, one in enumerate(counts))

        def telling(levels: Any, widths: Any, **public: Any) -> Any:
            own = [next(exact)[: len(level)] for level in levels]
            return tails_of(own, widths, **public | {"sigma": 0.0})

        with pytest.MonkeyPatch.context() as once:
            once.setattr(adaptive_cells, "tails_of", telling)
            return leaves_of(domain, counts, **public)

    patch.setattr(measurement, "levelled", keeping)
    patch.setattr(measurement, "leaves_of", exactly)


@pytest.mark.parametrize(
    ("model", "twin", "part"),
    [
        ("tvae", exact_marginals, "arrays"),
        ("tvae", a_real_size, "arrays"),
        ("ctgan", a_real_size, "arrays"),
        ("tvae", a_rate_of_the_real_batch, "arrays"),
        ("ctgan", noise_where_somebody_is, "arrays"),
        ("tvae", progress_in_units, "said"),
        ("mixture", an_exact_total, "arrays"),
        ("mixture", exact_ends, "arrays"),
        ("mixture", exact_margins, "arrays"),
        ("mixture", exact_scores, "arrays"),
        ("distilled", exact_columns, "arrays"),
        ("autoregressive", exact_columns, "arrays"),
        ("distilled", exact_pairs, "arrays"),
        ("autoregressive", exact_pairs, "arrays"),
    ],
)
def test_an_exact_thing_in_the_place_of_a_released_one_is_caught(
    model: str,
    twin: Callable[[Patch], None],
    part: str,
    clinic: Schema,
    visits: Visits,
    monkeypatch: Patch,
) -> None:
    twin(monkeypatch)
    assert part in differing(model, clinic, visits)
