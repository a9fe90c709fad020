"""Count what the house is judged by, in any checkout: `python bench/house.py --figures`.

Everything is read off the syntax trees of dpsynth/, models/, eval/ and tests/; nothing is imported,
so that an earlier checkout can be counted by the same rules. What each figure counts
stands in `counted`.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from inner_parts import Use, uses_of_tests

ROOMS = ("dpsynth", "models", "eval")
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
# what tells the linked one of two twins from the other: `Run` and `Run`, `linked_frames`
_LINKED = re.compile(r"cohorts?|linked|histor(?:y|ies)", re.IGNORECASE)
_SHAPES = ("zeros", "ones", "empty", "full", "reshape", "transpose", "broadcast_to", "expand_dims")
_PLAIN = (0, 1, 2)


@dataclass(frozen=True)
class Module:
    """A file of code.

    Attributes:
        name: as it is imported.
        path: where it lies.
        tree: its syntax.
    """

    name: str
    path: Path
    tree: ast.Module

    @property
    def is_face(self) -> bool:
        """Whether it is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @cached_property
    def lines(self) -> set[int]:
        """Lines of code: no blank ones, comments or docstrings."""
        with self.path.open("rb") as file:
            tokens = [one for one in tokenize.tokenize(file.readline) if one.type not in _NO_CODE]
        found = {line for one in tokens for line in range(one.start[0], one.end[0] + 1)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                if isinstance(node.value.value, str):
                    found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return found

    @property
    def import_lines(self) -> int:
        """Lines of code that import."""
        nodes = (n for n in ast.walk(self.tree) if isinstance(n, ast.Import | ast.ImportFrom))
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


class House:
    """The packages of one checkout."""

    def __init__(self, root: Path) -> None:
        """Read the checkout at a folder."""
        self.root = root
        self.modules: dict[str, Module] = {}
        self._shown: dict[str, dict[str, str]] = {}  # by face and name: the module it comes from
        for room in ROOMS:
            for path in sorted((root / room).rglob("*.py")):
                parts = path.relative_to(root).with_suffix("").parts
                parts = parts if parts[0] == "dpsynth" else ("dpsynth", *parts)
                name = ".".join(parts).removesuffix(".__init__")
                self.modules[name] = Module(name, path, ast.parse(path.read_text()))
        for name, module in self.modules.items():
            stub = module.path.with_suffix(".pyi")
            if module.is_face and stub.exists():
                tree = ast.parse(stub.read_text())
                self._shown[name] = {
                    known: source for source, known in _imported(tree, name, face=True) if known
                }

    def _origin(self, module: str, name: str | None) -> str | None:
        """Return the module that an import reads: what a face shows comes from where it lies."""
        for _ in range(len(self.modules)):
            if name and f"{module}.{name}" in self.modules:
                return f"{module}.{name}"
            further = self._shown.get(module, {}).get(name or "")
            if further is None:
                break
            module = further
        return module if module in self.modules else None

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules that each module imports, for types or not."""
        found: dict[str, set[str]] = {}
        for name, module in self.modules.items():
            pairs = _imported(module.tree, name, face=module.is_face)
            there = {self._origin(source, known) for source, known in pairs}
            found[name] = {one for one in there if one is not None and one != name}
        return found

    @cached_property
    def chain(self) -> list[str]:
        """The longest chain of modules of which each imports the next; circles are cut."""
        best: dict[str, list[str]] = {}

        def longest(name: str, above: frozenset[str]) -> list[str]:
            if name not in best:
                below = (
                    longest(other, above | {name})
                    for other in sorted(self.imports[name])
                    if other not in above and not self.modules[other].is_face
                )
                best[name] = [name, *max(below, key=len, default=[])]
            return best[name]

        return max((longest(name, frozenset()) for name in self.modules), key=len)

    @property
    def read_by_one(self) -> list[str]:
        """Modules that exactly one other module imports, and no face shows."""
        readers: dict[str, set[str]] = defaultdict(set)
        for name, others in self.imports.items():
            for other in others:
                readers[other].add(name)
        for face, names in self._shown.items():
            for known, source in names.items():
                readers[self._origin(source, known) or source].add(face)
        return [name for name in self.modules if len(readers[name]) == 1]

    @cached_property
    def classes(self) -> Counter[str]:
        """How many classes bear each name."""
        nodes = (node for module in self.modules.values() for node in ast.walk(module.tree))
        return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))

    @property
    def twins(self) -> list[tuple[str, str]]:
        """Public definitions of one table with those of linked ones, by their names."""
        names = {
            node.name
            for module in self.modules.values()
            for node in module.tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
        }
        linked = {name for name in names if _LINKED.search(name)}
        plain = {name.replace("_", "").lower(): name for name in sorted(names - linked)}
        pairs = (
            (plain.get(_LINKED.sub("", name).replace("_", "").lower()), name) for name in linked
        )
        return sorted((one, other) for one, other in pairs if one)

    def numbers(self, room: str) -> list[float]:
        """Numbers written into the code of a room, but 0, 1, 2, indices and shapes of arrays."""
        found = []
        for name, module in self.modules.items():
            if name.split(".")[:2] == ["dpsynth", room]:
                found += list(_numbers(module.tree))
        return found

    @cached_property
    def uses_of_tests(self) -> list[Use]:
        """What tests take from inner modules."""
        return uses_of_tests(self.root)

    def counted(self) -> dict[str, float]:
        """Return every figure by what it counts."""
        code = {name: len(module.lines) for name, module in self.modules.items()}
        lines = sum(code.values())
        shared = {name: count for name, count in self.classes.items() if count > 1}
        imported = [one for one in self.uses_of_tests if one.imported]
        return {
            "modules (faces left out)": sum(not one.is_face for one in self.modules.values()),
            "folders": sum(one.is_face for one in self.modules.values()),
            "lines of code (no blank lines, comments, docstrings)": lines,
            "modules in the longest chain of imports": len(self.chain),
            "lines that import, % of code": round(
                100 * sum(one.import_lines for one in self.modules.values()) / lines, 1
            ),
            "modules that one other module reads": len(self.read_by_one),
            "names borne by several classes": len(shared),
            "classes that bear such a name": sum(shared.values()),
            "numbers in models/ (not 0, 1, 2, indices, shapes)": len(self.numbers("models")),
            "twins of one table and linked ones (by their names)": len(self.twins),
            "imports of inner modules in tests": len(imported),
            "inner modules that tests import": len({one.module for one in imported}),
            "inner modules that tests name in texts": len(
                {one.module for one in self.uses_of_tests if not one.imported}
            ),
        }


def _imported(tree: ast.Module, name: str, *, face: bool) -> Iterator[tuple[str, str | None]]:
    """Yield the modules of dpsynth that are imported, with the name taken from each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, None) for one in node.names if one.name.startswith("dpsynth"))
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                kept = name.split(".")
                kept = kept[: len(kept) - node.level + face]
                source = ".".join([*kept, source] if source else kept)
            if source.split(".")[0] == "dpsynth":
                yield from ((source, one.name) for one in node.names)


def _numbers(node: ast.AST) -> Iterator[float]:
    """Yield the numbers of a syntax tree, but those of indices, shapes and the plain ones."""
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Subscript) and child is node.slice:
            continue
        if isinstance(child, ast.keyword) and child.arg in ("shape", "axis", "dim", "size"):
            continue
        if isinstance(child, ast.Call) and _called(child) in _SHAPES:
            continue
        if isinstance(child, ast.Constant):
            value = child.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                if value not in _PLAIN:
                    yield value
            continue
        yield from _numbers(child)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
