"""ICD-9-CM roll-ups against the published ranges, read off by hand."""

from __future__ import annotations

import pytest

from dpsynth.errors import InputError
from dpsynth.schema import code_list

# First and last three-digit category of each chapter in the tabular list, in its order.
RANGES = {
    "infectious": ("001", "139"),
    "neoplasm": ("140", "239"),
    "endocrine": ("240", "279"),
    "blood": ("280", "289"),
    "mental": ("290", "319"),
    "nervous": ("320", "389"),
    "circulatory": ("390", "459"),
    "respiratory": ("460", "519"),
    "digestive": ("520", "579"),
    "genitourinary": ("580", "629"),
    "pregnancy": ("630", "679"),
    "skin": ("680", "709"),
    "musculoskeletal": ("710", "739"),
    "congenital": ("740", "759"),
    "perinatal": ("760", "779"),
    "symptoms": ("780", "799"),
    "injury": ("800", "999"),
    "external": ("E000", "E999"),
    "supplementary": ("V01", "V91"),
}


@pytest.mark.parametrize("rollup", ["chapter", "chapter-diabetes"])
@pytest.mark.parametrize("category", RANGES)
def test_both_ends_of_every_chapter(rollup: str, category: str) -> None:
    codes = code_list("ICD-9-CM", rollup)
    for end in RANGES[category]:
        assert codes.roll_up(end) == category
    assert category in codes.categories


def test_the_categories_are_the_chapters_in_order() -> None:
    plain = code_list("ICD-9-CM", "chapter").categories
    assert plain == tuple(RANGES)
    split = code_list("ICD-9-CM", "chapter-diabetes").categories
    assert len(split) == len(set(split)) == 20
    assert split == (*plain[:2], "diabetes", *plain[2:])


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("250.83", "diabetes"),
        ("250", "diabetes"),
        ("250.", "diabetes"),
        ("249.00", "endocrine"),
        ("251.2", "endocrine"),
        ("V57", "supplementary"),
        ("v45.81", "supplementary"),
        ("E909", "external"),
        ("E885.9", "external"),
        ("786", "symptoms"),
        (" 8 ", "infectious"),
        ("38.9", "infectious"),
        ("008.45", "infectious"),
        ("428.0", "circulatory"),
        ("circulatory", "circulatory"),
        ("diabetes", "diabetes"),
    ],
)
def test_codes_as_hospitals_write_them(text: str, category: str) -> None:
    assert code_list("ICD-9-CM", "chapter-diabetes").roll_up(text) == category


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "?", "0", "000", "1000", "2500", "25083", "250.832", "-8", "+8", "8,5", "1e2",
        "nan", "None", "inf", "V00", "V92", "V5", "V577", "E5", "E88", "E0999", "E885.99",
        "I10", "E11.9", "V57 ?", "250 .1", "２５０", "_8", "0x8",
    ],
)  # fmt: skip
def test_text_that_is_no_code_is_unknown(text: str) -> None:
    assert code_list("ICD-9-CM", "chapter-diabetes").roll_up(text) is None


def test_only_the_declared_roll_up_knows_diabetes() -> None:
    plain = code_list("ICD-9-CM", "chapter")
    assert plain.roll_up("250.83") == "endocrine"
    assert plain.roll_up("diabetes") is None


def test_every_numeric_category_has_exactly_one_chapter() -> None:
    codes = code_list("ICD-9-CM", "chapter-diabetes")
    found = [codes.roll_up(str(number)) for number in range(1, 1000)]
    assert None not in found
    assert found.count("diabetes") == 1
    assert found.count("circulatory") == 70  # 390 to 459


@pytest.mark.parametrize("rollup", ["chapter", "chapter-diabetes"])
def test_every_category_has_a_label(rollup: str) -> None:
    codes = code_list("ICD-9-CM", rollup)
    assert set(codes.labels) == set(codes.categories)
    assert "(390-459)" in codes.labels["circulatory"]


def test_an_unknown_list_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="chapter-diabetes"):
        code_list("ICD-9-CM", "block")
    with pytest.raises(InputError, match="ICD-10 is not|ICD-10"):
        code_list("ICD-10", "chapter")
