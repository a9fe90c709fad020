"""Is the synthetic table like the source: all of it put together, and sdmetrics' own reports.

A number computed from real rows is internal: it never enters a run or a bundle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.eval.core import (
    Estimate,
    Measure,
    PairedTables,
    PartResult,
    Tables,
    TableView,
    coarse,
    decile_edges,
    numbers,
    plain,
)
from dpsynth.eval.fidelity.classifier_test import c2st
from dpsynth.eval.fidelity.columns import margins
from dpsynth.eval.fidelity.correlation import correlation
from dpsynth.eval.fidelity.counting_queries import queries
from dpsynth.eval.fidelity.embedding import embedding
from dpsynth.eval.fidelity.heaping import heaping
from dpsynth.eval.fidelity.joints import joints
from dpsynth.eval.fidelity.missingness import gaps, missingness
from dpsynth.eval.fidelity.outside import outside
from dpsynth.eval.fidelity.pair_facts import pair_facts
from dpsynth.eval.fidelity.tails import tails
from dpsynth.eval.fidelity.total_variation import mean_tvd, tvd
from dpsynth.eval.fidelity.undeclared_levels import undeclared_levels
from dpsynth.eval.fidelity.values.followed import followed
from dpsynth.eval.fidelity.values.location import location

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
    parts = [
        margins(sides),
        joints(sides),
        correlation(sides, rng),
        missingness(sides),
        heaping(sides),
        tails(sides),
        outside(sides),
        location(sides),
        followed(sides),
        pair_facts(sides),
        undeclared_levels(sides),
        queries(sides),
    ]
    return together(parts)


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
