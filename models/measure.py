"""What is measured before anything is fitted: noisy one-way histograms, then noisy pairs of bins.

Two events of the plan. The first gives every column's distribution on its fine public grid, from
which bins are merged; the second gives joint histograms of pairs of binned columns. Which pairs are
measured, and with what noise each, follows from the first event's release and from public facts;
the second event bounds all of them together, whatever is chosen.

**Units of several rows.** Each of a unit's r rows counts 1/r, so a unit moves every histogram by at
most 1 and not by max_rows: the histograms estimate the distribution of a random row of a random
unit. A hidden column, the number of rows (1 .. max_rows), comes first, and its pairs are the first
to be measured; weighing rows by it at sampling (a unit of r rows counts r times) gives back the
distribution of rows without further noise, but for the codes within a bin, which keep the shares
that they have among units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.cohort import Cohort
from dpsynth.events import ChosenHistograms, JointHistograms
from dpsynth.mechanisms import chosen_histograms, joint_histograms
from dpsynth.models.base import VISITS, Domain
from dpsynth.models.binning import Binning
from dpsynth.models.leaves import Leaves, leaves_of, levelled, sizes_of
from dpsynth.models.marginals import Bins, merge, noisy_total
from dpsynth.models.presets import ONE_WAY, PAIRS
from dpsynth.models.products import Target
from dpsynth.models.reference import exact_chosen_histograms, exact_joint_histograms
from dpsynth.not_private import NotPrivate, Terms

if TYPE_CHECKING:
    from dpsynth.entropy import Entropy

Floats = npt.NDArray[np.float64]


def cohort_with_visits(cohort: Cohort) -> Cohort:
    """Add each unit's number of rows to its rows, as a code from 0."""
    if cohort.mask.shape[1] == 1:
        return cohort
    visits = np.maximum(cohort.mask.sum(axis=1) - 1, 0).astype(np.uint16)
    column = np.broadcast_to(visits[:, None, None], (*cohort.mask.shape, 1))
    return Cohort(np.concatenate([column, cohort.codes], axis=2), cohort.mask)


@dataclass(frozen=True)
class Measured:
    """All that the two events released, ready to be fitted to.

    Attributes:
        binning: the bins of each column of the domain, the hidden one included.
        target: shares and standard errors of columns and pairs.
        total: the noisy mass of the cohort, in units.
    """

    binning: Binning
    target: Target
    total: float


def measure(
    cohort: Cohort,
    domain: Domain,
    plan: Terms,
    entropy: Entropy,
    *,
    most_bins: int,
) -> Measured:
    """Run both events of the plan on a cohort and gather what they released.

    Args:
        cohort: codes ``[units, rows, columns]`` of the domain's columns, the hidden one included.
        domain: its public facts.
        plan: calibrated; has the events of the one-way histograms and of the pairs. Without
            privacy, both are run without noise.
        entropy: source of noise.
        most_bins: bins that a smooth numeric column is cut into, about.
    """
    one_way, pairs = plan.event(ONE_WAY), plan.event(PAIRS)
    assert isinstance(one_way, JointHistograms) and isinstance(pairs, ChosenHistograms)
    exact = isinstance(plan, NotPrivate)
    release_joint = exact_joint_histograms if exact else joint_histograms
    release_chosen = exact_chosen_histograms if exact else chosen_histograms
    mass = float(one_way.mass)
    noisy = release_joint(levelled(cohort, domain), sizes_of(domain), one_way, entropy)
    total = noisy_total(noisy)
    leaves = leaves_of(domain, noisy, total=total, sigma=one_way.sigma)
    bins = tuple(
        merge(column, total=total, sigma=one_way.sigma, most=most_bins) for column in leaves
    )
    chosen = choose_pairs(bins, total / mass, pairs, hidden=domain.features[0].name == VISITS)
    binning = Binning(domain, bins)
    binned = Cohort(binning.coarsen(cohort), cohort.mask)
    sigmas = pair_noise(binning.sizes, chosen, pairs)
    tables = release_chosen(binned, binning.sizes, chosen, sigmas, pairs, entropy)
    target = _target(bins, leaves, chosen, tables, sigmas, one_way.sigma, total)
    return Measured(binning, target, total / mass)


def choose_pairs(
    bins: tuple[Bins, ...], units: float, event: ChosenHistograms, *, hidden: bool
) -> list[tuple[int, int]]:
    """Choose which pairs to measure, from what is known already: at most ``event.most`` of them.

    No cell of a pair can differ from the product of its columns by more than the mass outside the
    commonest bin of either (a constant column has no relation to find). Pairs are taken by that
    bound; those for which it lies below the noise of one cell are left out. With a hidden column,
    its pairs come first.
    """
    spare = [1.0 - float(column.bin_shares.max()) for column in bins]
    candidates = [
        (min(spare[i], spare[j]), i, j)
        for i, j in combinations(range(len(bins)), 2)
        if bins[i].count > 1 and bins[j].count > 1
    ]
    floor = math.sqrt(max(1, len(candidates))) / event.mu() / units
    worth = [pair for pair in candidates if pair[0] > floor]
    worth.sort(key=lambda pair: (not hidden or pair[1] != 0, -pair[0]))
    return sorted((i, j) for _, i, j in worth[: event.most])


def pair_noise(
    sizes: tuple[int, ...], pairs: list[tuple[int, int]], event: ChosenHistograms
) -> list[float]:
    """Split the event's precision among the pairs: weights as the cube root of their cells.

    A pair of c cells that is measured with standard deviation s is off by about c s in L1; the
    weights w = 1 / s that minimise the sum of c / w under a bound on the sum of w^2 are c^(1/3).
    """
    weights = np.array([(sizes[i] * sizes[j]) ** (1 / 3) for i, j in pairs])
    parts = weights / math.sqrt(float((weights**2).sum()) or 1.0)
    return [event.sigma_for(float(part)) for part in parts]


def _target(
    bins: tuple[Bins, ...],
    leaves: tuple[Leaves, ...],
    pairs: list[tuple[int, int]],
    tables: list[npt.NDArray[np.int64]],
    sigmas: list[float],
    one_sigma: float,
    total: float,
) -> Target:
    """Turn counts into shares of the total, with standard errors."""
    sizes = tuple(column.count for column in bins)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    joint = np.zeros((offsets[-1], offsets[-1]))
    sd = np.full_like(joint, np.inf)
    for (i, j), table, sigma in zip(pairs, tables, sigmas, strict=True):
        block = np.s_[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
        joint[block] = table / total
        sd[block] = sigma / total
    one = np.concatenate([column.bin_shares for column in bins])
    counted = np.concatenate([_leaves_in(*pair) for pair in zip(bins, leaves, strict=True)])
    one_sd = np.sqrt(counted) * one_sigma / total
    return Target(sizes, one, one_sd, joint, sd)


def _leaves_in(bins: Bins, leaves: Leaves) -> npt.NDArray[np.int64]:
    """Return how many leaves make up each bin: so many counts' noise is in its share."""
    first = np.unique(leaves.leaf_of, return_index=True)[1]
    return np.bincount(bins.bin_of[first], minlength=bins.count)
