"""What tests take from inner modules, which no face shows: by how they use it.

A face is a package (`dpsynth.schema`), a room that is one file (`dpsynth.errors`), or a file of
`_util`, which has no other face. A test that names another module has to change when that moves:
`tests/inner_parts.toml` says why each of them does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = "tests/inner_parts.toml"
PACKAGES = ("dpsynth", "models", "eval")

# how a test uses an inner module
CONSTANT = "constant"  # reads a constant
OWN_NAME = "own name"  # takes what bears the name of the module
TYPE = "type"  # takes what it only writes in annotations
PART = "part"  # takes anything else
LIMIT = "limit"  # puts another constant in the place of one
REPLACED = "replaced"  # puts something else in the place of a name, or hands the module over
NAMED = "named"  # names the module in a text
USES = (CONSTANT, OWN_NAME, TYPE, PART, LIMIT, REPLACED, NAMED)

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_DOTTED = re.compile(r"dpsynth(?:\.\w+)+\.?")
_IN_TEXT = re.compile(r"^[ \t]*from[ \t]+(dpsynth[.\w]*)[ \t]+import[ \t]+(.+)$", re.MULTILINE)
_IMPORT_IN_TEXT = re.compile(r"\bimport[ \t]+(\w[\w., ]*)")


@dataclass(frozen=True, order=True)
class Use:
    """What a test takes from an inner module.

    Attributes:
        module: the inner module, as it is imported.
        use: how: one of `USES`.
        name: what is taken or replaced, "" for the module as a whole.
        test: the file, from the root.
        line: where in it.
        imported: whether an import statement names it, and not a text.
    """

    module: str
    use: str
    name: str
    test: str
    line: int
    imported: bool


def modules_of(root: Path) -> set[str]:
    """Return the inner modules of a checkout."""
    found = set()
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts if parts[0] == "dpsynth" else ("dpsynth", *parts)
            if path.name != "__init__.py" and len(parts) > 2 and parts[1] != "_util":
                found.add(".".join(parts))
    return found


def shown_by_faces(root: Path) -> set[str]:
    """Return what the faces of a checkout show, by full names: some are names of files, too."""
    found = set()
    for package in PACKAGES:
        for path in (root / package).rglob("__init__.pyi"):
            parts = path.relative_to(root).parent.parts
            face = ".".join(parts if parts[0] == "dpsynth" else ("dpsynth", *parts))
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    found |= {f"{face}.{alias.asname or alias.name}" for alias in node.names}
    return found


def uses_of_tests(root: Path) -> list[Use]:
    """Return what the tests of a checkout take from inner modules."""
    modules, shown = modules_of(root), shown_by_faces(root)
    found: set[Use] = set()
    for path in sorted((root / "tests").rglob("*.py")):
        file = path.relative_to(root).as_posix()
        found |= set(uses_in(path.read_text(), file, modules, shown))
    return sorted(found)


def problems(
    uses: Iterable[Use], table: Iterable[Mapping[str, Any]], modules: Iterable[str]
) -> list[str]:
    """Return what is wrong with the table of reasons, a sentence each.

    Args:
        uses: what tests take from inner modules.
        table: entries of `tests/inner_parts.toml`.
        modules: the inner modules that there are.
    """
    uses, modules = list(uses), set(modules)
    listed = {(module, entry["use"]) for entry in table for module in entry["modules"]}
    there = {(one.module, one.use) for one in uses}
    found = [
        f"{one.test}:{one.line}: {one.name or 'all'} of {one.module} ({one.use}): Import it from a "
        f"face if one shows it. Otherwise name the module in {TABLE}, below a reason that is true "
        f"of this test and whose use is `{one.use}`."
        for one in uses
        if (one.module, one.use) not in listed
    ]
    for module, use in sorted(listed - there):
        found.append(
            f"{TABLE}: no test uses {module} as `{use}`; remove the line."
            if module in modules
            else f"{TABLE}: {module} does not exist; write where it is today, or remove the line."
        )
    return found


def uses_in(
    text: str, test: str, modules: Iterable[str], shown: Iterable[str] = ()
) -> Iterator[Use]:
    """Yield what one test takes from inner modules, in statements and in texts.

    Args:
        text: of the test.
        test: its file, as it is to be named.
        modules: the inner modules.
        shown: full names that faces show: an import of one is no import of the file of that name.
    """
    modules, shown = set(modules), set(shown)
    tree = ast.parse(text)
    only_types = _only_in_annotations(tree)
    replaced: set[tuple[str, str]] = set()  # in texts: their originals are no further use
    whole: list[tuple[str, str, int]] = []  # the name in the test, the module and the line
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if node.module in modules:
                    use = _read(node.module, alias.name)
                    if use == PART and (alias.asname or alias.name) in only_types:
                        use = TYPE
                    yield Use(node.module, use, alias.name, test, node.lineno, imported=True)
                elif full in modules and full not in shown:
                    whole.append((alias.asname or alias.name, full, node.lineno))
        elif isinstance(node, ast.Import):
            whole += [(one.asname or one.name, one.name, node.lineno) for one in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, use, name in _in_text(node.value, modules):
                replaced |= {(module, name)} if use in (LIMIT, REPLACED) else set()
                yield Use(module, use, name, test, node.lineno, imported=False)
    for alias_name, module, line in whole:
        if module in modules:
            taken = set(_taken(tree, alias_name)) or {("", True)}
            for name, is_replaced in taken:
                if not is_replaced and ((name, True) in taken or (module, name) in replaced):
                    continue  # the original, for what is put in its place
                use = _replaced(name) if is_replaced else _read(module, name)
                yield Use(module, use, name, test, line, imported=True)


def _read(module: str, name: str) -> str:
    if _CONSTANT.fullmatch(name):
        return CONSTANT
    return OWN_NAME if name == module.rsplit(".", 1)[-1] else PART


def _replaced(name: str) -> str:
    return LIMIT if _CONSTANT.fullmatch(name) else REPLACED


def _only_in_annotations(tree: ast.Module) -> set[str]:
    """Return the names that stand in annotations and nowhere else."""
    written: set[str] = set()
    used: set[str] = set()

    def read(node: ast.AST, annotation: bool) -> None:
        if isinstance(node, ast.Name):
            (written if annotation else used).add(node.id)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    read(child, annotation or field in ("annotation", "returns"))

    read(tree, annotation=False)
    return written - used


def _taken(tree: ast.AST, alias: str) -> Iterator[tuple[str, bool]]:
    """Yield what is taken from a module that a test knows by a name, and whether it is replaced."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and _binds(node, alias):
            continue  # there, the name is something else
        if isinstance(node, ast.Attribute) and _is(node.value, alias):
            yield node.attr, isinstance(node.ctx, ast.Store)
        handed = (
            node.args
            if isinstance(node, ast.Call)
            else node.elts
            if isinstance(node, ast.Tuple | ast.List)
            else []
        )
        if any(_is(one, alias) for one in handed):
            second = handed[1] if _is(handed[0], alias) and len(handed) > 1 else None
            yield str(second.value) if isinstance(second, ast.Constant) else "", True
        yield from _taken(node, alias)


def _binds(function: ast.FunctionDef | ast.Lambda, name: str) -> bool:
    """Tell whether a function has an argument or a variable of a name, and imports no other."""
    own = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    if isinstance(function, ast.FunctionDef):
        own |= {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
    return name in own


def _is(node: ast.AST, alias: str) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == alias


def _in_text(text: str, modules: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield module, use and name of what a text names: a dotted name, or code with imports."""
    if _DOTTED.fullmatch(text):
        parts = text.rstrip(".").split(".")
        for size in range(len(parts), 2, -1):
            module = ".".join(parts[:size])
            if module in modules:
                name = parts[size] if size < len(parts) else ""
                yield module, _replaced(name) if name else NAMED, name
                break
        return
    for source, names in _IN_TEXT.findall(text):
        for name in re.findall(r"\w+", re.sub(r"\s+as\s+\w+|#.*|;.*", "", names)):
            if source in modules:
                yield source, _read(source, name), name
            elif f"{source}.{name}" in modules:
                yield f"{source}.{name}", NAMED, ""
    for names in _IMPORT_IN_TEXT.findall(text):
        for module in re.findall(r"dpsynth[.\w]*", names):
            if module in modules:
                yield module, NAMED, ""
