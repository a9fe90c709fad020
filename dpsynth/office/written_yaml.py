"""A YAML file that people and this office write by turns: read with its comments, changed in place.

A page shows what the comments of a draft ask, so the file itself is all that there is to keep. A
change touches the keys that it changes, and no other line: comments, order and spelling of the rest
stay as somebody wrote them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from dpsynth._util.field_reader import is_todo
from dpsynth._util.strict_yaml import parse_yaml
from dpsynth._util.whole_files import read_whole
from dpsynth.draft import flow
from dpsynth.errors import InputError, SchemaError
from dpsynth.files import write_atomically

MAX_FILE = 4 * 2**20  # bytes, as of a schema
Place = tuple[str | int, ...]
_Composer: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class WrittenYaml:
    """What stands in a file.

    Attributes:
        text: of the file; empty if there is none yet.
        source: what messages call it.
    """

    text: str
    source: str

    @classmethod
    def read(cls, path: Path) -> WrittenYaml:
        """Read a file; one that is missing is empty.

        Raises:
            InputError: it cannot be read, or is not UTF-8.
        """
        if not path.exists():
            return cls("", path.name)
        content = read_whole(path, largest=MAX_FILE)
        try:
            return cls(content.decode("utf-8-sig").replace("\r\n", "\n"), path.name)
        except UnicodeDecodeError:
            raise InputError(f"{path.name} is not UTF-8; save it as UTF-8") from None

    @property
    def sha256(self) -> str:
        """What a form of a page carries, so that a change made meanwhile is seen."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def document(self) -> dict[str, Any]:
        """What the file says; nothing if there is none yet.

        Raises:
            InputError: it is not plain YAML, or not a mapping.
        """
        document = parse_yaml(self.text.encode(), self.source) if self.text.strip() else {}
        if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
            raise InputError(f"{self.source}: lines such as key: value are expected")
        return document

    @cached_property
    def _node(self) -> Any:
        return yaml.compose(self.text, Loader=_Composer)

    @cached_property
    def comments(self) -> dict[Place, tuple[str, ...]]:
        """The comments, by what they are about: a key whose line they end, an entry below, a part.

        Those above everything are about the empty place.
        """
        return _comments(self.text, self._node) if self.text.strip() else {}

    @cached_property
    def _notes(self) -> dict[Place, list[str]]:
        """The comments, by each place that what they are about lies in."""
        found: dict[Place, list[str]] = {}
        for about, notes in self.comments.items():
            for length in range(len(about) + 1):
                found.setdefault(about[:length], []).extend(notes)
        return found

    def notes(self, place: Place) -> tuple[str, ...]:
        """Return the comments about a part and all that is in it, each once."""
        return tuple(dict.fromkeys(self._notes.get(place, ())))

    def changed(self, document: Mapping[str, Any]) -> WrittenYaml:
        """Return the file with another content.

        Args:
            document: all of it; what it does not change stays as it is written.

        Raises:
            InputError: the file is written in a way that cannot be changed in place, such as with
                anchors.
        """
        if not self.text.strip():
            lines = [f"{flow(str(key))}: {flow(value)}" for key, value in document.items()]
            return WrittenYaml("\n".join(lines) + "\n", self.source)
        edits = sorted(_edits(self.text, self._node, self.document, document), reverse=True)
        text = self.text
        for start, end, words in edits:
            text = text[:start] + words + text[end:]
        new = WrittenYaml(text, self.source)
        is_meant = False
        with suppress(SchemaError):
            is_meant = bool(new.document == document)
        if not is_meant:
            raise InputError(
                f"{self.source} is written in a way that this page cannot change without losing "
                "something, such as with anchors; change it in a text editor"
            )
        return new

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        write_atomically(path, self.text.encode())


def at(document: Any, place: Place) -> Any:
    """Return a part of a document; None where there is none."""
    for step in place:
        if isinstance(step, int):
            inside = isinstance(document, list) and 0 <= step < len(document)
            document = document[step] if inside else None
        else:
            document = document.get(step) if isinstance(document, Mapping) else None
    return document


def with_part(document: Any, place: Place, part: Any) -> Any:
    """Return a document with another part; None takes it out."""
    if not place:
        return part
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        return [with_part(one, rest, part) if n == step else one for n, one in enumerate(document)]
    inner = with_part(dict(document or {}).get(step), rest, part)
    if inner is None:
        return {key: value for key, value in document.items() if key != step}
    return {**(document or {}), step: inner}


# changes ------------------------------------------------------------------------------------------

_Edit = tuple[int, int, str]


def _edits(text: str, node: Any, old: Any, new: Any) -> Iterator[_Edit]:
    """Yield what to replace, so that a node that says ``old`` says ``new``."""
    if old == new and type(old) is type(new):
        return
    if isinstance(node, yaml.MappingNode) and not node.flow_style and isinstance(new, Mapping):
        yield from _of_mapping(text, node, old, new)
    elif (
        isinstance(node, yaml.SequenceNode)
        and not node.flow_style
        and isinstance(new, list)
        and len(new) == len(node.value)
    ):
        for part, before, after in zip(node.value, old, new, strict=True):
            yield from _edits(text, part, before, after)
    else:
        yield node.start_mark.index, _end(text, node), flow(new)


def _of_mapping(
    text: str, node: Any, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[_Edit]:
    pairs = node.value
    if not new:  # no block says that: the braces stand where the first key stood
        yield pairs[0][0].start_mark.index, _end(text, node), "{}"
        return
    for number, (key, value) in enumerate(pairs):
        name = key.value
        start, end = key.start_mark.index, _end(text, value)
        if name not in new:
            if number == 0 and len(pairs) > 1 and _begins_entry(text, start):
                yield start, pairs[1][0].start_mark.index, ""
            else:
                yield text.rfind("\n", 0, start) + 1, _line_end(text, end) + 1, ""
        elif old[name] != new[name] or type(old[name]) is not type(new[name]):
            blocks = (
                isinstance(value, yaml.MappingNode | yaml.SequenceNode) and not value.flow_style
            )
            alike = type(old[name]) is type(new[name]) and bool(new[name])
            if blocks and alike and not _another_list(old[name], new[name]):
                yield from _edits(text, value, old[name], new[name])
            else:
                keep = text[end : _line_end(text, end)] if _is_open(new[name]) else ""
                yield start, _line_end(text, end), f"{_key(name)}: {flow(new[name])}{keep}"
    added = [name for name in new if name not in old]
    if added:
        indent = " " * pairs[-1][0].start_mark.column
        place = _line_end(text, _end(text, pairs[-1][1]))
        words = "".join(f"\n{indent}{_key(name)}: {flow(new[name])}" for name in added)
        yield place, place, words


def _another_list(old: Any, new: Any) -> bool:
    return isinstance(new, list) and len(old) != len(new)


def _key(name: object) -> str:
    return flow(name)


def _is_open(value: Any) -> bool:
    """Whether something in a value is still TODO, so that the comment is still a question."""
    if isinstance(value, Mapping):
        return any(map(_is_open, value.values()))
    return any(map(_is_open, value)) if isinstance(value, list) else is_todo(value)


def _end(text: str, node: Any) -> int:
    """Return where the text of a node ends; the mark of a block stands at what follows it."""
    if isinstance(node, yaml.ScalarNode):
        end: int = node.end_mark.index
        return end if node.style not in ("|", ">") else len(text[:end].rstrip())
    if node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(text, last[1] if isinstance(last, tuple) else last)


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end


def _begins_entry(text: str, index: int) -> bool:
    """Whether a key stands behind the dash of an entry of a list."""
    return text[text.rfind("\n", 0, index) + 1 : index].strip() == "-"


# comments -----------------------------------------------------------------------------------------


def _comments(text: str, node: Any) -> dict[Place, tuple[str, ...]]:
    lines = text.split("\n")
    taken = _scalars(text, node)
    keys: dict[int, list[tuple[int, Place]]] = {}
    for place, mark in _places(node, ()):
        keys.setdefault(mark.line, []).append((mark.column, place))
    content = sorted(keys)
    columns = {place: column for known in keys.values() for column, place in known}
    found: dict[Place, list[str]] = {}
    start, before = 0, 0
    for number, line in enumerate(lines):
        sign = _comment_start(line, start, taken)
        start += len(line) + 1
        while before < len(content) and content[before] <= number:
            before += 1
        if sign is None:
            continue
        note = line[sign:].lstrip("#").strip()
        if line[:sign].strip():
            place = keys[content[before - 1]][-1][1] if before else ()
        else:
            following = keys[content[before]] if before < len(content) else []
            place = _about(sign, columns, keys[content[before - 1]] if before else [], following)
        if note:
            found.setdefault(place, []).append(note)
    return {place: tuple(notes) for place, notes in found.items()}


def _about(
    column: int,
    columns: Mapping[Place, int],
    before: list[tuple[int, Place]],
    after: list[tuple[int, Place]],
) -> Place:
    """Say what a comment on a line of its own is about.

    Args:
        column: of its sign.
        columns: of every key and entry.
        before: those of the last line above, with their columns.
        after: those of the next line below.
    """
    if after:  # an entry of a list, whose dash stands below the sign
        dashed, place = after[0]
        if place and isinstance(place[-1], int) and dashed == column + 2:
            return place
    last: Place = before[-1][1] if before else ()
    for length in range(len(last), 0, -1):
        if columns.get(last[:length]) == column:
            return last[: length - 1]
    return ()


def _places(node: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield each key and each entry of a list that begins a line, with its mark."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        for key, value in node.value:
            yield (*place, key.value), key.start_mark
            yield from _places(value, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode) and not node.flow_style:
        for number, value in enumerate(node.value):
            yield (*place, number), value.start_mark
            yield from _places(value, (*place, number))


def _scalars(text: str, node: Any) -> bytearray:
    """Mark the characters of scalars: a sign in them begins no comment."""
    taken = bytearray(len(text) + 1)
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, yaml.ScalarNode):
            start, end = one.start_mark.index, one.end_mark.index
            taken[start:end] = b"\1" * (end - start)
        elif isinstance(one, yaml.MappingNode):
            todo += [part for pair in one.value for part in pair]
        else:
            todo += one.value
    return taken


def _comment_start(line: str, start: int, taken: bytearray) -> int | None:
    for column, letter in enumerate(line):
        if letter == "#" and not taken[start + column]:
            if column == 0 or line[column - 1] in " \t":
                return column
    return None
