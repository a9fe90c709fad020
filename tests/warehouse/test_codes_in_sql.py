"""The codes of a warehouse are those of the codec, cell by cell, for every kind of column."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding import Codec
from dpsynth.encoding.sql import coded
from dpsynth.tables import Stored, WarehouseTable, open_table, warehouse_table
from dpsynth.tables.cell_values import READER_WORDS
from dpsynth.tables.warehouse import BLANKS

from ..support.warehouse_tables import FIELDS, duckdb_table, fresh, postgres_table, schema_of

STORED = {
    "text": Stored.TEXT,
    "bigint": Stored.WHOLE,
    "integer": Stored.WHOLE,
    "double": Stored.FLOAT,
    "decimal(20,3)": Stored.DECIMAL,
    "decimal(20,5)": Stored.DECIMAL,
    "boolean": Stored.TRUTH,
    "date": Stored.DAY,
    "timestamp": Stored.MOMENT,
    "time": Stored.CLOCK,
}
SCHEMA = schema_of()
CODEC = Codec(SCHEMA)
DECLARED = [
    "F",
    "M",
    "-",
    "x",
    "ß",
    "e\u0301",
    "\u00e9",
    "O'Neil",
    'a"b',
    "%s",
    "back\\slash",
    ":p",
]
DECLARED += ["a b", "a", "b", "f", "m", "u", "-8", "no answer", "yes", "no", "other", ""]
NEAR = [
    "SS",
    "ss",
    "E\u0301",
    "f ",
    "A",
    "a\u00a0b",
    "'; DROP TABLE stays; --",
    "\ufeffF",
    "F\u200b",
]
TEXTS = [*DECLARED, *NEAR, *sorted(READER_WORDS)]
POINTS = [0.5, 1.5, 2.5, 32.05, 99.9, 99.95, 0.005, -0.995, 2.0, 9.0, 99.0, -9.0, 119.5]
ENDS = [0.0, -0.0, 5e-324, 1e-308, -1e-200, 2.0**53, 2.0**63, 1e300, -1.7e308]
ENDS += [math.inf, -math.inf, math.nan]
ODD_DAYS = ["2000-01-01", "2001-01-01", "2020-12-31", "1969-12-31", "0001-01-01", "9999-12-31"]
ODD_DAYS += ["infinity", "-infinity", "2004-02-29", "2008-03-01", "0044-03-15 BC"]
ODD_MOMENTS = ["2000-01-01 00:00:00", "2010-05-05 10:00:30", "2010-05-05 10:01:30", "infinity"]
ODD_MOMENTS += ["1969-12-31 23:59:59.999999", "2020-12-31 00:00:30.000001", "-infinity"]
HUGE = [
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "1e-400",
    "4e-324",
    "1e-310",
    "1.5e308",
    str(2**1024 - 2**970),
]
KEYS = ["7", "007", "a", "A", "", "ß", "0", "NA"]


class Cells(random.Random):
    """Draws cells of each kind as texts: around bounds, halves and tokens, and far from them."""

    def of(self, kind: str, server: str) -> str | None:
        if self.random() < 0.1:
            return None
        drawn = getattr(self, kind.partition("(")[0])()
        if kind.startswith("decimal") and server == "postgres" and self.random() < 0.2:
            return self.choice(HUGE)
        if "BC" in drawn and server == "duckdb":
            return drawn.replace("BC", "(BC)")
        return drawn

    def text(self) -> str:
        return self.choice(["", *BLANKS]) + self.choice(TEXTS) + self.choice(["", *BLANKS])

    def key(self) -> str:
        return self.choice(["", *BLANKS]) + self.choice(KEYS) + self.choice(["", *BLANKS])

    def bigint(self) -> str:
        return str(self.choice([self.randint(-3, 130), 99, 2**53 + 1, -(2**63), 2**63 - 1]))

    def integer(self) -> str:
        return str(self.choice([-1, 0, 1, 2, 2**31 - 1]))

    def point(self) -> float:
        ticks = self.randint(-200, 8_000) / 20, float(self.randint(-(10**6), 10**6))
        return self.choice([self.choice(POINTS), *ticks, self.randint(0, 4_000_000) / 4])

    def double(self) -> str:
        value = self.choice([self.point(), self.point(), self.choice(ENDS), self.gauss(50, 100)])
        for _ in range(self.randint(0, 12) if math.isfinite(value) else 0):
            value = float(np.nextafter(value, self.choice([-math.inf, math.inf])))
        return repr(value)

    def decimal(self) -> str:
        small, large = self.randint(-150_000, 150_000), self.randint(-(10**14), 10**14)
        return self.choice([repr(self.point()), f"{small / 1e5:.5f}", f"{large}.{abs(small):06}"])

    def boolean(self) -> str:
        return self.choice(["true", "false"])

    def moment(self) -> datetime:
        micros = self.randint(-(10**15), 2 * 10**15) if self.random() < 0.5 else 0
        days = self.choice([self.randint(9_000, 20_000), self.randint(-700_000, 2_900_000)])
        return datetime(1970, 1, 1) + timedelta(days=days, microseconds=micros % (86_400 * 10**6))

    def date(self) -> str:
        return self.choice([self.choice(ODD_DAYS), str(self.moment().date())])

    def timestamp(self) -> str:
        return self.choice([self.choice(ODD_MOMENTS), str(self.moment())])

    def time(self) -> str:
        odd = ["00:00:00", "23:59:30", "23:59:29.999999", "24:00:00"]
        return self.choice([self.choice(odd), str(self.moment().time())])

    def rows(self, count: int, server: str) -> list[list[str | None]]:
        """Draw rows of the widest table, with their keys."""
        own = ["key", *(kind for kind, _ in FIELDS.values())]
        return [[self.of(kind, server) for kind in own] for _ in range(count)]


def kinds(server: str) -> dict[str, str]:
    stored = {name: kind for name, (kind, _) in FIELDS.items()}
    if server == "postgres":
        stored = {
            name: "numeric" if kind.startswith("decimal") else kind for name, kind in stored.items()
        }
    return {"key": "text"} | stored


@cache
def query_of(dialect: str) -> str:
    """The query for all codes: written once, as it depends on declared types alone."""
    stored = {"key": Stored.TEXT} | {name: STORED[kind] for name, (kind, _) in FIELDS.items()}
    stages = coded(CODEC, WarehouseTable(dialect, "a table", "stays", stored))
    return stages.query(stages.rows)


def codes_in(table: WarehouseTable) -> np.ndarray:
    with table.session() as session:
        session.fill("ready", ["nothing"], "SELECT 1")
        rows = session.rows(query_of(table.dialect))
    assert rows and len(rows[0]) == 1 + len(CODEC.names)
    return np.array([row[1:] for row in rows], dtype=np.int64)


def check(address: str) -> None:
    table = open_table(address, SCHEMA)
    frame = pd.concat(list(table.chunks()), ignore_index=True)
    expected, accepted = CODEC.accepted(frame)
    warehouse = warehouse_table(table)
    found = codes_in(warehouse)
    for name, (kind, _) in FIELDS.items():
        one = Stored.MOMENT if warehouse.dialect == "postgres" and kind == "date" else STORED[kind]
        assert warehouse.stored[name] is one
    assert np.array_equal(accepted, (found >= 0).all(axis=1))
    for place, name in enumerate(CODEC.names):
        same = np.maximum(found[:, place], 0) == expected[:, place]
        cells = frame[name][~same].tolist() if name in frame else []
        assert same.all(), (name, cells, found[~same, place], expected[~same, place])


SEEDS = st.integers(0, 2**32)


@settings(max_examples=1, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_duckdb_codes_as_the_codec_does(seed: int) -> None:
    with TemporaryDirectory() as folder:
        rows = Cells(seed).rows(40, "duckdb")
        check(duckdb_table(fresh(Path(folder)), kinds("duckdb"), rows))


@pytest.mark.long
@settings(max_examples=20, deadline=None)  # DuckDB plans each of these wide tables for seconds
@given(seed=SEEDS)
def test_duckdb_codes_many_tables_as_the_codec_does(seed: int) -> None:
    with TemporaryDirectory() as folder:
        rows = Cells(seed).rows(500, "duckdb")
        check(duckdb_table(fresh(Path(folder)), kinds("duckdb"), rows))


def test_postgresql_codes_as_the_codec_does(server: Any) -> None:
    check(postgres_table(server.new(), kinds("postgres"), Cells(1).rows(100, "postgres")))


@pytest.mark.long
def test_postgresql_codes_many_tables_as_the_codec_does(server: Any) -> None:
    database = server.new()

    @settings(max_examples=60, deadline=None)
    @given(seed=SEEDS)
    def of_seed(seed: int) -> None:
        check(postgres_table(database, kinds("postgres"), Cells(seed).rows(500, "postgres")))

    of_seed()
