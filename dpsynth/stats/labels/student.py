"""The student: what the noisy votes say of every public row, by a regression that knows the noise.

All of it is post-processing of noisy votes and public rows. The share of votes for each class is
regressed on the features. Weights are normal a priori; their spread, and the part of the votes that
no weights explain, are those under which the noisy votes are likeliest, given the noise that was
added. The noise of n queries is about sqrt(n) times that of one, and n queries tell n times as
much: so a student gets no worse where more is asked, however little a single label is worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.stats.labels.features import Bits, Ints

Floats = npt.NDArray[np.float64]
GRAIN = 1_000_000
"""Weights are whole numbers of this part, so that scores are exact on every machine."""

_SPREADS = np.geomspace(1e-4, 1.0, 17)  # of a weight, a priori
_REMAINDERS = (0.0, 0.03, 0.1, 0.3)  # sd of shares that no weights explain
_LIMIT = 4.0  # weights beyond it are no weights of shares


@dataclass(frozen=True, eq=False)
class Student:
    """A linear model of the share of votes for each class.

    Attributes:
        weights: in `GRAIN`, ``[1 + features, classes]``; the first row is the intercept.
    """

    weights: Ints

    @classmethod
    def taught(cls, features: Bits, votes: Ints, teachers: int, sigma: float) -> Student:
        """Learn from noisy votes.

        Args:
            features: of the rows that were asked, ``[queries, features]``.
            votes: noisy numbers of votes, ``[queries, classes]``.
            teachers: how many voted, at most.
            sigma: the scale of the noise on each number.
        """
        rows = features.astype(np.float64)
        shares = votes / teachers
        middle, share = rows.mean(axis=0), shares.mean(axis=0)
        centred, wanted = rows - middle, shares - share
        strengths, axes = np.linalg.eigh(centred.T @ centred)
        strengths = np.maximum(strengths, 0)
        along = axes.T @ (centred.T @ wanted)
        spread, noise = _likeliest(strengths, along, wanted, (sigma / teachers) ** 2)
        weights = axes @ (along / (strengths + noise / spread)[:, None])
        all_weights = np.vstack([share - middle @ weights, weights])
        whole = np.rint(np.clip(all_weights, -_LIMIT, _LIMIT) * GRAIN)
        return cls(whole.astype(np.int64))

    def scores(self, features: Bits) -> Ints:
        """Return the share of votes to expect of each row and class, in `GRAIN`."""
        found: Ints = self.weights[0] + features.astype(np.int64) @ self.weights[1:]
        return found


def _likeliest(
    strengths: Floats, along: Floats, wanted: Floats, known: float
) -> tuple[float, float]:
    """Return the variances of a weight and of a share, under which the shares are likeliest."""
    rows, classes = wanted.shape
    total, squares = float((wanted**2).sum()), (along**2).sum(axis=1)
    best = (-np.inf, 0.0, 0.0)
    for spread in _SPREADS**2:
        for rest in _REMAINDERS:
            noise = known + rest**2 + 1e-6
            variances = spread * strengths + noise
            fit = (total - float((spread * squares / variances).sum())) / noise
            size = float(np.log(variances).sum()) + (rows - len(strengths)) * np.log(noise)
            if (likelihood := -(fit + classes * size) / 2) > best[0]:
                best = (likelihood, float(spread), float(noise))
    return best[1], best[2]
