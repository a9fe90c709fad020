"""Teachers: each is trained on the rows of her own units, and votes on public rows.

Whatever is computed here of one teacher depends on her own rows, on public rows and on fresh coins
alone; `privacy.answers.votes_event` has why that is needed. So teachers are trained one by one: not
in batches whose size or end depends on the others, and with a penalty that is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.privacy import Entropy
from dpsynth.privacy.answers import ABSTAINS

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


Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
PARTS = 12  # into which the public rows cut an ordered column
MAX_LEVELS = 24  # of a category that have a feature of their own
MIN_SHARE = 0.005  # of the public rows, for a feature of its own


@dataclass(frozen=True, eq=False)
class Features:
    """Features of coded rows.

    An ordered column has a feature for each of its cuts, 1 from the cut on: equal steps make a
    line, unequal ones any curve. A category has one for each of its commonest values but the first.

    Attributes:
        tables: of each column, the features of each code, ``[codes, features]``.
    """

    tables: tuple[Bits, ...]

    @classmethod
    def cut(cls, codec: Codec, codes: npt.NDArray[np.integer], label: int) -> Features:
        """Cut every column but the label where public rows are: all of it is public.

        Args:
            codec: of the schema.
            codes: of public rows, ``[rows, columns]``.
            label: the place of the label among the columns, which has no feature.
        """
        tables = []
        for place, size in enumerate(codec.sizes):
            if place == label:
                tables.append(np.zeros((size, 0), dtype=np.uint8))
            else:
                tables.append(_table(codes[:, place].astype(np.int64), size, codec.cells[place]))
        return cls(tuple(tables))

    @property
    def count(self) -> int:
        """How many features there are."""
        return sum(table.shape[1] for table in self.tables)

    def of(self, codes: npt.NDArray[np.integer]) -> Bits:
        """Return the features of rows, ``[rows, features]``, from their codes."""
        parts = [table[codes[:, place]] for place, table in enumerate(self.tables)]
        return np.concatenate(parts, axis=1)


def _table(codes: Ints, size: int, ordered: int) -> Bits:
    """Return the features of each code of one column."""
    every = np.arange(size)
    found: list[npt.NDArray[np.bool_]] = []
    if ordered > 1:
        known = np.sort(codes[codes < ordered])
        places = np.arange(1, PARTS) * len(known) // PARTS
        cuts = np.unique(known[places]) if len(known) else every[:0]
        found += [(every >= cut) & (every < ordered) for cut in cuts if cut > 0]
    counts = np.bincount(codes, minlength=size)
    counts[:ordered] = 0
    common = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
    common = common[counts[common] >= max(1.0, MIN_SHARE * len(codes))]
    found += [every == code for code in common[0 if ordered else 1 :]]
    return np.array(found, dtype=np.uint8).reshape(len(found), size).T
