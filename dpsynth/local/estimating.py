"""The verb `estimate`: what perturbed answers say of all people, with intervals.

Of n people, m have a category; a report speaks for it with probability p from one of them and q
from anyone else (see `dpsynth.local.randomiser`). If c reports speak for it, then

    (c - n q) / (p - q)

has mean m: it is unbiased, and may lie below 0 or above n.

**The interval of the count** is about these n people and covers the randomisation alone. c is a
sum of two binomials, with variance m p (1 - p) + (n - m) q (1 - q). The interval holds each m whose
mean is within z standard deviations of c, of the variance at that very m, after half a report is
taken off (Wilson's score interval with continuity correction).

**The interval of the share** is about the population, if the people are an independent sample of
it. Each report then speaks for the category with probability t p + (1 - t) q where t is the share,
so c is binomial. Clopper and Pearson's interval of that probability, moved back to t, holds t with
at least the confidence, whatever n is: it covers both the sampling and the randomisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import require_list
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import written
from dpsynth.errors import InputError
from dpsynth.files import atomic_folder, check_vacant
from dpsynth.local.randomiser import Randomiser
from dpsynth.local.reports import Reports, Settings

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TABLE, DOCUMENT = "estimates.csv", "estimates.json"


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """Counts and shares of each column.

    Attributes:
        settings: by which the answers were perturbed.
        people: how many answered.
        confidence: of each interval by itself.
        table: ``column``, ``category``, ``count``, ``lower``, ``upper`` (of these people),
            ``share``, ``share_lower``, ``share_upper`` (of the population).
    """

    settings: Settings
    people: int
    confidence: float
    table: pd.DataFrame

    def __repr__(self) -> str:
        """Name the settings."""
        return short_repr(self, repr(self.settings))

    def files(self) -> dict[str, bytes]:
        """Return the table as CSV, and all as JSON, by file name."""
        rows = self.table.to_numpy().tolist()
        document = {
            "settings": self.settings.to_dict(),
            "people": self.people,
            "confidence": self.confidence,
            "intervals": {
                "count": "of these people; covers the randomisation",
                "share": "of the population that they are a sample of; covers both",
            },
            "columns": list(self.table.columns),
            "rows": rows,
        }
        table: Any = self.table.to_csv(index=False, lineterminator="\n")
        return {TABLE: table.encode(), DOCUMENT: written(document)}


def estimate(
    reports: Reports | str | Path | Sequence[Reports | str | Path],
    *,
    confidence: float = 0.95,
    output: str | Path | None = None,
) -> Estimates:
    """Estimate how many people have each category, from their perturbed answers.

    Args:
        reports: perturbed answers, or files of them with their settings beside; several of equal
            settings are joined.
        confidence: of each interval by itself.
        output: folder to write the estimates in, as CSV and JSON.

    Raises:
        InputError: files that do not belong together, a confidence out of range, or the output.
        ArtifactError, TableError: a file is missing or damaged.

    Example:
        >>> from dpsynth.local import perturb
        >>> from dpsynth.local.perturbing import one_row_each
        >>> from dpsynth.schema import Schema
        >>> from dpsynth.tables import simulate
        >>> answers = perturb(simulate(500, seed=1), one_row_each(Schema.load("demo")), ["sex"],
        ...     epsilon=1.0)
        >>> list(estimate(answers).table.columns)[:5]
        ['column', 'category', 'count', 'lower', 'upper']
    """
    if not 0.5 <= confidence <= 0.9999:
        raise InputError("the confidence of intervals lies between 0.5 and 0.9999")
    if output is not None:
        check_vacant(output)
    given = (
        [reports]
        if isinstance(reports, Reports | str | Path)
        else require_list(reports, "a list of tables of perturbed answers")
    )
    if not given:
        raise InputError("name at least one table of perturbed answers")
    loaded = [one if isinstance(one, Reports) else Reports.load(one) for one in given]
    settings = loaded[0].settings
    if any(one.settings != settings for one in loaded):
        raise InputError("these tables were perturbed by different settings; estimate each alone")
    people = sum(one.people for one in loaded)
    if not people:
        raise InputError("nobody answered: there is nothing to estimate")
    parts = []
    for place, column in enumerate(settings.columns):
        supports = sum(
            (column.randomiser.supports(one.reports[place]) for one in loaded),
            np.zeros(len(column.labels), dtype=np.int64),
        )
        figures = estimated(column.randomiser, supports, people, confidence)
        names = {"column": column.name, "category": np.array(column.labels, dtype=object)}
        parts.append(pd.DataFrame({**names, **figures}))
    found = Estimates(settings, people, confidence, pd.concat(parts, ignore_index=True))
    if output is not None:
        with atomic_folder(output) as folder:
            for name, content in found.files().items():
                (folder / name).write_bytes(content)
    return found


def estimated(
    randomiser: Randomiser, supports: Ints, people: int, confidence: float
) -> dict[str, Floats]:
    """Return counts and shares with their intervals, from the reports that speak for each.

    Args:
        randomiser: by which each person's report was drawn.
        supports: how many reports speak for each category.
        people: how many reports there are.
        confidence: of each interval.
    """
    p, q = float(randomiser.own), float(randomiser.other)
    count = (supports - people * q) / (p - q)
    lower, upper = count_interval(randomiser, supports, people, confidence)
    low, high = share_interval(randomiser, supports, people, confidence)
    of_people = {"count": count.round(1), "lower": lower, "upper": upper}
    share = (count / people).round(6)
    return of_people | {"share": share, "share_lower": low, "share_upper": high}


def count_interval(
    randomiser: Randomiser, supports: Ints, people: int, confidence: float
) -> tuple[Floats, Floats]:
    """Return the interval of each count, rounded outwards to tenths."""
    from scipy.special import ndtri

    p, q = float(randomiser.own), float(randomiser.other)
    z = float(ndtri((1 + confidence) / 2))
    apart, others, slope = p - q, people * q * (1 - q), p * (1 - p) - q * (1 - q)
    ends = []
    for sign in (-1, 1):
        # (apart m - y)^2 = z^2 (others + slope m), solved for m
        y = supports + sign / 2 - people * q
        middle = (2 * apart * y + z**2 * slope) / (2 * apart**2)
        inside = 4 * apart * y * slope + z**2 * slope**2 + 4 * apart**2 * others
        ends.append(middle + sign * z * np.sqrt(np.maximum(inside, 0.0)) / (2 * apart**2))
    lower, upper = (np.clip(end, 0, people) for end in ends)
    return np.floor(10 * lower) / 10, np.ceil(10 * upper) / 10


def share_interval(
    randomiser: Randomiser, supports: Ints, people: int, confidence: float
) -> tuple[Floats, Floats]:
    """Return the interval of each share, rounded outwards to millionths."""
    from scipy.special import betaincinv

    p, q = float(randomiser.own), float(randomiser.other)
    tail, rest = (1 - confidence) / 2, people - supports
    low = np.where(supports > 0, betaincinv(np.maximum(supports, 1), rest + 1, tail), 0.0)
    high = np.where(rest > 0, betaincinv(supports + 1, np.maximum(rest, 1), 1 - tail), 1.0)
    lower, upper = (np.clip((end - q) / (p - q), 0, 1) for end in (low, high))
    return np.floor(1e6 * lower) / 1e6, np.ceil(1e6 * upper) / 1e6
