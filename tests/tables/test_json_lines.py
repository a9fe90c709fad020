"""JSON Lines: each line by itself; what is refused is refused before a fit, without a cell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.errors import NoRowsError, TableError
from dpsynth.tables import Keys, open_table, split_file

from .sources_schema import HEADER, ROWS, TEXTS, schema_of

CANARY = "zebrafish"
ROW: dict[str, Any] = {"patient": "007", "sex": "Male", "age": 34, "weight": 70.5}
ROW |= {"admitted": "2001-02-03", "seen": "2001-02-03 10:30:00", "smoker": True, "note": "SECRET"}


def lines(path: Path, *rows: Any, raw: str = "") -> Path:
    texts = [json.dumps(row, default=str) for row in rows]
    path.write_text("\n".join(texts) + "\n" + raw)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(TableError) as refused:
        open_table(path, schema_of())
    error = refused.value
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    assert "SECRET" not in str(error) and CANARY not in str(error)
    return str(error)


def test_each_cell_is_a_text_of_its_own(tmp_path: Path) -> None:
    rows = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
    path = lines(tmp_path / "t.jsonl", *rows)
    frame = dpsynth.read_table(path, schema_of())
    assert {column: frame[column].tolist() for column in TEXTS} == TEXTS
    mixed = lines(tmp_path / "t.ndjson", ROW, ROW | {"age": "<5", "weight": 7e1, "smoker": "true"})
    frame = dpsynth.read_table(mixed, schema_of())
    assert frame["age"].tolist() == ["34", "<5"] and frame["weight"].tolist() == ["70.5", "70"]
    assert frame["smoker"].tolist() == ["true", "true"]


def test_one_cell_changes_no_other(tmp_path: Path) -> None:
    """A code of one patient that is no number; pandas makes numbers of the others' without it."""
    others = [ROW | {"age": text} for text in ("34", "007", "1e1", "12345678901234567890", "true")]
    one = lines(tmp_path / "one.jsonl", *others)
    two = lines(tmp_path / "two.jsonl", *others, ROW | {"age": CANARY, "patient": "V27"})
    names = ["patient", "age"]
    read = [dpsynth.read_table(path, schema_of())[names][:5] for path in (one, two)]
    pd.testing.assert_frame_equal(*read)
    assert read[0]["age"].tolist() == ["34", "007", "1e1", "12345678901234567890", "true"]
    inferred = [pd.read_json(path, lines=True)[names][:5].astype(str) for path in (one, two)]
    assert not inferred[0].equals(inferred[1])  # the broken version: types of the whole file


def test_a_cell_that_is_left_out_is_missing_as_null_is(tmp_path: Path) -> None:
    short = {name: cell for name, cell in ROW.items() if name != "weight"}
    path = lines(tmp_path / "t.jsonl", ROW | {"weight": None}, short, ROW)
    assert dpsynth.read_table(path, schema_of())["weight"].tolist() == [None, None, "70.5"]
    lacking = lines(tmp_path / "t.jsonl", short, short)
    assert "lacks a column of the schema: weight" in refusal(lacking)


@pytest.mark.parametrize(
    "cells, message",
    [
        ({"patient": 7.0}, "column 'patient' holds floating-point numbers, and it is the key"),
        ({"patient": 2**53}, "column 'patient' holds whole numbers that may have been rounded"),
        ({"patient": None}, "column 'patient' holds no cell at all"),
        ({"sex": True}, "column 'sex' holds truth values"),
        ({"sex": 1}, "none of its declared values is a whole number"),
        ({"age": [CANARY]}, "column 'age' holds cells of a kind that no schema has"),
        ({"age": {CANARY: CANARY}}, "column 'age' holds cells of a kind that no schema has"),
        ({"admitted": 5}, "column 'admitted' holds whole numbers, and its type is date"),
    ],
)
def test_cells_that_could_be_coded_otherwise_are_refused(
    cells: dict[str, Any], message: str, tmp_path: Path
) -> None:
    found = refusal(lines(tmp_path / "t.jsonl", ROW | cells))
    assert message in found and "write the column as JSON strings" in found


@pytest.mark.parametrize(
    "raw, message",
    [
        (f'{{"patient": "{CANARY}"', "line 2 is not a JSON object"),
        (f'["{CANARY}"]', "line 2 is not a JSON object"),
        ("7", "line 2 is not a JSON object"),
        ("{" * 50_000, "line 2 is not a JSON object"),
        (f'{{"age": 1}} {{"{CANARY}": 2}}', "line 2 is not a JSON object"),
        ('{"age": 1, "age": 2}', "line 2 has the same name twice"),
        (f'\n\n{{"age": {CANARY}}}', "line 4 is not a JSON object"),
    ],
)
def test_a_line_that_is_no_object_is_refused_by_its_number(
    raw: str, message: str, tmp_path: Path
) -> None:
    assert message in refusal(lines(tmp_path / "t.jsonl", ROW, raw=raw))


def test_other_columns_may_hold_anything(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", ROW | {"visits": [{"a": 1}, {"a": 2}], "more": {"b": {}}})
    assert len(dpsynth.read_table(path, schema_of())) == 1


def test_numbers_of_any_length_are_read(tmp_path: Path) -> None:
    raw = json.dumps(ROW).replace("34", "9" * 5_000).replace("70.5", "1E+999999")
    path = lines(tmp_path / "t.jsonl", ROW, raw=raw)
    frame = dpsynth.read_table(path, schema_of())
    assert frame["age"][0] == "34" and frame["weight"][0] == "70.5"
    codes = Codec(schema_of()).encode(frame)
    assert len(codes) == 2


def test_half_a_letter_is_a_text(tmp_path: Path) -> None:
    """JSON can escape half a surrogate pair, which no UTF-8 text has."""
    row = ROW | {"patient": "\ud800", "sex": "\ud800"}
    path = lines(tmp_path / "t.jsonl", ROW, row)
    frame = dpsynth.read_table(path, schema_of())
    assert frame["sex"].tolist() == ["Male", "\\ud800"]
    [chunk] = open_table(path, schema_of()).chunks()
    assert Keys(schema_of()).units(chunk).tolist() == [0, 1]
    assert len(Codec(schema_of()).encode(chunk)) == 2


def test_damaged_and_empty_files(tmp_path: Path) -> None:
    whole = gzip.compress((json.dumps(ROW) + "\n").encode() * 99)
    (tmp_path / "t.jsonl.gz").write_bytes(whole[:-9])
    assert "not a complete gzip file" in refusal(tmp_path / "t.jsonl.gz")
    (tmp_path / "t.jsonl.gz").write_bytes(json.dumps(ROW).encode())
    assert "not a complete gzip file" in refusal(tmp_path / "t.jsonl.gz")
    (tmp_path / "t.jsonl").write_bytes(gzip.compress(b"{}"))
    assert "is a gzipped file: call it t.jsonl.gz" in refusal(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes(b'{"patient": "\xff"}')
    assert "line 1 is not UTF-8" in refusal(tmp_path / "t.jsonl")
    (tmp_path / "t.json").write_text(json.dumps(ROW))
    assert "call it t.jsonl" in refusal(tmp_path / "t.json")
    (tmp_path / "t.jsonl").write_text("\n \n")
    with pytest.raises(NoRowsError, match="has no rows, so it names no columns"):
        open_table(tmp_path / "t.jsonl", schema_of())


def test_it_is_cut_between_lines(tmp_path: Path) -> None:
    rows = [ROW | {"patient": f"p{place}", "note": "x\n" * (place % 7)} for place in range(50)]
    table: Any = open_table(lines(tmp_path / "t.jsonl", *rows), schema_of())
    parts = table.parts(4)
    assert len(parts) == 4
    cut = pd.concat([chunk for part in parts for chunk in part.chunks()], ignore_index=True)
    pd.testing.assert_frame_equal(cut, pd.concat(table.chunks(), ignore_index=True))


def test_a_split_writes_parquet(tmp_path: Path) -> None:
    rows = [ROW | {"patient": f"p{place}"} for place in range(20)]
    path = lines(tmp_path / "t.jsonl", *rows)
    sides = split_file(path, schema_of(), tmp_path / "parts", holdout=0.5, seed=1)
    read = [dpsynth.read_table(side, schema_of()) for side in sides]
    assert [side.suffix for side in sides] == [".parquet"] * 2
    assert sum(map(len, read)) == 20 and {*read[0]["patient"]}.isdisjoint(read[1]["patient"])
