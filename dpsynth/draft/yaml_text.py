"""A draft as YAML with comments, which no YAML library writes.

Texts are quoted unless every version of YAML reads them as the same text, so that a name such as
``no`` or ``1e5`` of a hostile or careless document cannot become anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpsynth.draft.proposal import Proposal
from dpsynth.errors import printable

WIDTH = 100  # characters of a line, for lists
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?: [A-Za-z0-9_]+)*")
_WORDS = frozenset("y n yes no on off true false null nan inf".split())


def scalar(value: object) -> str:
    """Write one value.

    >>> scalar("age"), scalar("no"), scalar("a: b"), scalar(0.1), scalar(True)
    ('age', '"no"', '"a: b"', '0.1', 'true')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _escaped(sign) for sign in quoted)


def _escaped(sign: str) -> str:
    """Write a character that is not printable; JSON's surrogate pairs are not YAML."""
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"


def _number(value: float) -> str:
    text = repr(value)
    if "e" in text and "." not in text:  # 1e-06 is text to YAML 1.1
        text = text.replace("e", ".0e")
    return text


def flow(value: object) -> str:
    """Write a value on one line.

    >>> flow({"minimum": 0, "maximum": 1.5}), flow(["F", "M"]), flow({"1": None})
    ('{minimum: 0, maximum: 1.5}', '[F, M]', '{"1": null}')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def comment(text: str) -> str:
    """Write a text as a comment of one line: line ends and control characters are escaped.

    >>> comment("a" + chr(10) + "b")
    '# a b'
    """
    return "# " + printable(" ".join(text.split()))


def field_lines(proposal: Proposal) -> Iterator[str]:
    """Write one field, with the comments of its keys and the notes above it."""
    for note in proposal.notes:
        yield f"  {comment(note)}"
    mark = "  - "
    for key, value in proposal.document.items():
        if key == "dpsynth":
            yield f"{mark}{key}:"
            for name, inner in value.items():
                yield _line(
                    f"      {name}: {flow(inner)}", proposal.comments.get(f"dpsynth.{name}")
                )
            for note in proposal.inner:
                yield f"      {comment(note)}"
        else:
            yield from _value_lines(mark, key, value, proposal.comments.get(key))
        mark = "    "


def _value_lines(mark: str, key: str, value: Any, note: str | None) -> Iterator[str]:
    """Write a key of a field: on one line, or a line for each entry of a long list."""
    line = f"{mark}{key}: {flow(value)}"
    enum = value.get("enum") if isinstance(value, dict) else None
    if len(line) <= WIDTH or not (isinstance(value, list) or isinstance(enum, list)):
        yield _line(line, note)
        return
    yield _line(f"{mark}{key}:", note)
    if isinstance(enum, list):
        yield "      enum:"
        yield from (f"        - {flow(one)}" for one in enum)
    else:
        yield from (f"      - {flow(one)}" for one in value)


def _line(line: str, note: str | None) -> str:
    return f"{line}  {comment(note)}" if note else line
