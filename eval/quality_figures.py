"""Public quality figures: what the noisy answers to a questionnaire say, as a document.

All of it is post-processing of public things: the questionnaire, and answers whose noise the plan
paid for (`dpsynth.privacy.public_quality`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.eval.core.estimate import Z
from dpsynth.eval.quality_queries import SCORES, Goal, Questionnaire
from dpsynth.privacy import Answer, Deviation

Floats = NDArray[np.float64]

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
        (goal, _prediction(answer, goal)) for goal, answer in zip(form.goals, goals, strict=True)
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


def _prediction(answer: Answer, goal: Goal) -> dict[str, Any] | None:
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
