"""A YAML file that people and the office write by turns: only what is changed changes."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.draft import draft_any
from dpsynth.errors import InputError, SchemaError
from dpsynth.office import WrittenYaml

from ..support import hospital_dictionary, messy_exports


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> WrittenYaml:
    path = hospital_dictionary.write_csv(tmp_path_factory.mktemp("draft") / "dictionary.csv")
    return WrittenYaml(draft_any(dictionary=path).text, "draft")


def changed_lines(old: str, new: str) -> list[str]:
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_comments_stand_beside_what_they_are_about(draft: WrittenYaml, tmp_path: Path) -> None:
    names = [field["name"] for field in draft.document["fields"]]
    place = ("fields", names.index("PatNr"))
    assert draft.notes(place) == ("unit, if each value is one patient to protect; else drop",)
    assert draft.comments[("dpsynth", "population")][0].startswith("how many patients")
    assert any(note.startswith("if needed: dialect") for note in draft.comments[("dpsynth",)])
    assert draft.comments[()][0].startswith("A draft of `dpsynth schema draft`")
    text = draft_any(header=messy_exports.german_folder(tmp_path / "ward")).text
    package = WrittenYaml(text, "draft")
    tables = [one["name"] for one in package.document["resources"]]
    questions = package.comments[("resources", tables.index("Faelle"), "dpsynth")]
    assert any("never far apart" in note for note in questions)
    every = [line for line in text.splitlines() if "  # " in line or line.lstrip().startswith("# ")]
    assert sum(map(len, package.comments.values())) == len(every)


def test_a_sign_in_a_text_begins_no_comment() -> None:
    file = WrittenYaml('a: "x # y"  # z\nb: p#q\n# about c\nc:\n- d: 1  # e\n', "x")
    assert file.comments == {("a",): ("z",), (): ("about c",), ("c", 0, "d"): ("e",)}


def test_a_change_touches_its_lines_alone(draft: WrittenYaml) -> None:
    document = draft.document
    fields = [dict(field) for field in document["fields"]]
    fields[0] = fields[0] | {"dpsynth": {"role": "unit"}}
    new = draft.changed({**document, "fields": fields})
    assert changed_lines(draft.text, new.text) == [
        "-       role: TODO  # unit, if each value is one patient to protect; else drop",
        "+       role: unit",
    ]
    sizes = {**document["dpsynth"], "population": {"value": 900, "basis": "TODO"}}
    half = draft.changed({**document, "dpsynth": sizes})
    assert changed_lines(draft.text, half.text)[1] == (
        "+   population: {value: 900, basis: TODO}  # how many patients, two digits, from a report"
    )


def test_keys_are_added_and_taken_out() -> None:
    file = WrittenYaml("# top\nb:\n  - x: 1\n    y: 2\n  - x: 3\nc: {d: 1}\n", "x")
    new = file.changed({"b": [{"y": 2, "z": "no"}, {"x": 3}], "c": {"d": 1}, "e": {"1": None}})
    assert new.text == ('# top\nb:\n  - y: 2\n    z: "no"\n  - x: 3\nc: {d: 1}\ne: {"1": null}\n')
    assert new.changed({"b": [{"y": 2}]}).document == {"b": [{"y": 2}]}
    assert WrittenYaml("", "x").changed({"a": [1]}).text == "a: [1]\n"


def test_what_cannot_be_changed_in_place_is_refused() -> None:
    file = WrittenYaml("a: &x {b: 1}\nc: *x\n", "x.yaml")
    with pytest.raises(InputError, match="x.yaml is written in a way"):
        file.changed({"a": {"b": 2}, "c": {"b": 1}})
    with pytest.raises(SchemaError):
        _ = WrittenYaml("a: !!python/object:x {}\n", "x").document


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(InputError, match="UTF-8"):
        WrittenYaml.read(tmp_path / "x.yaml")
    assert WrittenYaml.read(tmp_path / "none.yaml").text == ""


letters = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
words = st.text(letters, min_size=1, max_size=8)
scalars = st.none() | st.booleans() | st.integers(-99, 99) | words | st.just("")
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(words, values, min_size=1, max_size=4), st.data())
def test_any_change_gives_what_was_meant(document: dict[str, Any], data: st.DataObject) -> None:
    from dpsynth._util.strict_yaml import yaml_text

    file = WrittenYaml(yaml_text(document), "x")
    name = data.draw(st.sampled_from(sorted(document)))
    other = {**document, name: data.draw(values), data.draw(words): data.draw(scalars)}
    assert file.changed(other).document == other
