"""Texts and tables in Markdown: what a person wrote can neither format nor link."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpsynth._util.formatting import shown

_SPECIAL = re.compile(  # what formats or links at its place, in CommonMark or on GitHub
    r"""[\\`*\[\]|~$]
    | (?<![^\W_])_ | _(?![^\W_])  # within a word an underscore is one
    | <(?=[a-z/!?]) | (?<!\s)>
    | &(?=\#\d+; | \#x[\da-f]+; | [a-z][a-z\d]*;)
    | (?<!\S)\#  # of a heading, at its beginning and at its end
    | (?<=[a-z]):(?=//) | (?<=www)\.""",
    re.IGNORECASE | re.VERBOSE,
)
_FIRST = re.compile(  # what begins a list, a rule or a heading
    r"^( (?:[-+] | \d{1,9}[.)]) (?=\s|$) | -(?=-[-\s]*$) | =(?==*\s*$) )", re.VERBOSE
)


def plain(text: str) -> str:
    r"""Escape a text for Markdown: one line, without formatting, links or HTML.

    An address of mail stays as it is: hosts that make a link of one do so in spite of escapes, and
    the link leads where it says.

    >>> print(plain("1. a_b <i>[x](y)</i>, https://z, version 1.0.0 of 2026-11-22"))
    1\. a_b \<i\>\[x\](y)\</i\>, https\://z, version 1.0.0 of 2026-11-22
    """
    return _FIRST.sub(_marked, _SPECIAL.sub(r"\\\g<0>", shown(text).strip()))


def _marked(begin: re.Match[str]) -> str:
    """Escape the last character of what begins a list, or the first of a rule."""
    return f"{begin[0][:-1]}\\{begin[0][-1]}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write the lines of a table; its cells are escaped already."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
