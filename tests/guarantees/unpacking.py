"""What a file is when everything in it is unpacked: compression, containers, encodings, tables.

Every layer is found by what it is, not by its name: a gzip stream at the end of a picture, or
base64 of zlib within JSON, is opened as well.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import contextlib
import io
import json
import lzma
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.numpy import load

Layer = tuple[str, bytes]
Values = npt.NDArray[np.generic]
DEPTH = 4
LARGEST = 2**26  # bytes of one unpacked stream
BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}|[A-Za-z0-9_-]{24,}={0,2}")
HEX = re.compile(rb"(?:[0-9a-f]{2}){12,}|(?:[0-9A-F]{2}){12,}")
STREAM = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")  # gzip, zlib
NUMERAL = re.compile(
    r"(?<![\w.+/-])[+-]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w+/])"
)
HEXADECIMAL = re.compile(  # with 0x, or a letter: else it is a numeral
    r"(?<![\w+/=-])(?:0x|(?=[0-9]*[a-fA-F]))([0-9a-fA-F]{4,8})(?![\w+/=-])"
)


def layers(content: bytes, depth: int = DEPTH) -> Iterator[Layer]:
    """Yield the content and all that can be unpacked from it, each with how it was reached."""
    yield "", content
    if depth > 0:
        for how, inner in _opened(content):
            for label, layer in layers(inner, depth - 1):
                yield f"{how} {label}".strip(), layer


def _opened(content: bytes) -> Iterator[Layer]:
    """One step of unpacking."""
    if content[:4] == b"PAR1":
        yield from _parquet(content)
    elif content[:15] == b"SQLite format 3":
        yield from (("database", "\n".join(map(repr, row)).encode()) for row in _rows(content))
        yield from (("blob", cell) for row in _rows(content) for cell in row if _is_blob(cell))
    elif (header := _header(content)) is not None:
        yield "header", header
    else:
        yield from _streams(content)
        for pattern, decode in ((BASE64, _unbase64), (HEX, bytes.fromhex)):
            for found in pattern.findall(content):
                with contextlib.suppress(binascii.Error, ValueError):
                    yield "hex" if pattern is HEX else "base64", decode(found.decode())


def _streams(content: bytes) -> Iterator[Layer]:
    for start in (match.start() for match in STREAM.finditer(content)):
        with contextlib.suppress(zlib.error):
            inner = zlib.decompressobj(wbits=47).decompress(content[start:], LARGEST)
            if inner:
                yield "deflated", inner
    for magic, opener in ((b"BZh", bz2.decompress), (b"\xfd7zXZ", lzma.decompress)):
        with contextlib.suppress(OSError, ValueError, lzma.LZMAError):
            if magic in content:
                yield "compressed", opener(content[content.index(magic) :])
    if b"\x28\xb5\x2f\xfd" in content:
        with contextlib.suppress(OSError, pa.ArrowException):
            rest = pa.py_buffer(content[content.index(b"\x28\xb5\x2f\xfd") :])
            yield "zstd", pa.input_stream(rest, compression="zstd").read()
    if b"PK\x03\x04" in content:
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(content)) as file:
            for item in file.infolist():
                yield f"zip {item.filename}", item.filename.encode() + b"\n" + file.read(item)


def _parquet(content: bytes) -> Iterator[Layer]:
    """The footer with its statistics, every key and value of metadata, every cell, every buffer."""
    table, footer = pq.read_table(io.BytesIO(content)), pq.read_metadata(io.BytesIO(content))
    yield "footer", repr(footer.to_dict()).encode()
    yield "schema", table.schema.to_string(truncate_metadata=False).encode()
    for key, value in (footer.metadata or {}).items():
        yield "metadata", key + b"\n" + value
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield "cells", "\n".join(map(str, column.to_pylist())).encode()
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None:
                    yield f"column {name}", buffer.to_pybytes()


def _header(content: bytes) -> bytes | None:
    """The JSON header of a safetensors file, if it is one."""
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= len(content) - 8 or content[8:9] != b"{":
        return None
    return content[8 : 8 + length]


def _rows(content: bytes) -> Iterator[tuple[object, ...]]:
    """Every row of every table of a database, and its schema."""
    database = sqlite3.connect(":memory:")
    with contextlib.closing(database), contextlib.suppress(sqlite3.DatabaseError):
        database.deserialize(content)
        names = [name for (name,) in database.execute("select name from sqlite_master")]
        yield from database.execute("select * from sqlite_master").fetchall()
        for name in names:
            with contextlib.suppress(sqlite3.DatabaseError):
                yield from database.execute(f'select * from "{name}"').fetchall()


def _is_blob(cell: object) -> bool:
    return isinstance(cell, bytes)


def _unbase64(text: str) -> bytes:
    whole = text.rstrip("=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    whole = whole.replace("-", "+").replace("_", "/")
    return base64.b64decode(whole + "=" * (-len(whole) % 4))


def arrays(content: bytes) -> Iterator[tuple[str, Values]]:
    """Yield the numbers that a layer holds, with their types: tensors, columns, numerals."""
    if content[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(content))
        for name, column in zip(table.column_names, table.columns, strict=True):
            kind = column.type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind):
                yield f"column {name}", column.drop_null().to_numpy()
    elif content[:15] == b"SQLite format 3":
        cells = [c for row in _rows(content) for c in row if isinstance(c, int | float)]
        yield "database", np.array(cells, dtype=np.float64)
    elif _header(content) is not None:
        with contextlib.suppress(SafetensorError, ValueError, json.JSONDecodeError):
            yield from ((f"tensor {name}", tensor) for name, tensor in load(content).items())
    else:
        with contextlib.suppress(UnicodeDecodeError):
            text = content.decode()
            found = [float(numeral.replace("_", "")) for numeral in NUMERAL.findall(text)]
            yield "numeral", np.array(found)
            sixteens = [float(int(numeral, 16)) for numeral in HEXADECIMAL.findall(text)]
            yield "hexadecimal", np.array(sixteens)
