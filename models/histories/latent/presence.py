"""Which tests of a table of many are taken together, at each occasion.

An occasion is a day on which a patient has any test of the table. With x_t the 0/1 vector of tests
that are taken at occasion t, a patient's matrix A is the mean of x_t x_t' over her occasions, which
has entries from 0 to 1. She adds floor(w A_ab) to one cell for each pair a <= b, with
w = M / max(|A|, C), C public: an L2 norm of at most M, by construction. Its sum over patients
gives how often two tests are taken together; their latent correlation is that of a normal law with
the same (tetrachoric correlation: Pearson 1900).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from scipy.special import bdtr, bdtrik, ndtr, ndtri

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.latent.patients import SHARES, TAKEN
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
GRID = np.linspace(-0.98, 0.98, 99)  # of correlations
RIDGE = 0.02
SPLIT = 0.25  # of the occasions of either, at which two tests of one panel are apart at most
SEEN = 3.0  # noise of a share, below which a test is in no panel
TINY = 1e-9
ENTRIES = 2**21  # of the matrices of some patients, in memory at a time


def bound(tests: int) -> float:
    """Return the norm of a patient's matrix up to which she adds it whole: public."""
    return max(1.0, tests / 3)


def together(rows: Sequence[SeriesRows], asked: SeriesRows) -> npt.NDArray[np.bool_]:
    """Return which tests are taken at each occasion, ``[occasions, tests]``."""
    found = np.zeros((len(asked.patients), len(rows)), dtype=bool)
    if not len(asked.patients):
        return found
    base = int(asked.days.min())
    width = int(asked.days.max()) - base + 1
    keys = asked.patients * width + asked.days - base
    for test, one in enumerate(rows):
        found[np.searchsorted(keys, one.patients * width + one.days - base), test] = True
    return found


def matrix_weights(x: Floats, asked: SeriesRows, patients: int, mass: int) -> tuple[Ints, ...]:
    """Return what each patient adds for the pairs of numbers of which her matrix has an entry.

    Her matrix A is the mean of x_t x_t' over her occasions. She adds floor(w |A_ab|) for each pair
    a <= b, with w = `mass` / max(|A|, `bound`). Each sum is of her own rows in their order, and her
    norm is summed pair by pair, so that not even its rounding follows from other patients.

    Args:
        x: of each occasion, ``[occasions, numbers]``.
        asked: the occasions, patient by patient.
        patients: how many there are.
        mass: the norm of what a patient adds, at most.

    Returns:
        Patients, pairs in the order of a triangle, and what is added, below 0 where the entry is.
    """
    pairs = np.column_stack(np.triu_indices(x.shape[1]))
    counts, starts = asked.counts(patients), asked.starts(patients)
    who = np.flatnonzero(counts)
    found: list[tuple[Ints, ...]] = [(np.empty(0, dtype=np.int64),) * 3]
    step = max(1, ENTRIES // len(pairs))
    for some in (who[first : first + step] for first in range(0, len(who), step)):
        own = counts[some]
        owner = np.repeat(np.arange(len(some)), own)
        columns = np.ascontiguousarray(x[starts[some[0]] :][: len(owner)].T)
        matrix, squares = np.empty((len(pairs), len(some))), np.zeros(len(some))
        for place, (a, b) in enumerate(pairs):
            matrix[place] = np.bincount(owner, columns[a] * columns[b]) / own
            squares += matrix[place] ** 2
        weights = mass / np.maximum(np.sqrt(squares), bound(x.shape[1]))
        added = (np.sign(matrix) * np.floor(weights * np.abs(matrix))).astype(np.int64)
        pair, one = np.nonzero(added)
        found.append((some[one], pair, added[pair, one]))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def presence_rows(
    rows: Sequence[SeriesRows], asked: SeriesRows, patients: int, mass: int
) -> WeightedRows:
    """Lay out each patient's matrix: every pair of tests is a part of its own."""
    taken = together(rows, asked).astype(np.float64)
    unit, pair, weight = matrix_weights(taken, asked, patients, mass)
    return WeightedRows((pair,), unit, weight, pair)


def panels_of(joint: Floats, sigma: float) -> Ints:
    """Return which panel each test is in: those whose tests are nearly always taken together.

    Two tests are apart by the share of the occasions of either at which only one is taken. Tests
    are joined while those of two panels are less than `SPLIT` apart on average (average linkage:
    Sokal and Michener 1958). A test that noise hides is by itself.

    Args:
        joint: share of occasions at which both of two tests are taken, ``[tests, tests]``.
        sigma: its noise.
    """
    often = np.diag(joint)
    either = np.maximum(often[:, None] + often - joint, TINY)
    apart = np.clip(1 - joint / either, 0.0, 1.0)
    seen = often > SEEN * sigma
    apart[~(seen[:, None] & seen)] = 1.0
    np.fill_diagonal(apart, 0.0)
    if len(apart) < 2:
        return np.zeros(len(apart), dtype=np.int64)
    tree = hierarchy.linkage(squareform(apart, checks=False), "average")
    return np.asarray(hierarchy.fcluster(tree, SPLIT, "distance") - 1, dtype=np.int64)


def number_taken(cells: Ints, counts: Ints, often: float, rng: np.random.Generator) -> Ints:
    """Return at how many of her occasions each patient has a test.

    It is as chance has it (binomial), among the numbers whose share lies in her cell.

    Args:
        cells: of the share, of each patient.
        counts: of her occasions.
        often: share of occasions at which the test is taken.
        rng: of the draws.
    """
    few = np.floor(SHARES[1] * counts).astype(np.int64)
    least = np.where(cells == 1, 1, np.where(cells == TAKEN, counts, few + 1))
    most = np.where(cells == 1, few, np.where(cells == TAKEN, counts, counts - 1))
    most = np.maximum(most, least)
    low = np.where(least > 0, bdtr(np.maximum(least - 1, 0), counts, often), 0.0)
    high = bdtr(np.minimum(most, counts), counts, often)
    found = np.ceil(bdtrik(low + rng.random(len(cells)) * (high - low), counts, often))
    found = np.clip(np.nan_to_num(found), least, most)
    return np.where((cells > 0) & (cells <= TAKEN), np.minimum(found, counts), 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Presence:
    """How tests are taken together.

    Attributes:
        root: of the latent correlation, ``[panels, panels]``.
        often: shares of occasions at which each panel is taken, ``[panels]``.
        panels: which panel each test is in, ``[tests]``.
    """

    root: Floats
    often: Floats
    panels: Ints

    @classmethod
    def of(cls, counts: Floats, occasions: float, tests: int, sigma: float) -> Presence:
        """Read it off the noisy sum of patients' matrices.

        Args:
            counts: of each pair of tests, in the order of a triangle, in patients.
            occasions: patients with an occasion, about.
            tests: how many.
            sigma: noise of a count, in patients.
        """
        joint = np.zeros((tests, tests))
        joint[np.triu_indices(tests)] = counts / max(occasions, 1.0)
        joint = joint + np.triu(joint, 1).T
        panels = panels_of(joint, sigma / max(occasions, 1.0))
        member = (panels[:, None] == np.unique(panels)).astype(np.float64)
        member /= member.sum(axis=0)
        joint, tests = member.T @ joint @ member, member.shape[1]
        often = np.clip(np.diag(joint), 0.01, 0.99)
        cuts = -ndtri(often)
        latent = np.eye(tests)
        spread = np.sqrt(np.maximum(1 - GRID**2, 1e-9))
        weights = NODE_WEIGHTS / NODE_WEIGHTS.sum()
        for a in range(tests):
            for b in range(a + 1, tests):
                given = ndtr((GRID[:, None] * NODES - cuts[b]) / spread[:, None])
                both = (given * (cuts[a] < NODES)) @ weights
                both *= often[a] / max(float(weights @ (cuts[a] < NODES)), 1e-9)
                latent[a, b] = latent[b, a] = np.interp(joint[a, b], both, GRID)
        values, axes = np.linalg.eigh(latent)
        values = np.maximum(values, RIDGE)
        matrix = (axes * values) @ axes.T
        scale = np.sqrt(np.diag(matrix))
        return cls(np.linalg.cholesky(matrix / np.outer(scale, scale)), often, panels)

    def draw(self, asked: SeriesRows, taken: Ints, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw which tests are taken at each occasion, ``[occasions, tests]``.

        Args:
            asked: the occasions.
            taken: of each patient, the cell of the share of occasions of each test; alike in all
                tests of a panel.
            rng: of the draws.
        """
        latent = ndtr(rng.standard_normal((len(asked.patients), len(self.often))) @ self.root.T)
        taken = taken[:, np.unique(self.panels, return_index=True)[1]]
        counts = asked.counts(len(taken))
        place = np.arange(len(asked.patients)) - asked.starts(len(taken))[asked.patients]
        found = np.zeros(latent.shape, dtype=bool)
        for panel, own in enumerate(taken.T):
            # as many occasions as the share says, those where the panel is likeliest
            wanted = number_taken(own, counts, float(self.often[panel]), rng)
            order = np.argsort(asked.patients + (1 - latent[:, panel]))
            found[order, panel] = place < wanted[asked.patients]
        none = np.flatnonzero(~found.any(axis=1))
        found[none, np.argmax(latent[none] * (self.often + TINY), axis=1)] = True
        return found[:, np.searchsorted(np.unique(self.panels), self.panels)]
