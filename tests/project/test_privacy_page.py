"""docs/privacy.md: every link leads somewhere, every pitfall has its row, every test is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "privacy.md"
TESTS = ROOT / "tests" / "guarantees"


def rows(text: str) -> dict[str, str]:
    return {line[2:5]: line for line in text.splitlines() if re.match(r"\| P\d\d \|", line)}


def dead_links(text: str) -> list[str]:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    return [link for link in links if not (PAGE.parent / link).exists()]


def headings_missing(text: str) -> list[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    known = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    return [anchor for anchor in re.findall(r"\]\(#([^)]+)\)", text) if anchor not in known]


def misplaced(text: str) -> list[str]:
    """Name the tests of a pitfall that its row does not link, or another row does."""
    found = {number: set(re.findall(r"test_p\d\d_\w+", row)) for number, row in rows(text).items()}
    wrong = []
    for number, linked in found.items():
        own = {path.stem for path in TESTS.glob(f"test_{number.lower()}_*.py")}
        wrong += sorted(own ^ linked)
        if ("none yet" in rows(text)[number]) != (not own):
            wrong.append(number)
    return wrong


def test_every_link_leads_to_a_file() -> None:
    text = PAGE.read_text()
    assert len(re.findall(r"\]\(", text)) > 80
    assert dead_links(text) == []
    assert headings_missing(text) == []
    assert dead_links("[gone](../tests/gone.py)") == ["../tests/gone.py"]
    assert headings_missing("# One\n[two](#two)") == ["two"]


def test_every_pitfall_has_a_row_with_exactly_its_tests() -> None:
    text = PAGE.read_text()
    assert list(rows(text)) == [f"P{number:02}" for number in range(1, 32)]
    assert misplaced(text) == []


@pytest.mark.parametrize("name", ["test_p09_poisson_sampling.py", "test_p17_arrays_do_not_grow.py"])
def test_a_test_that_is_left_out_is_noticed(name: str) -> None:
    without = "\n".join(
        re.sub(rf"\[[^]]*\]\(../tests/guarantees/{name}\)", "", line) if line[:3] == "| P" else line
        for line in PAGE.read_text().splitlines()
    )
    assert name.removesuffix(".py") in misplaced(without)


def test_no_figure_is_still_to_be_filled_in() -> None:
    assert not re.search(r"[A-Z]+_RESULT", PAGE.read_text())
