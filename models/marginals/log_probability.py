"""How likely released counts make a row, in logs: of a mixture, and of codes within their bins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.models.marginals.binning import Binning
from dpsynth.models.marginals.product_mixture import Products

Floats = npt.NDArray[np.float64]

FLOOR = 1e-12  # of a probability
ROWS = 4_096  # at once


def log_of_products(products: Products, bins: npt.NDArray[np.integer]) -> Floats:
    """Return the log of the mixture's probability of binned rows."""
    logs = np.log(np.maximum(products.tables, FLOOR))
    offsets = products.offsets
    log_sums = []
    for start in range(0, len(bins), ROWS):
        some = bins[start : start + ROWS].astype(np.int64)
        sums = np.log(np.maximum(products.weights, FLOOR))[None, :] + sum(
            logs[:, offsets[j] + some[:, j]].T for j in range(some.shape[1])
        )
        maximum = sums.max(axis=1, keepdims=True)
        log_sums.append(np.log(np.exp(sums - maximum).sum(axis=1)) + maximum[:, 0])
    return np.concatenate(log_sums).astype(float)


def log_within_bins(binning: Binning, cohort: Cohort) -> Floats:
    """Return the log-probability of each row's codes within their bins, by their shares alone.

    How codes within bins follow other columns (`within_bins`) is left out: it has no density in
    closed form, and tells little beside the bins.
    """
    codes = cohort.codes[cohort.mask]
    total = np.zeros(len(codes))
    for j, column in enumerate(binning.columns):
        of_bin = np.maximum(column.bin_shares[column.bin_of], FLOOR)
        total += np.log(np.maximum(column.shares / of_bin, FLOOR))[codes[:, j]]
    return total


def mean_by_unit(cohort: Cohort, values: Floats) -> Floats:
    """Average the values of rows within each unit, ``[units]``; every unit has a row."""
    units = np.nonzero(cohort.mask)[0]
    return np.asarray(np.bincount(units, values) / np.bincount(units))
