"""Public quality figures: what the noisy answers to a questionnaire say, as a document.

All of it is post-processing of public things: the questionnaire, and answers whose noise the plan
paid for (`dpsynth.questions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.eval.estimate import Z
from dpsynth.eval.questionnaire import SCORES, Goal, Questionnaire
from dpsynth.questions import Answer, Deviation

Floats = NDArray[np.float64]

FORMAT, VERSION = "dpsynth-quality", 1
DRAWS = 400  # of the noise, for the interval of an AUC

NOTE = (
    "Intervals of 95 % are for the noise alone. Real rows are those that were given to the "
    "evaluation, at most max_rows of each unit. 'By chance' is what two independent samples of one "
    "population would show, as large as these tables."
)


def figures(
    asked: Questionnaire, answers: Sequence[Answer], table: str, rows: int
) -> dict[str, Any]:
    """Turn noisy answers into the public document.

    Args:
        asked: the questions.
        answers: the number of rows, then an answer to each question.
        table: SHA-256 of the synthetic table.
        rows: of that table.
    """
    total = max(1.0, float(answers[0].counts[0]))
    spread = len(asked.codec.names)
    wide, single, goals = answers[1:3], answers[3 : 3 + spread], answers[3 + spread :]
    deviations = [question for question in asked.questions if isinstance(question, Deviation)]
    statistics = [
        {
            "key": key,
            "title": title,
            **_distance(answer, question, total, rows),
            "meaning": "half the sum of absolute differences of shares, over all cells; the mean "
            f"over sets of {title.split()[0]} columns; 0 is equal, 1 is disjoint",
        }
        for key, title, answer, question in (
            ("tvd2", "two columns at a time", wide[0], deviations[0]),
            ("tvd3", "three columns at a time", wide[1], deviations[1]),
        )
    ]
    columns = [
        {"column": name, **_named(_distance(answer, question, total, rows), "tvd")}
        for name, answer, question in zip(asked.codec.names, single, deviations[2:], strict=True)
    ]
    mean = {
        name: float(np.mean([column[key] for column in columns]))
        for name, key in (("value", "tvd"), ("chance", "chance"))
    }
    half = Z * sqrt(sum(one.sigma**2 for one in single)) / (2 * total * spread)
    first = {
        "key": "tvd1",
        "title": "one column at a time",
        "value": _digits(mean["value"]),
        "low": _digits(max(0.0, mean["value"] - half)),
        "high": _digits(min(1.0, mean["value"] + half)),
        "chance": _digits(mean["chance"]),
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
            {"target": goal.column, "class": goal.label, **_prediction(answer, goal)}
            for goal, answer in zip(asked.goals, goals, strict=True)
        ],
        "note": f"{NOTE} There were about {total:.0f} real rows, a number with noise too.",
    }


def _distance(answer: Answer, question: Deviation, total: float, rows: int) -> dict[str, float]:
    """Return a mean total variation distance, its interval, and what chance would make."""
    value = float(answer.counts[0]) / (2 * total)
    half = Z * answer.sigma / (2 * total)
    chance = np.mean(
        [_chance(shares, total * rows / (total + rows)) for _, shares in question.expected]
    )
    return {
        "value": _digits(min(max(value, 0.0), 1.0)),
        "low": _digits(min(max(value - half, 0.0), 1.0)),
        "high": _digits(min(max(value + half, 0.0), 1.0)),
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


def _prediction(answer: Answer, goal: Goal) -> dict[str, Any]:
    """Return the AUC of a classifier with its interval, and its calibration, from noisy counts.

    The interval comes from drawing the noise again on top of the noisy counts.
    """
    counts = answer.counts[: 2 * SCORES].reshape(2, SCORES).astype(float)
    rng = np.random.default_rng(0)
    again = counts + answer.sigma * rng.standard_normal((DRAWS, *counts.shape))
    low, high = np.quantile([_auc(one) for one in again], [0.025, 0.975])
    auc = _auc(counts)
    kept = np.maximum(counts, 0.0)
    calibration = [
        {
            "predicted": _digits(goal.predicted[place]),
            "observed": _digits(float(kept[1, place] / kept[:, place].sum())),
        }
        for place in range(SCORES)
        if kept[:, place].sum() > 4 * answer.sigma
    ]
    return {
        "auc": _digits(auc),
        "low": _digits(min(float(low), auc)),
        "high": _digits(max(float(high), auc)),
        "calibration": calibration,
    }


def _auc(counts: Floats) -> float:
    """Return the area under the ROC curve of binned scores; a tie counts one half."""
    without, within = np.maximum(counts, 0.0)
    pairs = without.sum() * within.sum()
    if pairs <= 0:
        return 0.5
    below = np.concatenate([[0.0], np.cumsum(without)[:-1]])
    return float((within * (below + without / 2)).sum() / pairs)


def _named(distance: dict[str, float], name: str) -> dict[str, float]:
    return {name if key == "value" else key: value for key, value in distance.items()}


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
