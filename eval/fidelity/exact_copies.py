"""Copies: how many synthetic rows are the same as a real one, cell by cell?

A first look for a table of unknown origin, and no more: distance and equality do not bound what a
table gives away. A generator that knows nothing of single people also hits some of them by chance,
more often the fewer and the coarser the columns; so the same share for a holdout stands beside it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Estimate, Measure, PartResult, Rate, Tables, TableView
from dpsynth.eval.core.estimate import LEVEL


def copies(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Count the synthetic rows that occur in the source, beside the holdout's rows that do.

    Equality is that of all codes, missing included. The interval is the exact one of Clopper and
    Pearson for rows of the synthetic table.
    """
    source = set(_keys(tables.source))
    hits, rows = _hits(tables.synthetic, source), tables.synthetic.rows
    low, high = Rate(hits, rows).bounds((1 - LEVEL) / 2)
    holdout = tables.holdout
    reference = None if holdout is None else _hits(holdout, source) / holdout.rows
    measure = Measure(
        "copies",
        "Rows that occur in the source",
        Estimate(hits / rows, low, high, rows, reference=reference),
        0.0,
        "Share of synthetic rows that equal a real row in every column, beside the share of the "
        "holdout's rows that do; far above it, rows were copied. A low share proves no privacy.",
    )
    note = "copies were looked for as equal rows only; that is no test of privacy"
    return PartResult((measure,), {}, (note,))


def _hits(view: TableView, source: set[bytes]) -> int:
    return sum(key in source for key in _keys(view))


def _keys(view: TableView) -> list[bytes]:
    """Return each row's codes as bytes."""
    codes: npt.NDArray[np.uint16] = np.ascontiguousarray(view.codes)
    whole = codes.tobytes()
    width = codes.shape[1] * codes.itemsize
    return [whole[start : start + width] for start in range(0, len(whole), width)]
