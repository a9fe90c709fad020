"""What is missing: the share of each column, and which columns are missing together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTables,
    PartResult,
    Tables,
    TableView,
    Variants,
    absolute,
    plain,
)
from dpsynth.eval.fidelity.total_variation import half_l1

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

MAX_PATTERNS = 12
UNSEEN = (
    "Share of rows whose pattern of missing cells no real row has. A high value beside a holdout's "
    "means that columns which are missing together are taken apart."
)
MISSING = (
    "Mean over columns that may be empty of the absolute difference of the share of missing cells. "
    "A high value means that values are missing more or less often than in the source."
)
PATTERNS = (
    "Total variation distance between the tables' distributions of which columns are missing "
    "together in a row. A high value beside good shares means that gaps are spread as if by chance."
)


def missingness(sides: PairedTables) -> PartResult:
    """Compare missing shares and joint patterns; intervals by jackknife over units."""
    tables = sides.tables
    places = _nullable(tables)
    if not places:
        return PartResult((), {"missing_patterns": []}, ("no column may be missing",))
    figures = [JackknifeEstimate.of(absolute, _shares(sides, place)) for place in places]
    mean = JackknifeEstimate.mean([figure for figure in figures if figure is not None])
    keys, rows = _patterns([side.view for side in sides.every], tables, places)
    joint = JackknifeEstimate.of(half_l1, sides.histograms(keys, len(rows)))
    assert joint is not None  # every row has a pattern
    known = np.bincount(keys[0], minlength=len(rows)) > 0
    apart = [side.shares(~known[part]) for side, part in zip(sides.every, keys, strict=True)]
    unseen = JackknifeEstimate.of(absolute, sides.variants(apart))
    assert unseen is not None
    title = "Rows with a pattern of missing cells that no real row has"
    measures = (
        Measure("missing", "Difference of missing shares", mean.estimate(sides.n), 0.0, MISSING),
        Measure("patterns", "Distance of patterns", joint.estimate(sides.n), 0.0, PATTERNS),
        Measure("patterns_unseen", title, unseen.estimate(sides.n), 0.0, UNSEEN),
    )
    return PartResult(measures, {"missing_patterns": _commonest(tables, places)})


def gaps(view: TableView, tables: Tables, place: int) -> Bools:
    """Tell which cells of the modelled column at a place are missing."""
    if not tables.schema.modelled[place].nullable:
        return np.zeros(view.rows, dtype=bool)
    return np.asarray(view.codes[:, place] == tables.codec.sizes[place] - 1)


def _shares(sides: PairedTables, place: int) -> Variants:
    """Return the share of rows without a value in a column."""
    return sides.each(lambda side: side.shares(gaps(side.view, sides.tables, place)))


def _nullable(tables: Tables) -> list[int]:
    return [j for j, column in enumerate(tables.schema.modelled) if column.nullable]


def _patterns(views: list[TableView], tables: Tables, places: list[int]) -> tuple[list[Ints], Ints]:
    """Number the patterns that occur; return that of each row, and a row of each pattern."""
    keys = np.zeros(sum(view.rows for view in views), dtype=np.int64)
    for j in places:
        keys = keys * 2 + np.concatenate([gaps(view, tables, j) for view in views])
        keys = pd.factorize(keys)[0].astype(np.int64)
    _, rows = np.unique(keys, return_index=True)
    ends = np.cumsum([view.rows for view in views])
    return np.split(keys, ends[:-1]), rows


def _commonest(tables: Tables, places: list[int]) -> list[dict[str, Any]]:
    """List the commonest patterns of the source with their shares of all rows."""
    views = [tables.source, tables.synthetic]
    views += [] if tables.holdout is None else [tables.holdout]
    keys, rows = _patterns(views, tables, places)
    missing = np.stack(
        [np.concatenate([gaps(view, tables, j) for view in views])[rows] for j in places], axis=1
    )
    shares = [np.bincount(key, minlength=len(rows)) / len(key) for key in keys]
    order = np.argsort(-shares[0], kind="stable")[:MAX_PATTERNS]
    names = [tables.codec.names[j] for j in places]
    return [
        {
            "columns": [name for name, gap in zip(names, missing[k], strict=True) if gap],
            "source": plain(shares[0][k]),
            "synthetic": plain(shares[1][k]),
            "holdout": plain(shares[2][k]) if len(shares) > 2 else None,
        }
        for k in order
    ]
