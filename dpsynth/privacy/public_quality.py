"""Public quality figures: the event that pays for them, and questions with noisy answers.

Whether a table is good is known only by looking at real rows, so a public figure about it costs
budget like anything else. ``--publish-quality SHARE`` sets a share of a fit's budget aside for
questions about real rows whose answers may be published; the certificate lists the event from then
on, spent or not.

A question is asked by public things alone, such as a synthetic table; an answer is what is counted
in the private cohort, plus noise that an event of the plan paid for.

**How far a unit moves an answer.** A row enters one cell of a histogram, by a function of this row
and public things. A unit of at most k rows moves

- `Counts`, a histogram of rows: by a vector of non-negative whole numbers with sum at most k, so by
  an L2 norm of at most k;
- `Deviation`, the mean over P histograms of S_p = sum_c |n_c - e_c|, rounded down. Expected counts
  e_c are multiples of 1 / F, F = `FINE`: what is summed are the whole numbers |F n_c - F e_c|. A
  row changes one n_c of each histogram by 1, and so F S_p by at most F; a unit moves the sum S of
  all F S_p by at most kFP. Where |S - S'| <= kFP with a whole k, floor(S / FP) and floor(S' / FP)
  differ by at most k.

So each answer is one "histogram" of `privacy.events.ChosenHistograms`, whose bound only uses that
the shift is a vector of whole numbers of L2 norm at most k. Expected counts depend on the noisy
total, which is the first answer; scales are fixed before, so this is adaptive composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED, ChosenHistograms, Event
from dpsynth.privacy.mechanisms import CodedRows, checked_rows
from dpsynth.privacy.payments import gaussian_noise
from dpsynth.privacy.plan import Share
from dpsynth.schema import Column, Schema, coded_schema

QUALITY = "quality"
MIN_SHARE, MAX_SHARE = 0.005, 0.5  # of a plan's mu squared

_TOTAL, _PAIRS, _TRIPLES = 1, 1, 1  # statistics beside those of columns and targets


def targets(schema: Schema) -> tuple[Column, ...]:
    """Return the columns whose prediction is measured: targets with two categories or more.

    A target whose codes are discovered counts, however many a fit has found: the plan is older.
    """
    return tuple(
        column
        for column in schema.modelled
        if "target" in column.roles and (column.discovers or len(column.levels) > 1)
    )


def quality_event(schema: Schema) -> ChosenHistograms:
    """Return the event of a schema's public figures, before its noise is set.

    A figure is a histogram of rows, or a number that moves no more than one (see
    `dpsynth.privacy.public_quality`): a unit of r rows moves each by r at most.
    """
    columns = len(coded_schema(schema).modelled)
    statistics = _TOTAL + _PAIRS + _TRIPLES + columns + len(targets(schema))
    return ChosenHistograms(QUALITY, statistics, schema.unit.max_rows, UNDECIDED)


def with_quality(shares: Sequence[Share], schema: Schema, fraction: float) -> tuple[Share, ...]:
    """Set a fraction of a plan aside for quality; the other shares shrink in proportion.

    Raises:
        InputError: the fraction is out of range.
    """
    if isinstance(fraction, bool) or not MIN_SHARE <= fraction <= MAX_SHARE:
        raise InputError(
            f"the share for publishing quality must be from {MIN_SHARE:g} to {MAX_SHARE:g}"
        )
    rest = [replace(share, fraction=share.fraction * (1 - fraction)) for share in shares]
    return (*rest, Share(quality_event(schema), fraction))


def reserved(events: Iterable[Event]) -> ChosenHistograms | None:
    """Return a plan's event for quality figures; None if nothing was set aside."""
    for event in events:
        if event.name == QUALITY and isinstance(event, ChosenHistograms):
            return event
    return None


FINE = 2**16  # parts of a row in expected counts; whole ones would be 0 in every rare cell

Ints = NDArray[np.int64]
Cells = Callable[[NDArray[Any]], NDArray[Any]]
"""From codes ``[rows, columns]`` to the cell of each row: row by row, without private facts."""


@dataclass(frozen=True, eq=False)
class Counts:
    """How many rows are in each cell.

    Attributes:
        cells: the cell of each row.
        size: how many cells there are.
    """

    cells: Cells
    size: int

    def exact(self, rows: NDArray[Any], total: float) -> Ints:
        """Count; the answer is private until noise is added."""
        return _counted(self.cells, self.size, rows)


@dataclass(frozen=True, eq=False)
class Deviation:
    """How far histograms of the rows are from what is expected: the mean L1 distance, in rows.

    Attributes:
        expected: cells, and the share of rows that is expected in each cell, of every histogram.
    """

    expected: tuple[tuple[Cells, NDArray[np.float64]], ...]

    def exact(self, rows: NDArray[Any], total: float) -> Ints:
        """Sum the deviations from ``total`` times the shares; private until noise is added."""
        distance = 0
        for cells, shares in self.expected:
            counts = FINE * _counted(cells, len(shares), rows)
            expected = np.rint(FINE * total * shares).astype(np.int64)
            distance += int(np.abs(counts - expected).sum())
        return np.array([distance // (FINE * len(self.expected))], dtype=np.int64)


Question = Counts | Deviation


@dataclass(frozen=True, eq=False)
class Answer:
    """What may be published.

    Attributes:
        counts: whole numbers with noise; negative ones may occur.
        sigma: scale of the noise of each.
    """

    counts: Ints
    sigma: float


def ask(
    cohort: CodedRows,
    sizes: Sequence[int],
    questions: Sequence[Question],
    parts: Sequence[float],
    event: ChosenHistograms,
    entropy: Entropy,
) -> tuple[Answer, ...]:
    """Answer questions about a cohort, after its number of rows.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        sizes: number of codes of each column.
        questions: asked by public things alone.
        parts: of the number of rows, then of each question; their squares add up to 1 at most.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        The noisy number of rows, then an answer to each question.

    Raises:
        InputError: the cohort, the questions or the parts are not what the event accounts for; no
            noise has been drawn then. Or a question does not place each row in one of its cells.
    """
    rows, weights = checked_rows(cohort, sizes, event)
    sigmas = [event.sigma_for(part) for part in parts]
    if weights is not None or len(parts) != len(questions) + 1 or not event.covers(sigmas):
        raise InputError(f"event '{event.name}' does not pay for these questions")
    all_questions: tuple[Question, ...] = (Counts(_one_cell, 1), *questions)
    sizes_of = [one.size if isinstance(one, Counts) else 1 for one in all_questions]
    noises = gaussian_noise(event, entropy, [*zip(sigmas, sizes_of, strict=True)])
    answers: list[Answer] = []
    total = math.nan
    for question, sigma, noise in zip(all_questions, sigmas, noises, strict=True):
        answers.append(Answer(question.exact(rows, total) + noise, sigma))
        total = max(1.0, float(answers[0].counts[0]))
    return tuple(answers)


def _one_cell(rows: NDArray[Any]) -> NDArray[Any]:
    return np.zeros(len(rows), dtype=np.int64)


def _counted(cells: Cells, size: int, rows: NDArray[Any]) -> Ints:
    """Count rows by cell; refuse a question that leaves a row out, or counts it twice."""
    if not len(rows):  # a classifier would refuse to be asked about none
        return np.zeros(size, dtype=np.int64)
    places = np.asarray(cells(rows))
    whole = np.issubdtype(places.dtype, np.integer) and places.shape == (len(rows),)
    if not whole or (places.size and (places.min() < 0 or places.max() >= size)):
        raise InputError("a question must put each row into one of its cells")
    return np.bincount(places, minlength=size).astype(np.int64)
