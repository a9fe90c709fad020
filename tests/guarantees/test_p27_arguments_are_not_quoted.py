"""P27: a message of a public function never shows an argument that may hold rows of patients.

Every function of every face that takes a table, a path, a schema or settings is called with objects
that a person may hand over by mistake: lists of records, arrays, frames, the text of a CSV file,
objects that print what they hold. Whatever is said, warned, logged or printed then holds no cell.
"""

from __future__ import annotations

import importlib
import inspect
import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import frames, read_table, reference, table

CANARY = "Xq7Zanzibar"
ROOMS = (
    *("schema", "tables", "stats", "bundle", "inspection", "assessment", "policy", "ledger"),
    *("synthesis", "workflow", "draft", "certificate"),
)
DATA = ("Path", "DataFrame", "Source", "Mapping", "object", "Schema", "Request", "Candidate")
WRITERS = frozenset(  # they write what they are given, and quote no argument but their place
    "write_table write_shaped table_digests".split()
)

MEANT = {  # what the argument is for: documents are public, and a list may hold paths
    ("stats.StatisticsRequest.from_dict", "by key"),
    ("stats.LinkageRequest.from_dict", "by key"),
    (".Policy.from_dict", "by key"),
    ("stats.evidence_by_folder", "tuple"),
    ("bundle.evidence_by_folder", "tuple"),
    (".estimate", "tuple"),
}


class Speaking:
    """An object that prints what it holds, whoever asks."""

    def __str__(self) -> str:
        return CANARY

    def __repr__(self) -> str:
        return CANARY

    def __format__(self, form: str) -> str:
        return CANARY

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Speaking()


def hostile() -> dict[str, Any]:
    """Objects with cells of patients that are no table with the schema's columns."""
    records = [{"patient": CANARY, "age": CANARY}]
    frame = pd.DataFrame({CANARY: [CANARY], "age": [CANARY]})
    return {
        "records": records,
        "columns": {"patient": [CANARY]},
        "by key": {CANARY: {"age": 44}},
        "tuple": (CANARY,),
        "set": {CANARY},
        "array": np.array([[CANARY]]),
        "pandas": frame,
        "pandas column": frame["age"],
        "polars": pl.from_pandas(frame),
        "polars column": pl.Series([CANARY]),
        "polars, lazy": pl.from_pandas(frame).lazy(),
        "Arrow": pa.Table.from_pandas(frame),
        "Arrow batch": pa.RecordBatch.from_pandas(frame),
        "Arrow column": pa.array([CANARY]),
        "generator": (text for text in [CANARY]),
        "bytes": CANARY.encode(),
        "file": io.StringIO(CANARY),
        "CSV text": f"patient,age\n{CANARY},44\n",
        "JSON text": f'[{{"patient": "{CANARY}", "age": 44}}]',
        "object": Speaking(),
    }


def basics(schema: Schema) -> dict[str, Any]:
    """Arguments that a function has besides the one that is tried."""
    return {
        "schema": schema,
        "epsilon": 1.0,
        "delta": 1e-6,
        "dataset": "ward",
        "dataset_a": "ward",
        "dataset_b": "register",
        "without_ledger": True,
        "data": "no such file.csv",
        "source": "no such file.csv",
        "queries": "no such file.csv",
        "pairs": "no such file.csv",
        "path": "no such file.csv",
        "label": "sex",
        "columns": ["sex"],
        "needed": ("sex",),
        "private": True,
        "output": "out",
        "folder": "no folder",
        "run_folder": "no folder",
        "bundle": "no bundle",
        "table": "no such table.csv",
        "key": "no key",
        "name_or_path": "no such schema.yaml",
        "target": "target",
        "request": "no request.yaml",
    }


def functions() -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
    """Yield the functions of all faces, each with the arguments that may be given rows."""
    known = set()
    for room in ("", *ROOMS):
        face = importlib.import_module("dpsynth" + ("." + room if room else ""))
        for name in sorted(face.__all__):
            thing = getattr(face, name)
            if id(thing) in known or name in WRITERS:
                continue
            known.add(id(thing))
            if inspect.isfunction(thing):
                members = {name: thing}
            elif inspect.isclass(thing):
                members = {
                    f"{name}.{inner}": getattr(thing, inner)
                    for inner, held in vars(thing).items()
                    if isinstance(held, classmethod) and not inner.startswith("_")
                }
            else:
                continue
            for called, function in members.items():
                given = inspect.signature(function).parameters.values()
                names = [one.name for one in given if any(w in str(one.annotation) for w in DATA)]
                if names:
                    yield f"{room}.{called}", function, names


FUNCTIONS = {name: (function, names) for name, function, names in functions()}


def said(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Everything that a call says, other than its result."""
    heard, log = [], io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = function(**arguments)
                if inspect.isgenerator(result):
                    list(result)
            except Exception as error:
                heard.append(chain(error))
        heard += [str(one.message) for one in caught]
    finally:
        logging.getLogger().removeHandler(handler)
    return "\n".join([*heard, log.getvalue()])


def chain(error: BaseException) -> str:
    """The texts that Python prints for an error, without the lines of the program."""
    text = "".join(traceback.format_exception_only(error))
    if error.__cause__ is not None:
        return text + chain(error.__cause__)
    if error.__context__ is not None and not error.__suppress_context__:
        return text + chain(error.__context__)
    return text


def quoting(name: str, schema: Schema) -> list[str]:
    """Try each argument of a function with each object; return where a cell is shown."""
    function, tried = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters.values()
    usual = basics(schema)
    found = []
    for argument in tried:
        for kind, value in hostile().items():
            if (name, kind) in MEANT:
                continue
            arguments = {
                one.name: usual.get(one.name)
                for one in parameters
                if (one.default is one.empty or one.name in usual)
                and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
            } | {argument: value}
            if CANARY in (text := said(function, arguments)):
                found.append(f"{name}({argument}: {kind}): {text[:300]}")
    return found


@pytest.fixture(scope="module", name="schema")
def demo() -> Schema:
    return Schema.load("demo")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_argument_is_quoted(
    name: str,
    schema: Schema,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert quoting(name, schema) == []
    assert CANARY not in "".join(capsys.readouterr())


def test_every_verb_is_tried() -> None:
    verbs = {f".{name}" for name in dpsynth.__all__ if inspect.isfunction(getattr(dpsynth, name))}
    assert verbs - {".sample"} <= {*FUNCTIONS}  # sample takes a run and numbers
    assert len(FUNCTIONS) > 100


@pytest.mark.parametrize("module", [frames, reference])
def test_the_check_finds_a_message_that_shows_its_argument(
    module: Any, schema: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken versions: an object is named by what it prints; a name is whatever is a text."""
    monkeypatch.chdir(tmp_path)
    if module is frames:
        monkeypatch.setattr(frames, "type_name", str)
    else:
        monkeypatch.setattr(reference, "path_text", lambda value, *rest: str(value))
        monkeypatch.setattr(table, "as_source", lambda value: value)
    found = quoting("tables.open_table", schema)
    assert any("records" in line for line in found) and any("object" in line for line in found)


def test_what_is_no_table_is_refused_by_its_type(schema: Schema) -> None:
    for kind, words in {
        "records": "a list is not a table; give the path of a table",
        "columns": "a dict is not a table",
        "array": "a numpy ndarray is not a table",
        "polars, lazy": r"a polars LazyFrame is not a table yet; call collect\(\) first",
        "polars column": "a polars Series cannot be read as an Arrow table",
        "generator": "a generator is not a table",
        "bytes": "a bytes is not a table",
        "CSV text": "a text of several lines was given in place of the path of a table",
        "JSON text": "a text in JSON was given in place of the path of a table",
    }.items():
        with pytest.raises(TableError, match=words):
            read_table(hostile()[kind], schema)
