"""Linked tables, read, and put to their patients; at most as many rows of one as are declared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpsynth.encoding import read_histories
from dpsynth.privacy import Entropy
from dpsynth.stats.linked.tables import LinkedTables
from dpsynth.stats.rows import Rows
from dpsynth.tables import Table


def read_linked_rows(
    tables: Mapping[str, Table], linked: LinkedTables, entropy: Entropy
) -> dict[str | None, Rows]:
    """Read all tables, and return the rows of each that can be asked, by its name.

    Raises:
        TableError: a table is damaged, or its keys are wrong.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.
    """
    histories = read_histories(tables, linked.codec, entropy)
    found: dict[str | None, Rows] = {}
    for name, one in linked.asked.items():
        if one.child is None:
            units = np.arange(len(histories), dtype=np.int64)
            found[name] = Rows(units, histories.baseline)
        else:
            (rows,) = histories.rows[one.child]
            patients = histories.baseline[rows.patients][:, list(one.of_patient)]
            codes = np.hstack([patients, rows.values])
            found[name] = Rows(rows.patients.astype(np.int64), codes)
    return found
