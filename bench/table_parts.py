"""Random parts of the real tables, a row as the unit: cut out, drawn again, and scored."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
from convert import convert
from quality import score

from dpsynth._util.seeds import fresh_seed
from dpsynth.schema.column import Declared
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables.table import write_table

DELTA = 1e-5
FIGURES = ("tvd1", "tvd2", "tvd3", "tstr_hgb", "c2st_auc", "seconds")


def part_schema(folder: Path, units: int) -> Schema:
    """Return the schema of a table of which every row is a unit, and there are so many."""
    size = Declared(units, "the benchmark")
    return replace(convert(folder / "schema.json", rows_as_units=True), population=size, rows=size)


@contextmanager
def part_of(folder: Path, units: int | None, seed: int) -> Iterator[tuple[Path, Schema]]:
    """Cut random rows out of a table; yield a folder for them, until they are used, and a schema.

    Args:
        folder: of the table: train.csv, test.csv and schema.json.
        units: how many rows are cut out of the training split; None for all.
        seed: chooses them.
    """
    train = pd.read_csv(folder / "train.csv", dtype=str, keep_default_na=False)
    units = units or len(train)
    rows = np.random.default_rng([seed, units]).permutation(len(train))[:units]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for file in ("test.csv", "schema.json"):
            shutil.copy(folder / file, scratch)
        train.iloc[rows].to_csv(scratch / "train.csv", index=False)
        yield scratch, part_schema(folder, units)


def draw(
    run: Run, schema: Schema, target: Path, rows: int | None = None, *, plain: bool = False
) -> Path:
    """Draw rows, as many as the schema says, into a CSV file; return its path."""
    rows = rows or schema.rows.value
    frames = Sampler.of(run, plain=plain).frames(rows, seed=fresh_seed())
    write_table(frames, target, schema, overwrite=True)
    return target


def scored(run: Run, schema: Schema, scratch: Path, *, plain: bool = False) -> dict[str, Any]:
    """Draw as many rows as were cut out, and score them against those."""
    drawn = draw(run, schema, scratch / "synthetic.csv", plain=plain)
    return score(scratch, drawn, scratch / "ref.json")


def fitted(scratch: Path, schema: Schema, **settings: Any) -> Run:
    """Fit to the rows that were cut out, without a ledger."""
    table, settings = scratch / "train.csv", {"delta": DELTA} | settings
    return fitting.fit(table, schema, dataset="benchmark", without_ledger=True, **settings)


def print_heading(names: Sequence[str]) -> None:
    """Print the first two lines of a table."""
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|", flush=True)


def named_parts(names: str) -> Iterator[tuple[str, int | None]]:
    """Yield each table that is named, as in ``cardio,diabetes130:10000``, and how many rows of it.

    None stands for all rows.
    """
    for name in names.split(","):
        table, _, rows = name.partition(":")
        yield table, int(rows) if rows else None


def means(scores: Sequence[dict[str, Any]], figures: Sequence[str] = FIGURES) -> str:
    """Return the means of figures as cells of a table."""
    return " | ".join(f"{mean(one[name] for one in scores):.4f}" for name in figures)
