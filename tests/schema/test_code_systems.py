"""ICD-10-CM, ICD-10-GM and ATC: both ends of every part, and the ways that codes are written."""

from __future__ import annotations

import pytest

from dpsynth.errors import InputError
from dpsynth.schema import code_list

ICD10 = [
    (system, rollup) for system in ("ICD-10-CM", "ICD-10-GM") for rollup in ("chapter", "block")
]


@pytest.mark.parametrize(("system", "rollup"), ICD10)
def test_both_ends_of_every_part(system: str, rollup: str) -> None:
    codes = code_list(system, rollup)
    for name in codes.categories:
        ends = codes.labels[name].rpartition("(")[2].rstrip(")").split("-")
        for end in ends:
            assert codes.roll_up(end) == name, (name, end)
        assert codes.roll_up(name) == name
    assert len(set(codes.categories)) == len(codes.categories)


@pytest.mark.parametrize(("system", "blocks"), [("ICD-10-CM", 285), ("ICD-10-GM", 241)])
def test_every_block_is_within_one_chapter(system: str, blocks: int) -> None:
    chapters, by_block = code_list(system, "chapter"), code_list(system, "block")
    assert len(chapters.categories) == 22 and len(by_block.categories) == blocks
    for name in by_block.categories:
        ends = (name.split("-") * 2)[:2]
        assert len({chapters.roll_up(end) for end in ends} - {None}) == 1, name


def test_no_code_is_in_two_parts() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    texts = [f"{letter}{number:02}" for letter in letters for number in range(100)]
    for system, rollup in ICD10:
        labels = code_list(system, rollup).labels.values()
        ranges = [label.rpartition("(")[2][:-1].partition("-") for label in labels]
        for text in texts:
            inside = [first for first, _, last in ranges if first <= text <= (last or first)]
            assert len(inside) <= 1, (system, rollup, text)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("E11.90", "E10-E14"),
        ("E1190", "E10-E14"),
        ("e11.9-", "E10-E14"),
        ("E11.-", "E10-E14"),
        ("I10.-", "I10-I15"),
        ("I10", "I10-I15"),
        (" i10.90 ", "I10-I15"),
        ("J44.99G", "J40-J47"),
        ("J44.99 G", "J40-J47"),
        ("S51.9 GL", "S50-S59"),
        ("S51.9LG", "S50-S59"),
        ("G63.2*", "G60-G64"),
        ("E10.40+", "E10-E14"),
        ("B95.6!", "B95-B98"),
        ("U07.1 !", "U00-U49"),
        ("V99", "V01-X59"),
        ("E11.9X", None),
        ("A10", None),
        ("11.9", None),
        ("E1", None),
        ("", None),
        ("E10-E15", None),
    ],
)
def test_codes_as_german_hospitals_write_them(text: str, block: str | None) -> None:
    assert code_list("ICD-10-GM", "block").roll_up(text) == block


@pytest.mark.parametrize(
    ("text", "chapter", "block"),
    [
        ("E11.9", "endocrine", "E08-E13"),
        ("s72001a", "injury", "S70-S79"),
        ("S72.001A", "injury", "S70-S79"),
        ("C4A.0", "neoplasm", "C43-C44"),
        ("C7A.00", "neoplasm", "C7A"),
        ("D3A.0", "neoplasm", "D3A"),
        ("M1A.0", "musculoskeletal", "M05-M14"),
        ("O9A.1", "pregnancy", "O94-O9A"),
        ("Z3A.12", "supplementary", "Z30-Z39"),
        ("U07.1", "special", "U00-U49"),
        ("I10-", "circulatory", "I10-I1A"),
        ("250.83", None, None),
        ("428.0", None, None),
    ],
)
def test_codes_as_american_hospitals_write_them(
    text: str, chapter: str | None, block: str | None
) -> None:
    assert code_list("ICD-10-CM", "chapter").roll_up(text) == chapter
    assert code_list("ICD-10-CM", "block").roll_up(text) == block


@pytest.mark.parametrize(
    ("rollup", "group"), [("level-1", "A"), ("level-2", "A10"), ("level-3", "A10B")]
)
@pytest.mark.parametrize("text", ["A10BA02", "a10ba02", " A10 BA 02", "A10BA", "A10B"])
def test_atc_codes_begin_with_their_groups(text: str, rollup: str, group: str) -> None:
    groups = ("A10B", "C07A") if rollup == "level-3" else ()
    assert code_list("ATC", rollup, groups).roll_up(text) == group


def test_atc_codes_that_have_no_group() -> None:
    assert len(code_list("ATC", "level-1").categories) == 14
    assert len(code_list("ATC", "level-2").categories) == 94
    for text in ("E10BA02", "A1", "A10BA2", "A", "", "A10BA02X", "A99"):
        assert code_list("ATC", "level-2").roll_up(text) is None
    assert code_list("ATC", "level-4", ("A10BA",)).roll_up("C07AB02") is None
    assert code_list("ATC", "level-4", ("A10BA",)).roll_up("A10B") is None


@pytest.mark.parametrize(
    ("system", "rollup", "groups", "problem"),
    [
        ("ATC", "level-4", (), "list those you want"),
        ("ATC", "level-4", ("A10",), "codes of 5 characters"),
        ("ATC", "level-1", ("A",), "has its groups already"),
        ("ICD-10-GM", "block", ("A00-A09",), "has its groups already"),
        ("ICD-10", "chapter", (), "ICD-10-CM, rollup: block"),
        ("ICD-10-GM", "level-1", (), "is not known"),
    ],
)
def test_lists_that_are_not_known(
    system: str, rollup: str, groups: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        code_list(system, rollup, groups)
