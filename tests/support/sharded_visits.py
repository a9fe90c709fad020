"""A table of visits in a file, read into shards and counted, by one process or by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.engines.engine import Engine
from dpsynth.encoding import Codec, Derived, Lookup, ShardedRows, UnitRows, read_shards
from dpsynth.privacy import ChosenHistograms, JointHistograms, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..encoding.test_cohort import visits

ROWS = 900
CAP = 3
SHARDS = 12


def write_visits(place: Path) -> Path:
    """Write patients with up to a dozen visits, many beyond the cap; some rows have no key."""
    rng = np.random.default_rng(5)
    keys = np.where(rng.random(ROWS) < 0.1, "", rng.integers(0, 150, ROWS).astype(str))
    values, times = rng.integers(0, 200, ROWS), rng.integers(0, 20, ROWS)
    frame = pd.DataFrame({"patient": keys, "value": values, "visit": times})
    frame.to_csv(place, index=False)
    return place


def read(
    path: Path,
    folder: Path,
    engine: Engine | None = None,
    schema: Schema | None = None,
    seed: int = 1,
) -> ShardedRows:
    """Read into shards; who has the same seed keeps the same rows."""
    schema = schema or visits(CAP, missing_key="own")
    folder.mkdir(exist_ok=True)
    source, entropy = open_table(path, schema), SeededEntropy(seed)
    return read_shards(source, Codec(schema), schema, entropy, folder, engine=engine, shards=SHARDS)


def third(codes: Any) -> Any:
    """A column that follows from another one."""
    return codes[..., 0] // 3


CELLS = [UnitRows(), Lookup(0), Derived((0,), third)]
SIZES = (CAP, 200, 67)


def counted(rows: ShardedRows, cells: list[Any] | None = None) -> list[list[int]]:
    """Exact counts of all columns, and of pairs, where the rows of a unit share its mass."""
    source = rows.recoded(cells or CELLS)
    one = source.counts([(0,), (1,), (2,)], SIZES, JointHistograms("one", 3, CAP, 50.0))
    pairs = ChosenHistograms("pairs", 2, CAP, 1e6, unit_mass=6)
    return [table.tolist() for table in (*one, *source.counts([(0, 1), (1, 2)], SIZES, pairs))]
