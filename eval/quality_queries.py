"""What to ask of the real rows, so that the quality of a synthetic table can be published.

The questions are made from the synthetic table alone, which is public. Ordered columns are cut at
its deciles; a classifier for each target is trained on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.encoding import Codec
from dpsynth.eval.fidelity import coarse, decile_edges
from dpsynth.privacy import Counts, Deviation, Question, targets
from dpsynth.schema import Column

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Edges = list[NDArray[np.integer] | None]

SCORES = 20  # bins of a classifier's score
MAX_TRIPLES = 200
MAX_TRAINING = 50_000  # rows
MAX_CATEGORIES = 255  # that the classifier takes as such
RAREST = 0.01  # share of the class that is predicted, at least

# squared parts of the event: of the number of rows, pairs, triples, and all targets together; the
# columns share the rest
_ROWS, _PAIRS, _TRIPLES, _TARGETS = 0.10, 0.20, 0.10, 0.25


class Goal(NamedTuple):
    """What a classifier predicts: a class of a column; and the mean score of each score bin."""

    column: str
    label: str
    predicted: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Questionnaire:
    """What is asked about one synthetic table.

    Attributes:
        codec: the schema's codes.
        questions: in the order pairs, triples, columns, targets.
        parts: of the number of rows, then of each question.
        goals: of the classifiers, in the order of their questions.
    """

    codec: Codec
    questions: tuple[Question, ...]
    parts: tuple[float, ...]
    goals: tuple[Goal, ...]

    @classmethod
    def of(cls, codec: Codec, synthetic: NDArray[np.uint16]) -> Questionnaire:
        """Make the questions from the codes ``[rows, columns]`` of a synthetic table."""
        edges = decile_edges(synthetic, codec.cells)
        widths = [
            int(size if cuts is None else len(cuts) + 1)
            for size, cuts in zip(codec.sizes, edges, strict=True)
        ]
        table = coarse(synthetic, edges)
        columns = range(len(widths))
        triples = list(combinations(columns, 3))
        picked = np.random.default_rng(0).permutation(len(triples))[:MAX_TRIPLES]

        def about(sets: Sequence[tuple[int, ...]]) -> Deviation:
            return Deviation(tuple(_expectation(table, edges, widths, set_) for set_ in sets))

        singles = [(column,) for column in columns]
        wider = [
            about(list(combinations(columns, 2)) or singles),
            about([triples[place] for place in sorted(picked)] or singles),
        ]
        predictions = [
            _prediction(codec, column, synthetic)
            for column in targets(codec.schema)
            if len(synthetic) > 1
        ]
        known = [prediction for prediction in predictions if prediction is not None]
        alone = [about([single]) for single in singles]
        questions: tuple[Question, ...] = (*wider, *alone, *(one[0] for one in known))
        goals = tuple(one[1] for one in known)
        return cls(codec, questions, _parts(len(singles), len(goals)), goals)


def _parts(columns: int, goals: int) -> tuple[float, ...]:
    rest = 1.0 - _ROWS - _PAIRS - _TRIPLES - (_TARGETS if goals else 0.0)
    squares = [_ROWS, _PAIRS, _TRIPLES, *[rest / columns] * columns]
    squares += [_TARGETS / goals] * goals if goals else []
    return tuple(sqrt(square * (1 - 1e-9)) for square in squares)


def _expectation(
    table: Ints, edges: Edges, widths: Sequence[int], columns: tuple[int, ...]
) -> tuple[Any, Floats]:
    """Return the cells of a set of columns, and the shares of the synthetic rows in them."""
    size = int(np.prod([widths[j] for j in columns]))
    shares = np.bincount(_joined(table, widths, columns), minlength=size) / len(table)
    return partial(_cells, edges, widths, columns), shares


def _cells(
    edges: Edges, widths: Sequence[int], columns: tuple[int, ...], rows: NDArray[Any]
) -> Ints:
    part = rows[:, columns]
    return _joined(coarse(part, [edges[j] for j in columns]), [widths[j] for j in columns], None)


def _joined(table: Ints, widths: Sequence[int], columns: tuple[int, ...] | None) -> Ints:
    """Number the joint cells of some columns, or of all."""
    key = np.zeros(len(table), dtype=np.int64)
    for j in range(table.shape[1]) if columns is None else columns:
        key = key * widths[j] + table[:, j]
    return key


def _prediction(
    codec: Codec, column: Column, synthetic: NDArray[np.uint16]
) -> tuple[Counts, Goal] | None:
    """Train on the synthetic rows; ask how scores and outcomes fall together in the real ones.

    Cells: score bin of the rows without the class, of those with it, and rows whose outcome is
    missing. None if no class has between 1 % and 99 % of the synthetic rows.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    place, levels = codec.names.index(column.name), len(column.levels)
    rows = synthetic[synthetic[:, place] < levels][:MAX_TRAINING]
    code = _rarest(rows[:, place], levels)
    if code is None:
        return None
    categorical = [
        not cells and size <= MAX_CATEGORIES
        for cells, size in zip(codec.cells, codec.sizes, strict=True)
    ]
    del categorical[place]

    def features(some: NDArray[Any]) -> Floats:
        return np.delete(np.asarray(some, dtype=float), place, axis=1)

    model = HistGradientBoostingClassifier(
        max_iter=100, early_stopping=False, categorical_features=categorical, random_state=0
    ).fit(features(rows), rows[:, place] == code)

    def scores(some: NDArray[Any]) -> Floats:
        return np.asarray(model.predict_proba(features(some))[:, 1])

    values = scores(rows)
    cuts = np.quantile(values, np.linspace(0, 1, SCORES + 1)[1:-1])

    def cells(real: NDArray[Any]) -> Ints:
        if not len(real):
            return np.zeros(0, dtype=np.int64)
        score = np.searchsorted(cuts, scores(real), side="right")
        cell = score + SCORES * (real[:, place] == code)
        return np.where(real[:, place] < levels, cell, 2 * SCORES).astype(np.int64)

    bins = np.searchsorted(cuts, values, side="right")
    sums = np.bincount(bins, weights=values, minlength=SCORES)
    mean = sums / np.maximum(np.bincount(bins, minlength=SCORES), 1)
    label = str(column.labels.get(column.levels[code], column.levels[code]))
    return Counts(cells, 2 * SCORES + 1), Goal(column.name, label, tuple(mean.tolist()))


def _rarest(codes: NDArray[Any], levels: int) -> int | None:
    """Choose the class to predict: the last of two, the rarest of at least 1 % among more."""
    shares = np.bincount(codes, minlength=levels) / max(len(codes), 1)
    fit = np.flatnonzero((shares >= RAREST) & (shares <= 1 - RAREST))
    if levels == 2:
        return 1 if 1 in fit else None
    return int(fit[shares[fit].argmin()]) if len(fit) else None
