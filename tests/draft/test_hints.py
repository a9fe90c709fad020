"""Comments of a draft on columns that belong together: a person declares what is proposed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_schema


def draft(folder: Path, dictionary: str) -> str:
    path = folder / "words.csv"
    path.write_text(dictionary)
    return draft_schema(dictionary=path).text


@pytest.mark.parametrize(("values", "value"), [("F=female; M=male", "'F'"), ("", "TODO")])
def test_a_pregnancy_beside_a_sex(tmp_path: Path, values: str, value: str) -> None:
    text = draft(tmp_path, f"name,type,values\nsex,,{values}\npregnant,boolean,\n")
    assert f'# if only women are asked: present_if: "sex == {value}"' in text


def test_codes_of_which_a_cell_may_hold_several(tmp_path: Path) -> None:
    hint = '# if a cell holds several codes, add to codes: several: {separator: ";", most: TODO}'
    for name, times in (("diagnoses", 1), ("Diagnosen", 1), ("main diagnosis", 0)):
        assert draft(tmp_path, f"name,type\n{name},\nage,\n").count(hint) == times
    known = 'name,label\ndx,"ICD-10-CM codes, separated by ;"\nage,\n'
    assert hint not in draft(tmp_path, known)


def test_an_order_of_two_blood_pressures(tmp_path: Path) -> None:
    text = draft(tmp_path, "name\nsbp\ndia bp\n")
    assert '# if each row keeps it: rules: [{order: "`dia bp` < sbp"}]' in text
    assert "order:" not in draft(tmp_path, "name\nsbp\nage\n")


def test_columns_that_may_be_outcomes_are_pointed_out_and_not_declared(tmp_path: Path) -> None:
    text = draft(tmp_path, "name,type\nverstorben,\nreadmitted,\nage,\n")
    assert text.count("# if it is an outcome of the table:") == 2
    assert "role: [target, sensitive]" in text and "role: [target]" in text
    proposed = parse_yaml(text.encode(), "draft")
    assert all("target" not in str(one["dpsynth"].get("role")) for one in proposed["fields"])


def test_a_draft_asks_for_outcomes(tmp_path: Path) -> None:
    assert "Which columns are outcomes" in draft(tmp_path, "name,type\nage,\n")
