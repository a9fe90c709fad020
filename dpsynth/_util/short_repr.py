"""How objects show themselves in a console or a notebook: one line, and nothing private.

What a class generates by itself names every field: pages of arrays, and cells of private tables in
a traceback. The classes that a person meets say in a few words what they are instead.
"""

from __future__ import annotations

from typing import Any

MAX_LENGTH = 160  # characters


def short_repr(thing: object, *facts: object) -> str:
    """Return a line like ``<Schema hospital, 38 columns>``; facts that are None or "" are left out.

    >>> short_repr(ValueError(), "of a kind", None, "3 parts")
    '<ValueError of a kind, 3 parts>'
    """
    words = ", ".join(" ".join(str(fact).split()) for fact in facts if fact not in (None, ""))
    line = f"{type(thing).__name__} {words}".rstrip()
    return f"<{line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 3] + '...'}>"


class Document(dict[str, Any]):
    """A document of results: a dictionary whose repr is one line, not all its figures."""

    def __repr__(self) -> str:
        """Name the format and the parts."""
        marks = "internal" if self.get("internal") else None
        return short_repr(self, self.get("format"), marks, "keys: " + " ".join(map(str, self)))
