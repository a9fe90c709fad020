"""The name of a table that stands in a file: the file's name in the letters a name may have."""

from __future__ import annotations

import re
import unicodedata

HIDDEN = (".", "~$")
"""At the start of a file's name: files of the system, and locks of office programs."""
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LETTERS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ø": "o"}
)


def table_name(stem: str) -> str:
    """Return the name of the table that a file holds, from the file's name without its suffix.

    >>> table_name("labs"), table_name("Lab values (2)"), table_name("Aufenthälte.2015")
    ('labs', 'Lab-values-2', 'Aufenthaelte.2015')
    """
    whole = unicodedata.normalize("NFC", stem).translate(_LETTERS)
    bare = "".join(one for one in unicodedata.normalize("NFKD", whole) if one.isascii())
    return _OTHER.sub("-", bare).strip("-.") or "table"
