"""P02: something exact in the place of something released, where products of contrasts come first.

As in test_p02_nothing_passes_the_mechanisms: what each mechanism sees of private rows is held
fixed, and all else of a fit runs as it is. Two tables that have nothing in common must then give
the same run, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.models import contrast_settings, presets
from dpsynth.models.marginals.contrasts import measurement as few
from dpsynth.privacy import PaidEntropy, mechanisms, pair_statistics
from dpsynth.schema import Schema

from ..support.quick_fit import quick_fit
from .streams import Streams

Visits = Callable[[int], pd.DataFrame]
Patch = pytest.MonkeyPatch

real_departures = pair_statistics.exact_departures


def public(count: int) -> Any:
    return (np.arange(count, dtype=np.int64) * 7 + count) % 11


@pytest.fixture(autouse=True)
def _nobody_is_seen(monkeypatch: Patch, quick_plans: None) -> None:
    def same_counts(codes: Any, weights: Any, size: int) -> Any:
        return public(size) * 40

    def same_products(cohort: Any, contrasts: Any, event: Any, asked: Any = None) -> Any:
        first, _ = pair_statistics.places_of_products([scores.shape[1] for scores in contrasts])
        return public(len(first)) * event.mass * 30

    def same_departures(cohort: Any, sizes: Any, pairs: Any, expected: Any, event: Any) -> Any:
        return public(len(pairs)) * event.mass * 25

    monkeypatch.setattr(mechanisms, "_weighted_counts", same_counts)
    monkeypatch.setattr(pair_statistics, "exact_contrast_products", same_products)
    monkeypatch.setattr(pair_statistics, "exact_departures", same_departures)
    monkeypatch.setattr(presets, "STEPS_OF_FEW", 3)
    monkeypatch.setattr(contrast_settings, "FEWEST_COLUMNS", 2)
    for bound in ("CLEAR", "NARROW"):
        monkeypatch.setattr(contrast_settings, bound, 1e-6)


def fitted(schema: Schema, frame: pd.DataFrame) -> dict[str, Any]:
    run = quick_fit(frame, schema, epsilon=2.0, delta=1e-5, model="mixture", entropy=Streams(5))
    assert pair_statistics.PRODUCTS in str(run.certificate)
    arrays = {name: (array.dtype, array.tobytes()) for name, array in run.arrays.items()}
    return {"arrays": arrays, "config": run.config, "certificate": run.certificate}


def differing(schema: Schema, visits: Visits) -> set[str]:
    """Which parts of a run differ between a crowd and one patient unlike all of it."""
    alone = visits(1).iloc[:1].assign(patient="x", sex="", ward="C", weight="199.5", age="97")
    one, other = fitted(schema, visits(420)), fitted(schema, alone)
    return {part for part in one if one[part] != other[part]}


def test_a_run_holds_nothing_that_no_mechanism_let_out(clinic: Schema, visits: Visits) -> None:
    assert differing(clinic, visits) == set()


def exact_margins(patch: Patch) -> None:
    """Broken twin: contrasts are chosen by the shares of bins as they are."""
    relate, contrasts_of = few.relate, few.contrasts_of
    seen: list[Any] = []

    def keeping(binned: Any, *rest: Any) -> Any:
        seen[:] = [binned.codes[binned.mask]]
        return relate(binned, *rest)

    def exactly(bins: Any, *rest: Any) -> Any:
        true = [
            np.bincount(seen[0][:, j], minlength=column.count)[column.bin_of]
            / np.bincount(column.bin_of)[column.bin_of]
            / len(seen[0])
            for j, column in enumerate(bins)
        ]
        return contrasts_of(
            [replace(column, shares=share) for column, share in zip(bins, true, strict=True)], *rest
        )

    patch.setattr("dpsynth.models.marginals.measurement.relate", keeping)
    patch.setattr(few, "contrasts_of", exactly)


def exact_distances(patch: Patch) -> None:
    """Broken twin: which tables are worth their noise follows from departures without any."""

    def exactly(
        cohort: Any, sizes: Any, pairs: Any, expected: Any, event: Any, entropy: Any
    ) -> Any:
        return real_departures(cohort, sizes, pairs, expected, event)

    patch.setattr(few, "departures", exactly)
    patch.setattr(PaidEntropy, "unused", ())  # a fit without this event would not be kept


def exact_restoration(patch: Patch) -> None:
    """Broken twin: as many rows are drawn to correct products by as there are real ones."""
    relate, factored = few.relate, few.factored
    seen: list[int] = []

    def keeping(binned: Any, *rest: Any) -> Any:
        seen[:] = [len(binned.mask)]
        return relate(binned, *rest)

    def exactly(*rest: Any) -> Any:
        with pytest.MonkeyPatch.context() as once:
            once.setattr("dpsynth.models.marginals.contrasts.factors.ROWS", 100 + seen[0])
            return factored(*rest)

    patch.setattr("dpsynth.models.marginals.measurement.relate", keeping)
    patch.setattr(few, "factored", exactly)


@pytest.mark.parametrize("twin", [exact_margins, exact_distances, exact_restoration])
def test_twins_that_use_something_exact_are_caught(
    twin: Callable[[Patch], None], clinic: Schema, visits: Visits, monkeypatch: Patch
) -> None:
    twin(monkeypatch)
    assert "arrays" in differing(clinic, visits)
