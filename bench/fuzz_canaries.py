"""Words that stand for private cells, and every form in which a text may give one away.

A canary counts as shown where six characters of it in a row stand in a text: as they are, in
another case, escaped, quoted for a URL, in UTF-16, in hexadecimal or in base64 at any alignment.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

WORDS = ("Zq7Xv9Wk3Jp", "Kr\u00fc\u00dfQz8Yv4Hx", "7Zx'Qv\"Jk9Ww")
NUMBERS = ("7141592653589", "71.415926535", "1871-07-14")
CANARIES = (*WORDS, *NUMBERS)
STRANGE = ("\\xfc", "0xfc", "\\xc3", "0xc3")  # of one letter, as the error of a decoder has it
WINDOW = 6


def shown_in(text: str) -> str | None:
    """Return the form of a canary that a text shows, None if it shows none.

    >>> shown_in("column 'age' is missing"), shown_in("bad cell: 9wK3jP")
    (None, '9wk3jp')
    """
    folded = text.casefold()
    for form in _folded():
        if form in folded:
            return form
    return next((form for form in _exact() if form in text), None)


@cache
def _folded() -> tuple[str, ...]:
    """Forms that are compared without regard to case."""
    forms = dict.fromkeys(STRANGE)
    for piece in _pieces():
        forms |= dict.fromkeys(form.casefold() for form in _readable(piece))
    return tuple(forms)


@cache
def _exact() -> tuple[str, ...]:
    """Forms in base64, where case matters."""
    forms = (form for piece in _pieces() for coding in _codings(piece) for form in _base64(coding))
    return tuple(dict.fromkeys(forms))


def _pieces() -> Iterator[str]:
    """Cut each canary into overlapping pieces."""
    for canary in CANARIES:
        for start in range(len(canary) - WINDOW + 1):
            yield canary[start : start + WINDOW]


def _codings(piece: str) -> tuple[bytes, ...]:
    return piece.encode(), piece.encode("utf-16-le"), piece.encode("utf-16-be")


def _readable(piece: str) -> Iterator[str]:
    utf8 = piece.encode()
    yield from (piece, ascii(piece)[1:-1], repr(piece)[1:-1], piece.replace('"', '\\"'))
    yield from (quote(piece), str(utf8)[2:-1])
    yield from ("\0".join(piece), "\\x00".join(piece), "".join(f"%{byte:02x}" for byte in utf8))
    yield "".join(f"\\x{byte:02x}" for byte in utf8)
    for coding in _codings(piece):
        yield coding.hex()
        yield coding.hex(" ")


def _base64(coding: bytes) -> Iterator[str]:
    """Give the characters that all texts around a piece have in common, for each alignment."""
    for before in range(3):
        padded = bytes(before) + coding
        whole = len(padded) // 3 * 4  # what comes after changes the rest
        first = -(-before * 4 // 3)
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded).decode()[first:whole]
