"""What is no table is refused, before any row is read or while reading, and nothing is quoted."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..support.small_table import HEADER, SCHEMA, SMALL, put

MANY = SMALL + SMALL.removeprefix(HEADER) * 99_999


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "", "is empty; export it again, with the names of its columns"),
        ("a.csv", "\n\n", "is empty"),
        ("a.csv", b"\xef\xbb\xbf", "is empty"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("a.doc", SMALL, "unknown kind of table; use .csv, .csv.gz, .txt, .txt.gz, .tsv"),
        ("a.gz", SMALL, "unknown kind"),
        ("csv", SMALL, "unknown kind"),
        ("a.csv", "visit,note\n1,x\n", "lacks 3 columns of the schema: patient, age, sex"),
        ("a.csv", "patient,age\n1,3\n", "lacks a column of the schema: sex"),
        ("a.csv", SMALL.replace(",", ";"), """write dialect: {delimiter: ";"}"""),
        ("a.csv", SMALL.replace(",", "\t"), """write dialect: {delimiter: "\\t"}"""),
        ("a.csv", SMALL.replace(",", "~"), "the declared dialect.delimiter, its separator?)"),
        ("a.csv", "patient,age,sex,age,sex\n", "more than one column called age, sex"),
        ("a.csv.gz", SMALL, "not a gzip file"),
        ("a.csv", gzip.compress(SMALL.encode(), mtime=0), "call it a.csv.gz"),
        ("a.csv", SMALL.encode("utf-16-le"), "line 1 has a NUL byte"),
        ("a.csv", b"PAR1" + bytes(range(128)), "line 1 has a NUL byte"),
        ("a.csv", "gr\xfcn,".encode("latin-1") + SMALL.encode(), "not valid utf-8"),
        ("a.parquet", SMALL, "not a Parquet file"),
        ("a.parquet", b"PAR1 and so on PAR1", "not a Parquet file"),
    ],
)
def test_refused_before_any_row_is_read(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = put(tmp_path / name, content)
    with pytest.raises(TableError) as caught:
        open_table(path, SCHEMA)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None, "a chained error may quote a cell"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", HEADER, "has a header and no rows"),
        ("a.csv", HEADER + "\n\n", "has a header and no rows"),
        ("a.csv", SMALL + "3,p2,x,4,M,5\n", "line 4: 6 fields, the header has 5"),
        ("a.csv", SMALL + '3,"p\n2",x,4,M,\n', "line 4: 6 fields"),
        ("a.csv", SMALL + '3,"p2"x,x,4,M\n', "line 4: the quotes"),
        ("a.csv", SMALL + '3,"p2,x,4,M\n', "line 4: the quotes"),
        ("a.csv", SMALL + '3,"p2' + "x\n" * 100_000, "a quote that is opened there"),
        ("a.csv", SMALL.encode() + b"3,p\xff2,x,4,M\n" * 9, "not valid utf-8, the declared"),
        ("a.csv", SMALL + "3,p2,\0x,4,M\n", "line 4 has a NUL byte"),
        (
            "a.csv.gz",
            gzip.compress(MANY.encode(), mtime=0)[:-900],
            "damaged or cut off",
        ),
        ("a.csv.gz", gzip.compress(SMALL.encode(), mtime=0)[:-8] + b"\0" * 8, "damaged or cut off"),
    ],
)
def test_refused_while_reading(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    path = put(tmp_path / name, content)
    # What lies in the first few kilobytes may be found on opening.
    with pytest.raises(TableError) as caught:
        list(open_table(path, SCHEMA).chunks())
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_file_without_line_ends_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.tables.records.MAX_LINE_LENGTH", 1000)
    path = put(tmp_path / "a.csv", SMALL + "x" * 1001)
    with pytest.raises(TableError, match="line 4: longer than 1000 characters"):
        list(open_table(path, SCHEMA).chunks())


def test_paths_that_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path, SCHEMA)
    with pytest.raises(TableError, match="no such file"):
        open_table(tmp_path / "nothing.csv", SCHEMA)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path / "a.csv", SMALL)
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(TableError, match="cannot be read: Permission denied"):
        open_table(path, SCHEMA)


def test_a_missing_header_is_not_quoted(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "1,canary-1,canary-2,33,F\n2,canary-1,x,34,M\n")
    with pytest.raises(TableError) as caught:
        open_table(path, SCHEMA)
    assert "canary" not in str(caught.value)


def test_decimal_keys_are_refused(tmp_path: Path) -> None:
    schema = Schema.load("demo")
    names = [column.name for column in schema.columns]
    keys = pa.array([Decimal(2**60 + n) for n in range(3)], pa.decimal128(22, 1))
    columns = {name: pa.array(["x"] * 3) for name in names} | {str(schema.unit.column): keys}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="'patient_id' holds decimal numbers, and it is the key"):
        open_table(tmp_path / "t.parquet", schema)
