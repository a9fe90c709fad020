"""P27: what is said about a table quotes none of its cells (reading, coding and checking tables).

The check: tables full of canaries are read in every way that can fail; the message and the whole
traceback of each error hold no canary, nor anything else that a table printed or logged.
"""

from __future__ import annotations

import gzip
import logging
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding import Codec, read_cohort
from dpsynth.errors import DpsynthError
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table

NUMBER = {"value": 90, "basis": "made for this test"}
CANARY = "Xq7Zanzibar"
NUMERAL = "918273645"
UNUSUAL = "kr\xfcmel"  # not ASCII: a decoder stumbles over it
CANARIES = (CANARY, NUMERAL, UNUSUAL, "mel", "\\xfc", "0xfc", "0xff")


def schema_of(**policy: str) -> Schema:
    basis = {"bounds_basis": "made for this test"}
    limits = {"minimum": 0, "maximum": 120, "required": True}
    fields: list[dict[str, Any]] = [
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
        {"name": "age", "type": "integer", "constraints": limits, "dpsynth": basis | policy},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": basis},
    ]
    facts = {"version": 1, "population": NUMBER, "rows": NUMBER, "max_rows": NUMBER}
    return Schema.from_dict({"fields": fields, "dpsynth": facts})


REFUSING = schema_of(on_bad="refuse")
HEADER = "patient,age,sex\n"
ROW = f"{CANARY},{NUMERAL},{CANARY}\n"

FILES: dict[str, tuple[str, bytes]] = {
    "no header": ("a.csv", ROW.encode() * 3),
    "other separator": ("a.csv", (HEADER + ROW).replace(",", ";").encode()),
    "too many fields": ("a.csv", (HEADER + ROW + f"{CANARY},{NUMERAL},F,{CANARY}\n").encode()),
    "open quote": ("a.csv", (HEADER + ROW + f'"{CANARY},{NUMERAL},F\n').encode()),
    "text after quote": ("a.csv", (HEADER + ROW + f'"{CANARY}"{CANARY},1,F\n').encode()),
    "endless quote": ("a.csv", (HEADER + f'"{CANARY}' + CANARY * 20_000).encode()),
    "bad encoding": ("a.csv", (HEADER + ROW + f"{UNUSUAL},1,F\n").encode("latin-1")),
    "bad encoding later": (
        "a.csv",
        (HEADER + ROW * 3000 + f"{UNUSUAL},1,F\n" * 9).encode("latin-1"),
    ),
    "bad header": ("a.csv", (f"{UNUSUAL},age,sex\n" + ROW).encode("latin-1")),
    "NUL": ("a.csv", (HEADER + ROW + f"{CANARY}\0,1,F\n").encode()),
    "doubled header": ("a.csv", f"age,age,{CANARY},patient,sex\n".encode()),
    "cut gzip": ("a.csv.gz", gzip.compress((HEADER + ROW * 9999).encode())[:-9]),
    "plain gzip": ("a.csv.gz", ROW.encode()),
    "not parquet": ("a.parquet", ROW.encode()),
    "refused cell": ("a.csv", (HEADER + f"p1,{CANARY},F\n").encode()),
    "no keys": ("a.csv", (HEADER + f",3,{CANARY}\n").encode()),
}

Read = Callable[[Path], object]


def real(path: Path) -> object:
    codec = Codec(REFUSING)
    return read_cohort(open_table(path, REFUSING), codec, REFUSING, SeededEntropy(1))


def naive(path: Path) -> object:
    """Broken twin: pandas reads, Python converts, and their messages go out as they are."""
    compression = "gzip" if path.suffix == ".gz" else None
    frame = pd.read_csv(path, dtype={"patient": str, "sex": str}, compression=compression)
    frame = frame[["patient", "age", "sex"]]
    return [int(age) for age in frame["age"]] + [{"F": 0, "M": 1}[sex] for sex in frame["sex"]]


def said_by(read: Read, path: Path) -> str:
    """Everything that an error shows to whoever runs the program."""
    try:
        read(path)
    except Exception as error:
        assert str(error)
        # The lines of source in a traceback are not data; names of files are the user's.
        return "".join(traceback.format_exception_only(error)) + chained(error)
    return ""


def chained(error: BaseException) -> str:
    """The errors that Python prints above this one."""
    if error.__cause__ is not None:
        return str(error.__cause__) + chained(error.__cause__)
    if error.__context__ is not None and not error.__suppress_context__:
        return str(error.__context__) + chained(error.__context__)
    return ""


def quoted(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


@pytest.mark.parametrize("name", FILES)
def test_errors_quote_no_cell(
    name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / FILES[name][0]
    path.write_bytes(FILES[name][1])
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        message = said_by(real, path)
        with pytest.raises(DpsynthError) as caught:
            real(path)
    assert quoted(message) == []
    assert caught.value.exit_code == 2
    out, err = capfd.readouterr()
    assert quoted(out + err + caplog.text + "".join(str(w.message) for w in warned)) == []


def test_the_check_catches_naive_messages(tmp_path: Path) -> None:
    caught = set()
    for name, (suffix, content) in FILES.items():
        path = tmp_path / suffix
        path.write_bytes(content)
        if quoted(said_by(naive, path)):
            caught.add(name)
    assert {"refused cell", "bad encoding"} <= caught


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    cells = [f"{CANARY}{i}" for i in range(5000)]
    pq.write_table(pa.table({"patient": cells, "age": cells, "sex": cells}), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(6)
    failed = 0
    for _ in range(60):
        content = bytearray(whole)
        start = int(rng.integers(0, len(content)))
        content[start : start + 40] = rng.bytes(len(content[start : start + 40]))
        path.write_bytes(content)
        message = said_by(real, path)
        failed += "Parquet" in message or "damaged" in message
        assert quoted(message) == []
    assert failed > 5


CELLS = st.one_of(
    st.just(CANARY), st.just(NUMERAL), st.text(max_size=9), st.none(), st.floats(), st.binary()
)


@settings(deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=6))
def test_fuzzed_frames(cells: list[Any]) -> None:
    frame = pd.DataFrame({name: [*cells, CANARY] for name in ("patient", "age", "sex")})
    for schema in (REFUSING, schema_of()):
        try:
            read_cohort(open_table(frame, schema), Codec(schema), schema, SeededEntropy(1))
        except DpsynthError as error:
            assert quoted(str(error) + chained(error)) == []
    problems = Codec(schema_of()).conforms(frame.drop(columns="patient"))
    assert problems, "a canary is no age"
    assert quoted(" ".join(map(str, problems))) == []
