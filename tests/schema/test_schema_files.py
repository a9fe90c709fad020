"""Schema files: found by name or path, refused with a line number, written in one step."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_json, parse_yaml
from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import Rule, Schema
from dpsynth.schema.column import ROLES
from dpsynth.schema.columns import FIELD_KEYS, OWN_KEYS
from dpsynth.schema.reader import TABLE_KEYS, TOP_KEYS
from dpsynth.schema.types import TYPES

TEXT = """\
fields:
  - name: sex
    type: string
    constraints: {enum: ["F", "NO"]}
    dpsynth: {bounds_basis: form}
dpsynth:
  version: 1
  population: {value: 900, basis: report}
  rows: {value: 900, basis: report}
"""


def test_a_shipped_schema_is_found_by_name() -> None:
    assert Schema.load("cardio").name == "cardio"
    with pytest.raises(InputError, match=r"no shipped schema is called 'cardoi' .*'cardio'"):
        Schema.load("cardoi")


def test_a_file_is_found_by_path_and_gives_the_name(tmp_path: Path) -> None:
    file = tmp_path / "my ward.schema.yml"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    for path in (file, str(file)):
        assert Schema.load(path).name == "my-ward"
    (tmp_path / "cardio").mkdir()
    with pytest.raises(InputError, match="the shipped schema is called 'cardio'"):
        Schema.load(tmp_path / "cardio.yaml")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.yaml", "does not exist"),
        ("table.csv", "a name that ends in .yaml, .yml, .json"),
        ("folder.yaml", "not a plain file"),
        ("large.yaml", "larger than 4 MiB"),
        ("secret.yaml", "cannot be read"),
    ],
)
def test_a_path_that_is_no_schema_file(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "table.csv").write_text("a,b\n")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "large.yaml").write_text("#" * (4 * 2**20 + 1))
    (tmp_path / "secret.yaml").write_text(TEXT)
    (tmp_path / "secret.yaml").chmod(0)
    if name == "secret.yaml" and os.access(tmp_path / name, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(InputError, match=message):
        Schema.load(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        ("", "document", "empty"),
        ("# nothing\n", "document", "empty"),
        ("fields: [\n", "line 2", "not YAML"),
        ("a: 1\nb: \tc: 2\n", "line 2", "not YAML"),
        ("a: 1\n---\nb: 2\n", "line 2", "not YAML"),
        ("a: 1\n  b: 2\n", "line 2", "not YAML"),
        ("a: *x\n", "line 1", "not YAML"),
        ("a: 2000-13-45\n", "document", "not YAML"),
        ("a: 1\nb: 2\n\na: 3\n", "line 4", "key 'a' occurs twice: line 1"),
        ("? [a]\n: 1\n", "line 1", "plain text"),
        ("a: \x01\n", "document", "not YAML"),
        (b"a: 1\nb: \xff\n", "line 2", "not UTF-8"),
        ("a: !!str 3\n", "line 1", "tags are not read"),
        ("a: !thing\n", "line 1", "tags are not read"),
        ("[" * 1000, "line 1", "nests deeper than 60"),
        ("a: &x [*x]\n", "line 1", "contains itself"),
    ],
)
def test_what_is_no_plain_yaml(content: str | bytes, place: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_yaml(content if isinstance(content, bytes) else content.encode(), "s.yaml")
    (problem,) = caught.value.problems
    assert problem.place == place and message in problem.message
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        ("", "line 1", "not JSON"),
        ('{"a": 1,\n"b" 2}', "line 2", "not JSON"),
        ('{"b": 1, "a": 1, "a": 2}', "document", "key 'a' occurs twice"),
        ('{"a": NaN}', "document", "not JSON"),
        ('{"a": ' + "9" * 5000 + "}", "document", "not JSON"),
        ("[" * 100_000, "document", "nests too deeply"),
    ],
)
def test_what_is_no_strict_json(content: str, place: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_json(content.encode(), "s.json")
    (problem,) = caught.value.problems
    assert problem.place == place and message in problem.message


def test_sixty_levels_are_read() -> None:
    assert str(parse_yaml(b"[" * 60 + b"]" * 60, "s.yaml")) == "[" * 60 + "]" * 60


def test_columns_may_share_a_list_by_an_alias(tmp_path: Path) -> None:
    file = tmp_path / "ward.yaml"
    shared = TEXT.replace('["F", "NO"]', '&list ["F", "NO"]').replace("dpsynth:\n", "", 1)
    second = "  - {name: other, type: string, constraints: {enum: *list}, "
    second += "dpsynth: {bounds_basis: form}}\ndpsynth:\n"
    file.write_text(shared.replace("  version", second + "  version", 1))
    assert [c.categories for c in Schema.load(file).columns] == [("F", "NO"), ("F", "NO")]


def test_an_unquoted_no_is_named_rather_than_read_as_false(tmp_path: Path) -> None:
    file = tmp_path / "ward.yaml"
    file.write_text(TEXT.replace('"NO"', "NO"))
    with pytest.raises(SchemaError, match="line [0-9]+: 'NO' is a truth value .* put it in quotes"):
        Schema.load(file)


def test_saving_replaces_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    source = tmp_path / "ward.yaml"
    source.write_text(TEXT)
    schema = Schema.load(source)
    schema.save(source)
    assert Schema.load(source) == schema
    with pytest.raises(InputError, match="ends in .yaml, .yml, .json"):
        schema.save(tmp_path / "ward.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["ward.yaml"]


def test_the_reference_has_every_key_and_its_examples_work() -> None:
    text = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    (example,) = [block for kind, block in blocks if kind == "yaml"]
    schema = Schema.from_dict(parse_yaml(example.encode(), "docs/schema.md"))
    assert len(schema.modelled) == 8 and schema.column("age").maximum == 110
    (rules,) = [block for kind, block in blocks if not kind and "implies" in block]
    assert len([Rule.parse(line) for line in rules.splitlines()]) == 7
    known = {*FIELD_KEYS, *OWN_KEYS, *TOP_KEYS, *TABLE_KEYS, *TYPES, *ROLES}
    silent = {"categoriesOrdered", "example", "examples", "rdfType", "bareNumber"}
    missing = {key for key in known - silent if f"`{key}" not in text}
    assert not missing
