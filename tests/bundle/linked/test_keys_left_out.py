"""A key from row to row is left out of synthetic tables, and every document says so."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from dpsynth._util.strict_yaml import yaml_text
from dpsynth.bundle.pages.table_words import words_of
from dpsynth.cli.group import commands
from dpsynth.schema import LinkedSchema, published_tables, synthetic_tables

from ...support.linked_tables import package

WORDS = "the key from visit to table visits is left out of synthetic tables"


def linked() -> LinkedSchema:
    document = package()
    to_visit = {"fields": ["visit"], "reference": {"resource": "visits", "fields": ["visit"]}}
    document["resources"][4]["schema"]["foreignKeys"].append(to_visit)
    return LinkedSchema.from_dict(document)


def test_the_dictionary_says_so_of_its_table_alone() -> None:
    schema = linked()
    tables = synthetic_tables(schema)
    assert WORDS in " ".join(words_of(tables["orders"], schema))
    for name in ("patients", "labs", "events", "visits"):
        assert "left out" not in " ".join(words_of(tables[name], schema))
    assert "visit" not in [column.name for column in published_tables(schema)["orders"].modelled]


def test_the_check_of_a_schema_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ward.package.yaml"
    path.write_text(yaml_text(linked().to_dict()))
    result = CliRunner().invoke(commands, ["schema", "check", str(path)])
    assert result.exit_code == 0 and f"orders: {WORDS}" in result.output
    path.write_text(yaml_text(LinkedSchema.from_dict(package()).to_dict()))
    result = CliRunner().invoke(commands, ["schema", "check", str(path)])
    assert result.exit_code == 0 and "left out" not in result.output
