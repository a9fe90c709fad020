"""Tests import faces; tests/inner_parts.toml says why they take what they take of inner modules."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests/inner_parts.toml"
MODULES = {"dpsynth.office.desk", "dpsynth.office.lamp", "dpsynth.office.till"}


@pytest.fixture(scope="module")
def parts() -> Iterator[ModuleType]:
    """The module that reads uses off the sources of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        import inner_parts

        yield inner_parts


@pytest.fixture
def table() -> Any:
    return tomllib.loads(TABLE.read_text())["inner"]


def test_each_inner_part_that_tests_use_has_a_reason(parts: ModuleType, table: Any) -> None:
    uses = parts.uses_of_tests(ROOT)
    assert len(uses) > 1000  # it is read at all
    assert parts.problems(uses, table, parts.modules_of(ROOT)) == []


def test_entries_say_why_and_are_in_order(parts: ModuleType, table: Any) -> None:
    for entry in table:
        assert set(entry) == {"use", "why", "modules"} and entry["use"] in parts.USES
        assert entry["why"].strip().endswith(".") and len(entry["why"].split()) > 8
        assert entry["modules"] == sorted(set(entry["modules"]))
    whys = [(entry["use"], entry["why"]) for entry in table]
    assert len(set(whys)) == len(whys)


@pytest.mark.parametrize(
    ("text", "use", "name"),
    [
        ("from dpsynth.office.desk import MAX_EPSILON", "constant", "MAX_EPSILON"),
        ("from dpsynth.office.desk import desk", "own name", "desk"),
        ("from dpsynth.office.desk import Desk as P\nP()", "part", "Desk"),
        ("from dpsynth.office.desk import Desk\nx: Desk", "type", "Desk"),
        ("from dpsynth.office import desk\ndesk.Desk()", "part", "Desk"),
        ("def f():\n    from dpsynth.office import desk\n    desk.search()", "part", "search"),
        (
            "if TYPE_CHECKING:\n    from dpsynth.office.desk import Ab\ndef f(a: Ab): ...",
            "type",
            "Ab",
        ),
        ("import dpsynth.office.desk as p\np.search()", "part", "search"),
        ("import dpsynth.office.desk\ndpsynth.office.desk.search()", "part", "search"),
        ("from dpsynth.office import desk\npatch.setattr(desk, 'MAX', 3)", "limit", "MAX"),
        ("from dpsynth.office import desk\npatch.setattr(desk, '_find', f)", "replaced", "_find"),
        ("from dpsynth.office import desk\ndesk.find = desk.find", "replaced", "find"),
        ("from dpsynth.office import desk\ndoctest.testmod(desk)", "replaced", ""),
        ("patch.setattr('dpsynth.office.desk.MAX', 3)", "limit", "MAX"),
        ("patch.setattr('dpsynth.office.desk.Desk.of', f)", "replaced", "Desk"),
        ("import_module('dpsynth.office.desk')", "named", ""),
        ("patch.setattr(f'dpsynth.office.desk.{name}', f)", "named", ""),
        ("code = 'import os\\nfrom dpsynth.office.desk import search\\n'", "part", "search"),
        ("code = 'import os, dpsynth.office.desk'", "named", ""),
    ],
)
def test_a_use_is_found_wherever_it_stands(
    parts: ModuleType, text: str, use: str, name: str
) -> None:
    [found] = parts.uses_in(text, "tests/test_x.py", MODULES)
    assert (found.module, found.use, found.name) == ("dpsynth.office.desk", use, name)


@pytest.mark.parametrize(
    "text",
    [
        "from dpsynth.office import Desk",
        "from dpsynth.errors import InputError",
        "from dpsynth.office import shown\nshown()",  # a face shows it; a file has the name, too
        "warning = 'error::dpsynth.office.desk.Warning'",
        '"""The text of a test may say dpsynth.office.desk."""',
    ],
)
def test_a_face_is_no_inner_part(parts: ModuleType, text: str) -> None:
    modules = MODULES | {"dpsynth.office.shown"}
    assert list(parts.uses_in(text, "tests/test_x.py", modules, {"dpsynth.office.shown"})) == []


def test_what_no_entry_names_is_refused_and_so_is_an_entry_without_a_use(
    parts: ModuleType,
) -> None:
    text = "from dpsynth.office.desk import search\nsearch()\n"
    uses = list(parts.uses_in(text, "tests/test_x.py", MODULES))

    def problems(*modules: str, use: str = "part") -> Any:
        return parts.problems(uses, [{"use": use, "modules": modules}], MODULES)

    assert problems("dpsynth.office.desk") == []
    [unlisted] = problems()
    assert unlisted.startswith("tests/test_x.py:1: search of dpsynth.office.desk (part): ")
    assert "Import it from a face" in unlisted and "tests/inner_parts.toml" in unlisted
    _, unused = problems("dpsynth.office.desk", use="constant")
    assert unused == (
        "tests/inner_parts.toml: no test uses dpsynth.office.desk as `constant`; remove the line."
    )
    assert problems("dpsynth.office.desk", "dpsynth.office.gone") == [
        "tests/inner_parts.toml: dpsynth.office.gone does not exist; write where it is today, "
        "or remove the line."
    ]
