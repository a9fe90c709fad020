"""Teachers: each is trained on the rows of her own units, and votes on public rows.

Whatever is computed here of one teacher depends on her own rows, on public rows and on fresh coins
alone; `privacy.answers.votes_event` has why that is needed. So teachers are trained one by one: not
in batches whose size or end depends on the others, and with a penalty that is a constant.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.privacy import Entropy
from dpsynth.privacy.answers import ABSTAINS
from dpsynth.stats.labels.features import Bits, Ints

Floats = npt.NDArray[np.float64]
Votes = npt.NDArray[np.int16]
PENALTY = 1.0
"""On the squares of a teacher's weights, per row of squared error: fits a few hundred rows."""

BEST, DRAWN = "best", "drawn"
WAYS = (BEST, DRAWN)
"""A vote names the likeliest class, or one drawn by how likely each is."""


def votes_of_teachers(
    rows: Bits,
    classes: Ints,
    teachers: Ints,
    queries: Bits,
    *,
    number: int,
    labels: int,
    way: str,
    entropy: Entropy,
) -> Votes:
    """Train every teacher on the rows of her units and let her vote.

    Args:
        rows: features of private rows whose label is known, ``[rows, features]``.
        classes: the label of each, from 0.
        teachers: whose row it is, ``[rows]``, from 0.
        queries: features of the public rows, ``[queries, features]``.
        number: of teachers.
        labels: how many classes there are.
        way: one of `WAYS`.
        entropy: where the coins of a drawn vote come from.

    Returns:
        The class that each names, ``[teachers, queries]``; `ABSTAINS` of one without rows.
    """
    asked = queries.astype(np.float64)
    order = np.argsort(teachers, kind="stable")
    ends = np.cumsum(np.bincount(teachers, minlength=number))
    votes = np.full((number, len(queries)), ABSTAINS, dtype=np.int16)
    for teacher in range(number):
        own = order[ends[teacher - 1] if teacher else 0 : ends[teacher]]
        coins = entropy.uniform(len(queries)) if way == DRAWN else None  # of hers, used or not
        if not len(own):
            continue
        scores = scored(rows[own].astype(np.float64), classes[own], asked, labels)
        votes[teacher] = scores.argmax(axis=1) if coins is None else _drawn(scores, coins)
    return votes


def scored(rows: Floats, classes: Ints, asked: Floats, labels: int) -> Floats:
    """Return how likely each class is of each public row, by ridge regression on indicators.

    Args:
        rows: a teacher's own, ``[rows, features]``.
        classes: their labels.
        asked: public rows, ``[queries, features]``.
        labels: how many classes there are.

    Returns:
        Scores that add up to 1 in each row, ``[queries, labels]``; some may lie outside [0, 1].
    """
    targets = np.eye(labels)[classes]
    share, middle = targets.mean(axis=0), rows.mean(axis=0)
    centred, wanted = rows - middle, targets - share
    many, features = centred.shape
    if many > features:
        gram = centred.T @ centred
        gram[np.diag_indices(features)] += PENALTY
        weights = np.linalg.solve(gram, centred.T @ wanted)
    else:  # the same weights, by a smaller system
        kernel = centred @ centred.T
        kernel[np.diag_indices(many)] += PENALTY
        weights = centred.T @ np.linalg.solve(kernel, wanted)
    found: Floats = share + (asked - middle) @ weights
    return found


def _drawn(scores: Floats, coins: Floats) -> Ints:
    """Draw a class for each row, each with a chance of its score cut to [0, 1]."""
    chances = np.clip(scores, 0, 1) + 1e-12
    sums = np.cumsum(chances, axis=1)
    passed = (sums <= (coins * sums[:, -1])[:, None]).sum(axis=1)
    found: Ints = np.minimum(passed, scores.shape[1] - 1)
    return found
