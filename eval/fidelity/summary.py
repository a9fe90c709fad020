"""Is the synthetic table like the source: all of it put together, and sdmetrics' own reports.

A number computed from real rows is internal: it never enters a run or a bundle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core import (
    Estimate,
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Tables,
    TableView,
    Variants,
    coarse,
    decile_edges,
    mean_absolute,
    numbers,
    plain,
)
from dpsynth.eval.fidelity.columns import gaps, margins, missingness, outside, undeclared_levels
from dpsynth.eval.fidelity.numbers import followed, heaping, location, tails
from dpsynth.eval.fidelity.records import c2st, embedding
from dpsynth.eval.fidelity.relations import correlation, joints, mean_tvd, pair_facts, tvd

__all__ = [
    "coarse",
    "decile_edges",
    "distributions",
    "mean_tvd",
    "rows_told_apart",
    "sdmetrics_reports",
    "together",
    "tvd",
]

SDMETRICS_ROWS = 10_000
TITLES = {
    "quality": "sdmetrics: quality report",
    "shapes": "sdmetrics: column shapes",
    "pairs": "sdmetrics: column pair trends",
    "diagnostic": "sdmetrics: diagnostic report",
}
MEANINGS = {
    "quality": (
        "Overall score of sdmetrics' quality report, the mean of column shapes and pair trends; 1 "
        "is best. Read it with care: a table with broken correlations can score above real data, "
        "because half of the score looks at single columns only and weak relations count little. "
        "Hold it against the holdout's score, and against the distances of pairs."
    ),
    "shapes": (
        "sdmetrics' similarity of single columns, 1 minus the Kolmogorov-Smirnov or total "
        "variation distance; missing cells are left out."
    ),
    "pairs": (
        "sdmetrics' similarity of pairs of columns: correlations and contingency tables. It looks "
        "at the relations that stand out in the source, where it has thresholds for that."
    ),
    "diagnostic": (
        "Overall score of sdmetrics' diagnostic report: values within the source's ranges and "
        "categories, and the same columns. Anything below 1 means values that the source has not; "
        "it says nothing about likeness."
    ),
}


def distributions(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Compare distributions, relations, gaps and habits of a synthetic table and the source.

    Args:
        tables: what is compared.
        rng: of samples and groups.

    Returns:
        Measures, details of the part "fidelity" of evaluation.json, and notes. Intervals are by
        delete-a-group jackknife over units.
    """
    sides = PairedTables.of(tables, rng)
    return together([figure(sides) for figure in FIGURES])


def rows_told_apart(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Try to tell synthetic rows from the source's; the interval of c2st is DeLong's."""
    return together([c2st(tables, rng), embedding(tables, rng)])


def together(parts: Sequence[PartResult]) -> PartResult:
    """Put parts into one."""
    details: dict[str, Any] = {}
    for part in parts:
        for name, detail in part.details.items():
            together = isinstance(detail, dict) and name in details  # pairs come from two parts
            details[name] = {**details[name], **detail} if together else detail
    measures = tuple(measure for part in parts for measure in part.measures)
    return PartResult(measures, details, tuple(note for part in parts for note in part.notes))


def sdmetrics_reports(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Make sdmetrics' quality and diagnostic reports on at most 10 000 rows of each table.

    Categories are given as codes, numbers and times as numbers. There is no interval: the library
    has none. Chance, a bootstrap of the source, is computed where there is no holdout.
    """
    rows = min(SDMETRICS_ROWS, tables.size, tables.source.rows)
    real = _frame(tables.source.sample(rows, rng), tables)
    scores = _scores(real, _frame(tables.synthetic.sample(rows, rng), tables), tables)
    holdout: dict[str, float] = {}
    chance: dict[str, float] = {}
    if tables.holdout is not None:
        holdout = _scores(real, _frame(tables.holdout.sample(rows, rng), tables), tables)
    else:
        chance = _scores(real, _frame(tables.source.bootstrap(rows, rng), tables), tables)
    details: dict[str, Any] = {"rows": rows, **{name: plain(scores.get(name)) for name in TITLES}}
    details["holdout"] = {name: plain(holdout.get(name)) for name in TITLES} if holdout else None
    measures = tuple(
        Measure(
            f"sdmetrics_{name}",
            title,
            Estimate(scores[name], None, None, rows, holdout.get(name), chance.get(name)),
            1.0,
            MEANINGS[name],
        )
        for name, title in TITLES.items()
        if name in scores
    )
    missing = [name for name in TITLES if name not in scores]
    notes = [f"sdmetrics: {rows} rows of each table"]
    notes += [f"sdmetrics gave no score for: {', '.join(missing)}"] if missing else []
    return PartResult(measures, {"sdmetrics": details}, tuple(notes))


def _scores(real: pd.DataFrame, synthetic: pd.DataFrame, tables: Tables) -> dict[str, float]:
    """Return the library's scores; those that it cannot compute are left out."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

        columns = {
            column.name: {"sdtype": "categorical" if column.is_categorical else "numerical"}
            for column in tables.schema.modelled
        }
        quality, diagnostic = QualityReport(), DiagnosticReport()
        quality.generate(real, synthetic, {"columns": columns}, verbose=False)
        diagnostic.generate(real, synthetic, {"columns": columns}, verbose=False)
        of_property = dict(quality.get_properties().itertuples(index=False, name=None))
        scores = {
            "quality": quality.get_score(),
            "shapes": of_property.get("Column Shapes"),
            "pairs": of_property.get("Column Pair Trends"),
            "diagnostic": diagnostic.get_score(),
        }
    return {
        name: float(score)
        for name, score in scores.items()
        if score is not None and math.isfinite(score)
    }


def _frame(view: TableView, tables: Tables) -> pd.DataFrame:
    """Return a table for the library, as floats; NaN is missing."""
    columns: dict[str, Any] = {}
    for place, column in enumerate(tables.schema.modelled):
        if column.is_categorical:
            codes = view.codes[:, place].astype(float)
            columns[column.name] = np.where(gaps(view, tables, place), np.nan, codes)
        else:
            columns[column.name] = numbers(view, column)
    return pd.DataFrame(columns)


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


# the figures of the compared tables, in the order of the document
FIGURES: tuple[Callable[[PairedTables], PartResult], ...] = (
    margins,
    joints,
    correlation,
    missingness,
    heaping,
    tails,
    outside,
    location,
    followed,
    pair_facts,
    undeclared_levels,
    queries,
)
