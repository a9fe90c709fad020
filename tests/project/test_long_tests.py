"""What is marked `long` is left out of `make test`, and no test of a pitfall is left out whole.

In tests/guarantees a mark may be on parameters only: a larger size, or one game of several.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ..support.long_parts import in_part

ROOT = Path(__file__).parents[2]
WHOLE_FILE = "pytestmark = pytest.mark.long\n\ndef test_a(): ..."
WHOLE_TEST = "@pytest.mark.long\ndef test_a(): ..."
ALL_CASES = (
    "@pytest.mark.parametrize('n', [pytest.param(9, marks=pytest.mark.long)])\ndef test_a(n): ..."
)
SOME_CASES = ALL_CASES.replace("[", "[1, ")


def is_long(node: ast.expr) -> bool:
    """Whether an expression has the mark `long` somewhere."""
    return any(isinstance(part, ast.Attribute) and part.attr == "long" for part in ast.walk(node))


def all_cases_long(decorator: ast.expr) -> bool:
    """Whether a decorator leaves no case of a test to `make test`."""
    if not (
        isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize")
    ):
        return is_long(decorator)
    cases = decorator.args[1]
    return isinstance(cases, ast.List | ast.Tuple) and all(map(is_long, cases.elts))


def left_out(text: str) -> list[str]:
    """Name the tests of a file that `make test` runs no case of."""
    module = ast.parse(text)
    marks = [
        node.value
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    tests = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    if any(map(is_long, marks)):
        return [test.name for test in tests]
    return [test.name for test in tests if any(map(all_cases_long, test.decorator_list))]


@pytest.mark.parametrize("text", [WHOLE_FILE, WHOLE_TEST, ALL_CASES])
def test_a_test_that_is_left_out_is_found(text: str) -> None:
    assert left_out(text) == ["test_a"]


def test_a_test_of_which_some_cases_are_long_is_kept() -> None:
    assert left_out(SOME_CASES) == []


def test_no_test_of_a_pitfall_is_left_out() -> None:
    files = sorted((ROOT / "tests" / "guarantees").glob("test_*.py"))
    assert len(files) > 60
    found = {path.name: left_out(path.read_text()) for path in files}
    assert {name: tests for name, tests in found.items() if tests} == {}


def test_both_targets_together_run_each_test_once() -> None:
    text = (ROOT / "Makefile").read_text()
    assert re.findall(r"^(test\S*):.*\n\t\$\(TESTS\) -m (.*)$", text, re.MULTILINE) == [
        ("test", '"not long"'),
        ("test-all", "long"),
    ]
    assert re.search(r"^test-all: test ", text, re.MULTILINE)
    steps = re.findall(r"\bmake (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert steps == ["lint", "test-all"]


def test_the_parts_of_the_long_tests_are_all_of_them_once() -> None:
    files = [f"{room}/test_{number}.py" for room in ("models", "eval") for number in range(60)]
    for parts in (1, 3, 7):
        names = [f"{k}/{parts}" for k in range(1, parts + 1)]
        of = [[file for file in files if in_part(file, name)] for name in names]
        assert sorted(sum(of, [])) == sorted(files) and all(of)
    for wrong in ("0/3", "4/3", "1", "a/b"):
        with pytest.raises(ValueError, match="part of the long tests"):
            in_part(files[0], wrong)
