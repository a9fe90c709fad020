"""Broken twins of a fit: something exact takes the place of what a mechanism released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.models.generators import autoregressive, distilled
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.marginals import measurement, within_bins

Patch = pytest.MonkeyPatch


def exact_margins(patch: Patch) -> None:
    """Shares and tails of a column follow the pairs as they are, without noise."""
    exact: list[Any] = []
    released, margins_of = measurement.chosen_histograms, measurement.margins_of

    def counting(cohort: Any, sizes: Any, places: Any, *rest: Any) -> Any:
        rows = cohort.codes[cohort.mask]
        exact[:] = [np.zeros((sizes[i], sizes[j])) for i, j in places]
        for table, (i, j) in zip(exact, places, strict=True):
            np.add.at(table, (rows[:, i], rows[:, j]), 1.0)
        return released(cohort, sizes, places, *rest)

    def telling(bins: Any, pairs: Any) -> Any:
        return margins_of(bins, replace(pairs, tables=tuple(exact)))

    patch.setattr(measurement, "chosen_histograms", counting)
    patch.setattr(measurement, "margins_of", telling)


def _counted(patch: Patch) -> list[Any]:
    """Return a list to which each cohort is added whose pairs are counted."""
    cohorts: list[Any] = []
    released = measurement.chosen_histograms

    def keeping(cohort: Any, *rest: Any) -> Any:
        cohorts.append(cohort)
        return released(cohort, *rest)

    patch.setattr(measurement, "chosen_histograms", keeping)
    return cohorts


def _one_hot(cohort: Any, offsets: Any) -> np.ndarray:
    """Return the rows of a binned cohort, ``[rows, bins of all columns]``."""
    places = cohort.codes[cohort.mask].astype(int) + np.array(offsets[:-1])
    hot = np.zeros((len(places), offsets[-1]), np.float32)
    np.put_along_axis(hot, places, 1.0, axis=1)
    return hot


def exact_scores(patch: Patch) -> None:
    """Codes within bins follow other columns as they do among the patients themselves."""
    cohorts, regressions_of = _counted(patch), within_bins.regressions_of

    def telling(products: Any, domain: Any, columns: Any) -> Any:
        tables = _one_hot(cohorts[-1], products.offsets)
        exact = replace(products, weights=np.full(len(tables), 1 / len(tables)), tables=tables)
        return regressions_of(exact, domain, columns)

    patch.setattr(within_bins, "regressions_of", telling)


def exact_columns(patch: Patch) -> None:
    """Columns of a network settle at the shares that they have among the patients themselves."""
    _settling_with(patch, lambda released, exact: replace(released, one=np.diag(exact)))


def exact_pairs(patch: Patch) -> None:
    """Pairs of columns settle at what they are among the patients themselves."""

    def of_patients(released: Any, exact: np.ndarray) -> Any:
        ends = released.offsets
        blocks = [
            exact[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] for i, j in released.pairs.places
        ]
        return replace(released, pairs=replace(released.pairs, tables=tuple(blocks)))

    _settling_with(patch, of_patients)


def _settling_with(patch: Patch, of_patients: Callable[[Any, np.ndarray], Any]) -> None:
    """Settle a network with exact shares of all pairs of bins, ``[D, D]``, in released ones."""
    cohorts, settle = _counted(patch), autoregressive.settle_pairs

    def telling(network: Network, released: Any, *rest: Any) -> Any:
        hot = _one_hot(cohorts[-1], network.offsets)
        return settle(network, of_patients(released, hot.T @ hot / len(hot)), *rest)

    patch.setattr(autoregressive, "settle_pairs", telling)


def exact_target(patch: Patch) -> None:
    """What decides a target is learned from pairs as they are among the patients themselves."""
    cohorts, learn_targets = _counted(patch), distilled.learn_targets

    def telling(network: Network, target: Any, *rest: Any) -> None:
        hot = _one_hot(cohorts[-1], network.offsets)
        learn_targets(network, replace(target, pairs=hot.T @ hot / len(hot)), *rest)

    patch.setattr(distilled, "learn_targets", telling)
