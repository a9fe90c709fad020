"""What a refusal of a table tells you to write makes the table readable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table, read_table

SIZE = {"value": 100, "basis": "made for this test"}
FIELDS: list[dict[str, Any]] = [
    {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M", "ä"]}},
    {"name": "site", "type": "string", "constraints": {"enum": ["007", "012"]}},
]
ROWS = "sex,site\nF,007\nä,012\n"


def schema_of(**dialect: Any) -> Schema:
    fields = [field | {"dpsynth": {"bounds_basis": "protocol"}} for field in FIELDS]
    own = {"version": 1, "population": SIZE, "rows": SIZE, "dialect": dialect}
    return Schema.from_dict({"fields": fields, "dpsynth": own})


def rows_of(path: Path, schema: Schema) -> list[list[str]]:
    return [row for chunk in open_table(path, schema).chunks() for row in chunk.to_numpy().tolist()]


@pytest.mark.parametrize(
    ("data", "dialect"),
    [
        (ROWS.replace(",", ";").encode(), {}),
        (ROWS.replace(",", "\t").encode(), {}),
        (ROWS.replace(",", "|").encode(), {"delimiter": ";"}),
        (ROWS.encode("latin-1"), {}),
        (ROWS.encode("cp1252"), {"encoding": "ascii"}),
        (ROWS.encode(), {"encoding": "ascii"}),
        (ROWS.encode("utf-16"), {"encoding": "latin-1"}),
        (ROWS.encode("utf-16-le"), {}),
        (ROWS.encode("utf-16-be"), {}),
    ],
    ids=["semicolon", "tab", "bar", "latin", "ascii", "utf-8", "utf-16", "little", "big"],
)
def test_a_dialect_that_a_refusal_proposes_reads_the_table(
    tmp_path: Path, data: bytes, dialect: dict[str, Any]
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    declared, tried = dict(dialect), 0
    while True:
        try:
            assert rows_of(path, schema_of(**declared)) == [["F", "007"], ["ä", "012"]]
            break
        except TableError as error:
            line = re.search(r"write (dialect: \{.*?\})", str(error))
            assert line is not None, error
            declared |= yaml.safe_load(line[1])["dialect"]
            tried += 1
            assert tried <= 2
    assert tried


def test_reading_a_file_as_a_refused_frame_is_told_to_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    schema, frame = schema_of(), pd.read_csv(path)
    with pytest.raises(TableError, match=r"read_table\(path, schema\), or with dtype=str"):
        open_table(frame, schema)
    for again in (read_table(path, schema), pd.read_csv(path, dtype=str)):
        assert open_table(again, schema).columns == ("sex", "site")
