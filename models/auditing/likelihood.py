"""How likely a fitted generator makes a row: what released weights say about a person.

Of rows of a unit as the network and the mixture see them, so the hidden column counts too. For
`tvae` it is a bound from below (importance weighting, Burda et al. 2016), from draws that are the
same each time. For `ctgan`, whose network has no density in closed form, it is that of the mixture
it starts from.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from dpsynth.encoding import Cohort
from dpsynth.models import Generator
from dpsynth.models.generators import Autoregressive, Ctgan, Independent, Mixture, Tvae
from dpsynth.models.marginals import Binning, Products, cohort_with_visits

Floats = npt.NDArray[np.float64]

FLOOR = 1e-12  # of a probability
ROWS = 4_096  # at once
DRAWS = 64  # of a latent vector, for each row


def log_likelihood(generator: Generator, cohort: Cohort) -> Floats:
    """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats.

    Args:
        generator: fitted.
        cohort: raw codes ``[units, rows, columns]``; every unit has a row.
    """
    if isinstance(generator, Independent):
        codes = cohort.codes[cohort.mask]
        shares = [share[codes[:, j]] for j, share in enumerate(generator.shares_)]
        return _by_unit(cohort, np.log(np.maximum(shares, FLOOR)).sum(axis=0))
    cohort = cohort_with_visits(cohort)
    if isinstance(generator, Autoregressive | Tvae):
        binning = generator.binning_
        bins = binning.coarsen(cohort)[cohort.mask]
        rows = torch.from_numpy(bins.astype(np.int64))
        parts = [_of_network(generator, some) for some in torch.split(rows, ROWS)]
        found = torch.cat(parts).double().numpy()
    elif isinstance(generator, Mixture | Ctgan):
        binning = generator.start_.binning
        found = _of_products(generator.start_.products, binning.coarsen(cohort)[cohort.mask])
    else:
        raise TypeError(f"no likelihood is known of {type(generator).__name__}")
    return _by_unit(cohort, found + _within(binning, cohort))


@torch.no_grad()
def _of_network(generator: Autoregressive | Tvae, rows: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of binned rows ``[n, columns]``, or a bound on it from below."""
    if isinstance(generator, Tvae):
        return generator.network_.log_likelihood(rows, np.random.default_rng(0), DRAWS)
    return -generator.network_.loss(rows[:, None], None)[:, 0]


def _of_products(products: Products, bins: npt.NDArray[np.integer]) -> Floats:
    """Return the log of the mixture's probability of binned rows."""
    logs = np.log(np.maximum(products.tables, FLOOR))
    offsets = products.offsets
    found = []
    for start in range(0, len(bins), ROWS):
        some = bins[start : start + ROWS].astype(np.int64)
        sums = np.log(np.maximum(products.weights, FLOOR))[None, :] + sum(
            logs[:, offsets[j] + some[:, j]].T for j in range(some.shape[1])
        )
        most = sums.max(axis=1, keepdims=True)
        found.append(np.log(np.exp(sums - most).sum(axis=1)) + most[:, 0])
    return np.concatenate(found).astype(float)


def _within(binning: Binning, cohort: Cohort) -> Floats:
    """Return the log-probability of each row's codes within their bins."""
    codes = cohort.codes[cohort.mask]
    total = np.zeros(len(codes))
    for j, column in enumerate(binning.columns):
        of_bin = np.maximum(column.bin_shares[column.bin_of], FLOOR)
        total += np.log(np.maximum(column.shares / of_bin, FLOOR))[codes[:, j]]
    return total


def _by_unit(cohort: Cohort, values: Floats) -> Floats:
    units = np.nonzero(cohort.mask)[0]
    return np.asarray(np.bincount(units, values) / np.bincount(units))
