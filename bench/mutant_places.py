"""Where a definition stands, by its name: for mutations, and for the links of docs to code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PACKAGES = ("dpsynth", "models", "eval")


@dataclass(frozen=True)
class Definition:
    """A class, a function, or what a module or class assigns to a name.

    Attributes:
        file: where, from the root of the tree.
        text: the file's.
        start: the first character of its first line, decorators included.
        end: the character after its last line.
    """

    file: str
    text: str
    start: int
    end: int

    @property
    def module(self) -> str:
        """The module's name: ``dpsynth.models.base`` for ``models/base.py``."""
        parts = PurePosixPath(self.file).with_suffix("").parts
        parts = parts if parts[0] == "dpsynth" else ("dpsynth", *parts)
        return ".".join(parts).removesuffix(".__init__")

    @property
    def own(self) -> str:
        """The definition itself."""
        return self.text[self.start : self.end]

    def holds(self, pattern: str) -> bool:
        """Tell whether a pattern occurs once in it."""
        return self.own.count(pattern) == 1

    def replaced(self, old: str, new: str) -> str:
        """Give the file's text with a pattern of the definition replaced."""
        return self.text[: self.start] + self.own.replace(old, new) + self.text[self.end :]


def definitions(root: Path) -> Mapping[str, tuple[Definition, ...]]:
    """Return the definitions of the packages below a folder, by dotted name without the module."""
    found: dict[str, list[Definition]] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text()
            starts = [0]
            for line in text.splitlines(keepends=True):
                starts.append(starts[-1] + len(line))
            for name, first, last in _named(ast.parse(text)):
                one = Definition(
                    path.relative_to(root).as_posix(), text, starts[first - 1], starts[last]
                )
                found.setdefault(name, []).append(one)
    return {name: tuple(places) for name, places in found.items()}


def names_in(text: str) -> set[str]:
    """Return the dotted names that a file of code defines."""
    return {name for name, _, _ in _named(ast.parse(text))}


def _named(node: ast.AST, within: str = "", local: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield dotted name, first and last line; what a function assigns is no definition."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            yield f"{within}{child.name}", first, child.end_lineno or first
            yield from _named(child, f"{within}{child.name}.", not isinstance(child, ast.ClassDef))
        elif isinstance(child, ast.stmt):
            targets = (
                child.targets
                if isinstance(child, ast.Assign)
                else [child.target]
                if isinstance(child, ast.AnnAssign)
                else []
            )
            for target in targets:
                if isinstance(target, ast.Name) and not local:
                    yield f"{within}{target.id}", child.lineno, child.end_lineno or child.lineno
            yield from _named(child, within, local)
