"""A table of visits in a file, read into shards and counted, by one process or by others."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.engines import Engine
from dpsynth.encoding import Codec, Derived, Lookup, ShardedRows, UnitRows, read_shards
from dpsynth.encoding.shards import Chooser, Dealer
from dpsynth.privacy import ChosenHistograms, JointHistograms, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from .schema_fields import schema_field

ROWS = 900
CAP = 3
SHARDS = 12
NUMBER = {"value": 90, "basis": "made for this test"}


def visits(maximum: int = 3, order: str = "integer", value: Any = None, **own: Any) -> Schema:
    """Patients with visits; the column `value` has 200 codes, so that a row can be recognised."""
    limits = {"minimum": 0, "maximum": 199, "required": True}
    fields = [
        {"name": "visit", "type": order, "dpsynth": {"role": "order"}},
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
        schema_field(
            "value", "integer", {"bounds_basis": "made for this test"} | (value or {}), **limits
        ),
    ]
    table = {"version": 1, "population": NUMBER, "rows": NUMBER} | own
    table["max_rows"] = {"value": maximum, "basis": "made for this test"}
    return Schema.from_dict({"fields": fields, "missingValues": ["", "?"], "dpsynth": table})


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


# workers that die ---------------------------------------------------------------------------------


def die_once(mark: Path) -> None:
    """Kill the process that works, the first time that it comes here."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, repr=False)
class DeadlyDealer(Dealer):
    """Its worker dies when it has written the rows of a part, and before it says so."""

    def deal(self, chunks: Any, number: int) -> Any:
        dealt = super().deal(chunks, number)
        if number == 1:
            die_once(self.folder.parent / "died dealing")
        return dealt


class DeadlyChooser(Chooser):
    """Its worker dies when it has read a shard."""

    place: Path

    def select(self, *rows: Any) -> Any:
        die_once(self.place / "died choosing")
        return super().select(*rows)


@dataclass(frozen=True)
class DeadlyThird:
    """The worker that counts dies when it is in the middle of a shard."""

    place: Path

    def __call__(self, codes: Any) -> Any:
        die_once(self.place / "died counting")
        return third(codes)
