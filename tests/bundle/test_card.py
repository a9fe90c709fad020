"""CARD.md: what a bundle is for and what it is not for, in Markdown that no text can break."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsynth._util.strict_json import read_document
from dpsynth.bundle.files import profiles_of
from dpsynth.bundle.format import About, Audits, Contents, ManifestHeader
from dpsynth.bundle.gates import judge
from dpsynth.bundle.pages.card import card, plain
from dpsynth.bundle.pages.limits import limits_of
from dpsynth.certificate import Certificate, Overridden
from dpsynth.schema import Column, Schema, labels_of

from ..support.public_audit_example import public_audit

EVIL = "<script>*x*</script> [a](http://b) | `c` ~~d~~ # e"


@pytest.fixture
def contents(bundle: Path) -> Contents:
    schema = Schema.from_dict(read_document(bundle / "schema.json"))
    heading = ManifestHeader.of(read_document(bundle / "datapackage.json"), schema)
    return Contents(heading, Certificate.from_dict(read_document(bundle / "privacy.json")))


@pytest.fixture
def written(bundle: Path, contents: Contents) -> Callable[..., str]:
    """Write the card with some contents changed."""
    profiles = profiles_of(bundle, contents.heading.schema)

    def of(about: About | None = None, **changes: Any) -> str:
        text = replace(contents, **changes)
        text = replace(text, heading=replace(text.heading, about=about or About()))
        verdicts = judge(text.certificate, profiles, text.audits)
        return card(text, verdicts, ("data/synthetic.parquet",))

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
        "data@hospital.example",
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
    assert written().count("Not stated by the publisher.") == 7


def test_overrides_and_audits_are_told(written: Callable[..., str], contents: Contents) -> None:
    words = replace(
        contents.certificate, overrides=(Overridden("constant", "one ward only", "A. Smith"),)
    )
    audits = Audits("c" * 64, (public_audit(),))
    text = written(certificate=words, audits=audits)
    assert "gate 'constant' was overridden by A. Smith: one ward only" in text
    assert "1 audit of the training is included in this bundle" in text
    assert "not audited" not in text


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


HOSTILE = (
    *("1. x", "12) x", "1.", "- x", "-", "+ x", "* x", "---", "- - -", "***", "===", "# x", "x #"),
    *(
        "> x",
        "    x",
        "*a*",
        "a*b*c",
        "_a_",
        "a __b__ c",
        "_a_b",
        "_a\\__b_",
        "`c`",
        "~~d~~",
        "~d~",
    ),
    *("[a](b)", "![a](http://b)", "[^1]", "[ ] a", "a|b", "$x$", "\\*a\\*", "a\\", "a\nb\n\n# c"),
    *("<b>x</b>", "</b>", "<!-- x", "<?x", "<https://a>", "&amp; &#60; &#x3C; &lt;b&gt;"),
    *("https://evil.example", "WWW.evil.example", "ftp://x.y/z", "\\https://evil.example", EVIL),
)
PLACES = {
    "a paragraph": "{}",
    "a heading": "# {}",
    "a list": "- {}",
    "a quotation": "> Rows. {} Read.",
    "a table": "| a | b |\n|---|---|\n| {} | b |",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("reader", ["CommonMark", "GitHub"])
def test_readers_of_markdown_see_the_text_and_nothing_else(reader: str, place: str) -> None:
    if reader == "GitHub":
        render = pytest.importorskip("marko.ext.gfm").gfm.convert
    else:
        render = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").render
    tags = re.compile(r"<[^>]*>")
    numbers = tags.findall(render(place.format("word")))
    for text in HOSTILE:
        written = render(place.format(plain(text)))
        assert tags.findall(written) == numbers, text
        visible = unescape(tags.sub("", written))
        assert " ".join(text.split()) in " ".join(visible.split())
    assert any(tags.findall(render(place.format(text))) != numbers for text in HOSTILE)


def coded(count: int) -> Column:
    values = tuple(str(value) for value in range(1, count + 1))
    return Column(
        "code", "integer", categories=values, labels={value: f"kind {value}" for value in values}
    )


def test_codes_are_explained_where_labels_are_declared(
    written: Callable[..., str], contents: Contents
) -> None:
    cardio = Schema.load("cardio")
    text = written(heading=replace(contents.heading, schema=cardio))
    assert "| gender | Gender | category (whole number) |  | 1 Women, 2 Men |" in text
    assert re.search(r"^\| height \|.*\| cm \|  \|$", text, re.MULTILINE)


def test_many_codes_are_not_all_listed() -> None:
    assert labels_of(coded(8)).endswith(", 8 kind 8")
    assert labels_of(coded(20)).endswith(", 8 kind 8, and 12 more: see datapackage.json")
    assert labels_of(replace(coded(1), labels={"1": "1"})) == ""
    assert labels_of(replace(coded(1), type="string")) == "1: kind 1"
    assert labels_of(replace(coded(2), labels={"1": "No, never", "2": "Yes"})) == (
        "1 No, never; 2 Yes"
    )


def test_a_label_cannot_format(written: Callable[..., str], contents: Contents) -> None:
    schema = contents.heading.schema
    columns = (*schema.columns, replace(coded(1), labels={"1": EVIL}))
    text = written(heading=replace(contents.heading, schema=replace(schema, columns=columns)))
    assert f"| {plain('1 ' + EVIL)} |" in text and EVIL not in text.split("\n---\n", 1)[1]


def test_the_front_matter_takes_any_letter(written: Callable[..., str]) -> None:
    title = "Visits \U0001f3e5: caf\xe9"
    assert yaml.safe_load(written(About(title=title)).split("---")[1])["pretty_name"] == title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("- a", "\\- a"),
        ("12. a", "12\\. a"),
        ("1.5 mg", "1.5 mg"),
        ("1.0.0", "1.0.0"),
        ("2026-11-22", "2026-11-22"),
        ("data@hospital.example", "data@hospital.example"),
        ("payer_code of {a}, R&D", "payer_code of {a}, R&D"),
        ("dbp < sbp >= 5", "dbp < sbp >= 5"),
        ("-5 to 3", "-5 to 3"),
        ("    a", "a"),
        ("# a", "\\# a"),
        ("two\nlines", "two lines"),
        ("p-values: 3", "p-values: 3"),
    ],
)
def test_text_is_plain(text: str, shown: str) -> None:
    assert plain(text) == shown
