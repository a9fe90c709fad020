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
from dpsynth.encoding import Codec, check_table, typed_frames
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


WEEKS_AND_DAYS = re.compile(r"([0-9]{1,2})\+([0-6])")


def read_gestation(text: str, pattern: str | None) -> float:
    """Read ``38+4`` as 270 days."""
    match = WEEKS_AND_DAYS.fullmatch(text)
    return float(7 * int(match[1]) + int(match[2])) if match else math.nan


def write_gestation(value: float) -> str:
    """Write 270 days as ``38+4``."""
    weeks, days = divmod(int(value), 7)
    return f"{weeks:02}+{days}"


SPELLED = ColumnType(
    name="gestation",
    family=Family.NUMBER,
    noun="gestational age",
    arrow="int64",
    croissant="sc:Text",
    table_schema="string",
    parquet_schema="integer",
    spelling=r"[0-9]{2}\+[0-6]",
    read=read_gestation,
    write=write_gestation,
    whole=True,
    step=1,
    ucum="d",
    example="38+4",
    is_quantity=True,
)


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TYPES, "percent", TOY)
    monkeypatch.setitem(TYPES, "gestation", SPELLED)


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


@pytest.fixture
def births() -> Schema:
    born = {
        "name": "born",
        "type": "gestation",
        "constraints": {"minimum": "22+0", "maximum": "43+6"},
        "dpsynth": {"bounds_basis": "the register"},
    }
    document = schema_of().to_dict()
    document["fields"] = [born, document["fields"][1]]
    document["dpsynth"]["rules"] = ["fever == true implies born < '42+0'"]
    return Schema.from_dict(document)


def test_bounds_and_rules_of_a_type_with_a_writer_are_its_texts(births: Schema) -> None:
    assert Schema.from_dict(births.to_dict()) == births
    assert births.column("born").minimum == 154
    assert births.to_dict()["fields"][0]["constraints"] == {"minimum": "22+0", "maximum": "43+6"}
    assert births.to_table_schema()["fields"][0] == {"name": "born", "type": "string"}
    frame = pd.DataFrame({"born": [293, 294], "fever": [True, True]})
    assert births.rules[0].holds(frame).tolist() == [True, False]
    document = births.to_dict()
    document["fields"][0]["constraints"]["minimum"] = 154
    with pytest.raises(SchemaError, match=re.escape("in quotes, like '38+4' is expected")):
        Schema.from_dict(document)


def test_a_type_with_a_writer_goes_from_a_file_to_a_bundle(births: Schema, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ages = [write_gestation(days) for days in rng.integers(240, 300, POPULATION)]
    source = tmp_path / "births.csv"
    pd.DataFrame({"born": ages, "fever": "false"}).to_csv(source, index=False)
    run = dpsynth.fit(source, births, epsilon=2.0, delta=1e-6, dataset="b", model="independent")
    run.save(tmp_path / "run")
    bundle = release(tmp_path / "run", tmp_path / "bundle", size=200, seed=1)
    assert verify(bundle)
    days = pq.read_table(bundle / "data" / "synthetic.parquet").column("born").to_pylist()
    text = pd.read_csv(bundle / "data" / "synthetic.csv", dtype=str, keep_default_na=False)
    assert text["born"].tolist() == ["" if day is None else write_gestation(day) for day in days]
    assert "22+0 to 43+6" in (bundle / "report.html").read_text()
    forged = (bundle / "data" / "synthetic.csv").read_text().replace("\n38+", "\n 38+")
    (tmp_path / "forged.csv").write_text(forged)
    assert "not of type gestation" in str(check_table(tmp_path / "forged.csv", births)[1])


def test_no_code_compares_the_name_of_a_type() -> None:
    root = Path(dpsynth.__file__).parents[1]
    compared = re.compile(
        r"\b(column|field|c)\.type (==|!=|in|not in) |match (self\.)?column\.type:"
    )
    files = [file for room in ("dpsynth", "eval", "models") for file in (root / room).rglob("*.py")]
    assert len(files) > 300
    assert [file for file in files if compared.search(file.read_text())] == []


def test_a_text_compares_with_numbers_of_a_written_type_alone() -> None:
    """One type of numbers with texts of its own must not make every number one."""
    born = {
        "name": "born",
        "type": "gestation",
        "constraints": {"minimum": "22+0", "maximum": "44+6"},
        "dpsynth": {"bounds_basis": "what can live"},
    }
    weight = {
        "name": "weight",
        "type": "integer",
        "constraints": {"minimum": 300, "maximum": 6000},
        "dpsynth": {"bounds_basis": "what can live"},
    }
    counted = {"value": POPULATION, "basis": "a test"}
    own = {"version": 1, "population": counted, "rows": counted}

    def ruled(rule: str) -> Schema:
        facts = {"dpsynth": own | {"rules": [rule]}}
        return Schema.from_dict({"name": "births", "fields": [born, weight], **facts})

    assert ruled("born <= '44+0'").rules
    with pytest.raises(SchemaError, match="compares number with text"):
        ruled("weight <= '44+0'")
