"""Where the code reads private rows or draws for a mechanism: calls, found in the syntax tree.

A name is followed through the imports of its file, whatever it is called there. Methods are found
by their names alone.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..support.source_code import ROOT, tree_of

SOURCES = ("entropy", "source", "_entropy", "OsEntropy")
COINS = ("uniform", "normal", "integers", "permutation")
METHODS = ("discrete_gaussian", "discrete_laplace", "top", "sample_batch", "chunks")
FOLDERS = ("dpsynth", "models", "eval")


@dataclass(frozen=True)
class CallSite:
    """A use of a reader, a mechanism or a draw.

    Attributes:
        name: of what is used.
        file: relative to the project.
        first: line on which it begins; last: on which it ends.
        function: in which it is.
        called: whether it is called there, and not handed on.
    """

    name: str
    file: str
    first: int
    last: int
    function: str
    called: bool

    def is_reached(self, sites: set[tuple[str, str, int]]) -> bool:
        """Whether a run called it there; what is handed on is called anywhere."""
        if not self.called:
            return any(name == self.name for name, _, _ in sites)
        return any(
            name == self.name and file == self.file and self.first <= line <= self.last
            for name, file, line in sites
        )


def files() -> Iterator[str]:
    """Every file of the product, relative to the project."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path.relative_to(ROOT).as_posix()


@functools.cache
def call_sites(watched: tuple[Any, ...]) -> tuple[CallSite, ...]:
    """All uses of these functions and classes, and of the methods, in the product."""
    found = []
    names = "|".join(sorted({one.__name__ for one in watched}))
    used = re.compile(rf"\b({names})\b|\.({'|'.join((*METHODS, *COINS))})\b")
    for file in files():
        if not used.search((ROOT / file).read_text()):
            continue
        found += sites_in(tree_of(ROOT / file), file, watched)
    return tuple(found)


def sites_in(tree: ast.Module, file: str, watched: Sequence[Any]) -> list[CallSite]:
    """All uses in one file."""
    wanted = {one.__name__ for one in watched}
    known = dict(_imported(tree, file, wanted))
    real = {id(getattr(one, "__wrapped__", one)): one.__name__ for one in watched}
    names = {name: real[id(one)] for name, one in known.items() if id(one) in real}
    modules = {
        name: one for name, one in known.items() if hasattr(one, "__path__") or _is_module(one)
    }
    places: list[CallSite] = []
    _walk(tree, file, "", names, modules, real, places)
    return places


def _is_module(value: Any) -> bool:
    return type(value).__name__ == "module"


def _walk(
    node: ast.AST,
    file: str,
    function: str,
    names: Mapping[str, str],
    modules: Mapping[str, Any],
    real: Mapping[int, str],
    places: list[CallSite],
) -> None:
    skipped = ()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = f"{function}.{node.name}".lstrip(".")
        skipped = (node.returns,)
    if isinstance(node, ast.arg | ast.AnnAssign):
        skipped = (node.annotation,)
    if isinstance(node, ast.Call):
        name = _used(node.func, names, modules, real)
        if name:
            places.append(CallSite(name, file, node.lineno, node.end_lineno or 0, function, True))
            skipped = (node.func,)
            if isinstance(node.func, ast.Attribute):
                _walk(node.func.value, file, function, names, modules, real, places)
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        name = _used(node, names, modules, real)
        if name and name not in ("chunks", "top", "OsEntropy", "SeededEntropy"):
            places.append(CallSite(name, file, node.lineno, node.end_lineno or 0, function, False))
    for child in ast.iter_child_nodes(node):
        if not any(child is one for one in skipped):
            _walk(child, file, function, names, modules, real, places)


def _used(
    node: ast.AST, names: Mapping[str, str], modules: Mapping[str, Any], real: Mapping[int, str]
) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name) and node.value.id in modules:
        one = getattr(modules[node.value.id], node.attr, None)
        return real.get(id(getattr(one, "__wrapped__", one)))
    if node.attr in METHODS:
        return node.attr
    owner = node.value.func if isinstance(node.value, ast.Call) else node.value
    last = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return node.attr if node.attr in COINS and last in SOURCES else None


def _imported(tree: ast.Module, file: str, wanted: set[str]) -> Iterator[tuple[str, Any]]:
    """What names stand for, by imports anywhere in a file, and by its own functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpsynth"):
            for alias in node.names:
                if alias.name in wanted or alias.name.islower():
                    yield alias.asname or alias.name, _attribute(str(node.module), alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("dpsynth") and alias.asname:
                    yield alias.asname, importlib.import_module(alias.name)
    own = file.removesuffix(".py").replace("/", ".")
    own = own if own.startswith("dpsynth") else f"dpsynth.{own}"
    defined = {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    for name in defined & wanted:
        yield name, _attribute(own, name)


def _attribute(module: str, name: str) -> Any:
    try:
        one = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        try:
            one = importlib.import_module(f"{module}.{name}")
        except ImportError:
            return None
    return getattr(one, "__wrapped__", one)
