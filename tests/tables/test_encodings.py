"""A file in another encoding than the declared one: the line, and what encoding it likely has."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dpsynth.errors import TableError
from dpsynth.tables import open_table

from ..support.declared_cells import field, schema_of

STREET = field("string", {"enum": ["Müller", "Groß"]})
ROWS = "c\nGross\n" + "Groß\n" * 3


def message(content: bytes, path: Path, encoding: str = "utf-8") -> str:
    schema = schema_of(c=STREET)
    object.__setattr__(schema.dialect, "encoding", encoding)
    path.write_bytes(content)
    with pytest.raises(TableError) as refused:
        list(open_table(path, schema).chunks())
    return str(refused.value)


@pytest.mark.parametrize(
    ("content", "declared", "line", "likely"),
    [
        (ROWS.encode("cp1252"), "utf-8", 3, "cp1252"),
        (ROWS.encode("cp1252").replace(b"\xdf", b"\x81"), "utf-8", 3, "latin-1"),
        (ROWS.encode("utf-16"), "utf-8", 1, "utf-16"),
        (ROWS.encode(), "ascii", 3, "utf-8"),
        (b"c\n" + b"x\n" * 300_000 + "Groß".encode("cp1252"), "utf-8", 300_002, "cp1252"),
        ((ROWS + "\u0141\n").encode(), "cp1252", 6, "utf-8"),
    ],
)
def test_the_line_and_the_likely_encoding(
    content: bytes, declared: str, line: int, likely: str, tmp_path: Path
) -> None:
    text = message(content, tmp_path / "t.csv", declared)
    assert f"line {line}: not valid {declared}" in text
    assert f"write dialect: {{encoding: {likely}}}" in text
    assert "Gro" not in text


def test_a_gzipped_file_is_read_again(tmp_path: Path) -> None:
    text = message(gzip.compress(ROWS.encode("cp1252")), tmp_path / "t.csv.gz")
    assert "line 3" in text and "cp1252" in text
