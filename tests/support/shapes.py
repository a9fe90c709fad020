"""The shape of a JSON document: which keys it has, and of what type their values are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

Shape = dict[str, frozenset[str]]  # types by path; after a path with "?", what holds it may lack it

TYPES = {bool: "truth", int: "number", float: "number", str: "text", type(None): "null"}
NAME = "<name>"


def _paths(document: object, maps: Collection[str], path: str) -> Iterator[tuple[str, str]]:
    """Yield each path of a document with the type of what stands there."""
    if isinstance(document, Mapping):
        yield path, "object"
        for key, value in document.items():
            inner = NAME if path in maps else str(key)
            yield from _paths(value, maps, f"{path}.{inner}" if path else inner)
    elif isinstance(document, list | tuple):
        yield path, "list"
        for value in document:
            yield from _paths(value, maps, f"{path}[]")
    else:
        yield path, TYPES[type(document)]


def holder(path: str) -> str:
    """Return the path of what holds the last key of a path."""
    return path.rpartition(".")[0]


def shape_of(documents: Iterable[object], maps: Collection[str] = ()) -> Shape:
    """Return the shape that documents have together.

    Args:
        documents: of plain values, lists, and mappings with text as keys.
        maps: paths of the objects whose keys are names that somebody chose (columns, tables).
    """
    objects: dict[str, int] = {}
    seen: dict[str, int] = {}
    types: dict[str, set[str]] = {}
    for document in documents:
        for path, kind in _paths(document, maps, ""):
            types.setdefault(path, set()).add(kind)
            seen[path] = seen.get(path, 0) + 1
            objects[path] = objects.get(path, 0) + (kind == "object")
    return {
        path + "?" * _may_lack(path, seen[path], objects): frozenset(kinds)
        for path, kinds in types.items()
        if path
    }


def _may_lack(path: str, seen: int, objects: Mapping[str, int]) -> bool:
    return not path.endswith((NAME, "[]")) and seen < objects.get(holder(path), 0)


def departures(shape: Shape, promised: Shape) -> list[str]:
    """Say where a document's shape is not the promised one; a key that may lack may be there."""
    found = []
    for path, kinds in shape.items():
        name = path.removesuffix("?")
        allowed = promised.get(f"{name}?", promised.get(name))
        if allowed is None:
            found.append(f"{name} is new")
        elif not kinds <= allowed:
            found.append(f"{name} is {', '.join(sorted(kinds - allowed))}")
        elif path != name and path not in promised:
            found.append(f"{name} is not always there")
    there = {path.removesuffix("?"): kinds for path, kinds in shape.items()}
    for path in promised:
        needed = not path.endswith(("?", NAME, "[]"))
        held = not holder(path) or "object" in there.get(holder(path), ())
        if needed and path not in there and held:
            found.append(f"{path} is gone")
    return found
