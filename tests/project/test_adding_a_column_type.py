"""docs/extending.md: a column type from outside the package goes the whole way."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.bundle import release, verify
from dpsynth.encoding import Codec, typed_frames
from dpsynth.errors import SchemaError, TableError
from dpsynth.schema import ColumnType, Family, Schema, kind_of
from dpsynth.schema.types import TYPES

PERCENT = re.compile(r"([0-9]+)\s*%?")
POPULATION = 400


def read_percent(text: str, pattern: str | None) -> float:
    """Read ``97 %`` or ``97`` as 97."""
    percent = PERCENT.fullmatch(text)
    return float(percent[1]) if percent else math.nan


TOY = ColumnType(
    name="percent",
    family=Family.NUMBER,
    noun="percentage",
    arrow="int64",
    croissant="sc:Integer",
    table_schema="integer",
    parquet_schema="integer",
    spelling=r"[0-9]+",
    read=read_percent,
    whole=True,
    step=1,
    bounds=(0, 100),
    is_quantity=True,
)


@pytest.fixture(autouse=True)
def _percent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TYPES, "percent", TOY)


def schema_of(minimum: object = "50 %", maximum: object = 100, **more: object) -> Schema:
    saturation = {
        "name": "saturation",
        "type": "percent",
        "constraints": {"minimum": minimum, "maximum": maximum},
        "dpsynth": {"bounds_basis": "what oximeters show"},
        **more,
    }
    fever = {"name": "fever", "type": "boolean", "constraints": {"required": True}}
    counted = {"value": POPULATION, "basis": "a test"}
    own = {
        "version": 1,
        "population": counted,
        "rows": counted,
        "rules": ["fever == true implies saturation <= 97"],
    }
    return Schema.from_dict({"name": "lungs", "fields": [saturation, fever], "dpsynth": own})


@pytest.fixture
def schema() -> Schema:
    return schema_of()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    shares = rng.integers(85, 98, POPULATION)
    saturation = [f"{share} %" for share in shares]
    saturation[:3] = ["", "unknown", "12 %"]  # missing, bad and out of bounds
    fever = np.where(shares < 90, "true", "false")
    path = tmp_path / "lungs.csv"
    pd.DataFrame({"saturation": saturation, "fever": fever}).to_csv(path, index=False)
    return path


def test_a_schema_declares_the_type_and_is_written_back(schema: Schema) -> None:
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["fields"][0]["type"] == "percent"
    assert kind_of(schema.column("saturation")) == "percentage"
    fields = schema.to_table_schema()["fields"]
    assert fields[0]["type"] == "integer"  # the table goes to programs that know no percent
    assert fields[0]["constraints"] == {"minimum": 50, "maximum": 100}


@pytest.mark.parametrize(
    ("maximum", "message"),
    [("a lot", "a number is expected, not 'a lot'"), (101, "a percent must be between 0 and 100")],
)
def test_a_bound_is_of_the_type(maximum: object, message: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(message)):
        schema_of(maximum=maximum)


def test_its_text_is_read_by_its_own_parser(schema: Schema) -> None:
    cells = pd.Series(["97 %", "97", " 97% ", "12 %", "", "many"], dtype=object)
    frame = pd.DataFrame({"saturation": cells, "fever": ["true"] * 6})
    codes, typed = Codec(schema).read(frame)
    assert typed["saturation"].tolist()[:4] == [97, 97, 97, 50]
    assert typed["saturation"].isna().tolist() == [False] * 4 + [True] * 2
    assert len(set(codes[:3, 0].tolist())) == 1


def test_categories_are_read_by_its_parser_too() -> None:
    schema = schema_of()
    column = {"name": "dose", "type": "percent", "constraints": {"enum": ["25 %", 50]}}
    column["dpsynth"] = {"bounds_basis": "the doses that are sold"}
    document = schema.to_dict()
    document["fields"].append(column)
    doses = Schema.from_dict(document)
    frame = pd.DataFrame({"saturation": ["97 %"], "fever": ["true"], "dose": ["50 %"]})
    assert doses.column("dose").categories == ("25", "50")
    assert Codec(doses).read(frame)[1]["dose"].tolist() == [50]


def test_typed_private_cells_are_refused(schema: Schema) -> None:
    frame = pd.DataFrame({"saturation": [97] * 400, "fever": ["true"] * 400})
    with pytest.raises(TableError, match="its type is percent, so it must be text"):
        dpsynth.fit(frame, schema, epsilon=1.0, delta=1e-6, dataset="lungs", model="independent")


def test_it_goes_from_a_file_to_a_bundle(schema: Schema, source: Path, tmp_path: Path) -> None:
    run = dpsynth.fit(source, schema, epsilon=2.0, delta=1e-6, dataset="lungs", model="independent")
    run.save(tmp_path / "run")
    bundle = release(tmp_path / "run", tmp_path / "bundle", size=200, seed=1)
    assert verify(bundle)
    table = bundle / "data" / "synthetic.parquet"
    assert str(pq.read_schema(table).field("saturation").type) == "int64"
    typed = pd.concat(typed_frames(table, schema))
    assert typed["saturation"].dropna().between(50, 100).all()
    text = pd.read_csv(bundle / "data" / "synthetic.csv", dtype=str, keep_default_na=False)
    assert text["saturation"].str.fullmatch("[0-9]*").all()
    croissant = json.loads((bundle / "croissant.json").read_text())
    fields = {field["name"]: field for field in croissant["recordSet"][0]["field"]}
    assert fields["saturation"]["dataType"] == "sc:Integer"
    assert "percentage" in (bundle / "report.html").read_text()


def test_no_code_compares_the_name_of_a_type() -> None:
    root = Path(dpsynth.__file__).parents[1]
    compared = re.compile(
        r"\b(column|field|c)\.type (==|!=|in|not in) |match (self\.)?column\.type:"
    )
    files = [file for room in ("dpsynth", "eval", "models") for file in (root / room).rglob("*.py")]
    assert len(files) > 300
    assert [file for file in files if compared.search(file.read_text())] == []
