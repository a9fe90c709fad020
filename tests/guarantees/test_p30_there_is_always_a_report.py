"""P30: in the local model, whether there is a report depends on the answer.

The collector is the adversary, and delta is 0. So after the header is accepted, every answer of any
bytes ends in the same files, the same exit code and the same number of reports. The broken twins
read a column that refuses cells, leave out rows without a key, and read as a fit reads.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import DpsynthError, InputError, TableError
from dpsynth.local import perturb, perturbing
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.schema.schema import Schema
from dpsynth.tables import Table, open_table

COUNT = {"value": 900, "basis": "declared"}
CUTS = {"age": [40.0, 65.0]}
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
    "a line end": b'"yes\r\nno"',
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
        if b"\n" not in cell:
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


OBJECTS = ["yes", "perhaps", None, np.nan, pd.NA, pd.NaT, 7, 7.5, True, b"\xff", "\ud800", ("a", 1)]


@pytest.mark.parametrize("place", range(len(OBJECTS)))
def test_every_object_of_a_frame_has_a_report(place: int, tmp_path: Path) -> None:
    cells = {name: pd.Series([OBJECTS[place]], dtype=object) for name in ("id", *KINDS)}
    assert outcome(pd.DataFrame(cells), tmp_path / "out") == ALWAYS


@pytest.mark.parametrize("value", [1.0, 7.0, np.nan])
def test_a_frame_is_refused_for_the_types_of_its_columns_alone(
    value: float, tmp_path: Path
) -> None:
    cells = {name: pd.Series(["1"], dtype=object) for name in ("id", *KINDS)}
    frame = pd.DataFrame(cells | {"smokes": pd.Series([value])})
    found = outcome(frame, tmp_path / "out")
    assert found.error is not None and "'smokes' holds floating-point numbers" in found.error
    typed = pd.DataFrame(cells | {"age": pd.Series([value])})
    assert outcome(typed, tmp_path / "typed") == ALWAYS


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

    monkeypatch.setattr(perturbing, "Answers", Strict)
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
