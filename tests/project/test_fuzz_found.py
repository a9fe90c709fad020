"""What fuzzing found, each once more: words of a document in messages, misfit arrays, lost work."""

from __future__ import annotations

import copy
import json
import os
import sqlite3
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth._util.strict_json import check_format, check_keys
from dpsynth._util.strict_yaml import MAX_REPEATS, parse_yaml
from dpsynth.bundle import verify
from dpsynth.bundle.checks import files
from dpsynth.encoding import check_table
from dpsynth.errors import ArtifactError, InputError, SchemaError, TableError, VerificationError
from dpsynth.ledger import Ledger
from dpsynth.policy import Policy
from dpsynth.schema import Schema
from dpsynth.schema.lattice import lattice_of_bounds
from dpsynth.synthesis import Run, Sampler
from dpsynth.tables import Reference, open_reference, open_table

CLEAR, LONG = "\x1b[2Jgone", "k" * 70_000
BASE = Schema.load("demo").to_dict()
LONGEST = 2000  # characters of a line


def is_showable(message: str) -> bool:
    """Whether each line of a message is short, and no character is one that a terminal obeys."""
    return all(line.isprintable() and len(line) < LONGEST for line in message.split("\n"))


def mistakes(change: Callable[[dict[str, Any]], Any]) -> str:
    document = copy.deepcopy(BASE)
    change(document)
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(document)
    return str(caught.value)


@pytest.mark.parametrize("word", [CLEAR, LONG])
def test_a_key_of_a_schema_is_short_and_printable_in_messages(word: str) -> None:
    fields = range(len(BASE["fields"]))
    modelled = next(i for i in fields if "constraints" in BASE["fields"][i])
    for part in ("constraints", "dpsynth"):
        message = mistakes(lambda d, part=part: d["fields"][modelled][part].update({word: 1}))
        assert is_showable(message) and word[4:12] in message
    assert is_showable(mistakes(lambda d: d["dpsynth"].update({word: "TODO"})))


@pytest.mark.parametrize("word", [CLEAR, LONG])
def test_a_word_of_a_schema_is_short_and_printable_in_messages(word: str) -> None:
    codes = {"system": word, "rollup": word}
    field = {"name": "diag", "type": "string", "dpsynth": {"codes": codes}}
    assert is_showable(mistakes(lambda d: d["fields"].append(field)))
    enum = {"enum": ["A", LONG]}
    field = {"name": "a", "type": "string", "constraints": enum, "dpsynth": {"on_unknown": word}}
    assert is_showable(mistakes(lambda d: d["fields"].append(field)))


@pytest.mark.parametrize("word", [CLEAR, LONG])
def test_a_key_of_a_policy_is_short_and_printable_in_messages(word: str) -> None:
    document = {"dpsynth_policy": 1, "name": "x", "delta": 1e-6, "caps": {"year": {word: 1}}}
    with pytest.raises(InputError) as caught:
        Policy.from_dict(document, "office.yaml")
    assert is_showable(str(caught.value))


@pytest.mark.parametrize("word", [CLEAR, LONG])
def test_a_key_of_an_artifact_is_short_and_printable_in_messages(
    word: str, run_folder: Path
) -> None:
    with pytest.raises(
        ArtifactError, match="^run.json: 'model' is missing, '.*' is unknown$"
    ) as caught:
        check_keys({word: 1}, "run.json", ("model",))
    assert is_showable(str(caught.value))
    with pytest.raises(ArtifactError) as caught:
        check_keys(dict.fromkeys(map(str, range(10_000))), "run.json", ())
    assert is_showable(str(caught.value))
    with pytest.raises(ArtifactError) as caught:
        check_format({"format": "run", "version": word}, "run.json", "run", 1)
    assert is_showable(str(caught.value))


def test_the_separator_of_a_table_is_printable_in_messages(tmp_path: Path) -> None:
    document = copy.deepcopy(BASE)
    document["dpsynth"]["dialect"] = {"delimiter": "\t", "quote": "|"}
    schema = Schema.from_dict(document)
    path = tmp_path / "table.csv"
    path.write_text("|patient|x\tage\n")
    with pytest.raises(TableError, match="the quotes do not match") as caught:
        open_table(path, schema)
    assert is_showable(str(caught.value))


@pytest.mark.long
def test_keys_that_repeat_without_end_are_told_up_to_a_number() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_yaml(b"a: 1\n" * 50 * MAX_REPEATS, "mine.yaml")
    assert len(caught.value.problems) == MAX_REPEATS


def test_a_ledger_whose_tables_are_not_text_is_damaged(tmp_path: Path) -> None:
    """SQLite's message quotes them, and Python's sqlite3 then stumbles over the message."""
    path = tmp_path / "ledger.sqlite"
    Ledger.create(path)
    good = b"BEFORE UPDATE ON dpsynth_ledger"
    content = path.read_bytes()
    assert content.count(good) == 1
    path.write_bytes(content.replace(good, b"BEFORE UPDATE ON dpsynt\xff\xff\xff\xffdger"))
    with pytest.raises(UnicodeDecodeError), sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
    with pytest.raises(InputError, match="is damaged or not a ledger"):
        Ledger(path)


@pytest.mark.parametrize("size", [3, 0, 100_000])
def test_arrays_of_another_size_are_a_damaged_run(size: int, made_run: Run) -> None:
    """Whoever edits a run can renew its digests: what they lead to is refused in words."""
    misfit = replace(made_run, arrays={"shares": np.ones(size)})
    with pytest.raises(ArtifactError, match="the run's state is not that of model 'independent'"):
        list(Sampler.of(misfit).frames(10, seed=1))


def test_a_file_of_another_size_than_listed_is_not_read_for_its_digest(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with a hole of many GiB takes no room on a disk, and minutes to digest."""
    digested: list[Path] = []

    def noted(path: Path) -> str:
        digested.append(path)
        return str(real(path))

    real = files.file_digest
    for module in (
        "dpsynth.bundle.checks.files",
        "dpsynth.bundle.checks.files",
        "dpsynth.bundle.format.manifest",
    ):
        monkeypatch.setattr(f"{module}.file_digest", noted)
    os.truncate(bundle / "data" / "synthetic.parquet", 2**33)
    with pytest.raises(VerificationError, match="was changed"):
        verify(bundle)
    assert [path.name for path in digested].count("synthetic.parquet") == 0
    assert len(digested) == len(set(digested)) == 7


def test_the_manifest_is_still_held_to_what_a_release_writes(bundle: Path) -> None:
    path = bundle / "datapackage.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"title": "another"}))
    with pytest.raises(VerificationError, match="1 entries are missing, unknown or changed"):
        verify(bundle)


@pytest.mark.parametrize(
    "error", [pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowTypeError]
)
def test_whatever_arrow_says_of_a_footer_is_a_finding(
    error: type[Exception], bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's errors are of many classes; only some of them are a ValueError too."""

    def failing(path: Path) -> None:
        raise error("Zq7Xv9Wk3Jp")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile", failing)
    with pytest.raises(VerificationError) as caught:
        verify(bundle)
    assert "its header cannot be read" in str(caught.value)
    assert "Zq7X" not in str(caught.value)


def test_a_parquet_file_whose_names_are_no_text_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"colour": ["red", "blue"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"colour", b"col\xff\xffr"))
    with pytest.raises(TableError, match="is not a Parquet file, or it is damaged"):
        open_reference(Reference.of(path), ("colour",), None)


def test_a_header_without_an_end_does_not_fill_the_memory(
    every_type: Schema, tmp_path: Path
) -> None:
    path = tmp_path / "synthetic.csv"
    path.write_text("age")
    os.truncate(path, 2**28)
    tracemalloc.start()
    content, problems = check_table(path, every_type)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert content is None and problems
    assert peak < 2**27


def test_a_step_that_no_integer_holds_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="declare a smaller one"):
        lattice_of_bounds(0.5, 10, step=1e30)
    assert lattice_of_bounds(0, 10, step=100).points == 1
