"""Whether a row is coded as it is alone, whoever stands beside it in the table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.schema import Schema


def moved_codes(schema: Schema, frame: pd.DataFrame, odd: Mapping[str, pd.DataFrame]) -> set[str]:
    """Name the neighbours in which a code of somebody else's row is another one.

    Args:
        schema: of the table.
        frame: the rows, as text.
        odd: other rows by name, which stand before and behind the table.
    """
    codec = Codec(schema)
    alone = np.concatenate([codec.encode(frame.iloc[[row]]) for row in range(len(frame))])
    found = set() if (codec.encode(frame) == alone).all() else {"the table itself"}
    for name, rows in odd.items():
        beside = pd.concat([rows, frame, rows], ignore_index=True)
        if not (codec.encode(beside)[len(rows) : -len(rows)] == alone).all():
            found.add(name)
    if not (codec.encode(frame.iloc[1:]) == alone[1:]).all():
        found.add("one patient less")
    return found
