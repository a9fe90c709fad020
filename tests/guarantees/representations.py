"""Canaries, and the ways in which bytes, numbers and words could hold one.

A *strong* form has six bytes or more (those of zeros or ones do not count), and is met by chance
never: all that these tests look at has less than 2^27 places, and random bytes agree with such a
form at one of 2^48. *Weak* are shorter forms, of four bytes at least, single numbers, counts with
separators, and all forms of a canary that is *legal*, a value that a synthetic cell may have.
Chance can meet them, so a weak finding counts only if it comes back in runs with fresh noise (see
test_taint.py). Nothing shorter is looked for among bytes: two bytes are met in any file. Instead
every array, every column and every numeral of a text is compared by value, whatever its type, 16
bits included.

Not looked for: what a secret transformed (a key, a sum, bits spread over many numbers), and digests
of numbers, which are guessed as easily as they are computed but not by this search.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, quote_plus

import numpy as np

Forms = Iterator[tuple[str, bytes]]
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1", "cp1252")
DIGESTS = ("md5", "sha1", "sha256", "sha512", "blake2b")
PART = 12  # characters of a text that was cut
EPOCH = datetime(1970, 1, 1)
PATTERNS = (
    "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y%m%d%H%M", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M", "%d %b %Y %H:%M", "%d %B %Y %H:%M",
)  # fmt: skip
DAYS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d", "%d %B %Y", "%d %b %Y")
JULIAN, EXCEL = 2_440_588, 25_569  # day numbers of 1970-01-01


@dataclass
class Canaries:
    """What to look for.

    Attributes:
        forms: bytes to find anywhere, with the names of canary and form, and whether it is strong.
        numbers: values to find in arrays, columns and numerals, with the name of the canary.
    """

    forms: dict[bytes, tuple[str, str, bool]] = field(default_factory=dict)
    numbers: dict[float, str] = field(default_factory=dict)

    def add(
        self, name: str, forms: Forms, numbers: Iterable[float] = (), *, legal: bool = False
    ) -> None:
        """Add a canary in all its forms; the first name of a form stays."""
        for kind, shape in forms:
            assert len(shape) >= 4, (name, kind)
            telling = len(shape) - shape.count(0) - shape.count(255)  # packed zeros are anywhere
            strong = telling > 5 and kind != "separated" and not legal
            self.forms.setdefault(shape, (name, kind, strong))
        for number in numbers:
            self.numbers.setdefault(float(number), name)

    def text(self, name: str, text: str) -> None:
        self.add(name, of_text(text))

    def number(self, name: str, value: float, bounds: tuple[float, float] | None = None) -> None:
        """Add a number; one between bounds is legal, and where it lies there is a form of it."""
        places = [] if bounds is None else _scaled(value, *bounds)
        packed = (("scaled " + kind, raw) for place in places for kind, raw in of_floats([place]))
        forms = itertools.chain(of_number(value), packed)
        self.add(name, forms, [value, *places], legal=bounds is not None)

    def moment(self, name: str, moment: datetime, *, day: bool, legal: bool = False) -> None:
        seconds = (moment - EPOCH).total_seconds()
        counted = seconds / 86_400 if day else seconds
        self.add(name, of_day(moment) if day else of_moment(moment), [counted], legal=legal)

    def count(self, name: str, count: int) -> None:
        """Add a number of rows or units, its inverse (a share of one row), logarithm and root."""
        self.add(name, of_count(count), [count, 1 / count, math.log(count), math.sqrt(count)])

    def sequence(self, name: str, values: Iterable[int]) -> None:
        """Add a coded row, or the exact counts of a histogram, and the shares that they are."""
        self.add(name, of_sequence(list(values)))


def of_text(text: str) -> Forms:
    """Encodings, cases, escapes, parts, base64 at each offset, digests."""
    for variant, spelled in (
        ("", text), (" lower", text.lower()), (" upper", text.upper()), (" reversed", text[::-1]),
        (" beginning", text[:PART]), (" end", text[-PART:]),
    ):  # fmt: skip
        for encoding in ENCODINGS:
            yield encoding + variant, spelled.encode(encoding)
    for kind, escaped in (
        ("URL", quote(text)), ("URL plus", quote_plus(text)), ("JSON", json.dumps(text)[1:-1]),
        ("HTML", html.escape(text)), ("repr", ascii(text)[1:-1]), ("CSV", text.replace('"', '""')),
        ("utf-7", text.encode("utf-7").decode()),
    ):  # fmt: skip
        yield kind, escaped.encode()
    for encoding in ENCODINGS[:3]:
        yield from _of_bytes(encoding, text.encode(encoding))
    raw = text.encode()
    for algorithm in DIGESTS:
        digest = hashlib.new(algorithm, raw)
        yield algorithm, digest.digest()[:8]
        yield algorithm + " hex", digest.hexdigest()[:16].encode()
        yield algorithm + " HEX", digest.hexdigest()[:16].upper().encode()
        yield algorithm + " base64", base64.b64encode(digest.digest())[:10]


def of_number(value: float) -> Forms:
    """Decimals of seven digits and more, with separators and exponents; packed; fixed point."""
    digits = len(repr(abs(value)).split("e")[0].replace(".", "").strip("0"))
    texts = {repr(value), f"{value:f}", float(value).hex()}
    for precision in range(min(7, digits), 18):
        texts |= {f"{value:.{precision}g}", f"{value:.{precision - 1}e}"}
    texts |= {f"{value:,}", f"{value:,.6f}"}
    if value == int(value):
        texts |= {str(int(value)), f"{int(value):,}", f"{int(value):x}", f"{int(value):o}"}
    for text in sorted(texts):
        for written in _separated(text):
            if len(written.strip("-").replace(".", "")) > 5:
                yield from ((f"{e} decimal", written.encode(e)) for e in ENCODINGS[:3])
    yield from of_floats([value])
    for power in range(11):
        yield from _of_integer(f"10^{power}", round(value * 10**power))
    for kind in ("<d", ">d", "<f", ">f"):
        yield from _of_bytes(f"packed {kind}", struct.pack(kind, value))


def of_moment(moment: datetime) -> Forms:
    """Written in many ways, and the time since 1970 in four units; Parquet's INT96."""
    for pattern in PATTERNS:
        yield pattern, moment.strftime(pattern).encode()
        yield pattern + " utf-16", moment.strftime(pattern).encode("utf-16-le")
    delta = moment - EPOCH
    seconds = delta.days * 86_400 + delta.seconds
    for unit, power in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9)):
        yield f"{unit} decimal", str(seconds * 10**power).encode()
        yield from _of_integer(unit, seconds * 10**power)
        yield from of_floats([seconds * 10**power])
    yield "INT96", struct.pack("<qi", delta.seconds * 10**9, delta.days + JULIAN)


def of_day(day: datetime) -> Forms:
    """Written in many ways, the time at midnight, and the number of the day."""
    yield from of_moment(day)
    for pattern in DAYS:
        for encoding in ENCODINGS[:3]:
            yield f"{pattern} {encoding}", day.strftime(pattern).encode(encoding)
    days = (day - EPOCH).days
    for start in (0, JULIAN, EXCEL, EPOCH.toordinal()):
        yield from _of_integer("days", days + start)
        yield from of_floats([days + start])


def of_count(count: int) -> Forms:
    """With separators, and packed; plain numerals are compared by value."""
    for separator in (",", " ", "\u00a0", "\u202f", "'", "_"):
        yield "separated", f"{count:,}".replace(",", separator).encode()
    yield from _of_integer("count", count)
    yield from of_floats([count])
    yield from of_floats([1 / count])


def of_sequence(values: list[int]) -> Forms:
    """Small integers side by side, packed or written; and their shares of the sum."""
    for kind in ("<u1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8"):
        if kind == "<u1" and max(values) > 255:
            continue
        yield f"sequence {kind}", np.array(values).astype(kind).tobytes()
    yield from of_floats(values)
    if sum(values):
        yield from of_floats([value / sum(values) for value in values])
    for separator in (", ", ",", " ", "\t", ";", "\n"):
        yield "written sequence", separator.join(map(str, values)).encode()
    indented = (",\n" + " " * depth for depth in range(2, 17, 2))  # JSON
    yield from (("written sequence", s.join(map(str, values)).encode()) for s in indented)


def of_floats(values: Iterable[float]) -> Forms:
    """Floating-point numbers side by side, in both orders of bytes."""
    for kind in ("<f4", ">f4", "<f8", ">f8"):
        yield f"packed {kind}", np.array(list(values)).astype(kind).tobytes()


def _of_integer(unit: str, value: int) -> Forms:
    for bits, code in ((32, "i"), (64, "q")):
        if 1000 < abs(value) < 2 ** (bits - 1):
            yield f"{unit} <int{bits}", struct.pack(f"<{code}", value)
            yield f"{unit} >int{bits}", struct.pack(f">{code}", value)


def _of_bytes(kind: str, raw: bytes) -> Forms:
    """Hexadecimal, base32, and base64 at each offset, without the letters that neighbours share."""
    yield f"{kind} hex", raw.hex().encode()
    yield f"{kind} HEX", raw.hex().upper().encode()
    yield f"{kind} spaced hex", raw.hex(" ").encode()
    yield f"{kind} percent", "".join(f"%{byte:02X}" for byte in raw).encode()
    yield f"{kind} base32", base64.b32encode(raw).rstrip(b"=")[:-1]
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + raw + b"\0\0")
        inner = whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
        if len(inner) < 5:
            continue
        yield f"{kind} base64", inner
        yield f"{kind} base64 for URLs", inner.translate(bytes.maketrans(b"+/", b"-_"))


def _separated(text: str) -> Iterator[str]:
    """A decimal in English, German, French, Swiss and programmers' ways."""
    yield text
    yield text.upper()
    for thousands, point in ((".", ","), (" ", ","), ("\u00a0", ","), ("'", "."), ("_", ".")):
        yield text.replace(",", "\0").replace(".", point).replace("\0", thousands)


def _scaled(value: float, low: float, high: float) -> list[float]:
    """Where a value lies between bounds, from 0 and from -1 to 1."""
    place = (value - low) / (high - low)
    return [place, 2 * place - 1]
