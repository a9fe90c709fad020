"""What an office says in public: read strictly, every mistake named, nothing invented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.bundle.format import About
from dpsynth.errors import InputError

WHOLE: dict[str, Any] = {
    "title": "Visits of 2025, synthetic",
    "version": "1.2.0",
    "date": "2026-11-22",
    "publisher": "General Hospital, Office of Data Sharing",
    "contact": "data@hospital.example",
    "licence": "CC-BY-4.0",
    "licence_url": "https://creativecommons.org/licenses/by/4.0/",
    "homepage": "https://hospital.example/visits",
    "citation": "General Hospital (2026): Visits.",
    "intended_use": "Teaching.",
    "limits": "No claims about wards.",
    "keywords": ["visits", "diabetes"],
}


def test_it_is_read_and_written_alike() -> None:
    assert About.from_dict(WHOLE).to_dict() == WHOLE
    assert About.from_dict({}) == About() and About().to_dict() == {}


def test_yaml_and_json_are_read(tmp_path: Path) -> None:
    (tmp_path / "about.yaml").write_text(
        "date: 2026-11-22\nkeywords: [a]\nlimits: >-\n  one\n  two\n"
    )
    assert About.load(tmp_path / "about.yaml") == About(
        date="2026-11-22", keywords=("a",), limits="one two"
    )
    (tmp_path / "about.json").write_text('{"title": "x"}')
    assert About.load(str(tmp_path / "about.json")) == About(title="x")


MISTAKES: dict[str, tuple[Any, str]] = {
    "no mapping": (["title"], "names with texts are expected"),
    "unknown": ({"license": "MIT"}, "did you mean 'licence'?"),
    "a number": ({"version": 1.0}, "about.version must be text (in quotes"),
    "blank": ({"title": "  "}, "about.title must be text"),
    "no version": ({"version": "first"}, "must be a version of three numbers"),
    "no date": ({"date": "22.11.2026"}, "must be a date such as"),
    "no such day": ({"date": "2026-02-30"}, "must be a date"),
    "no address": ({"contact": "ask us"}, "must be an e-mail or web address"),
    "no web address": ({"homepage": "javascript:alert(1)"}, "must be a web address"),
    "no licence": ({"licence": "free for all"}, "must be an identifier of a licence"),
    "two lines": ({"publisher": "A\nB"}, "must be one line"),
    "hidden": ({"limits": "a\u202eb"}, "has a character that cannot be shown"),
    "long": ({"limits": "x" * 4001}, "has more than 4000 characters"),
    "keywords": ({"keywords": "a, b"}, "must be a list of at most 50 words"),
    "a keyword": ({"keywords": ["a", 1]}, "about.keywords must be text"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name: str) -> None:
    document, words = MISTAKES[name]
    with pytest.raises(InputError) as refusal:
        About.from_dict(document)
    assert words in str(refusal.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(InputError) as refusal:
        About.from_dict({"titel": "x", "date": "soon", "licence": "a b"})
    assert str(refusal.value).count(";") >= 2


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        About.load(tmp_path / "about.yaml")
    (tmp_path / "about.yaml").write_text("a: [")
    with pytest.raises(InputError):
        About.load(tmp_path / "about.yaml")
    (tmp_path / "big.yaml").write_text("#" * 2**21)
    with pytest.raises(InputError, match="larger than 1 MiB"):
        About.load(tmp_path / "big.yaml")


@given(st.dictionaries(st.sampled_from(sorted(WHOLE)), st.text() | st.integers() | st.none()))
def test_any_document_is_read_back_or_refused(document: dict[str, Any]) -> None:
    try:
        about = About.from_dict(document)
    except InputError:
        return
    assert About.from_dict(about.to_dict()) == about
