"""A bundle is read as it should be by the tools that its users have.

frictionless and mlcroissant validate it; they, pandas, polars and DuckDB get the declared types,
the same cells, and what missing means; labels and units are where each tool looks for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import frictionless
import mlcroissant
import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpsynth.bundle import release
from dpsynth.bundle.format import About
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ..support.quick_fit import quick_fit
from ..support.schema_fields import schema_field

ABOUT = About(
    title="Visits, synthetic",
    version="1.0.0",
    date="2026-11-22",
    publisher="General Hospital",
    contact="data@hospital.example",
    licence="CC-BY-4.0",
    licence_url="https://creativecommons.org/licenses/by/4.0/",
    homepage="https://hospital.example/visits",
    citation="General Hospital (2026): Visits, synthetic",
    intended_use="Teaching and tests of code",
    keywords=("visits",),
)
PARQUET, CSV = "data/synthetic.parquet", "data/synthetic.csv"
TYPES = {  # of the schema, as each tool names them in Parquet: polars, DuckDB, croissant
    "integer": (pl.Int64, "BIGINT", "Integer"),
    "year": (pl.Int64, "BIGINT", "Integer"),
    "number": (pl.Float64, "DOUBLE", "Float"),
    "boolean": (pl.Boolean, "BOOLEAN", "Boolean"),
    "string": (pl.String, "VARCHAR", "Text"),
    "date": (pl.Date, "DATE", "Date"),
    "datetime": (pl.Datetime("us"), "TIMESTAMP", "DateTime"),
}


def bundled(frame: pd.DataFrame, schema: Schema, folder: Path, rows: int) -> Path:
    """Make a bundle of a table, quickly."""
    ledger = Ledger.create(folder / "ledger.sqlite")
    quick_fit(frame, schema, ledger=ledger, output=folder / "run")
    return release(folder / "run", folder / "bundle", size=rows, seed=1, about=ABOUT, ledger=ledger)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the demo cohort, whose diagnoses have labels and whose measures have units."""
    folder = tmp_path_factory.mktemp("readers")
    return bundled(simulate(300, seed=1), Schema.load("demo"), folder, rows=400)


@pytest.fixture(scope="module")
def schema(demo: Path) -> Schema:
    return Schema.from_dict(json.loads((demo / "schema.json").read_text()))


@pytest.fixture
def every(bundle: Path, every_type: Schema) -> tuple[Path, Schema]:
    """A bundle with a column of every type."""
    return bundle, every_type


def test_frictionless_finds_both_bundles_valid(demo: Path, bundle: Path) -> None:
    for folder in (demo, bundle):
        report = frictionless.validate(str(folder / "datapackage.json"))
        assert report.valid, report.flatten(["title", "note"])


def test_frictionless_would_find_a_wrong_cell(bundle: Path) -> None:
    path = bundle / CSV
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    cells[lines[0].split(",").index("grade")] = "7"
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    assert not frictionless.validate(str(bundle / "datapackage.json")).valid


def test_frictionless_gets_types_labels_units_and_words(demo: Path, schema: Schema) -> None:
    package = frictionless.Package(str(demo / "datapackage.json"))
    assert package.title == ABOUT.title and package.version == ABOUT.version
    assert package.licenses[0]["name"] == "CC-BY-4.0"
    assert package.contributors[0]["title"] == "General Hospital"
    table = package.get_resource("synthetic-csv")
    rows = table.read_rows()
    assert len(rows) == 400
    document = json.loads((demo / "datapackage.json").read_text())
    fields = {field["name"]: field for field in document["resources"][0]["schema"]["fields"]}
    for column in schema.modelled:
        assert table.schema.get_field(column.name).type == column.type
        assert fields[column.name].get("title") == column.title
        assert fields[column.name].get("dpsynth", {}).get("ucum") == column.ucum
        columns = {
            str(one["value"]): one.get("label") for one in fields[column.name].get("categories", [])
        }
        for value, label in column.labels.items():
            assert columns[value] == label
    assert any(column.labels for column in schema.modelled)


@pytest.mark.parametrize("which", ["demo", "every"])
def test_every_reader_gets_the_declared_types(
    which: str, demo: Path, schema: Schema, every: tuple[Path, Schema]
) -> None:
    folder, declared = (demo, schema) if which == "demo" else every
    polars = pl.read_parquet(folder / PARQUET).schema
    answer = duckdb.sql(f"DESCRIBE SELECT * FROM '{folder / PARQUET}'").fetchall()
    duck = {name: kind for name, kind, *_ in answer}
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    [rows] = [records for records in dataset.metadata.record_sets if records.name == "rows"]
    croissant = {field.name: str(field.data_types[0]).rpartition("/")[2] for field in rows.fields}
    assert list(polars) == list(duck) == list(croissant) == [c.name for c in declared.modelled]
    for column in declared.modelled:
        types = (polars[column.name], duck[column.name], croissant[column.name])
        assert types == TYPES[column.type], column.name


@pytest.mark.parametrize("which", ["demo", "every"])
def test_every_reader_gets_the_same_cells(
    which: str, demo: Path, schema: Schema, every: tuple[Path, Schema]
) -> None:
    folder, declared = (demo, schema) if which == "demo" else every
    frames = {
        "pandas": pd.read_parquet(folder / PARQUET),
        "polars": pl.read_parquet(folder / PARQUET).to_pandas(),
        "duckdb": duckdb.sql(f"SELECT * FROM '{folder / PARQUET}'").df(),
        "pandas, text": pd.read_csv(folder / CSV),
        "polars, text": pl.read_csv(folder / CSV, infer_schema_length=None).to_pandas(),
        "duckdb, text": duckdb.sql(
            f"SELECT * FROM read_csv('{folder / CSV}', sample_size=-1)"
        ).df(),
    }
    expected = {c.name: _plain(frames["pandas"][c.name], c.type) for c in declared.modelled}
    assert any(None in cells for cells in expected.values())
    for reader, frame in frames.items():
        assert list(frame.columns) == list(expected)
        for column in declared.modelled:
            read_cells = _plain(frame[column.name], column.type)
            assert read_cells == expected[column.name], (reader, column.name)


def test_croissant_is_valid_and_complete(demo: Path, schema: Schema) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(demo / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert not issues.errors and not issues.warnings, issues.report()
    metadata = dataset.metadata
    assert metadata.cite_as == ABOUT.citation and metadata.data_use_cases == [ABOUT.intended_use]
    assert "too small" in "".join(metadata.data_limitations)
    assert "differential privacy" in "".join(metadata.personal_sensitive_information)
    records = list(dataset.records("rows"))
    assert len(records) == 400
    frame = pd.read_parquet(demo / PARQUET)
    for column in ("age", "bmi"):
        assert [r[f"rows/{column}"] for r in records[:20]] == [
            None if pd.isna(value) else pytest.approx(value) for value in frame[column][:20]
        ]
    [labelled] = [column for column in schema.modelled if column.labels]
    values = {
        record[f"{labelled.name}-values/value"]: record[f"{labelled.name}-values/label"]
        for record in dataset.records(f"{labelled.name}-values")
    }
    assert {value: values[value] for value in labelled.labels} == dict(labelled.labels)


def test_a_bundle_without_words_is_still_valid_croissant(bundle: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(bundle / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert len(list(dataset.records("rows"))) == 300


def _plain(cells: pd.Series[Any], kind: str) -> list[Any]:
    """Bring the cells of any reader to plain values, to compare."""
    plain: list[Any] = []
    for cell in cells.tolist():
        if (
            cell is None
            or cell is pd.NaT
            or (isinstance(cell, float) and np.isnan(cell))
            or cell is pd.NA
        ):
            plain.append(None)
        elif kind in ("date", "datetime"):
            plain.append(pd.Timestamp(cell))
        elif kind == "boolean":
            plain.append(str(cell).lower() in ("true", "1", "1.0"))
        elif kind == "string":
            plain.append(str(cell))
        else:
            plain.append(round(float(cell), 9))
    return plain


def test_columns_with_names_that_are_no_identifiers_are_read(tmp_path: Path) -> None:
    """mlcroissant refuses identifiers with blanks; two names may look alike without them."""
    names = ["pressure_mmHg_", "pressure (mmHg)", "pressure mmHg_", "größe", "a/b", "x:y", "50%"]
    document = Schema.load("demo").to_dict()
    document["fields"] = [
        schema_field(name, "integer", "a form", minimum=place, maximum=place + 1)
        for place, name in enumerate(names)
    ]
    for key in ("rules", "max_rows", "person"):
        del document["dpsynth"][key]
    frame = pd.DataFrame({name: [place, place + 1] * 50 for place, name in enumerate(names)})
    bundle = bundled(frame, Schema.from_dict(document), tmp_path, rows=9)
    read = mlcroissant.Dataset(jsonld=str(bundle / "croissant.json"))
    told = {field.id: field.name for field in read.metadata.record_sets[0].fields}
    assert list(told.values()) == names and len(told) == len(names)
    rows = pd.DataFrame(list(read.records("rows"))).rename(columns=told)
    table = pd.read_parquet(bundle / PARQUET)
    np.testing.assert_equal(rows[names].to_numpy(float), table[names].to_numpy(float))
    assert frictionless.validate(str(bundle / "datapackage.json")).valid
