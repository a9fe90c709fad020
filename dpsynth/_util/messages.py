"""Words for messages about schemas: what was found, what was expected, what was perhaps meant.

A schema is public, so these messages may quote it; values are shortened, whatever their size.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import date

from dpsynth.errors import printable

MAX_LENGTH = 60


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest option, or nothing if none is close.

    >>> did_you_mean("integr", ["integer", "number"])
    " (did you mean 'integer'?)"
    >>> did_you_mean("blood", ["integer", "number"])
    ''
    """
    close = closest(word, options)
    return f" (did you mean {shown(close)}?)" if close else ""


def closest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that is spelt most like ``word``, regardless of case, if any is near."""
    lowered = {option.lower(): option for option in options}
    near = difflib.get_close_matches(word[:MAX_LENGTH].lower(), list(lowered), n=1, cutoff=0.7)
    return lowered[near[0]] if near else None


def shown(value: object) -> str:
    """Quote a value of a schema document briefly, without walking through containers.

    >>> shown("x" * 100) == "'" + "x" * 59 + "…'", shown([1, 2]), shown(True)
    (True, 'a list', 'true')
    """
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) < MAX_LENGTH else value[: MAX_LENGTH - 1] + "…")
    if isinstance(value, int | float | date):
        text = str(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
        return text
    return f"a {type(value).__name__}"


def plain(word: str, *, longest: int = MAX_LENGTH) -> str:
    """Return a word of a document without quotes: shortened, and nothing that a terminal obeys.

    >>> plain("age"), plain(chr(27) + "[2J") == chr(92) + "x1b[2J", len(plain("x" * 100))
    ('age', True, 60)
    """
    return printable(word if len(word) <= longest else word[: longest - 1] + "…")


def is_text(word: str) -> bool:
    """Whether a name is text that UTF-8 and a path can hold; those of files need not be.

    >>> is_text("Zo\u00eb"), is_text("Zo" + chr(0xDCEB))
    (True, False)
    """
    return "\0" not in word and not any("\ud800" <= letter <= "\udfff" for letter in word)


def listed(words: Iterable[str]) -> str:
    """Join words for a sentence, at most twenty of them, each short and printable.

    >>> listed(["a", "b"])
    'a, b'
    """
    words = list(words)
    rest = len(words) - 20
    joined = ", ".join(plain(word, longest=2 * MAX_LENGTH) for word in words[:20])
    return joined + (f" and {rest} more" if rest > 0 else "")
