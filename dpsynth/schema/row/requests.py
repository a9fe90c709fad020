"""Conditions that no row can meet: `sample --where`, before anything is drawn.

A missing value never meets a condition, unlike a rule. So a condition is cut into alternatives of
comparisons that must all be true; the columns of one are filled in, and all others may be empty.
The parts that the user joined by ``and``, and the declarations of the schema, are taken away one
after the other, so that the fewest are named which contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from dpsynth._util.messages import listed
from dpsynth.schema.facts import Facts
from dpsynth.schema.row.assignments import NEGATED, Search
from dpsynth.schema.row.contradictions import Statement, filled_in, statements_of
from dpsynth.schema.rule_parser import Comparison, Literal, Name, Tree
from dpsynth.schema.rules import Rule

MAX_ALTERNATIVES = 200  # of a condition; one of more is not refused
Links = tuple[Comparison, ...]


def impossible(schema: Facts, condition: Rule) -> str | None:
    """Say why no row of a schema can meet a condition; None if one may.

    Args:
        schema: with the published columns.
        condition: whose columns exist and can be compared.

    >>> from dpsynth.schema.schema import Schema
    >>> demo = Schema.load("demo")
    >>> impossible(demo, Rule.parse("age > 40 and sex == 'female'"))
    >>> impossible(demo, Rule.parse("age > 40 and sex == 'female' and age < 30"))
    "no row can meet both 'age > 40' and 'age < 30'; correct one of them"
    """
    tree = condition.tree
    parts: list[Tree] = [tree]
    if not isinstance(tree, Comparison) and tree.word == "and":
        parts = list(tree.parts)
    facts = list(statements_of(schema))
    if _possible(schema, parts, facts):
        return None
    for part in list(parts):
        fewer = [other for other in parts if other is not part]
        if not _possible(schema, fewer, facts):
            parts = fewer
    for fact in list(facts):
        rest = [other for other in facts if other is not fact]
        if not _possible(schema, parts, rest):
            facts = rest
    words = [repr(written(part)) for part in parts]
    if len(parts) + len(facts) == 1:
        return f"no row can meet {words[0]}: the declared bounds or categories exclude it"
    if len(parts) == 2 and not facts:
        return f"no row can meet both {words[0]} and {words[1]}; correct one of them"
    if not facts:
        return f"no row can meet all of {listed(words)}; correct one of them"
    declared = listed([one.words for one in facts])
    return f"no row can meet {' and '.join(words)} beside what the schema declares: {declared}"


def _possible(schema: Facts, parts: Sequence[Tree], facts: Sequence[Statement]) -> bool:
    columns = {column.name: column for column in schema.modelled}
    every = product(*(_some(_alternatives(part, wanted=True)) for part in parts))
    tried = list(islice(every, MAX_ALTERNATIVES + 1))
    if len(tried) > MAX_ALTERNATIVES:
        return True
    for chosen in tried:
        links = [link for alternative in chosen for link in alternative]
        named = [
            side.text
            for link in links
            for side in (link.left, link.right)
            if isinstance(side, Name)
        ]
        filled = filled_in(schema, facts, named)
        rules = [one.tree for one in facts if one.of is None or one.of in filled]
        if Search(columns, filled).possible([*links, *rules]):
            return True
    return False


def _alternatives(tree: Tree, *, wanted: bool) -> Iterator[Links]:
    """Yield lists of comparisons; if all of one are true, so is the tree, or else it is false."""
    if isinstance(tree, Comparison):
        yield (tree if wanted else Comparison(tree.left, NEGATED[tree.sign], tree.right),)
        return
    senses = [wanted] * len(tree.parts)
    if tree.word == "not":
        senses = [not wanted]
    elif tree.word == "implies":
        senses[0] = not wanted
    parts = [
        _alternatives(part, wanted=sense) for part, sense in zip(tree.parts, senses, strict=True)
    ]
    if tree.word == "not" or (tree.word == "and") == wanted:
        for chosen in product(*map(_some, parts)):
            yield tuple(link for links in chosen for link in links)
    else:
        for part in parts:
            yield from part


def _some(alternatives: Iterator[Links]) -> list[Links]:
    return list(islice(alternatives, MAX_ALTERNATIVES + 1))


def written(tree: Tree) -> str:
    """Write a part of a condition in the language of rules.

    >>> written(Rule.parse("not (a in (1, 2)) or `b c` == 'x'").tree)
    "not (a == 1 or a == 2) or `b c` == 'x'"
    """
    if isinstance(tree, Comparison):
        return f"{_side(tree.left)} {tree.sign} {_side(tree.right)}"
    parts = [
        written(part)
        if isinstance(part, Comparison) or part.word == "not"
        else f"({written(part)})"
        for part in tree.parts
    ]
    if tree.word == "not":
        inner = parts[0] if parts[0].startswith("(") else f"({parts[0]})"
        return f"not {inner}"
    return f" {tree.word} ".join(parts)


def _side(side: Name | Literal) -> str:
    if isinstance(side, Name):
        return side.text if side.text.isidentifier() else f"`{side.text}`"
    if isinstance(side.value, bool):
        return str(side.value).lower()
    if isinstance(side.value, str):
        return repr(side.value)
    return str(int(side.value)) if side.value == int(side.value) else repr(side.value)
