"""YAML and JSON that a person wrote, parsed strictly: plain values, and nothing is run.

A document is data. YAML is read by the safe loader's rules without tags; aliases are allowed, so
that columns can share a list, but their expansion is counted before anything is built ("billion
laughs"); a key that occurs twice is a mistake, in YAML as in JSON. So is a plain word that the
versions of YAML read differently.

Plain words of a YAML file that its versions read differently: they are refused, never guessed.

PyYAML reads YAML 1.1, most other programs read 1.2. What is text to one may be a number or a truth
value to the other: ``no`` (the country), ``008`` (a code), ``1:20`` (a time: 80 to YAML 1.1).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import yaml

from dpsynth._util.messages import shown
from dpsynth.errors import SPACES, Problem, SchemaError, printable

MAX_NODES = 200_000
MAX_DEPTH = 60
MAX_REPEATS = 100  # of keys, that are told; a file has more where a part of it was pasted often
SUFFIXES = (".yaml", ".yml", ".json")
_KEPT = "\n\t" + SPACES
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(yaml.SafeDumper):
    """Writes YAML that `parse_yaml` reads: texts that some readers take for numbers, in quotes."""


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    node = yaml.SafeDumper.represent_str(dumper, text)
    if printable(text, _KEPT) != text:
        node.style = '"'
    elif ambiguity(node) is not None:
        node.style = "'"
    return node


_Dumper.add_representer(str, _represented)


def yaml_text(document: dict[str, Any]) -> str:
    """Write a document as YAML, in its own order.

    >>> print(yaml_text({"codes": ["07609", "7609"]}))
    codes:
    - '07609'
    - '7609'
    <BLANKLINE>
    """
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return printable(text, _KEPT)  # what it escapes stands in double quotes


def parse_yaml(content: bytes, source: str) -> Any:
    """Parse one YAML document of plain values.

    Raises:
        SchemaError: with the line, for what is not plain YAML.
    """
    text = _text(content, source)
    try:
        _check_events(text, source)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise SchemaError(source, [Problem("document", "the file is empty")])
            problems: list[Problem] = []
            _weigh(node, {}, problems, source)
            if problems:
                raise SchemaError(source, problems)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"this is not YAML: {error.problem or error.context}"
        raise _at(source, mark, reason) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SchemaError(source, [Problem("document", f"this is not YAML: {reason}")]) from None


def parse_json(content: bytes, source: str) -> Any:
    """Parse one JSON document, strictly: no key twice, no NaN.

    Raises:
        SchemaError: it is not JSON.
    """
    problems: list[Problem] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            problems.append(Problem("document", f"key {shown(twice)} occurs twice; keep one"))
        return values

    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON; write a finite number")

    try:
        document = json.loads(
            _text(content, source), object_pairs_hook=once, parse_constant=no_constant
        )
    except json.JSONDecodeError as error:
        reason = f"this is not JSON: {error.msg}"
        raise SchemaError(source, [Problem(f"line {error.lineno}", reason)]) from None
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise SchemaError(source, [Problem("document", f"this is not JSON: {reason}")]) from None
    if problems:
        raise SchemaError(source, problems)
    return document


def _text(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        reason = "the file is not UTF-8; save it as UTF-8"
        raise SchemaError(source, [Problem(f"line {line}", reason)]) from None


def _at(source: str, mark: Any, reason: str) -> SchemaError:
    place = "document" if mark is None else f"line {mark.line + 1}"
    return SchemaError(source, [Problem(place, reason)])


def _check_events(text: str, source: str) -> None:
    """Refuse tags and deep nesting in the stream, before a loader recurses or builds anything."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        tag = getattr(event, "tag", None)
        if tag is not None:
            reason = f"tags are not read, {shown(tag)} is one; write plain values"
            raise _at(source, event.start_mark, reason)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _at(source, event.start_mark, f"the document nests deeper than {MAX_DEPTH}")


def _weigh(node: Any, known: dict[int, int], problems: list[Problem], source: str) -> int:
    """Count the values that a node stands for with its aliases expanded; note its mistakes."""
    if id(node) in known:
        if known[id(node)] < 0:
            raise _at(source, node.start_mark, "an alias contains itself; write the values out")
        return known[id(node)]
    known[id(node)] = -1
    weight = 1
    if isinstance(node, yaml.ScalarNode) and len(problems) < MAX_REPEATS:
        reason = ambiguity(node)
        if reason is not None:
            problems.append(Problem(f"line {node.start_mark.line + 1}", reason))
    children = [] if isinstance(node, yaml.ScalarNode) else node.value
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _at(source, key.start_mark, "a key is plain text")
            twice = key.value in lines and key.tag != "tag:yaml.org,2002:merge"
            if twice and len(problems) < MAX_REPEATS:
                first = f"line {lines[key.value]} has it already; keep one"
                place = f"line {key.start_mark.line + 1}"
                problems.append(Problem(place, f"key {shown(key.value)} occurs twice: {first}"))
            lines.setdefault(key.value, key.start_mark.line + 1)
        children = [child for pair in node.value for child in pair]
    for child in children:
        weight += _weigh(child, known, problems, source)
        if weight > MAX_NODES:
            reason = f"the document stands for more than {MAX_NODES} values; a schema does not"
            raise _at(source, node.start_mark, reason)
    known[id(node)] = weight
    return weight


_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)(e[-+][0-9]+)?|\.(inf|nan))", re.IGNORECASE)
_NUMBER_ELSEWHERE = re.compile(r"[-+]?(0[0-9_]+|0[xob][0-9a-f_]+)", re.IGNORECASE)
_TRUTHS = ("true", "false")


def ambiguity(node: Any) -> str | None:
    """Say what is wrong with a scalar that versions of YAML read differently; None if they agree.

    A number with an exponent and without a point (``1e-6``), which is text to YAML 1.1, is left to
    those who read it: where a number is due, they take it for one.

    Args:
        node: a scalar as PyYAML's loader composed it, with the tag that it resolved.
    """
    if node.style:  # in quotes, or a block: text to everybody
        return None
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "bool" and text.lower() not in _TRUTHS:
        return (
            f"{shown(text)} is a truth value to some readers of YAML and text to others; write "
            "true or false, or put it in quotes"
        )
    number = (
        (kind == "int" and not _WHOLE.fullmatch(text))
        or (kind == "float" and not _DECIMAL.fullmatch(text))
        or (kind == "str" and _NUMBER_ELSEWHERE.fullmatch(text))
    )
    if number:
        return (
            f"{shown(text)} is read as different numbers, or as text, by readers of YAML; write a "
            "number plainly (such as 80, 0.5 or 1.0e-6), or put text in quotes"
        )
    return None
