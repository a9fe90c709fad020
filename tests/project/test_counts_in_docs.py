"""Counts in the guides that follow from the repository: what they state is what there is.

A figure that was measured is no such count: it stays what it was when it was measured, and says so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from dpsynth.certificate.charge import OVERRIDABLE
from dpsynth.schema import Schema
from dpsynth.schema.types import TYPES

from ..guarantees import tainted, test_accounting_cross_checked, test_taint_twins

ROOT = Path(__file__).parents[2]
WORDS = (
    "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
)
WORDS += " sixteen seventeen eighteen nineteen twenty"
PITFALL = re.compile(r"^\| (P\d\d) \| .* \|$", re.MULTILINE)


def page(name: str) -> str:
    """A guide as one line of text."""
    return " ".join((ROOT / name).read_text().split())


def word(number: int) -> str:
    return WORDS.split()[number]


def spaced(number: int) -> str:
    """Write a number as the guides do."""
    return f"{number:,}".replace(",", " ")


def slips() -> tuple[int, int]:
    """How many slips the list has, and in how many definitions."""
    listed = tomllib.loads((ROOT / "bench/mutants.toml").read_text())["mutant"]
    return len(listed), len({one["definition"] for one in listed})


def pitfalls() -> list[str]:
    return PITFALL.findall((ROOT / "docs/privacy.md").read_text())


def always_stopping() -> int:
    """How many public gates nobody can override."""
    text = (ROOT / "dpsynth/bundle/gates/public_gates.py").read_text()
    return len(set(re.findall(r"return GateResult\(\s*\"(\w+)\"", text)) - set(OVERRIDABLE))


def steps_of_the_proof() -> int:
    part = (ROOT / "docs/privacy.md").read_text().partition("\n## The proof\n")[2]
    return len(re.findall(r"^\d+\. ", part.partition("\n## ")[0], re.MULTILINE))


def statements() -> Iterator[tuple[str, str]]:
    """Each page with a sentence that holds a count, as it must be written."""
    number, definitions = slips()
    yield "docs/privacy.md", f"The list has {number} slips in {definitions} definitions"
    wrong = len(test_accounting_cross_checked.WRONG)
    yield "docs/privacy.md", f"{word(wrong).capitalize()} wrong accountants"
    canaries = tainted.sources().canaries
    names = {name for name, _, _ in canaries.forms.values()} | {*canaries.numbers.values()}
    forms = f"{len(names)} canaries in {spaced(len(canaries.forms))} forms"
    yield "docs/privacy.md", forms
    twins = [test_taint_twins.IN_A_RUN, test_taint_twins.IN_FILES, test_taint_twins.SAID]
    yield "docs/privacy.md", f"{sum(map(len, twins))} leaking twins"
    yield "docs/privacy.md", f"#the-known-ways-to-break-such-a-claim), P01 to {pitfalls()[-1]}"
    yield "docs/dpo.md", f"{len(pitfalls())} known ways to break such a claim"
    yield "docs/dpo.md", f"proved in [{word(steps_of_the_proof())} steps]"
    yield "docs/bundle.md", f"the first {word(always_stopping())} gates cannot be overridden"
    yield "docs/schema.md", f"take one of the {word(len(TYPES))} types"
    diabetes, demo = Schema.load("diabetes130"), Schema.load("demo")
    yield "README.md", f"patients, {len(diabetes.columns)} columns."
    yield "README.md", f"at most {diabetes.unit.max_rows} encounters of a patient count"
    modelled = f"{len(demo.modelled)} columns"
    yield "docs/tutorials/office.md", f"schema demo: {modelled}, unit patient_id"
    yield (
        "docs/dpo.md",
        f"at most {demo.unit.max_rows} rows of each count in each measurement. {modelled} with",
    )


def test_counts_are_stated_as_they_are() -> None:
    assert [(name, text) for name, text in statements() if text not in page(name)] == []


def test_a_stale_count_is_found() -> None:
    number, files = slips()
    assert f"The list has {number + 1} slips in {files} files" not in page("docs/privacy.md")


def test_pitfalls_are_numbered_without_gaps() -> None:
    assert pitfalls() == [f"P{number:02}" for number in range(1, len(pitfalls()) + 1)]


def test_each_pitfall_with_tests_has_a_file_of_its_number() -> None:
    """And each such file stands in the row of its number."""
    rows = dict(
        re.findall(r"^\| (P\d\d) \|(.*)\|$", (ROOT / "docs/privacy.md").read_text(), re.MULTILINE)
    )
    for path in sorted((ROOT / "tests/guarantees").glob("test_p[0-9][0-9]_*.py")):
        assert path.name in rows[path.name[5:8].upper()], path.name


def test_the_table_of_gates_tells_which_stop_always() -> None:
    rows = re.findall(
        r"^\| `\w+` \|.*\| stops, always \|$", (ROOT / "docs/bundle.md").read_text(), re.M
    )
    assert len(rows) == always_stopping()
