"""Speed of the codec: cells per second from text or typed cells to codes, and back, on one core.

The tables are made here: one shaped like diabetes130 (48 columns, mostly short categories, codes to
roll up, small integers), one of numbers with many different texts. No file is read, and reading a
CSV is timed apart.

    python bench/codec_speed.py [--rows 65536] [--repeats 5]

Prints a Markdown table; exits with 1 if a rate is below the target.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from dpsynth.encoding.codec import Codec  # noqa: E402
from dpsynth.schema.schema import Schema  # noqa: E402
from dpsynth.tables.table import open_synthetic, write_table  # noqa: E402

TARGET = 2e6  # cells a second, each way
BASIS = "made for this benchmark"


def schema_of(fields: list[dict[str, Any]]) -> Schema:
    """Make a schema in which each row is a unit."""
    number = {"value": 100_000, "basis": BASIS}
    facts = {"version": 1, "population": number, "rows": number}
    for field in fields:
        field.setdefault("dpsynth", {})["bounds_basis"] = BASIS
    return Schema.from_dict({"missingValues": ["", "?"], "fields": fields, "dpsynth": facts})


def hospital() -> Schema:
    """Columns like those of diabetes130: categories, rolled-up codes, small integers."""
    fields: list[dict[str, Any]] = []
    for place in range(23):  # medication columns
        enum = ["No", "Steady", "Up", "Down"]
        constraints = {"enum": enum, "required": True}
        fields.append({"name": f"drug{place}", "type": "string", "constraints": constraints})
    for place, size in enumerate([2, 3, 5, 10, 10, 18, 73, 4, 4, 2, 2, 3]):
        enum = [f"category {place}-{level}" for level in range(size)]
        fields.append({"name": f"text{place}", "type": "string", "constraints": {"enum": enum}})
    for place in range(3):
        codes = {"codes": {"system": "ICD-9-CM", "rollup": "chapter-diabetes"}}
        fields.append({"name": f"diag{place}", "type": "string", "dpsynth": codes})
    for place, largest in enumerate([14, 132, 6, 81, 42, 76, 21, 16, 8, 25]):
        constraints = {"minimum": 0, "maximum": largest}
        fields.append({"name": f"count{place}", "type": "integer", "constraints": constraints})
    return schema_of(fields)


def laboratory() -> Schema:
    """Numbers: most cells of a column differ from each other."""
    fields: list[dict[str, Any]] = []
    for place, digits in enumerate([0, 1, 1, 2, 2, 3, 3, 4, 5, 6]):
        constraints = {"minimum": 0, "maximum": 500}
        step = {"step": 10.0**-digits}
        fields.append(
            {"name": f"lab{place}", "type": "number", "constraints": constraints, "dpsynth": step}
        )
    return schema_of(fields)


def timed(work: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of one call, in seconds, after a warm-up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(schema: Schema, rows: int, repeats: int) -> dict[str, float]:
    """Return cells per second for each way."""
    codec = Codec(schema)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, codec.sizes, size=(rows, len(codec.sizes)))
    typed = codec.decode(codes, rng)
    cells = codes.size
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        writing = timed(lambda: write_table([typed], path, schema, overwrite=True), repeats)
        reading = timed(lambda: list(open_synthetic(path, schema).chunks()), repeats)
        text = pd.concat(open_synthetic(path, schema).chunks(), ignore_index=True)
    assert (codec.encode(text) == codes).all()
    return {
        "encode text": cells / timed(lambda: codec.encode(text), repeats),
        "encode typed": cells / timed(lambda: codec.encode(typed), repeats),
        "decode": cells / timed(lambda: codec.decode(codes, rng), repeats),
        "read CSV": cells / reading,
        "write CSV": cells / writing,
    }


def main() -> int:
    """Measure both tables and print a Markdown table."""
    parser = argparse.ArgumentParser(description="Speed of the codec, in cells per second.")
    parser.add_argument("--rows", type=int, default=65_536)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    tables = {"hospital (48 columns)": hospital(), "laboratory (10 columns)": laboratory()}
    rates = {
        name: measure(schema, options.rows, options.repeats) for name, schema in tables.items()
    }
    ways = list(next(iter(rates.values())))
    print(f"Million cells per second of processor time, one core, {options.rows} rows a table.\n")
    print("| table | " + " | ".join(ways) + " |")
    print("|---|" + "---:|" * len(ways))
    for name, rate in rates.items():
        print(f"| {name} | " + " | ".join(f"{rate[way] / 1e6:.1f}" for way in ways) + " |")
    slow = [
        f"{name}: {way}"
        for name, rate in rates.items()
        for way in ("encode text", "encode typed", "decode")
        if rate[way] < TARGET
    ]
    if slow:
        print(f"\nBelow the target of {TARGET / 1e6:.0f} million: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
