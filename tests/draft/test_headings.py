"""Headings that hospitals use, in nine languages: what they are drafted as, and what they are not.

`headings.csv` has made-up headings: stems, abbreviations and compound words in other combinations
than those of `word_stems.csv`.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from dpsynth.draft.clinical import find
from dpsynth.draft.entry import Entry
from dpsynth.draft.proposal import propose
from dpsynth.draft.stems import meaning_of, meanings, moment_of, stems_of
from dpsynth.draft.type_words import kind_of

HEADINGS = list(csv.DictReader((Path(__file__).parent / "headings.csv").open(encoding="utf-8")))
LANGUAGES = ("en", "de", "nl", "fr", "it", "es", "pl", "pt", "sv")


def of(language: str, meaning: str) -> list[str]:
    return [
        row["heading"]
        for row in HEADINGS
        if row["language"] == language and row["meaning"] == meaning
    ]


def drafted(heading: str, **facts: object) -> Any:
    return propose(Entry(heading, **facts), "header")  # type: ignore[arg-type]


def role(heading: str, **facts: object) -> object:
    return drafted(heading, **facts).document.get("dpsynth", {}).get("role")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_identifies_a_person_is_dropped_or_asked(language: str) -> None:
    headings = of(language, "identifying")
    assert len(headings) >= 8
    for heading in headings:
        proposal = drafted(heading)
        assert role(heading) in ("drop", "TODO"), heading
        assert len(proposal.comments["dpsynth.role"]) > 10, heading  # the reason


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_harmless_heading_is_not_dropped(language: str) -> None:
    headings = of(language, "harmless")
    assert len(headings) >= 14
    assert [one for one in headings if role(one) == "drop"] == []
    assert sum(role(one) == "TODO" for one in headings) <= len(headings) / 5


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_meanings(language: str) -> None:
    rows = [row for row in HEADINGS if row["language"] == language]
    for row in rows:
        if row["meaning"] not in ("identifying", "harmless"):
            match = find(row["heading"])
            assert match is not None and match.variable.name == row["meaning"], row["heading"]


@pytest.mark.parametrize(
    ("heading", "meaning", "is_sure"),
    [
        ("data_przyjecia", "admission date", True),
        ("Codice Fiscale", "identity number", True),
        ("födelsedatum", "date of birth", True),
        ("nombre", "name", False),
        ("nombre de la madre", "name", True),
        ("CF", "identity number", False),
        ("via", "address", False),
        ("consultant", "staff", False),
        ("hospital id", "identity number", False),
        ("PatID", "patient key", True),
    ],
)
def test_an_ambiguous_heading_becomes_a_question(heading: str, meaning: str, is_sure: bool) -> None:
    found = meaning_of(heading)
    assert found is not None and (found.variable, found.is_sure) == (meaning, is_sure)


@pytest.mark.parametrize(
    "heading", ["nombre de lits", "data source", "v17", "", "mobility", "unit"]
)
def test_what_the_table_does_not_know_is_left_open(heading: str) -> None:
    assert meaning_of(heading) is None


def test_a_document_may_answer_the_question() -> None:
    routes = (("1", "oral"), ("2", "i.v."))
    assert drafted("via", values=routes).document["constraints"] == {"enum": [1, 2]}
    assert drafted("CF", kind="boolean").document["type"] == "boolean"
    assert "drop, if it is an address" in drafted("via").comments["dpsynth.role"]
    assert role("via", kind="text") == "TODO"


def test_a_number_that_identifies_is_dropped_whatever_its_type() -> None:
    for heading in ("PESEL", "postcode", "telefoon"):
        assert role(heading, kind="integer") == "drop"
    assert role("arts", kind="boolean") != "drop"


def test_data_is_a_date_where_it_stands_first() -> None:
    assert [moment_of(one) for one in ("data", "data wizyty", "lab data", "data_quality")] == [
        *("date", "date", None, None)
    ]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("geheel getal", "integer"),
        ("liczba dziesiętna", "number"),
        ("liczba", "numeric"),
        ("vrije tekst", "free text"),
        ("tak/nie", "boolean"),
        ("słownik", "category"),
        ("Schlüssel", "category"),
        ("meerkeuze", "several"),
        ("data", "date"),
        ("data/ora", "datetime"),
        ("Datum/tid", "datetime"),
        ("timestamp(6) without time zone", "datetime"),
        ("numeric(10,2)", "numeric"),
        ("nombre", "numeric"),
    ],
)
def test_words_for_types(word: str, kind: str) -> None:
    assert kind_of(word) == kind


def test_every_use_of_the_table_knows_every_language() -> None:
    for use, least in (("name", 30), ("type", 12), ("heading", 11)):
        assert len(stems_of(use)) >= least
    for use in ("type", "heading"):  # one word has one meaning
        assert {word: kinds for word, kinds in meanings(use).items() if len(kinds) > 1} == {}


def test_several_answers_in_a_cell_are_no_category() -> None:
    field = drafted("risks", kind="several", values=(("1", "smoking"), ("2", "other")))
    assert field.document["type"] == "TODO" and "a column for each" in field.comments["type"]
