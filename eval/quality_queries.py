"""What to ask of the real rows, so that the quality of a synthetic table can be published.

The questions are made from the synthetic table alone, which is public. Ordered columns are cut at
its deciles; a classifier for each target is trained on it. What the noisy answers say becomes a
document: post-processing of the questionnaire, and of answers whose noise the plan paid for
(`dpsynth.privacy.public_quality`).
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
from dpsynth.eval.core.estimate import Z
from dpsynth.eval.fidelity import coarse, decile_edges
from dpsynth.privacy import Answer, Counts, Deviation, Question, targets
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


FORMAT, VERSION = "dpsynth-quality", 1

NOTE = (
    "Intervals of 95 % are for the noise alone, to first order. Real rows are those that were "
    "given to the evaluation, at most max_rows of each unit. 'By chance' is what two independent "
    "samples of one population would show, as large as these tables."
)


def figures(
    form: Questionnaire, answers: Sequence[Answer], table: str, rows: int
) -> dict[str, Any]:
    """Turn noisy answers into the public document.

    Args:
        form: the questions.
        answers: the number of rows, then an answer to each question.
        table: SHA-256 of the synthetic table.
        rows: of that table.
    """
    total = max(1.0, float(answers[0].counts[0]))
    spread = len(form.codec.names)
    wide, single, goals = answers[1:3], answers[3 : 3 + spread], answers[3 + spread :]

    def distance(answer: Answer, question: Deviation) -> dict[str, float]:
        return _distance(answer, question, total, rows, answers[0].sigma)

    deviations = [question for question in form.questions if isinstance(question, Deviation)]
    statistics = [
        {
            "key": key,
            "title": title,
            **distance(answer, question),
            "meaning": "half the sum of absolute differences of shares, over all cells; the mean "
            f"over sets of {title.split()[0]} columns; 0 is equal, 1 is disjoint",
        }
        for key, title, answer, question in (
            ("tvd2", "two columns at a time", wide[0], deviations[0]),
            ("tvd3", "three columns at a time", wide[1], deviations[1]),
        )
    ]
    columns = [
        {
            "column": name,
            **_named(_distance(answer, question, total, rows, answers[0].sigma), "tvd"),
        }
        for name, answer, question in zip(form.codec.names, single, deviations[2:], strict=True)
    ]
    value = float(np.mean([float(one.counts[0]) for one in single])) / (2 * total)
    variance = sum(one.sigma**2 for one in single) / spread**2 + answers[0].sigma ** 2
    half = Z * sqrt(variance) / (2 * total)
    predictions = [
        (goal, _prediction_figures(answer, goal))
        for goal, answer in zip(form.goals, goals, strict=True)
    ]
    first = {
        "key": "tvd1",
        "title": "one column at a time",
        "value": _digits(_share(value)),
        "low": _digits(_share(value - half)),
        "high": _digits(_share(value + half)),
        "chance": _digits(float(np.mean([column["chance"] for column in columns]))),
        "meaning": "the mean of the columns' own distances",
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "table_sha256": table,
        "rows": rows,
        "event": "quality",
        "statistics": [first, *statistics],
        "columns": columns,
        "targets": [
            {"target": goal.column, "class": goal.label, **prediction}
            for goal, prediction in predictions
            if prediction is not None
        ],
        "note": " ".join(
            [
                NOTE,
                f"There were about {total:.0f} real rows, a number with noise too.",
                *[
                    f"{goal.column}: the noise is too large to tell how well it is predicted."
                    for goal, prediction in predictions
                    if prediction is None
                ],
            ]
        ),
    }


def _distance(
    answer: Answer, question: Deviation, total: float, rows: int, sigma: float
) -> dict[str, float]:
    """Return a mean total variation distance, its interval, and what chance would make.

    ``sigma`` is the scale of the noise of ``total``: one row more in it moves the expected counts
    of a histogram by one row in all, and so the sum of deviations by one at most.
    """
    value = float(answer.counts[0]) / (2 * total)
    half = Z * sqrt(answer.sigma**2 + sigma**2) / (2 * total)
    chance = np.mean(
        [_chance(shares, total * rows / (total + rows)) for _, shares in question.expected]
    )
    return {
        "value": _digits(_share(value)),
        "low": _digits(_share(value - half)),
        "high": _digits(_share(value + half)),
        "chance": _digits(float(chance)),
    }


def _chance(shares: Floats, total: float) -> float:
    """Return the expected distance of ``total`` independent rows from their own law.

    Two samples of n and m rows are as far apart, to first order, as one of nm / (n + m) from it.

    Half the sum of the cells' mean absolute deviations, each that of a binomial count (de Moivre;
    Diaconis and Zabell, Closed Form Summation for Classical Distributions, Statistical Science 6,
    1991): 2 (k + 1) C(n, k + 1) p^(k + 1) (1 - p)^(n - k) with k = floor(n p).
    """
    from scipy.special import gammaln

    n = float(max(1, int(total)))
    p = shares[(shares > 0) & (shares < 1)]
    k = np.minimum(np.floor(n * p), n - 1)
    log = (
        gammaln(n + 1)
        - gammaln(k + 2)
        - gammaln(n - k)
        + (k + 1) * np.log(p)
        + (n - k) * np.log1p(-p)
    )
    return float(0.5 * (2 * (k + 1) * np.exp(log)).sum() / n)


def _prediction_figures(answer: Answer, goal: Goal) -> dict[str, Any] | None:
    """Return the AUC of a classifier with its interval, and its calibration, from noisy counts.

    Counts enter as they come, negative ones too: cut off at 0, noise would pull the AUC to one
    half. The interval is that of the delta method. None where the noise could be as large as the
    rows of either outcome. Calibration has the score bins whose rows stand out of the noise.
    """
    counts = answer.counts[: 2 * SCORES].reshape(2, SCORES).astype(float)
    if counts.sum(axis=1).min() < 4 * answer.sigma * sqrt(SCORES):
        return None
    auc, slopes = _auc(counts)
    half = Z * answer.sigma * float(np.linalg.norm(slopes))
    calibration = [
        {
            "predicted": _digits(goal.predicted[place]),
            "observed": _digits(_share(float(counts[1, place] / counts[:, place].sum()))),
        }
        for place in range(SCORES)
        if counts[:, place].sum() > 4 * answer.sigma
    ]
    return {
        "auc": _digits(_share(auc)),
        "low": _digits(_share(auc - half)),
        "high": _digits(_share(auc + half)),
        "calibration": calibration,
    }


def _auc(counts: Floats) -> tuple[float, Floats]:
    """Return the area under the ROC curve of binned scores, and its slopes by the counts.

    Args:
        counts: ``[2, bins]``, rows without the class and with it, by rising score; a tie is half.
    """
    without, within = counts
    below = np.cumsum(without) - without / 2
    above = within.sum() - np.cumsum(within) + within / 2
    auc = float((within * below).sum() / (without.sum() * within.sum()))
    slopes = np.stack(
        [
            (above / within.sum() - auc) / without.sum(),
            (below / without.sum() - auc) / within.sum(),
        ]
    )
    return auc, slopes


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _named(distance: dict[str, float], name: str) -> dict[str, float]:
    return {name if key == "value" else key: value for key, value in distance.items()}


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
