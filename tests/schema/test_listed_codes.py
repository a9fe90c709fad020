"""Code lists of the office: read from CSV and OMOP, grouped by level, refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_yaml import yaml_text
from dpsynth.errors import SchemaError
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.schema.code_systems import Codes, CodeTree
from dpsynth.schema.code_systems.code_files import read_code_list, read_omop

ICD = """code,display,parent
I00-I99,Circulatory,
I10-I15,Hypertension,I00-I99
I10,Essential hypertension,I10-I15
I11.9,Hypertensive heart disease,I10-I15
J00-J99,Respiratory,
J45,Asthma,J00-J99
"""
CONCEPTS = """concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_code
1\tHeart "failure\tCondition\tSNOMED\t84114007
2\tHeart disease\tCondition\tSNOMED\t56265001
3\tAnother\tCondition\tICD10CM\tI50
4\tDisease\tCondition\tSNOMED\t64572001
"""
RELATIONS = """concept_id_1\tconcept_id_2\trelationship_id
1\t2\tIs a
1\t4\tIs a
2\t4\tIs a
1\t3\tMaps to
4\t1\tSubsumes
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "icd.csv").write_text(ICD)
    (tmp_path / "CONCEPT.csv").write_text(CONCEPTS)
    (tmp_path / "CONCEPT_RELATIONSHIP.csv").write_text(RELATIONS)
    return tmp_path


def document(**codes: Any) -> dict[str, Any]:
    number = {"value": 900, "basis": "report"}
    field = {"name": "dx", "type": "string", "dpsynth": {"codes": {"system": "ICD-10", **codes}}}
    return {
        "name": "stays",
        "fields": [field],
        "dpsynth": {"version": 1, "population": number, "rows": number},
    }


def load(folder: Path, **codes: Any) -> Codes:
    path = folder / "stays.schema.yaml"
    path.write_text(yaml_text(document(**codes)))
    codes_of = Schema.load(path).columns[0].codes
    assert codes_of is not None
    return codes_of


def test_a_list_is_modelled_by_its_top_and_emitted_as_it_is(folder: Path) -> None:
    codes = load(folder, list="icd.csv")
    assert codes.categories == ("I00-I99", "I10-I15", "I10", "I11.9", "J00-J99", "J45")
    assert codes.group_of == ("I00-I99",) * 4 + ("J00-J99",) * 2
    assert [codes.roll_up(text) for text in (" i119 ", "J45", "J46")] == ["I11.9", "J45", None]
    assert codes.labels == {}, (
        "what codes stand for is licensed, so it is left out unless asked for"
    )


def test_levels_to_model_and_to_emit(folder: Path) -> None:
    codes = load(folder, list="icd.csv", model=1, emit=2)
    assert codes.categories == ("I00-I99", "I10-I15", "J00-J99", "J45")
    assert codes.roll_up("I10") == codes.roll_up("I11.9") == "I10-I15"
    assert load(folder, list="icd.csv", model=2).group_of[2:4] == ("I10-I15",) * 2
    assert load(folder, list="icd.csv", displays=True).labels["J45"] == "Asthma"


def test_groups_of_a_published_system(folder: Path) -> None:
    (folder / "codes.csv").write_text("code;display\n401.9;x\n250.00;y\n428;z\n")
    codes = load(folder, list="codes.csv", system="ICD-9-CM", model="chapter")
    assert codes.categories == ("401.9", "428", "250.00"), "codes of a group stand together"
    assert codes.group_of == ("circulatory", "circulatory", "endocrine")


def test_a_vocabulary_of_omop(folder: Path) -> None:
    tree = read_omop(folder, "SNOMED", displays=True)
    assert tree.codes == ("56265001", "64572001", "84114007")
    assert tree.parents == ("64572001", "", "56265001"), "of several parents, the first code"
    assert tree.displays[2] == 'Heart "failure'
    codes = load(folder, omop=".", system="SNOMED")
    assert set(codes.group_of) == {"64572001"} and not codes.labels


def test_the_schema_holds_the_list_and_needs_the_file_no_more(folder: Path) -> None:
    path = folder / "stays.schema.yaml"
    path.write_text(yaml_text(document(list="icd.csv", model=1, emit=2)))
    schema = Schema.load(path)
    (folder / "icd.csv").unlink()
    again = Schema.from_dict(schema.to_dict())
    assert again.hash() == schema.hash() and again.columns == schema.columns


def test_a_list_of_linked_tables(folder: Path) -> None:
    number = {"value": 900, "basis": "report"}
    field = {
        "name": "dx",
        "type": "string",
        "dpsynth": {"codes": {"system": "ICD-10", "list": "none.csv"}},
    }
    package = {
        "name": "ward",
        "resources": [{"name": "stays", "schema": {"fields": [field]}}],
        "dpsynth": {"version": 1, "population": number},
    }
    path = folder / "ward.package.yaml"
    path.write_text(yaml_text(package))
    with pytest.raises(SchemaError, match=r"resources\[0\].schema.fields\[0\] 'dx'") as error:
        LinkedSchema.load(path)
    assert "none.csv does not exist" in str(error.value)


@pytest.mark.parametrize(
    ("content", "codes", "message"),
    [
        ("code\nI10\nI10\n", {}, "'I10' is in the list twice"),
        ("code,parent\nI10,I09\n", {}, "parent 'I09' of code 'I10' is not in the list"),
        ("code,parent\nA,B\nB,A\n", {}, "make a circle"),
        ("name\nI10\n", {}, "has no column 'code'"),
        ("code\n", {}, "1 to 60,000 codes"),
        ("code\nI10\n", {"model": 2}, "levels 1 to 1, not 2"),
        ("code\nI10\n", {"model": "chapter"}, "'chapter' is not a level of the list"),
        ("code\nI10\n", {"system": "ATC", "model": "x"}, "'x' is not level-1, level-2"),
        ("code\nI10\n", {"emit": "block"}, "a level such as 2, or code"),
        ("code\nI10\n", {"rollup": "chapter"}, "rollup"),
        ("code\nI10\n", {"displays": 1}, "displays: true or false"),
        (ICD, {"model": 2, "emit": 1}, "level 2 is below the level to emit, 1"),
    ],
)
def test_mistakes(folder: Path, content: str, codes: dict[str, Any], message: str) -> None:
    (folder / "own.csv").write_text(content)
    with pytest.raises(SchemaError) as error:
        load(folder, list="own.csv", **codes)
    assert message in str(error.value), str(error.value)
    assert "fields[0] 'dx'.dpsynth.codes" in str(error.value)


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "bytes.csv").write_bytes(b"code\n\xff\xfe\n")
    for name, message in (("no.csv", "does not exist"), ("bytes.csv", "not a CSV file in UTF-8")):
        with pytest.raises(SchemaError, match=message):
            load(folder, list=name)
    with pytest.raises(SchemaError, match="no concept of vocabulary 'ATC'"):
        load(folder, omop=".", system="ATC")
    (folder / "CONCEPT.csv").write_text("concept_id\n1\n")
    with pytest.raises(SchemaError, match="has no column 'concept_name'"):
        load(folder, omop=".", system="SNOMED")
    with pytest.raises(SchemaError, match="a path is read only from a schema file"):
        Schema.from_dict(document(list="icd.csv"))


def test_spellings_that_would_make_two_codes_one_are_kept_apart() -> None:
    tree = CodeTree.of(["E11.1", "E1.11", "X1"])
    assert tree.find("E11.1") == "E11.1" and tree.find("e111") is None and tree.find("x.1") == "X1"


def test_semicolons_and_a_mark_of_order(folder: Path) -> None:
    (folder / "bom.csv").write_bytes(b"\xef\xbb\xbfCode;Parent\r\nA;\r\nB;A\r\n")
    assert read_code_list(folder / "bom.csv").parents == ("", "A")
