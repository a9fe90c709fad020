"""The search of test_taint.py is worth something: programs that leak are caught by it.

Broken twins, a few lines each: a run, a table, a ledger or a temporary file that keeps something
of the private table, and a fit that says something.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import logging
import pickle
import sqlite3
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from .office import Office, leaks
from .representations import Canaries
from .taint import Finding, Search
from .tainted import (
    BEYOND,
    DAYS,
    DOCUMENT,
    MOMENTS,
    PATIENTS,
    ROWS,
    SOURCE,
    TEXTS,
    WITHIN,
    Sources,
    sources,
)

Kept = dict[str, Any]
NOTE = TEXTS["note"]


@pytest.fixture(scope="module")
def made() -> Sources:
    return sources()


def setting(value: Any) -> Callable[[Run, Sources], Run]:
    """A twin that keeps a value in run.json."""
    return lambda run, made: replace(run, config={"kept": value})


def tensor(values: Callable[[Sources], Any]) -> Callable[[Run, Sources], Run]:
    """A twin that keeps an array."""
    return lambda run, made: replace(run, arrays=run.arrays | {"kept": np.array(values(made))})


def codes(made: Sources) -> Any:
    return Codec(Schema.from_dict(DOCUMENT)).encode(made.text)


def days_of(name: str) -> int:
    return int(np.datetime64(DAYS[name], "D").astype(int))


IN_A_RUN: dict[str, tuple[str, Callable[[Run, Sources], Run]]] = {
    "the number of rows": ("rows", setting({"trained_on": ROWS})),
    "the number of rows, for people": ("rows", setting(f"learned from {ROWS:,} rows")),
    "the number of rows in hexadecimal": ("rows", setting(hex(ROWS))),
    "the share of one row": ("rows", setting([0.5, 1 / ROWS])),
    "an element for each row": ("rows", tensor(lambda made: np.zeros(len(made.text), bool))),
    "the number of patients in 16 bits": ("patients", tensor(lambda made: np.int16([PATIENTS]))),
    "the number of patients in 64 bits, swapped": (
        "patients",
        tensor(lambda made: np.frombuffer(struct.pack(">q", PATIENTS), dtype=np.uint8)),
    ),
    "the least income": ("income beyond", tensor(lambda made: [BEYOND["income"], 9e6])),
    "the greatest age as float32": (
        "age beyond",
        tensor(lambda made: np.float32([BEYOND["age"]])),
    ),
    "a row as float32": (
        "weight within",
        tensor(lambda made: np.float32([2.0, 4.25, WITHIN["weight"], 54.0])),
    ),
    "a scaled cell": (
        "income within",
        tensor(lambda made: np.float32([WITHIN["income"] / 1e7 * 2 - 1])),
    ),
    "a coded row": ("coded row 0", tensor(lambda made: np.uint16(codes(made)[0]))),
    "a coded row, written": (
        "coded row 1",
        lambda run, made: replace(run, config={"example": codes(made)[1].tolist()}),
    ),
    "an exact histogram": (
        "histogram 3",
        tensor(lambda made: np.bincount(codes(made)[:, 3]) / ROWS),
    ),
    "a day as int32": ("admitted", tensor(lambda made: np.int32([0, days_of("admitted")]))),
    "a time in nanoseconds": (
        "measured",
        tensor(lambda made: [np.datetime64(MOMENTS["measured"], "ns").astype(np.int64)]),
    ),
    "a hashed key": (
        "text of patient",
        setting(hashlib.sha256(TEXTS["patient"].encode()).hexdigest()),
    ),
    "free text in base64": ("text of note", setting(base64.b64encode(NOTE.encode()).decode())),
    "free text, deflated, in base64": (
        "text of note",
        setting(base64.urlsafe_b64encode(zlib.compress(NOTE.encode() * 3)).decode()),
    ),
    "an unknown category as bytes": (
        "text of region",
        tensor(lambda made: np.frombuffer(TEXTS["region"].encode("utf-16"), dtype=np.uint8)),
    ),
}


@pytest.mark.parametrize("name", IN_A_RUN)
def test_a_run_that_keeps_something_is_caught(
    name: str, made: Sources, run_folder: Path, tmp_path: Path
) -> None:
    canary, keep = IN_A_RUN[name]
    assert Search(made.canaries).folder(run_folder).found == set()
    keep(Run.load(run_folder), made).save(tmp_path / "kept")
    found = Search(made.canaries).folder(tmp_path / "kept")
    assert canary in {item.canary for item in found.found}


def parquet_metadata(folder: Path) -> None:
    table = pa.table({"age": [40, 50]}).replace_schema_metadata({"made from": NOTE})
    pq.write_table(table, folder / "drawn.parquet")


def parquet_cell(folder: Path) -> None:
    table = pa.table({"age": pa.array([40, int(BEYOND["grade"])], pa.int32())})
    pq.write_table(table, folder / "drawn.parquet", compression="zstd")


def name_in_gzip(folder: Path) -> None:
    with (folder / "drawn.csv.gz").open("wb") as raw, gzip.GzipFile(SOURCE, "wb", fileobj=raw) as f:
        f.write(b"age\n40\n")


def as_many_lines(folder: Path) -> None:
    (folder / "drawn.csv").write_text("40\n" * ROWS)


def name_of_a_file(folder: Path) -> None:
    (folder / f"run of {ROWS} rows").mkdir()


def left_behind(folder: Path) -> None:
    (folder / "tmp1234").write_bytes(pickle.dumps({"row": list(TEXTS.values())}))


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / "state.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("weights", np.float64([1.0, WITHIN["weight"]] * 9).tobytes())


def in_the_ledger(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.sqlite") as database:
        database.execute("create table reading (rows integer, sample blob)")
        database.execute("insert into reading values (?, ?)", (ROWS, b"x" + NOTE.encode()))


def in_hexadecimal(folder: Path) -> None:
    (folder / "fit.log").write_text(struct.pack(">d", WITHIN["weight"]).hex())


def appended(folder: Path) -> None:
    content = b"\x89PNG" + b"\0" * 99 + gzip.compress(json.dumps({"note": NOTE}).encode())
    (folder / "chart.png").write_bytes(content)


IN_FILES: dict[Callable[[Path], None], str] = {
    parquet_metadata: "text of note",
    parquet_cell: "grade beyond",
    name_in_gzip: "source",
    as_many_lines: "rows",
    name_of_a_file: "rows",
    left_behind: "text of sex",
    zipped: "weight within",
    in_the_ledger: "rows",
    in_hexadecimal: "weight within",
    appended: "text of note",
}


@pytest.mark.parametrize("leave", IN_FILES)
def test_a_file_that_keeps_something_is_caught(
    leave: Callable[[Path], None], made: Sources, tmp_path: Path
) -> None:
    leave(tmp_path)
    found = {item.canary for item in Search(made.canaries).folder(tmp_path).found}
    assert IN_FILES[leave] in found


def logs(frame: Any) -> None:
    logging.getLogger("dpsynth.encoding.codec").debug("unknown category %r", TEXTS["sex"])


def warns(frame: Any) -> None:
    warnings.warn(f"{TEXTS['sex']} is no category", stacklevel=2)


def prints(frame: Any) -> None:
    print(f"reading {len(frame)} rows")


def quotes(frame: Any) -> None:
    raise InputError(f"column 'sex': {TEXTS['sex']!r} is no category")


def quotes_from_a_library(frame: Any) -> None:
    """As an unexpected error is shown to who asks for it with DPSYNTH_DEBUG."""
    frame["income"].astype(float)


def leaves_a_copy(frame: Any) -> None:
    with tempfile.NamedTemporaryFile(suffix=".csv.gz", delete=False) as file:
        frame.to_csv(file.name, compression="gzip")


SAID: dict[Callable[[Any], None], tuple[str, int]] = {
    logs: ("text of sex", 0),
    warns: ("text of sex", 0),
    prints: ("rows", 0),
    quotes: ("text of sex", 2),
    quotes_from_a_library: ("text of income", 1),
    leaves_a_copy: ("text of sex", 0),
}


@pytest.mark.parametrize("leak", SAID)
def test_a_fit_that_says_something_is_caught(
    leak: Callable[[Any], None],
    made: Sources,
    tmp_path: Path,
    shell: Callable[..., Any],
    few_steps: None,
    quick_plans: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    canary, code = SAID[leak]
    if leak is quotes_from_a_library:
        monkeypatch.setenv("DPSYNTH_DEBUG", "1")
    encode = Codec.encode

    def leaking(self: Codec, frame: Any) -> Any:
        leak(frame)
        return encode(self, frame)

    monkeypatch.setattr(Codec, "encode", leaking)
    (tmp_path / "office" / "tmpdir").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "office" / "tmpdir"))
    work = Office(made, tmp_path / "office", shell, caplog, capfd)
    work.fit("independent", code=code)
    assert canary in {item.canary for item in work.look().found}


def test_chance_is_told_from_what_comes_back() -> None:
    """A weak finding counts if two repetitions have it at the same place; a strong one at once."""
    canaries = Canaries()
    canaries.count("rows", ROWS)

    def search(*contents: str) -> Search:
        made = Search(canaries)
        for number, content in enumerate(contents):
            made.content(f"file {number}", content.encode())
        return made

    searches = {
        "first": search(f"{ROWS}", f"{ROWS}", "nothing"),
        "second": search(f"{ROWS}", "40"),
        "third": search(f"{ROWS}", f"{ROWS}"),
    }
    assert {(item.place, item.strong) for item in searches["first"].found} == {
        ("file 0 numeral", False),
        ("file 1 numeral", False),
    }
    assert leaks(searches.__getitem__) == {Finding("rows", "value", "file 0 numeral", False)}
    canaries.text("note", NOTE)
    only = {"first": search(NOTE)}  # no repetition is asked for
    assert {item.canary for item in leaks(only.__getitem__)} == {"note"}
