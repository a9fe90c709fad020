"""Documents with something wrong anywhere in them, and the ways of writing them as JSON or YAML."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import yaml
from fuzz_bytes import damaged

Path = tuple[Any, ...]

TEXTS = (
    *("", " ", "TODO", "x", "other", "missing", "unit", "drop", "date", "number", "window", "1"),
    *("2000-01-01", "0001-01-01", "9999-12-31T23:59:59", "NaN", "%Y", "%", "1e5", "true", "~"),
    *("\0", "a\tb", "\x1b[2J", "\u202e", "\u2028", "e\u0301", "\U0001f9ec", "\x7f", "\ud800"),
    *("utf-16", "idna", "base64", "zlib", "undefined", "rot13", "../../etc/passwd", "/dev/zero"),
    *("a <= b", "age <= 3 => sex = 'F'", "((((", "x" * 300, "refuse", "clip", "a" * 70_000),
)
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 255, 4096, 65_537, 2**31, 2**53, 2**63, 2**64, 10**30, 10**400, -(10**400)),
    *(0.1, -0.0, 0.5, 1e-6, 1e-300, 5e-324, 1e300, 1.7e308, 1e16, 123456.789),
)
NOT_JSON = (float("nan"), float("inf"), -float("inf"))
DEEP = 100
TOO_DEEP = b"[" * 100_000  # in the place of a document that Python cannot write


def places(value: Any, way: Path = ()) -> Iterator[Path]:
    """Yield the way to every part of a document, the whole of it last."""
    keys = range(len(value)) if isinstance(value, list) else value if _maps(value) else ()
    for key in keys:
        yield from places(value[key], (*way, key))
    yield way


def changed(rng: Random, document: Any, *, maximum: int = 3) -> Any:
    """Return a copy of a document with one to ``most`` changes."""
    document = copy.deepcopy(document)
    for _ in range(1 + int(rng.random() ** 2 * maximum)):
        way = rng.choice(list(places(document)))
        if not way:
            document = _another(rng, document) if rng.random() < 0.2 else document
            continue
        part = document
        for key in way[:-1]:
            part = part[key]
        _change(rng, part, way[-1], document)
    return document


def _change(rng: Random, part: Any, key: Any, document: Any) -> None:
    """Change a part at a key: another value, no value, another key, a value from elsewhere."""
    what = rng.random()
    if what < 0.55:
        part[key] = _another(rng, part[key])
    elif what < 0.7:
        del part[key]
    elif what < 0.8:
        part[key] = copy.deepcopy(_at(document, rng.choice(list(places(document)))))
    elif isinstance(part, list):
        part.insert(rng.randrange(len(part) + 1), copy.deepcopy(part[key]))
        if rng.random() < 0.1:
            part *= rng.choice((2, 30, 300))
    elif rng.random() < 0.5:
        part[rng.choice(TEXTS)] = _another(rng, part[key])
    else:
        part[_respelt(rng, str(key))] = part.pop(key)


def _another(rng: Random, value: Any) -> Any:
    """Make a value: near the one that is there, or of any kind."""
    what = rng.random()
    if what < 0.2 and isinstance(value, str):
        return _respelt(rng, value)
    if what < 0.3 and type(value) in (int, float) and abs(value) < 1e300:
        return rng.choice((-value, value + 1, value * 10, value / 3, str(value), value * 1e-9))
    if what < 0.5:
        return rng.choice(TEXTS)
    if what < 0.75:
        return rng.choice(NUMBERS)
    if what < 0.78:
        return rng.choice(NOT_JSON)
    if what < 0.86:
        return rng.choice((None, True, False, [], {}))
    if what < 0.9:
        return _nested(rng.choice((3, 59, 62, DEEP)), rng)
    if what < 0.95:
        return [value] * rng.choice((1, 2, 30))
    return {rng.choice(TEXTS): value}


def _nested(levels: int, rng: Random) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def _respelt(rng: Random, text: str) -> str:
    place = rng.randrange(len(text) + 1)
    tail = rng.choice((text[place + 1 :], rng.choice(TEXTS) + text[place:], text[place:].upper()))
    return text[:place] + tail


def _at(document: Any, way: Path) -> Any:
    for key in way:
        document = document[key]
    return document


def _maps(value: Any) -> bool:
    return isinstance(value, Mapping)


def as_json(rng: Random, document: Any) -> bytes:
    """Write a document as JSON, now and then with what JSON does not allow."""
    try:
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    except RecursionError:
        return TOO_DEEP
    what = rng.random()
    if what < 0.03:
        text = text.replace("{", '{"name": 1, ', rng.randrange(1, 4))  # a key twice
    elif what < 0.05:
        text = "[" * rng.choice((50, 5000, 100_000)) + text
    elif what < 0.07:
        text = text.replace("1", "1" * rng.choice((400, 5000)), 1)
    return text.encode("utf-8", "surrogatepass")


def as_yaml(rng: Random, document: Any) -> bytes:
    """Write a document as YAML, now and then with aliases, tags, merges and bombs."""
    loose = rng.random() < 0.5
    try:
        text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=loose)
    except RecursionError:
        return TOO_DEEP
    except (yaml.YAMLError, UnicodeError):  # half a character
        return as_json(rng, document)
    if rng.random() < 0.15:
        lines = text.split("\n")
        lines.insert(rng.randrange(len(lines)), rng.choice(ODDITIES)(rng))
        text = "\n".join(lines)
    return text.encode("utf-8", "surrogatepass")


def _bomb(rng: Random) -> str:
    """Give the lines of "billion laughs"."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, rng.choice((3, 9, 40))):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines)


def _deep(rng: Random) -> str:
    return "deep: " + rng.choice("[{") * rng.choice((50, 61, 5000, 100_000))


ODDITIES = (
    _bomb,
    _deep,
    lambda rng: "loop: &loop [*loop]",
    lambda rng: "name: !!python/object/apply:os.system ['true']",
    lambda rng: "? [a, b]\n: 1",
    lambda rng: "<<: &m {name: x, fields: [*m]}",
    lambda rng: "<<: [{name: x}, {name: y}]",
    lambda rng: "stamp: 2001-12-14t21:59:43.10-05:00",
    lambda rng: "day: 2001-99-99",
    lambda rng: "base: " + rng.choice(("1:59:59", "0o17", "0b1", "1_000", "190:20:30.15", ".inf")),
    lambda rng: "--- \nname: second document",
    lambda rng: "text: |\n  " + "x" * rng.choice((10, 100_000)),
    lambda rng: "name: twice",
    lambda rng: "digits: " + "9" * rng.choice((400, 5000)),
)


def document_text(rng: Random, document: Any, *, is_json: bool) -> bytes:
    """Write a document that was changed, or one as it is with its bytes damaged, or both."""
    what = rng.random()
    if what < 0.75:
        document = changed(rng, document)
    content = (as_json if is_json else as_yaml)(rng, document)
    return damaged(rng, content) if what > 0.65 else content
