"""Files and documents of a bundle of linked tables that a forger changed are found and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ...support.clinic_office import TableForger

FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a table removed": (
        lambda bundle: (bundle / "data/synthetic-labs.csv").unlink(),
        "data/synthetic-labs.csv: is missing",
    ),
    "a table added": (
        lambda bundle: (bundle / "data/synthetic-notes.csv").write_text("x"),
        "data/synthetic-notes.csv: is there, but is not listed in the manifest",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_found(cohort_bundle: Path, table_forger: TableForger, name: str) -> None:
    change, words = FILES[name]
    change(cohort_bundle)
    assert words in table_forger.findings()


DOCUMENTS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "foreign keys removed": (
        "datapackage.json",
        lambda d: [one.get("schema", {}).pop("foreignKeys", None) for one in d["resources"]],
        "data/synthetic-labs.parquet is described otherwise than the schema requires",
    ),
    "a table that the schema does not have": (
        "datapackage.json",
        lambda d: d["resources"][0].update(path="data/synthetic.parquet"),
        "resources[0].path is not a file of a bundle of version 1",
    ),
    "quality figures": (
        "datapackage.json",
        lambda d: d["resources"][-1].update(path="quality.json"),
        "is not a file of a bundle of version 1",
    ),
    "a table that is not listed": (
        "datapackage.json",
        lambda d: d["resources"].pop(0),
        "resources: data/synthetic-patients.parquet is not listed",
    ),
    "the version of a single table": (
        "datapackage.json",
        lambda d: d["dpsynth"].update(version=2),
        "version 2 of dpsynth-bundle",
    ),
    "another number of patients": (
        "datapackage.json",
        lambda d: d["dpsynth"]["drawing"].update(size=61),
        "data/synthetic-patients.parquet: has another number of rows than the manifest says",
    ),
}
CERTIFICATES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an event of a table removed": (
        lambda d: d["events"].pop(),
        "which model latent runs, is missing",
    ),
    "a cap that is smaller": (
        lambda d: d["tables"][1].update(max_rows=1),
        "tables is not that of schema.json",
    ),
    "a table that does not count": (
        lambda d: d["tables"].pop(),
        "tables is not that of schema.json",
    ),
    "the model of a single table": (
        lambda d: d.update(model="mixture"),
        "model is not one of distilled, autoregressive, cohort, latent; its privacy cost cannot be "
        "checked",
    ),
    "another unit": (
        lambda d: d["unit"].update(name="sex"),
        "unit is not that of schema.json",
    ),
    "another population": (
        lambda d: d.update(population=10**6),
        "population is not that of schema.json",
    ),
    "sentences of less": (
        lambda d: d["not_covered"].pop(),
        "not_covered is not worded as the events, the schema and the ledger require",
    ),
    "less epsilon": (
        lambda d: d.update(epsilon=1.0, composed_epsilon=0.9),
        "above the claim of 1",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_changed_document_is_found(table_forger: TableForger, name: str) -> None:
    file, change, words = DOCUMENTS[name]
    table_forger.edit(file, change)
    assert words in table_forger.findings()


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_changed_certificate_is_found(table_forger: TableForger, name: str) -> None:
    change, words = CERTIFICATES[name]
    table_forger.recertify(change)
    assert words in table_forger.findings()


def test_the_schema_of_a_single_table_does_not_fit(
    table_forger: TableForger, bundle: Path, cohort_bundle: Path
) -> None:
    """Files are those of the schema, so every table is one too many."""
    shutil.copyfile(bundle / "schema.json", cohort_bundle / "schema.json")
    assert "is not a file of a bundle of version 1" in table_forger.findings()
