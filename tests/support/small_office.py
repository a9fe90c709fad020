"""A folder with a small run, the ledger that was charged for it, and a table drawn from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import dpsynth
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import record_sample
from dpsynth.tables import write_table


def small_office(
    folder: Path, source: pd.DataFrame, schema: Schema, *, rows: int, seed: int, **changes: Any
) -> Path:
    """Fit `run`, charged to `ledger.sqlite`, and draw so many rows into `out.parquet`.

    Other keyword arguments are those of `fitting.fit`.
    """
    settings: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "dataset": "demo"}
    settings |= {"model": "independent", "ledger": Ledger.create(folder / "ledger.sqlite")}
    run = dpsynth.fit(source, schema, output=folder / "run", **(settings | changes))
    write_table([run.sample(rows, seed=seed)], folder / "out.parquet", schema)
    record_sample(folder / "run", folder / "out.parquet", size=rows, seed=seed)
    return folder
