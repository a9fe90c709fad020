"""An office whose table is full of canaries: one column of each kind, each out-of-bounds policy.

The table lies there as CSV, every cell text, and as Parquet, with as many odd types as a column may
have. Its rows are in random order, it has a column that the schema does not name, an index with a
name, and metadata. How many rows and patients there are is a canary too.
"""

from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpsynth.encoding import Codec
from dpsynth.schema import Schema

from .representations import Canaries

ROWS, PATIENTS = 17_191, 16_453
SOURCE, TYPED = "Quokkafile one.csv", "Quokkafile two.parquet"
BASIS = {"bounds_basis": "protocol of the study"}

TEXTS = {
    column: f'{column[:3]} Q"{number}uokka {place} &c'
    for number, (column, place) in enumerate(
        {
            "patient": "Zanzib\u00e4r", "note": "Rottn\u00e8st", "region": "Kr\u00fcmel",
            "sex": "Pert\u00ed", "ward": "Fremantl\u00e9", "diagnosis": "\u00d8resund",
            "dose": "\u00c9vora", "income": "M\u00e1laga", "age": "Malm\u00f6",
            "smoker": "T\u00fcbingen", "alive": "\u00c5rhus", "born": "Besan\u00e7on",
            "grade": "Gij\u00f3n", "admitted": "Gda\u00f1sk",
            "visited": "C\u00f3rdoba", "undeclared": "Link\u00f6ping",
        }.items(),
        start=41_871,
    )
}  # fmt: skip
"""Of each column one, with a quote, blanks, letters beyond ASCII, and what URLs and HTML escape."""

STRINGS = ("patient", "note", "region", "sex", "ward", "diagnosis", "undeclared")

METADATA = {
    "file metadata": "Quokka of the f\u00eele",
    "field metadata": "Quokka of the f\u00eeeld",
    "name of the index": "Quokka of the \u00eendex",
    "cell of the index": "Quokka in the \u00eendex",
    "field of a struct": "Quokka of the str\u00fcct",
}
CODE = "V58.67"
WITHIN = {"weight": 71.2345678901, "income": 7_141_593.0}
BEYOND = {
    "weight": 90_817.26354, "dose": -71_402.9183, "income": -8_365_171.0, "age": 731_846_205.0,
    "born": 18_734.0, "grade": 918_273.0,
}  # fmt: skip
DAYS = {"admitted": datetime(1873, 4, 29), "admitted within": datetime(2017, 11, 5)}
MOMENTS = {
    "measured": datetime(1871, 3, 18, 5, 41, 7),
    "measured within": datetime(2017, 3, 19, 4, 57, 31),
    "visited at": datetime(2018, 9, 27, 3, 43, 53),
}
LEGAL = ("admitted within", "measured within")
WEIGHTS, INCOMES = (30.0, 200.0), (0.0, 10_000_000.0)


def _field(name: str, kind: str, least: Any = None, most: Any = None, **own: Any) -> dict[str, Any]:
    required = own.pop("required", False)
    levels = own.pop("enum", None)
    limits = {"minimum": least, "maximum": most, "enum": levels, "required": required or None}
    constraints = {key: value for key, value in limits.items() if value is not None}
    basis = BASIS if least is not None or levels is not None else {}
    return {"name": name, "type": kind, "constraints": constraints, "dpsynth": basis | own}


FIELDS = [
    {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
    {"name": "visited", "type": "datetime", "dpsynth": {"role": "order"}},
    {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
    _field("region", "string", enum=["north", "south"], required=True, on_unknown="other"),
    _field("sex", "string", enum=["F", "M"]),  # unknown is missing
    _field("ward", "string", enum=["A", "B", "C"], required=True, on_unknown="B"),
    {
        "name": "diagnosis",
        "type": "string",
        "dpsynth": {"codes": {"system": "ICD-9-CM", "rollup": "chapter"}},
    },
    _field("weight", "number", *WEIGHTS, step=0.5),
    _field("dose", "number", 0, 50, step=0.25, required=True, on_bad="maximum"),
    _field("income", "integer", 0, 10_000_000, required=True, on_bad="minimum"),
    _field("age", "integer", 18, 99, on_bad="missing"),
    _field("smoker", "boolean"),
    _field("alive", "boolean", required=True, on_bad=True),
    _field("born", "year", 1900, 2000),
    _field("grade", "integer", enum=[1, 2, 3], required=True, on_unknown=2, on_bad=3),
    _field("admitted", "date", "1900-01-01", "2020-12-31"),
    _field("measured", "datetime", "2015-01-01T00:00:00", "2020-12-31T00:00:00"),
]
DOCUMENT: dict[str, Any] = {
    "name": "hospital",
    "fields": FIELDS,
    "dpsynth": {
        "version": 1,
        "max_rows": {"value": 2, "basis": "office policy"},
        "keep": "window",
        "population": {"value": 17_000, "basis": "annual report"},
        "rows": {"value": 18_000, "basis": "annual report"},
    },
}


@dataclass(frozen=True)
class Sources:
    """The private table, as it is written and as typed columns, and what to look for."""

    text: pd.DataFrame
    typed: pa.Table
    canaries: Canaries

    def write(self, folder: Path) -> Path:
        """Lay schema and both files into a new office."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hospital.schema.yaml").write_text(yaml.safe_dump(DOCUMENT))
        for name, content in self._files.items():
            (folder / name).write_bytes(content)
        return folder

    @functools.cached_property
    def _files(self) -> dict[str, bytes]:
        csv, parquet = io.BytesIO(), io.BytesIO()
        self.text.to_csv(csv, index_label=METADATA["name of the index"])
        pq.write_table(self.typed, parquet)
        return {SOURCE: csv.getvalue(), TYPED: parquet.getvalue()}


@functools.cache
def sources() -> Sources:
    """Make the table, in both ways, with every canary in a row of its own."""
    rng, rows, patients = np.random.default_rng(71), ROWS, PATIENTS
    plain = _plain(rng, rows, patients)
    text = plain.astype({"weight": object}).astype(str)
    for place, (column, canary) in enumerate(TEXTS.items()):
        text.loc[20 + place, column] = canary
        if column in STRINGS:
            plain.loc[20 + place, column] = canary
    assert text["patient"].nunique() == plain["patient"].nunique() == patients
    for frame in (text, plain):
        written: type = str if frame is text else float
        for place, (column, value) in enumerate([*WITHIN.items(), *BEYOND.items()]):
            frame.loc[60 + place, column] = f"{value:.12g}" if written is str else value
    for place, (name, day) in enumerate({**DAYS, **MOMENTS}.items()):
        text.loc[80 + place, name.split()[0]] = day.isoformat()
        plain.loc[80 + place, name.split()[0]] = day
    text.loc[90, "diagnosis"] = plain.loc[90, "diagnosis"] = CODE
    order = rng.permutation(rows)
    text, plain = text.iloc[order], plain.iloc[order]
    text.index = pd.Index([METADATA["cell of the index"]] * rows)
    return Sources(text, _typed(plain), _canaries(text))


def _plain(rng: np.random.Generator, rows: int, patients: int) -> pd.DataFrame:
    """Rows within all bounds, typed; the first so many are of a patient each."""
    others = rng.integers(100, patients, rows - patients)  # the first hundred have one row each
    unit = np.append(np.arange(patients), others)
    years = rng.integers(0, 5, rows) * 365 * 86_400
    start = np.datetime64("2015-03-01T08:30:00")
    frame = {
        "patient": [f"p{number:06}" for number in unit],
        "visited": start + years.astype("timedelta64[s]"),
        "note": "free text",
        "region": rng.choice(["north", "south"], rows),
        "sex": rng.choice(["F", "M"], rows),
        "ward": rng.choice(["A", "B"], rows),
        "diagnosis": rng.choice(["250.83", "410.1", "E987", "486"], rows),
        "weight": rng.integers(80, 240, rows) / 2,
        "dose": rng.integers(0, 200, rows) / 4,
        "income": rng.integers(0, 90, rows) * 100_000,
        "age": rng.integers(20, 95, rows),
        "smoker": rng.choice(["true", "false"], rows),
        "alive": rng.choice(["true", "false"], rows),
        "born": rng.integers(1920, 1999, rows),
        "grade": rng.integers(1, 4, rows),
        "admitted": start.astype("datetime64[s]") + years.astype("timedelta64[s]"),
        "measured": start + (years // 2).astype("timedelta64[s]"),
        "undeclared": "nothing",
    }
    table = pd.DataFrame(frame)
    table["admitted"] = table["admitted"].dt.normalize()
    return table


def _typed(plain: pd.DataFrame) -> pa.Table:
    """The rows as Parquet types; canaries of metadata wherever a file has some."""
    cells = {name: pa.array(column) for name, column in plain.items()}
    for column in ("smoker", "alive"):
        cells[column] = pa.array([cell == "true" for cell in plain[column]])
    casts = {
        "patient": pa.large_string(), "income": pa.decimal128(20, 0), "age": pa.int64(),
        "born": pa.int32(), "grade": pa.int64(), "admitted": pa.date32(),
        "measured": pa.timestamp("us"), "visited": pa.timestamp("ms"),
    }  # fmt: skip
    for column, kind in casts.items():
        cells[column] = cells[column].cast(kind, safe=False)
    cells["ward"] = cells["ward"].dictionary_encode()
    inner = [{METADATA["field of a struct"]: text} for text in cells["undeclared"].to_pylist()]
    cells["undeclared"] = pa.array(inner)
    name = METADATA["name of the index"]
    cells[name] = pa.array([METADATA["cell of the index"]] * len(plain))
    described = {"Quokka": METADATA["file metadata"]}
    described["pandas"] = json.dumps({"index_columns": [name], "columns": [], "column_indexes": []})
    marked = [
        pa.field(column, array.type, metadata={"description": METADATA["field metadata"]})
        for column, array in cells.items()
    ]
    return pa.table(list(cells.values()), schema=pa.schema(marked, metadata=described))


def _canaries(text: pd.DataFrame) -> Canaries:
    canaries = Canaries()
    for column, value in TEXTS.items():
        canaries.text(f"text of {column}", value)
    for name, value in {**METADATA, "source": SOURCE, "typed source": TYPED}.items():
        canaries.text(name, value)
    canaries.text("code", f"{CODE}")
    canaries.number("weight within", WITHIN["weight"], WEIGHTS)
    canaries.number("income within", WITHIN["income"], INCOMES)
    for column, number in BEYOND.items():
        canaries.number(f"{column} beyond", number)
    for name, day in DAYS.items():
        canaries.moment(name, day, day=True, legal=name in LEGAL)
    for name, moment in MOMENTS.items():
        canaries.moment(name, moment, day=False, legal=name in LEGAL)
    visits = text["patient"].value_counts()
    counts = {"rows": len(text), "patients": len(visits), "kept rows": visits.clip(upper=2).sum()}
    for name, count in counts.items():
        canaries.count(name, int(count))
    codes = Codec(Schema.from_dict(DOCUMENT)).encode(text)
    for row in (0, 1):
        canaries.sequence(f"coded row {row}", codes[row].tolist())
    for column in (0, 3, 10):
        canaries.sequence(f"histogram {column}", np.bincount(codes[:, column]).tolist())
    return canaries
