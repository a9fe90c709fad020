"""How many synthetic patients of a bundle break a temporal rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.bundle.format import table_path
from dpsynth.bundle.gates.profile import RuleCount
from dpsynth.encoding import typed_frames
from dpsynth.schema import AnySchema, PatientRows, Schema, synthetic_tables


def temporal_counts(folder: Path, schema: AnySchema) -> tuple[RuleCount, ...]:
    """Count the patients who break each temporal rule; none of a single table.

    Raises:
        TableError: a cell is not what the schema allows, or a table cannot be read.
    """
    if isinstance(schema, Schema) or not schema.rules:
        return ()
    frames = {
        name: pd.concat(typed_frames(folder / table_path(name), table), ignore_index=True)
        for name, table in synthetic_tables(schema).items()
    }
    rows = PatientRows(frames, schema)
    counts = [int(np.count_nonzero(~rule.holds_in(rows))) for rule in schema.rules]
    return tuple(
        RuleCount(rule.text, count) for rule, count in zip(schema.rules, counts, strict=True)
    )
