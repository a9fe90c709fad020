"""Bundles of linked tables are read by the tools of their users, references included."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import frictionless
import jsonschema
import mlcroissant
import pandas as pd
import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.bundle.format import resource_names
from dpsynth.certificate import Certificate, json_schema

from ...support.clinic_office import TableForger

TABLES = ("patients", "visits", "labs", "events")


def test_frictionless_finds_the_bundle_valid_with_its_keys(cohort_bundle: Path) -> None:
    report = frictionless.validate(str(cohort_bundle / "datapackage.json"))
    assert report.valid, report.flatten(["title", "note"])
    package = frictionless.Package(str(cohort_bundle / "datapackage.json"))
    for suffix in ("", "-csv"):
        assert package.get_resource(f"patients{suffix}").schema.primary_key == ["patient"]
        for name in TABLES[1:]:
            [key] = package.get_resource(f"{name}{suffix}").schema.foreign_keys
            assert key["fields"] == ["patient"]
            assert key["reference"] == {"resource": "patients", "fields": ["patient"]}


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["", "-csv"])
def test_frictionless_would_find_a_row_of_nobody(cohort_bundle: Path, suffix: str) -> None:
    frame = TableForger(cohort_bundle).frame("labs").reset_index(drop=True)
    frame.loc[0, "patient"] = "999"
    TableForger(cohort_bundle).put("labs", frame)
    report = frictionless.validate(str(cohort_bundle / "datapackage.json"))
    errors = {task.name: [error.type for error in task.errors] for task in report.tasks}
    assert errors[f"labs{suffix}"] == ["foreign-key"]


def test_croissant_has_a_record_set_for_each_table_with_references(cohort_bundle: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(cohort_bundle / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors, dataset.metadata.ctx.issues.report()
    document = read_document(cohort_bundle / "croissant.json")
    sets = {one["@id"]: one for one in document["recordSet"]}
    assert set(TABLES) <= set(sets)
    assert sets["patients"]["key"] == {"@id": "patients/patient"}
    for name in TABLES[1:]:
        fields = {field["name"]: field for field in sets[name]["field"]}
        assert fields["patient"]["references"] == {"field": {"@id": "patients/patient"}}
    for name in TABLES:
        table = pd.read_parquet(cohort_bundle / f"data/synthetic-{name}.parquet")
        records = pd.DataFrame(list(dataset.records(name)))
        assert len(records) == len(table)
        keys = [key.decode() for key in records[f"{name}/patient"]]
        assert keys == table["patient"].tolist()


def test_tables_join_in_duckdb_in_both_formats(cohort_bundle: Path) -> None:
    counts = [
        duckdb.sql(
            f"SELECT count(*) FROM '{cohort_bundle}/data/synthetic-labs.{kind}' "
            f"JOIN '{cohort_bundle}/data/synthetic-patients.{kind}' USING (patient)"
        ).fetchall()
        for kind in ("parquet", "csv")
    ]
    rows = len(pd.read_parquet(cohort_bundle / "data/synthetic-labs.parquet"))
    assert counts == [[(rows,)], [(rows,)]]


def test_the_certificate_fits_its_json_schema_and_names_the_tables(cohort_bundle: Path) -> None:
    document = read_document(cohort_bundle / "privacy.json")
    jsonschema.Draft202012Validator(json.loads(json_schema())).validate(document)
    certificate = Certificate.from_dict(document)
    assert [one.name for one in certificate.tables] == list(TABLES)


def test_names_of_resources_are_unique_and_plain() -> None:
    """Also of tables called as other files are, or alike but for case."""
    names = resource_names(["patients", "Labs", "labs", "labs-csv", "report", "schema"])
    every = [name for own in names.values() for name in own.values()]
    assert len(set(every)) == len(every) == 12
    assert not {"report", "schema"} & set(every)
    assert all(name == name.lower() for name in every)
    assert names["patients"] == {".parquet": "patients", ".csv": "patients-csv"}
