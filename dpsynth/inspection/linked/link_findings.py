"""Keys from row to row, such as from a laboratory value to a visit: checked, and not modelled."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth._util.messages import listed
from dpsynth.inspection.findings import Finding, share_text
from dpsynth.inspection.linked.child_read import ChildRead
from dpsynth.inspection.linked.kinds import LINKED_LIMITS, UNLINKED
from dpsynth.inspection.linked.patient_read import Ints, RowsRead
from dpsynth.schema import Link


def link_findings(
    read: ChildRead, link: Link, owners: Ints, target: RowsRead, target_owners: Ints
) -> list[Finding]:
    """Judge one foreign key between two tables of rows.

    Args:
        read: the table that points.
        link: the key.
        owners: the patient of each of its rows.
        target: the table that it points to.
        target_owners: the patient of each row there.
    """
    own = pd.Series(read.links(link.columns), dtype=object)
    there = pd.Index(pd.Series(target.links(link.target), dtype=object))
    filled = own.notna().to_numpy()
    total = int(filled.sum())
    if not total:
        return []
    first = ~there.duplicated()
    places = np.asarray(there[first].get_indexer(own[filled]), dtype=np.int64)
    lost = int((places < 0).sum())
    rows = np.flatnonzero(first)[places[places >= 0]]
    strange = int((target_owners[rows] != owners[filled][places >= 0]).sum())
    place = f"{read.child.name}.{listed(link.columns)}"
    found = []
    for count, words, remedy in (
        (
            lost,
            f"point to a row that table {link.table} does not have",
            "compare the extracts of both tables; dpsynth keeps the key in the schema and does not "
            "model it",
        ),
        (
            strange,
            f"point to a row of table {link.table} that belongs to another patient",
            "one of both tables has the wrong patient's key, or the numbers of rows begin anew for "
            "each patient: then name the patient's key in the foreign key, too",
        ),
    ):
        if count:
            found.append(
                Finding(
                    place,
                    UNLINKED,
                    LINKED_LIMITS[UNLINKED].level(count / total, count),
                    f"{share_text(count, total, 'row')} {words}",
                    count,
                    total,
                    remedy,
                )
            )
    return found
