"""Damage to bytes: flipped, cut off, doubled, moved, filled with what parsers stumble over."""

from __future__ import annotations

import struct
from random import Random

TOKENS = (
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\r", b"\r\n"),
    *(b'"', b"'", b'""', b",", b";", b"\t", b"\n", b" ", b"\\", b"{", b"}", b"[", b"]", b":"),
    *(b"- ", b"? ", b"&a ", b"*a", b"!!python/object:os.system ", b"<<: *a", b"%YAML 9.9\n", b"#"),
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"9" * 40, b"null", b"true", b"~", b"0x10", b"1_000"),
    *(b"\\u0000", b"\\ud800", b"\x1b[2J", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"..", b"/", b"---\n"),
)
NUMBERS = (0, 1, -1, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, 2**63 - 1, -(2**63))


def damaged(rng: Random, content: bytes, *, maximum: int = 6) -> bytes:
    """Damage content in one to ``most`` ways."""
    for _ in range(1 + int(rng.random() ** 2 * maximum)):
        content = rng.choice(WAYS)(rng, content)
    return content


def _place(rng: Random, content: bytes) -> int:
    """Choose a place; the two ends are as likely as all the rest, for they hold the lengths."""
    size = max(1, len(content))
    near = min(64, size)
    return rng.choice((rng.randrange(size), rng.randrange(near), size - 1 - rng.randrange(near)))


def _flip(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 40)) if changed else 0):
        changed[_place(rng, content)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _write(rng: Random, content: bytes) -> bytes:
    place = _place(rng, content)
    new = rng.randbytes(rng.choice((1, 2, 4, 40)))
    return content[:place] + new + content[place + len(new) :]


def _number(rng: Random, content: bytes) -> bytes:
    """Write a number at the edge of its range where a length or an offset may stand."""
    place, size = _place(rng, content), rng.choice((1, 2, 4, 8))
    number = rng.choice(NUMBERS) % 2 ** (8 * size)
    new = struct.pack("<Q", number)[:size]
    return content[:place] + (new if rng.random() < 0.7 else new[::-1]) + content[place + size :]


def _insert(rng: Random, content: bytes) -> bytes:
    place = _place(rng, content)
    return content[:place] + rng.choice(TOKENS) + content[place:]


def _cut(rng: Random, content: bytes) -> bytes:
    return content[: _place(rng, content)]


def _remove(rng: Random, content: bytes) -> bytes:
    place = _place(rng, content)
    return content[:place] + content[place + rng.choice((1, 2, 8, 100)) :]


def _repeat(rng: Random, content: bytes) -> bytes:
    place = _place(rng, content)
    piece = content[place : place + rng.choice((1, 4, 30))]
    return content[:place] + piece * rng.choice((2, 3, 50, 2000)) + content[place:]


def _move(rng: Random, content: bytes) -> bytes:
    start, place = _place(rng, content), _place(rng, content)
    piece = content[start : start + rng.choice((4, 30, 200))]
    return content[:place] + piece + content[place + rng.choice((0, len(piece))) :]


WAYS = (_flip, _write, _number, _insert, _cut, _remove, _repeat, _move)
