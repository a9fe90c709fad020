"""Random counting queries: what an analyst would read off the table, and how far off it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Variants,
    mean_absolute,
    plain,
)

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.int64]

COUNT = 1000
WAYS = (2, 3)
SEED = 40  # of the choice of columns: always the same for one schema and source
QUANTILES = (0.5, 0.9, 0.99, 1.0)
MEAN = (
    "Mean absolute error, as a share of rows, of random counting queries: how many rows have this "
    "range or set of values in two or three columns at once. 0.01 means that a count in a table of "
    "1000 rows is off by ten."
)
WORST = "The same error of the worst hundredth of the queries (percentile 99)."


@dataclass(frozen=True, eq=False)
class Query:
    """Which rows are counted: those with an allowed code in each of some columns.

    Attributes:
        allowed: by the place of a column, which of its codes.
    """

    allowed: dict[int, Bools]

    @classmethod
    def draw(cls, codec: Codec, source: Codes, ways: int, rng: np.random.Generator) -> Query:
        """Draw columns, and in each a range between two cells of the source or half the categories.

        A range counts values that are present; among categories, missing is one.
        """
        places = rng.choice(len(codec.sizes), size=ways, replace=False).tolist()
        allowed = {}
        for j in places:
            every = np.arange(codec.sizes[j])
            if codec.cells[j]:
                ends = np.sort(source[rng.integers(len(source), size=2), j])
                allowed[j] = (every >= ends[0]) & (every <= ends[1]) & (every < codec.cells[j])
            else:
                half = rng.permutation(len(every))[: (len(every) + 1) // 2]
                allowed[j] = np.isin(every, half)
        return cls(allowed)

    def rows(self, codes: Codes) -> Rows:
        """Return the numbers of the rows that are counted, from codes ``[rows, columns]``."""
        (first, allowed), *others = self.allowed.items()
        rows = np.flatnonzero(allowed[codes[:, first]])
        for j, allowed in others:
            rows = rows[allowed[codes[rows, j]]]
        return rows


def queries(sides: PairedTables, *, count: int = COUNT) -> PartResult:
    """Answer random two- and three-way counting queries; intervals by jackknife over units."""
    codec = sides.tables.codec
    ways = [way for way in WAYS if way <= len(codec.names)]
    if not ways:
        return PartResult(notes=("the table has one column: no queries of two columns were asked",))
    rng = np.random.default_rng(SEED)
    questions = [
        Query.draw(codec, sides.tables.source.codes, ways[k % len(ways)], rng) for k in range(count)
    ]
    answers = sides.each(lambda side: _answers(side, questions))
    mean = JackknifeEstimate.of(mean_absolute, answers)
    worst = JackknifeEstimate.of(_worst, answers)
    assert mean is not None and worst is not None  # every table has rows
    measures = (
        Measure("queries", "Error of counting queries", mean.estimate(sides.n), 0.0, MEAN),
        Measure("queries_worst", "Error of the worst queries", worst.estimate(sides.n), 0.0, WORST),
    )
    details = {"ways": ways, "count": count, "error_quantiles": _quantiles(answers)}
    return PartResult(measures, {"queries": details})


def _answers(side: PairedTable, questions: list[Query]) -> Floats:
    """Return the share of rows that each query counts ``[variants, queries]``."""
    codes = np.asfortranarray(side.view.codes)
    rows = side.sizes()[:, None]
    return np.stack([side.sizes(query.rows(codes)) for query in questions], axis=1) / rows


def _worst(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.quantile(np.abs(a - b), 0.99, axis=-1))


def _quantiles(answers: Variants) -> dict[str, Any]:
    """Return the quantiles of the absolute error, by table."""
    source = answers.source[0]
    tables = {
        "synthetic": answers.synthetic,
        "holdout": answers.holdout,
        "chance": answers.chance,
    }
    return {
        name: None
        if shares is None
        else {
            f"{q:g}": plain(error)
            for q, error in zip(
                QUANTILES, np.quantile(np.abs(shares[0] - source), QUANTILES), strict=True
            )
        }
        for name, shares in tables.items()
    }
