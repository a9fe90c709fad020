"""What findings say of several cells is said of one in the singular."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dpsynth.inspection
from dpsynth._util.formatting import agreeing
from dpsynth.inspection import Finding, Level, kept
from dpsynth.inspection.findings import Cause

SINGULAR = re.compile(
    r"(is|was|has|holds|lies|differs|looks|agrees|would|(below|above) the \w+ (is|would))\b"
)
PLURAL = re.compile(r"\b(them|their|is (dates|times|numbers|codes|limits)|that were)\b")


def said_of_cells() -> list[str]:
    """List what the room says of cells: the second argument of each cause, its variables left out.

    A message that is a variable is that which is given to this name.
    """
    found = {message for message, _ in kept._WORDS.values()}
    for path in Path(dpsynth.inspection.__path__[0]).rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("Cause", "Explanation"):
                    found |= {text for one in node.args[1:3] if (text := text_of(one))}
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id == "message" and (text := text_of(node.value)):
                    found.add(text)
    return sorted(text for text in found if re.match(r"[a-z]+ \w", text))


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    return ""


MESSAGES = said_of_cells()


def test_the_messages_are_found() -> None:
    assert len(MESSAGES) > 30
    assert "agree with a patient's key except for X" in MESSAGES
    for plural in ("agree with a key", "are dates", "is a date; a fit drops them"):
        assert not SINGULAR.match(plural) or PLURAL.search(plural), "the broken version is found"


@pytest.mark.parametrize("message", MESSAGES)
def test_one_cell_and_two(message: str) -> None:
    if message.startswith(("let ", "set ", "add ", "ask ", "export ", "hold more")):
        return  # a remedy, or the setting of one
    finding = Finding("x", "replaced", Level.NOTE, "", 3, 9, "", (Cause("a", 1, message, "r"),))
    [one] = [line.strip() for line in finding.lines() if "1 cell " in line]
    words = one.removeprefix("1 cell ")
    assert SINGULAR.match(words), words
    assert not PLURAL.search(words), words
    assert agreeing(2, message) == message
