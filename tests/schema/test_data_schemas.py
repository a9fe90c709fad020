"""The shipped schemas load, are complete, and fit the tables that they describe."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dpsynth.schema import Schema, code_list, shipped_schemas
from dpsynth.tables import simulate

FOLDER = Path(__file__).resolve().parents[2] / "data_schemas"
FIELDS = {"diabetes130": 50, "cardio": 13, "brfss2015": 22, "demo": 16}
TARGETS = {
    "diabetes130": "readmitted",
    "cardio": "cardio",
    "brfss2015": "Diabetes_binary",
    "demo": "readmitted_30d",
}


def test_each_shipped_file_is_tested_here() -> None:
    files = {path.name.removesuffix(".schema.yaml") for path in FOLDER.glob("*.schema.yaml")}
    assert files == set(FIELDS) == set(shipped_schemas())


@pytest.mark.smoke
@pytest.mark.parametrize("name", FIELDS)
def test_schema_loads_and_survives_a_round_trip(name: str) -> None:
    schema = Schema.load(name)
    schema.require_complete()
    assert schema.name == name
    assert len(schema.columns) == FIELDS[name]
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("name", FIELDS)
def test_every_bound_and_list_says_where_it_comes_from(name: str) -> None:
    schema = Schema.load(name)
    for column in schema.modelled:
        assert column.title, column.name
        if column.type != "boolean":
            assert column.bounds_basis and len(column.bounds_basis) >= 20, column.name
        if not column.is_categorical:
            assert column.minimum is not None and column.maximum is not None, column.name
    assert "http" in (schema.source or "") or name == "demo"
    assert all(len(declared.basis) >= 20 for declared in (schema.population, schema.rows))


@pytest.mark.parametrize("name", FIELDS)
def test_each_table_has_one_target_and_groups(name: str) -> None:
    schema = Schema.load(name)
    assert [c.name for c in schema.columns if "target" in c.roles] == [TARGETS[name]]
    assert len([c for c in schema.columns if "group" in c.roles]) >= 2
    assert any("quasi_identifier" in c.roles for c in schema.columns)


@pytest.mark.parametrize("name", FIELDS)
def test_labels_name_exactly_the_categories(name: str) -> None:
    document = yaml.safe_load((FOLDER / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    for field in document["fields"]:
        if "categories" in field:
            values = [entry["value"] for entry in field["categories"]]
            assert values == field["constraints"]["enum"], field["name"]
            assert all(entry["label"].strip() for entry in field["categories"]), field["name"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_closed_list_never_grows_a_category(name: str) -> None:
    """Only the two lists that the documentation leaves open add the code other."""
    grown = {column.name for column in Schema.load(name).modelled if column.has_other}
    assert grown == ({"payer_code", "medical_specialty"} if name == "diabetes130" else set())


def test_units_sizes_and_dialects() -> None:
    diabetes, cardio = Schema.load("diabetes130"), Schema.load("cardio")
    assert (diabetes.unit.column, diabetes.unit.max_rows, diabetes.unit.keep) == (
        "patient_nbr", 5, "random",
    )  # fmt: skip
    assert diabetes.order_column == "encounter_id"
    assert (diabetes.population.value, diabetes.rows.value) == (70_000, 100_000)
    assert len(diabetes.modelled) == 48
    assert (cardio.unit.column, cardio.unit.max_rows) == (None, 1)
    assert cardio.dialect.delimiter == ";"
    assert len(cardio.modelled) == 12
    assert Schema.load("brfss2015").unit.column is None
    demo = Schema.load("demo")
    assert (demo.unit.column, demo.unit.max_rows) == ("patient_id", 4)
    assert demo.population.value == 20_000


def test_diabetes130_reads_what_its_documentation_says() -> None:
    schema = Schema.load("diabetes130")
    for name in ("diag_1", "diag_2", "diag_3"):
        assert len(schema.column(name).categories or ()) == 20
        assert schema.column(name).on_unknown == "missing"
    assert schema.column("A1Cresult").categories == ("None", "Norm", ">7", ">8")
    assert "Unknown/Invalid" in schema.column("gender").missing_values
    assert schema.column("admission_source_id").labels["7"] == "Emergency Room"
    assert "16" not in (schema.column("admission_source_id").categories or ())
    drugs = [c for c in schema.modelled if c.categories == ("No", "Steady", "Up", "Down")]
    assert len(drugs) == 23
    required = {c.name for c in schema.modelled if c.required}
    nullable = {c.name for c in schema.modelled} - required
    assert nullable == {
        "race", "gender", "weight", "payer_code", "medical_specialty", "diag_1", "diag_2", "diag_3",
    }  # fmt: skip


def test_demo_describes_the_simulated_cohort() -> None:
    schema = Schema.load("demo")
    cohort = simulate(3_000, seed=2)
    assert list(cohort.columns) == [column.name for column in schema.columns]
    chapters = code_list("ICD-9-CM", "chapter-diabetes")
    rolled_up = cohort["diagnosis"].map(chapters.roll_up, na_action="ignore")
    assert set(rolled_up.dropna()) <= set(schema.column("diagnosis").categories or ())
    decoded = cohort.assign(diagnosis=rolled_up)
    for column in schema.modelled:
        values = cohort[column.name]
        assert column.nullable == bool(values.isna().any()), column.name
        values = values.dropna()
        if column.codes is None and column.is_categorical:
            assert set(values.astype(str).str.lower()) == set(column.categories or ())
        elif not column.is_categorical:
            low, high = column.minimum, column.maximum
            if column.type == "date":
                low, high = pd.Timestamp(low), pd.Timestamp(high)
            assert values.between(low, high).all(), column.name
    for rule in schema.rules:
        assert rule.holds(decoded).all(), rule.text


def test_no_gap_and_no_observed_value_is_left() -> None:
    for path in FOLDER.glob("*.schema.yaml"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"TODO|observed|file://", text), path.name
        assert max(map(len, text.splitlines())) <= 100, path.name


@pytest.mark.parametrize("name", ["diabetes130", "cardio", "brfss2015"])
def test_the_header_of_the_real_table_matches(name: str) -> None:
    folder = os.environ.get("DPSYNTH_DATA")
    if not folder:
        pytest.skip("DPSYNTH_DATA is not set: it names the folder with the real tables")
    schema = Schema.load(name)
    with gzip.open(Path(folder) / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header = next(csv.reader(file, delimiter=schema.dialect.delimiter))
    assert header == [column.name for column in schema.columns]
