"""The table of candidate pairs, read: which records a row has, and which cells it is in.

Everything about a row follows from its own cells. A row without a record of either register, or
whose score is no number, is in no cell, and so is one whose review says nothing that is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth.privacy import Links
from dpsynth.stats.linkage.request import MATCHES, OTHERS, UNREVIEWED, LinkageRequest
from dpsynth.tables import (
    Keys,
    Source,
    Table,
    as_source,
    distinct,
    open_columns,
    read_cells,
    texts_of,
)
from dpsynth.tables.table import require_records
from dpsynth.tables.unit_keys import NO_KEY

_CLASSES = (MATCHES, OTHERS, UNREVIEWED)


def open_pairs(source: Source, request: LinkageRequest) -> Table:
    """Open a table of candidate pairs, and check its header and records; no row has been read then.

    Raises:
        TableError: there is none, it lacks a column, or a text file has an irregular record.
    """
    source = as_source(source)
    first, second = request.schemas
    other = second.unit.column or ""
    open_columns(source, second, (other,), private=True)
    # beside a value that is a whole number, whole numbers are judged as those of a key are
    columns = [replace(c, categories=("0",)) if c.name == other else c for c in first.columns]
    both = replace(first, columns=tuple(columns))
    return require_records(open_columns(source, both, request.columns, private=True))


def read_pairs(table: Table, request: LinkageRequest) -> Mapping[str, Links]:
    """Read all pairs, by what clerical review found.

    Raises:
        TableError: the table is damaged, or has no rows.
    """
    keys = [Keys(schema) for schema in request.schemas]
    first, second, scores, classes = [], [], [], []
    for chunk in table.chunks():
        first.append(keys[0].units(chunk))
        second.append(keys[1].units(chunk))
        scores.append(_scores(chunk[request.score], request))
        classes.append(_classes(chunk[request.match], request))
    a, b = np.concatenate(first), np.concatenate(second)
    score, of_row = np.concatenate(scores), np.concatenate(classes)
    counts = (a != NO_KEY) & (b != NO_KEY) & (score >= request.thresholds[0])
    found = {}
    for name in request.classes:
        here = counts & (of_row == _CLASSES.index(name))
        cells = score[here][:, None] >= np.array(request.thresholds)
        found[name] = Links(a[here], b[here], cells)
    return found


def _scores(
    cells: pd.Series, request: LinkageRequest
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    schema = request.schemas[0]
    return read_cells(cells, schema.column(request.score), schema.dialect.decimal)[0]


def _classes(
    cells: pd.Series, request: LinkageRequest
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the place of each row's class."""
    of_row, texts = distinct(texts_of(cells))
    known = dict.fromkeys(request.yes, 0) | dict.fromkeys(request.no, 1)
    places = [known.get(text.strip(), 2) for text in texts]
    return np.array([*places, 2], dtype=np.int64)[of_row]
