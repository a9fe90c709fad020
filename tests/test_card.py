"""CARD.md: what a bundle is for and what it is not for, in Markdown that no text can break."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsynth.about import About
from dpsynth.audit_file import Audits
from dpsynth.card import card, plain
from dpsynth.certificate import Certificate
from dpsynth.contents import Contents
from dpsynth.derived import profile_of
from dpsynth.documents import read_document
from dpsynth.limits import limits_of
from dpsynth.manifest import Heading
from dpsynth.override import Overridden
from dpsynth.public_gates import judge
from dpsynth.schema import Schema

from .public_audit_example import public_audit

EVIL = "<script>*x*</script> [a](http://b) | `c` ~~d~~ # e"


@pytest.fixture
def contents(bundle: Path) -> Contents:
    schema = Schema.from_dict(read_document(bundle / "schema.json"))
    heading = Heading.of(read_document(bundle / "datapackage.json"), schema)
    return Contents(heading, Certificate.from_dict(read_document(bundle / "privacy.json")))


@pytest.fixture
def written(bundle: Path, contents: Contents) -> Callable[..., str]:
    """Write the card with some contents changed."""
    profile = profile_of(bundle, contents.heading.schema)

    def of(about: About | None = None, **changes: Any) -> str:
        told = replace(contents, **changes)
        told = replace(told, heading=replace(told.heading, about=about or About()))
        verdicts = judge(told.certificate, profile, told.audits)
        return card(told, verdicts, ("data/synthetic.parquet",))

    return of


def test_it_says_what_a_card_must_say(written: Callable[..., str], contents: Contents) -> None:
    text = written(
        About(
            publisher="General Hospital",
            contact="data@hospital.example",
            licence="CC-BY-4.0",
            citation="General Hospital (2026)",
            intended_use="Teaching",
            limits="No claims about wards",
        )
    )
    for words in (
        'license: "CC-BY-4.0"',
        "General Hospital",
        "data\\@hospital.example",
        "## Intended use\n\nTeaching",
        "The publisher adds: No claims about wards",
        "Standard errors, confidence intervals and p-values",
        "epsilon 3 and delta 1e-6",
        "| one-way histograms |",
        "not audited",
        "the decision to publish and the choice among fits are not covered",
        "For a data protection impact assessment",
        "dpsynth verify THIS-FOLDER",
    ):
        assert words in text, words
    for limit in limits_of(contents.heading):
        assert plain(limit) in text
    for column in contents.heading.schema.modelled:
        assert f"| {plain(column.name)} |" in text


def test_what_is_not_said_is_named_as_such(written: Callable[..., str]) -> None:
    assert written().count("The publisher does not say.") == 7


def test_overrides_and_audits_are_told(written: Callable[..., str], contents: Contents) -> None:
    told = replace(
        contents.certificate, overrides=(Overridden("constant", "one ward only", "A. Smith"),)
    )
    audits = Audits("c" * 64, (public_audit(),))
    text = written(certificate=told, audits=audits)
    assert "gate 'constant' was overridden by A. Smith: one ward only" in text
    assert "1 audit of the training is in the bundle" in text and "not audited" not in text


def test_no_text_formats_or_links(written: Callable[..., str], contents: Contents) -> None:
    words = dict.fromkeys(("title", "publisher", "citation", "intended_use", "limits"), EVIL)
    schema = replace(contents.heading.schema, title=EVIL, description=EVIL)
    text = written(About(**words), heading=replace(contents.heading, schema=schema))
    body = text.split("\n---\n", 1)[1]  # the front matter is quoted YAML
    told = [line for line in body.splitlines() if "script" in line]
    assert len(told) >= 5
    for line in told:
        own = line.split("\\<script")[1].split("# e")[0]  # as far as the text goes
        assert not re.search(r"(?<!\\)[<>*`~#\[\]|]", own) and "http://" not in own
    assert yaml.safe_load(text.split("---")[1])["pretty_name"] == EVIL


def test_the_front_matter_takes_any_letter(written: Callable[..., str]) -> None:
    title = "Visits \U0001f3e5: caf\xe9"
    assert yaml.safe_load(written(About(title=title)).split("---")[1])["pretty_name"] == title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("- a", "\\- a"),
        ("12. a", "12\\. a"),
        ("1.5 mg", "1\\.5 mg"),
        ("# a", "\\# a"),
        ("two\nlines", "two lines"),
        ("p-values: 3", "p-values: 3"),
    ],
)
def test_text_is_plain(text: str, shown: str) -> None:
    assert plain(text) == shown
