"""Headers of private tables: the names of the first line, and nothing behind it."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_schema, header
from dpsynth.draft.entry import Entry
from dpsynth.draft.header import read_header
from dpsynth.draft.proposal import propose
from dpsynth.draft.table_header import read_table_header
from dpsynth.draft.yaml_text import field_lines
from dpsynth.errors import InputError


def names(path: Path, **how: str) -> list[str]:
    return [column.name for column in read_header(path, **how).columns]


@pytest.mark.parametrize(
    ("content", "how", "expected"),
    [
        (b"age,sex\n1,F\n", {}, ["age", "sex"]),
        (b"age;sex\n1;F\n", {}, ["age", "sex"]),
        (b"id;weight (kg, dry);sex\n", {}, ["id", "weight (kg, dry)", "sex"]),
        (b'id,"a;b;c;d"\n', {}, ["id", "a;b;c;d"]),
        (b"age|sex\n", {}, ["age", "sex"]),
        (b"q1;q2\n", {"delimiter": ";"}, ["q1", "q2"]),
        (b"q1,q2\n", {}, ["q1", "q2"]),
        (b"x;visit_date\n", {}, ["x", "visit_date"]),
        ("größe,x\n".encode(), {}, ["größe", "x"]),
        ("größe,x\n".encode("latin-1"), {}, ["größe", "x"]),
        (b"\xef\xbb\xbfage,sex\r\n", {}, ["age", "sex"]),
        (b'"a, b";c', {"delimiter": ";"}, ["a, b", "c"]),
        (b'"two\nlines",x\n', None, []),
        ("größe;x\n".encode("cp1252"), {"delimiter": ";", "encoding": "cp1252"}, ["größe", "x"]),
        ("age,sex\n\u00e4".encode("utf-16"), {"encoding": "utf-16"}, ["age", "sex"]),
    ],
)
def test_headers(
    tmp_path: Path, content: bytes, how: dict[str, str] | None, expected: list[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    if how is None:
        with pytest.raises(InputError, match="column 1 has a control character"):
            read_header(path)
    else:
        assert names(path, **how) == expected


def test_a_compressed_file_and_a_tab(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"age,sex\n1,F\n"))
    (tmp_path / "t.tsv").write_text("age\tsex\n")
    assert names(tmp_path / "t.csv.gz") == names(tmp_path / "t.tsv") == ["age", "sex"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no header"),
        (b"\n1,2\n", "has no header"),
        (b"a,b,a\n", "column 1 and column 3 have the same name; keep"),
        (b"a,,b\n", "column 2 has no name"),
        (b"Smith,41,F\n", "column 2 of the first line is a number, a date, a code or an answer"),
        (b"Smith,03.02.2012,F\n", "column 2 of the first line is a number, a date"),
        (b"P001,Smith,K51.0\n", "column 3 of the first line is a number, a date"),
        (b"P001,Smith,N02BE01\n", "column 3 of the first line is a number, a date"),
        (b"P001,Smith,4548-4\n", "column 3 of the first line is a number, a date"),
        (b"P001,08:30\n", "column 2 of the first line is a number, a date"),
        ("P001,männlich\n".encode(), "column 2 of the first line is a number, a date"),
        (b"P001;Smith;Hamburg\n", "no name in the first line is known.* add --delimiter ';'"),
        (b"P001\tSmith\tPneumonia\n", "no name in the first line is known"),
        (b"Registry of 2024\n", "one text alone, as a title .* add --delimiter ','"),
        (
            b"Registry of 2024\nSmith,Hamburg\n",
            "line 2 does not look like headings.* --header-row N",
        ),
        (b"Registry of 2024,,\nage,5,grade\n", "line 2 does not look like headings"),
        (b"a,,b,a\n", "has 2 mistakes:\\n .*column 2 has no name.*\\n .*column 1 and column 4"),
        (b"F,5,9\n", "looks like a row; add a line with the names"),
        (b'a,"b\n', "the quotes in the header do not match"),
        (b"gr\x81\xdfe\n", "the header is not cp1252; add --encoding with the right one"),
        (b"x" * 4098, "longer than a header"),
    ],
)
def test_bad_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    monkeypatch.setattr(header, "MAX_HEADER", 4096)
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table_header(path)
    assert "Smith" not in str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("content", "row", "line"),
    [
        (b"Registry of 2024\r\n\r\nage;sex\r\nsecret;row\r\n", None, 3),
        (b"Registry of 2024;;\nage;sex;grade\n1;2;3\n", None, 2),
        (b"Patient;;;Lab;;\nage;sex;height;crp;sodium;potassium\n1;2;3;4;5;6\n", None, 2),
        (b"Smith;Hamburg\nq1;q2\n1;2\n", 2, 2),
        (b'Length of "5 tubes\nq1;q2\n1;2\n', 2, 2),
        (b'Length of 5" tubes\nage;sex\n1;2\n', None, 2),
        (b'"Registry\nof 2024"\nage;sex\n1;2\n', None, 3),
    ],
)
def test_headings_below_a_title(tmp_path: Path, content: bytes, row: int | None, line: int) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    found = read_header(path, row=row)
    assert [one.name for one in found.columns] == content.splitlines()[line - 1].decode().split(";")
    assert dict(found.dialect) == {"delimiter": ";", "header_row": line}
    draft = draft_schema(header=path, header_row=row)
    assert f'dialect: {{delimiter: ";", header_row: {line}}}' in draft.text and not draft.left_out


def test_a_line_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n")
    with pytest.raises(InputError, match="has no line 7; correct --header-row"):
        read_header(tmp_path / "t.csv", row=7)
    (tmp_path / "t.csv").write_text("Registry\n1,2\n")
    with pytest.raises(InputError, match="looks like a row"):
        read_header(tmp_path / "t.csv", row=2)


def test_a_header_of_one_column_is_taken_if_its_separator_is_given(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("date of birth\n")
    with pytest.raises(InputError, match="as a title"):
        read_table_header(tmp_path / "t.csv")
    assert len(read_table_header(tmp_path / "t.csv", ",").columns) == 1


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"age": 3}\n')
    with pytest.raises(InputError, match="stand apart from the rows .* dictionary"):
        read_table_header(tmp_path / "t.jsonl")
    with pytest.raises(InputError, match="does not exist; correct the path"):
        read_header(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match="not a complete gzip file"):
        read_header(tmp_path / "t.csv.gz")


def test_what_is_declared_goes_into_the_dialect(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age;sex\n")
    text = draft_schema(header=tmp_path / "t.csv", delimiter=";").text
    assert parse_yaml(text.encode(), "draft")["dpsynth"]["dialect"] == {"delimiter": ";"}


@given(st.text(min_size=1, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_whatever_a_name_is_the_yaml_says_the_same(name: str, label: str, value: str) -> None:
    """Names, labels and remarks of others are texts, and never structure."""
    entry = Entry(name, label=label, values=((value, label), ("b", "")), remark=label)
    proposal = propose(entry, label)
    text = "fields:\n" + "\n".join(field_lines(proposal)) + "\n"
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        return
    assert parse_yaml(text.encode(), "draft")["fields"] == [proposal.document]


def test_a_declared_dialect_is_not_doubted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;x\n".encode("latin-1"))
    with pytest.raises(InputError, match="the header has no ','.* add --delimiter ';'"):
        read_header(path, ",", "latin-1")
    with pytest.raises(InputError, match="the header is not utf-8; add --encoding"):
        read_header(path, ";", "utf-8")


def test_what_the_header_shows_goes_into_the_dialect(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("größe;x\n".encode("latin-1"))
    document = parse_yaml(draft_schema(header=tmp_path / "t.csv").text.encode(), "draft")
    assert document["dpsynth"]["dialect"] == {"delimiter": ";", "encoding": "cp1252"}


def test_the_file_is_read_no_further_than_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO(b"age,sex\nsecret,row\n")
    content.close = lambda: None  # type: ignore[method-assign]
    monkeypatch.setattr(header, "_opened", lambda path: content)
    read_header(tmp_path / "t.csv")
    assert content.tell() == len(b"age,sex\n")
