"""From noisy answers to tables: post-processing, the same for whoever has the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from dpsynth.privacy import Event
from dpsynth.stats.counts import Counts, agreed, meaningful
from dpsynth.stats.request import Request
from dpsynth.stats.statistic import Answers


@dataclass(frozen=True, eq=False)
class Result:
    """A statistic's table.

    Attributes:
        name: of the statistic.
        table: its cells, with values and intervals.
        gain: by how much agreement with other tables of counts has cut the variance of the noise
            (0 to 1); 0 where there were no others.
        facts: figures of the table as a whole, such as those of a test.
    """

    name: str
    table: pd.DataFrame
    gain: float = 0.0
    facts: dict[str, float] = field(default_factory=dict)


def results_of(
    request: Request, answers: Answers, events: Mapping[str, Event]
) -> tuple[Result, ...]:
    """Make the tables of a request from its noisy answers.

    Tables of counts of the same rows are made to agree on the margins that they share.
    """
    z = normal_quantile(request.confidence)
    counts: dict[str | None, list[Counts]] = {}
    for table, one in zip(request.tables, request.statistics, strict=True):
        if isinstance(one, Counts) and one.adds_up:
            counts.setdefault(table, []).append(one)  # rows of two tables are not the same rows
    alike = {}
    for several in counts.values():
        noisy = [one.noisy(answers, events) for one in several]
        for one, before, after in zip(several, noisy, agreed(noisy), strict=True):
            gain = 1 - (after.sd / before.sigma) ** 2
            alike[one.name] = Result(
                one.name, one.listed(after.counts, after.sd, one.reach(events, z)), gain
            )
    return tuple(
        alike.get(one.name)
        or Result(
            one.name, meaningful(one.table(answers, events, z)), facts=one.facts(answers, events)
        )
        for one in request.statistics
    )


def normal_quantile(confidence: float) -> float:
    """Return how many standard deviations an interval of this confidence reaches to each side.

    >>> round(normal_quantile(0.95), 2)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
