"""P30: in the local model, whether there is a report depends on the answer.

The collector is the adversary, and delta is 0. So after the header is accepted, every answer of any
bytes ends in the same files, the same exit code and the same number of reports; and no answer
changes how another is read. The broken twins read a column that refuses cells, leave out rows
without a key, read as a fit reads, judge types that follow from answers, take any encoding, read
one member of a gzip file, and let a quote take in the next line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpsynth.errors import DpsynthError, InputError, TableError
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.stats import perturb, perturbing
from dpsynth.stats.perturbing import AnswerRows
from dpsynth.tables import Table, open_table

COUNT = {"value": 900, "basis": "declared"}
CUTS = {"age": [40.0, 65.0]}
SECONDS = pa.timestamp("s")
KINDS = ("smokes", "place", "grade", "well", "age", "weight")

CELLS: dict[str, bytes] = {
    "declared": b"yes",
    "another": b"no",
    "a number": b"1",
    "unknown": b"perhaps",
    "missing": b"",
    "blank": b"  ",
    "a word for missing": b"NA",
    "quoted": b'"perhaps, or not"',
    "a quote within": b'ye"s',
    "a lone quote": b'"yes',
    "text after a quote": b'"ye"s',
    "another separator": b"yes,no,maybe",
    "no letter of UTF-8": b"\xff\xfe\x80",
    "NUL": b"\0yes",
    "long": b"9" * 140_000,
    "not finite": b"1e999",
    "not a number": b"nan",
    "digits of another script": "\u0663\u0664".encode(),
    "right to left": "\u202eyes".encode(),
    "a formula": b"=cmd|' /C calc'!A0",
}


def column(name: str, kind: str, enum: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    options = {"bounds_basis": "declared"} | more.pop("dpsynth", {})
    limits = ({"enum": enum} if enum else {}) | more.pop("constraints", {})
    return {"name": name, "type": kind, "constraints": limits, "dpsynth": options, **more}


def form(**options: Any) -> Schema:
    """A form with a column of each kind; ``options`` are those of its first column."""
    between = {"minimum": 0, "maximum": 120}
    fields = [
        {"name": "id", "type": "string", "dpsynth": {"role": "unit"}},
        column("smokes", "string", ["yes", "no"], dpsynth=options),
        column("place", "string", ["north", "NA"], constraints={"required": True}),
        column("grade", "integer", [1, 2, 3]),
        column("well", "boolean", constraints={"required": True}),
        column("age", "integer", constraints=between | {"required": True}),
        column("weight", "number", constraints=between, dpsynth={"step": 1}),
    ]
    table = {"version": 1, "population": COUNT, "rows": COUNT, "max_rows": COUNT | {"value": 1}}
    return Schema.from_dict({"name": "form", "fields": fields, "dpsynth": table})


@dataclass(frozen=True)
class Outcome:
    """What a collector sees, the report itself apart."""

    error: str | None
    files: tuple[str, ...]
    people: int | None


def outcome(
    data: Any, folder: Path, columns: tuple[str, ...] = KINDS, schema: Schema | None = None
) -> Outcome:
    """Perturb a table into an empty folder."""
    folder.mkdir()
    cuts = {name: [40.0, 65.0] for name in columns if name in ("age", "weight")}
    asked = schema or form()
    people, error = None, None
    try:
        people = perturb(
            data, asked, columns, epsilon=3, cuts=cuts, output=folder / "out.csv"
        ).people
    except DpsynthError as refused:
        error = f"{type(refused).__name__}: {refused}"
    return Outcome(error, tuple(sorted(path.name for path in folder.iterdir())), people)


def written(cell: bytes, path: Path, key: bytes = b"p1") -> Path:
    """One person's answers: the same cell in every column."""
    line = b",".join([key, *[cell] * len(KINDS)])
    path.write_bytes(",".join(["id", *KINDS]).encode() + b"\n" + line + b"\n")
    return path


ALWAYS = Outcome(None, ("out.csv", "out.csv.json"), 1)


@pytest.mark.parametrize("cell", CELLS)
def test_every_answer_has_a_report(cell: str, tmp_path: Path) -> None:
    path = written(CELLS[cell], tmp_path / "answers.csv")
    assert outcome(path, tmp_path / "all") == ALWAYS
    zipped = tmp_path / "answers.csv.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert outcome(zipped, tmp_path / "zipped") == ALWAYS


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_has_a_report_where_it_is_the_only_column(kind: str, tmp_path: Path) -> None:
    """A form without a key has one column: a missing answer is a blank line there."""
    asked = form()
    alone = replace(
        asked,
        columns=tuple(one for one in asked.columns if one.name == kind),
        unit=replace(asked.unit, column=None),
    )
    path = tmp_path / "answers.csv"
    for number, cell in enumerate(CELLS.values()):
        path.write_bytes(kind.encode() + b"\n" + cell + b"\n")
        assert outcome(path, tmp_path / str(number), (kind,), alone) == ALWAYS


@pytest.mark.parametrize("key", [b"p1", b"", b"  ", b"\xff", b"9" * 200_000, b'"p', b"\0"])
def test_every_key_has_a_report(key: bytes, tmp_path: Path) -> None:
    path = written(b"yes", tmp_path / "answers.csv", key)
    assert outcome(path, tmp_path / "out") == ALWAYS


def test_an_answer_of_ten_megabytes_has_a_report(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(",".join(["id", *KINDS]).encode() + b"\np1," + b"x" * 10_000_000 + b"\n")
    assert outcome(path, tmp_path / "out", ("smokes",)) == ALWAYS


@pytest.mark.parametrize("cell", CELLS)
def test_one_person_takes_no_report_of_another(cell: str, tmp_path: Path) -> None:
    """Rows of several people: quotes of one do not take in the rows of the next."""
    lines = [b"p%d," % n + b",".join([b"yes"] * len(KINDS)) for n in range(5)]
    path = tmp_path / "answers.csv"
    for place, cells in enumerate(([CELLS[cell]] * len(KINDS), [b"yes"] * 5 + [CELLS[cell]])):
        lines[2] = b",".join([b"p2", *cells])
        path.write_bytes(",".join(["id", *KINDS]).encode() + b"\n" + b"\n".join(lines) + b"\n")
        found = outcome(path, tmp_path / str(place))
        assert found.error is None and found.people == 5


def test_a_person_with_two_rows_has_one_report(tmp_path: Path) -> None:
    path = written(b"yes", tmp_path / "answers.csv")
    path.write_bytes(path.read_bytes() + b"p1" + b",no" * len(KINDS) + b"\n")
    assert outcome(path, tmp_path / "out") == ALWAYS


class Unwritable:
    """A cell that has no text."""

    def __str__(self) -> str:
        raise RuntimeError


OBJECTS = ["yes", "perhaps", None, np.nan, pd.NA, pd.NaT, 7, 7.5, True, b"\xff", "\ud800", ("a", 1)]
OBJECTS += [10**5000, -(10**5000), Decimal("sNaN"), Decimal("1e9999"), 1j, Unwritable(), [1], {}]


@pytest.mark.parametrize("place", range(len(OBJECTS)))
def test_every_object_of_a_frame_has_a_report(place: int, tmp_path: Path) -> None:
    cells = {name: pd.Series([OBJECTS[place]], dtype=object) for name in ("id", *KINDS)}
    assert outcome(pd.DataFrame(cells), tmp_path / "out") == ALWAYS


TYPES: dict[str, list[Any]] = {
    "whole numbers": [1, 2, 3],
    "numbers": [1.5, 2.0, 3.0],
    "truth values": [True, False, True],
    "times": [datetime(2001, 2, 3, hour) for hour in (4, 5, 6)],
    "texts": ["yes", "no", "yes"],
}
LAST = ["as it is", None, "perhaps", 2.5, 7, True, 10**5000, datetime(2001, 2, 3), date(1, 1, 1)]


def frames(cells: list[Any]) -> list[pd.DataFrame]:
    """Three people: the third one's answer decides which type pandas gives to a column."""
    columns = []
    for last in LAST:
        column = pd.Series(cells if last == "as it is" else [*cells[:2], last], dtype=object)
        columns.append(column)
        if last != 10**5000:  # pandas cannot infer a type of it
            typed = [column.infer_objects(), column.convert_dtypes(), column.astype("category")]
            columns += typed
    keys = pd.Series(["p1", "p2", "p3"], dtype=object)
    return [pd.DataFrame({"id": keys} | dict.fromkeys(KINDS, one)) for one in columns]


@pytest.mark.parametrize("kind", TYPES)
def test_the_types_of_a_frame_are_not_judged(kind: str, tmp_path: Path) -> None:
    found = {
        outcome(frame, tmp_path / str(number)) for number, frame in enumerate(frames(TYPES[kind]))
    }
    assert found == {replace(ALWAYS, people=3)}


@pytest.mark.parametrize("kind", TYPES)
def test_the_text_of_a_cell_follows_from_the_cell(kind: str) -> None:
    """An answer of the third person changes no other person's text."""
    read = [AnswerRows.read(frame, form()).frame.iloc[:2] for frame in frames(TYPES[kind])]
    for other in read[1:]:
        pd.testing.assert_frame_equal(read[0], other)


def test_a_column_of_whole_numbers_with_a_missing_one_is_read_as_its_text() -> None:
    frame = pd.read_csv(io.StringIO("id,grade\np1,1\np2,2\np3,\n"))
    asked = replace(form(), columns=tuple(c for c in form().columns if c.name in frame))
    assert AnswerRows.read(frame, asked).frame["grade"].tolist() == ["1", "2", None]


@pytest.mark.parametrize(
    "made",
    [
        lambda: pd.Series(pa.array([10**17, 0], pa.timestamp("s")), dtype=pd.ArrowDtype(SECONDS)),
        lambda: pd.Series(pa.array([10**8, 0], pa.date32()), dtype=pd.ArrowDtype(pa.date32())),
        lambda: pd.Series([0, 1], dtype="timedelta64[s]"),
        lambda: pd.Series([1, 2], dtype="float32"),
        lambda: pd.Series(pd.period_range("2001", periods=2, freq="Y")),
        lambda: pd.Series(pd.interval_range(0, 2)),
        lambda: pd.Series(pd.date_range("2001", periods=2, tz="Europe/Vienna")),
        lambda: pd.Series([1, 0], dtype="Sparse[int]"),
        lambda: pd.Series([1j, 2j]),
    ],
)
def test_every_type_of_a_column_has_reports(made: Callable[[], Any], tmp_path: Path) -> None:
    column = made()
    frame = pd.DataFrame({"id": ["p1", "p2"]} | dict.fromkeys(KINDS, column))
    assert outcome(frame, tmp_path / "out") == replace(ALWAYS, people=2)


def test_judging_the_types_of_a_frame_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = perturbing._cells

    def judging(cells: Any, schema: Schema) -> Any:
        if cells.dtype.kind in "fM":
            raise TableError("refused")
        return whole(cells, schema)

    monkeypatch.setattr(perturbing, "_cells", judging)
    made = [outcome(one, tmp_path / str(n)) for n, one in enumerate(frames(TYPES["whole numbers"]))]
    assert len(set(made)) > 1


ENCODINGS = ["utf-8", "utf-8-sig", "latin-1", "cp1252", "ascii", "shift_jis", "gb18030", "euc_jp"]
UNFIT = ["punycode", "idna", "utf-7", "utf-16", "utf-16-le", "cp037", "hz", "hex", "undefined"]
UNFIT += ["raw_unicode_escape", "no such"]


def encoded(encoding: str) -> Schema:
    return replace(form(), dialect=replace(form().dialect, encoding=encoding))


@pytest.mark.parametrize("encoding", [*ENCODINGS, "iso2022_jp"])
def test_an_answer_of_any_byte_has_a_report(encoding: str, tmp_path: Path) -> None:
    """The answers of the person after it are read as they are."""
    path, asked = tmp_path / "answers.csv", encoded(encoding)
    head = ",".join(["id", *KINDS]).encode() + b"\n"
    for byte in [bytes([n]) for n in range(256) if bytes([n]) not in b"\r\n"] + [b"\x1b$B", b"~{"]:
        path.write_bytes(head + b"p1," + byte + b"\n" + b"p2" + b",yes" * len(KINDS) + b"\n")
        read = AnswerRows.read(path, asked).frame
        assert len(read) == 2 and read.iloc[1].tolist() == ["p2", *["yes"] * len(KINDS)]


@pytest.mark.parametrize("encoding", UNFIT)
def test_an_encoding_that_lacks_bytes_is_refused_whatever_the_answers_are(
    encoding: str, tmp_path: Path
) -> None:
    made = [
        outcome(written(cell, tmp_path / f"{n}.csv"), tmp_path / str(n), schema=encoded(encoding))
        for n, cell in enumerate([b"yes", b"\xff"])
    ]
    assert made[0].error is not None and "dialect.encoding" in made[0].error
    assert made[1].error == made[0].error and not made[0].files + made[1].files


def test_taking_any_encoding_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perturbing, "_codec", lambda name: name)
    path = tmp_path / "answers.csv"
    path.write_bytes(",".join(["id", *KINDS]).encode() + b"-\np1,yes-\n")
    assert len(AnswerRows.read(path, encoded("punycode")).frame) == 1
    path.write_bytes(path.read_bytes().replace(b"yes-", b"-\xff"))
    with pytest.raises(UnicodeError):
        AnswerRows.read(path, encoded("punycode"))


def zipped(tmp_path: Path) -> tuple[Path, int]:
    """Four people in a gzip file of two members, as ``cat`` makes of two files; and its middle."""
    head = ",".join(["id", *KINDS]).encode() + b"\n"
    line = b"".join(b"p%d" % n + b",yes" * len(KINDS) + b"\n" for n in (1, 2))
    first, second = gzip.compress(head + line), gzip.compress(line.replace(b"p", b"q"))
    path = tmp_path / "answers.csv.gz"
    path.write_bytes(first + second)
    return path, len(first)


def test_every_member_of_a_gzip_file_is_read(tmp_path: Path) -> None:
    path, _ = zipped(tmp_path)
    assert outcome(path, tmp_path / "out") == replace(ALWAYS, people=4)


def test_a_gzip_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    path, middle = zipped(tmp_path)
    whole = path.read_bytes()
    for end in {*range(1, len(whole), 5)} - {middle}:
        path.write_bytes(whole[:end])
        found = outcome(path, tmp_path / str(end))
        assert found.error is not None and "cut short" in found.error and not found.files


def test_reading_one_member_of_a_gzip_file_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = zipped(tmp_path)
    monkeypatch.setattr(gzip, "decompress", lambda part: zlib.decompressobj(31).decompress(part))
    assert outcome(path, tmp_path / "out").people == 2


QUOTED = [b'"yes"', b'"yes, or no"', b'"a ""word"""', b'"no', b'no"', b'"a"b"', b'""', b'"""']


def rows_with(cell: bytes, path: Path) -> pd.DataFrame:
    """What is read of others where one person gives an answer; their own cells have quotes."""
    others = [b"p%d" % n + b',"no, never"' * len(KINDS) for n in range(4)]
    lines = [",".join(["id", *KINDS]).encode(), *others[:2], b"me," + cell, *others[2:]]
    path.write_bytes(b"\n".join(lines) + b"\n")
    frame = AnswerRows.read(path, form()).frame
    return frame[frame["id"] != "me"].reset_index(drop=True)


@pytest.mark.parametrize("cell", QUOTED)
def test_a_quote_changes_no_other_row(cell: bytes, tmp_path: Path) -> None:
    found = rows_with(cell, tmp_path / "answers.csv")
    assert found["id"].tolist() == ["p0", "p1", "p2", "p3"]
    assert (found[[*KINDS]] == "no, never").all(axis=None)


def test_records_until_a_quote_does_not_match_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another person's answer of two lines is one row, or two where my quote has no end."""
    whole = perturbing._rows

    def either(content: bytes, codec: str, dialect: Any) -> list[list[Any]]:
        try:
            return list(csv.reader(io.StringIO(content.decode(codec), newline=""), strict=True))
        except csv.Error:
            return whole(content, codec, dialect)

    def count(mine: bytes) -> int:
        path = tmp_path / "answers.csv"
        path.write_bytes(
            ",".join(["id", *KINDS]).encode() + b'\np1,"yes\nor no"\nme,' + mine + b"\n"
        )
        return len(AnswerRows.read(path, form()).frame)

    assert {count(mine) for mine in QUOTED} == {3}  # each line is a row
    monkeypatch.setattr(perturbing, "_rows", either)
    assert {count(mine) for mine in QUOTED} == {2, 3}


def refusing() -> list[Schema]:
    return [form(on_unknown="refuse"), form(on_bad="refuse")]


@pytest.mark.parametrize("schema", refusing())
def test_a_column_that_refuses_is_refused_before_anything_is_read(
    schema: Schema, tmp_path: Path
) -> None:
    """Though there is no table: nothing has been opened then."""
    found = outcome(tmp_path / "absent.csv", tmp_path / "out", schema=schema)
    assert found.error is not None and "declares `refuse`" in found.error and not found.files
    others = tuple(name for name in KINDS if name != "smokes")
    path = written(b"?", tmp_path / "answers.csv")
    assert outcome(path, tmp_path / "others", others, schema) == ALWAYS


def every_outcome(tmp_path: Path, schema: Schema | None = None) -> set[Outcome]:
    """What the collector sees, over all answers and keys."""
    cells = [
        outcome(written(cell, tmp_path / f"{n}.csv"), tmp_path / str(n), schema=schema)
        for n, cell in enumerate(CELLS.values())
    ]
    path = written(b"yes", tmp_path / "key.csv", b"")
    found = {*cells, outcome(path, tmp_path / "key", schema=schema)}
    return {replace(one, error=None if one.error is None else "refused") for one in found}


def test_a_schema_that_refuses_and_is_taken_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sound").mkdir()
    assert every_outcome(tmp_path / "sound") == {ALWAYS}
    monkeypatch.setattr(perturbing, "REFUSE", "never")
    (tmp_path / "broken").mkdir()
    assert len(every_outcome(tmp_path / "broken", form(on_unknown="refuse"))) == 2


def test_reading_as_a_fit_reads_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict:
        @staticmethod
        def read(data: Any, schema: Schema) -> Table:
            return open_table(data, schema)

    monkeypatch.setattr(perturbing, "AnswerRows", Strict)
    assert len(every_outcome(tmp_path)) == 2


def test_a_row_that_is_left_out_for_its_key_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = perturbing._reduced

    def dropping(schema: Schema, columns: Any) -> Schema:
        part = whole(schema, columns)
        return replace(part, unit=replace(part.unit, missing_key="drop"))

    monkeypatch.setattr(perturbing, "_reduced", dropping)
    assert len(every_outcome(tmp_path)) == 2


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("answers.parquet", b"PAR1", "reads .csv"),
        ("answers.csv", b"", "empty"),
        ("answers.csv", b"id,smokes\np1,yes\n", "lacks 5 columns"),
        ("answers.csv", b"id,smokes,place,grade,well,age,weight\n", "no rows"),
        ("answers.csv.gz", b"id,smokes\n", "no gzip file"),
    ],
)
def test_the_form_of_a_table_is_judged_before_its_answers(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        perturb(tmp_path / name, form(), ["smokes"] if "lacks" not in words else KINDS, epsilon=1,
                cuts=CUTS | {"weight": [40.0]} if "lacks" in words else None)  # fmt: skip


def test_the_command_shows_the_same_for_every_answer(
    command_line: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "form.json").write_text(json.dumps(form().to_dict()))
    seen = set()
    for cell in CELLS.values():
        written(cell, tmp_path / "answers.csv")
        done = command_line(
            *("local", "perturb", "form.json", "answers.csv", "--columns", "smokes,grade,well"),
            *("--epsilon", "3", "-o", "out.csv"),
        )
        seen.add((done.code, done.out, done.err, len((tmp_path / "out.csv").read_bytes()) > 0))
        (tmp_path / "out.csv").unlink()
        (tmp_path / "out.csv.json").unlink()
    assert len(seen) == 1 and next(iter(seen))[0] == 0


def test_reports_are_of_the_codes_that_the_schema_gives(tmp_path: Path) -> None:
    """What would be refused elsewhere is a category, and is reported as often as any other."""
    path = written(b"perhaps", tmp_path / "answers.csv")
    with pytest.raises(InputError):
        perturb(path, form(on_unknown="refuse"), ["smokes"], epsilon=20)
    found = perturb(path, form(), ["smokes"], epsilon=20, entropy=SeededEntropy(1))
    [settings] = found.settings.columns
    assert settings.labels[found.reports[0][0]] == "(missing)"
