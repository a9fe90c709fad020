"""A synthetic table is read whoever wrote it: as the source is, or as dpsynth writes tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.encoding import Codec, check_any_table, read_any_table, read_any_tables
from dpsynth.encoding.any_table import FORMS
from dpsynth.errors import InputError, TableError
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.tables import as_written

from ..support.clinic import clinic_schema, clinic_tables

BASIS = {"bounds_basis": "protocol"}
ICD = {"system": "ICD-10-GM", "rollup": "chapter"}
FIELDS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 110}},
    {"name": "w", "type": "number", "constraints": {"minimum": 20, "maximum": 250}},
    {"name": "smoker", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
    {
        "name": "adm",
        "type": "date",
        "format": "%d/%m/%Y",
        "constraints": {"minimum": "01/01/2018", "maximum": "31/12/2022"},
    },
    {"name": "icd", "type": "string", "dpsynth": {"codes": ICD}},
    {"name": "ward", "type": "string", "constraints": {"enum": ["Chirurgie", "Säuglinge"]}},
]
ROWS: list[list[Any]] = [
    [24, 77.5, False, "2019-12-10", "E11.9", "Säuglinge"],
    [60, 80.2, True, "2020-04-03", "I10", "Chirurgie"],
    [61, None, None, None, "J44.9", "Chirurgie"],
]
MEANT = [
    ["24", "77.5", "false", "2019-12-10", "endocrine", "Säuglinge"],
    ["60", "80.2", "true", "2020-04-03", "circulatory", "Chirurgie"],
    ["61", "", "", "", "respiratory", "Chirurgie"],
]
NAMES = [field["name"] for field in FIELDS]


def schema_of(*more: dict[str, Any], drop: tuple[str, ...] = (), **dialect: str) -> Schema:
    fields = [field for field in FIELDS if field["name"] not in drop]
    fields = [field | {"dpsynth": BASIS | field.get("dpsynth", {})} for field in [*fields, *more]]
    size = {"value": 100, "basis": "protocol"}
    own = {"version": 1, "population": size, "rows": size, "dialect": dialect}
    return Schema.from_dict({"fields": fields, "dpsynth": own})


def of_source() -> list[list[str]]:
    """Write the rows as the source: its sign, its dates, its words."""
    words = {True: "ja", False: "nein", None: ""}
    return [
        [
            str(age),
            "" if w is None else str(w).replace(".", ","),
            words[smoker],
            "" if adm is None else "/".join(reversed(adm.split("-"))),
            icd,
            ward,
        ]
        for age, w, smoker, adm, icd, ward in ROWS
    ]


def of_pandas() -> list[list[str]]:
    """Write the rows as pandas does after it made numbers and times of them."""
    return [
        [
            f"{age}.0",
            "" if w is None else str(w),
            "" if smoker is None else str(smoker),
            "" if adm is None else f"{adm} 00:00:00",
            icd,
            ward,
        ]
        for age, w, smoker, adm, icd, ward in ROWS
    ]


def written(path: Path, rows: list[list[str]], sign: str = ",", encoding: str = "utf-8") -> Path:
    lines = [sign.join(row) for row in [NAMES, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


GERMAN = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}


@pytest.mark.parametrize(
    ("rows", "sign", "encoding"),
    [
        (of_source(), ";", "latin-1"),
        (of_source(), ";", "utf-8"),
        (of_pandas(), ",", "utf-8"),
        (of_pandas(), ";", "utf-8"),
        (of_pandas(), ",", "latin-1"),
        (MEANT, ",", "utf-8"),
    ],
    ids=["source", "source in utf-8", "pandas", "pandas with ;", "pandas in latin-1", "dpsynth"],
)
def test_every_way_to_write_a_table_gives_the_same_cells(
    tmp_path: Path, rows: list[list[str]], sign: str, encoding: str
) -> None:
    schema = schema_of(**GERMAN)
    path = written(tmp_path / "t.csv", rows, sign, encoding)
    check_any_table(path, schema)
    read = read_any_table(path, schema)
    assert read.cells.to_numpy().tolist() == MEANT
    assert read.notes == ()
    assert not Codec(schema).conforms(read.cells)


def test_typed_tables_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame["adm"] = pd.to_datetime(frame["adm"])
    frame["smoker"] = frame["smoker"].astype("boolean")
    frame.to_parquet(tmp_path / "t.parquet")
    schema = schema_of(**GERMAN)
    for source in (frame, tmp_path / "t.parquet"):
        assert read_any_table(source, schema).cells.to_numpy().tolist() == MEANT


def test_strict_reading_of_own_tables_misses_what_another_tool_writes(tmp_path: Path) -> None:
    """The broken version: a table of pandas read as if dpsynth had written it."""
    schema = schema_of(**GERMAN)
    path = written(tmp_path / "t.csv", of_pandas())
    codec = Codec(as_written(schema))
    own = codec.encode(read_any_table(path, schema, "iso").cells)
    any_tool = codec.encode(read_any_table(path, schema).cells)
    place = codec.names.index("smoker")
    assert (own[:, place] == codec.sizes[place] - 1).all()  # each cell is missing
    assert any_tool[:, place].tolist() == [0, 1, 2]
    with pytest.raises(TableError, match="lacks"):
        read_any_table(written(tmp_path / "s.csv", of_source(), ";"), schema, "iso")


def test_where_both_ways_read_a_column_the_declared_one_counts(tmp_path: Path) -> None:
    income = {
        "name": "income",
        "type": "number",
        "groupChar": ".",
        "constraints": {"minimum": 0, "maximum": 100_000},
    }
    schema = schema_of(income, drop=tuple(NAMES), decimal=",", delimiter=";")
    for cells, meant, notes in (
        (["12.125", "28.5"], ["12.125", "28.5"], 0),  # 28.5 is no number of the source
        (["12.125", "28,5"], ["12125", "28.5"], 0),
        (["12.125", "28.250"], ["12125", "28250"], 1),
    ):
        path = tmp_path / "t.csv"
        path.write_text("income\n" + "\n".join(cells) + "\n")
        read = read_any_table(path, schema)
        assert (read.cells["income"].tolist(), len(read.notes)) == (meant, notes)
        assert all("income" in note and "12.125" not in note for note in read.notes)
    other = read_any_table(path, schema, "iso").cells["income"].tolist()
    assert other == ["12.125", "28.250"]


def test_columns_that_follow_from_others_may_be_left_out(tmp_path: Path) -> None:
    more = (
        {
            "name": "crp",
            "type": "number",
            "constraints": {"minimum": 5, "maximum": 300},
            "dpsynth": {"censored": {"low": "<5"}, "missing": {"lost": ["x"]}},
        },
        {
            "name": "twice",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 300},
            "dpsynth": {"derived": "age + age"},
        },
    )
    schema = schema_of(*more, drop=("w", "smoker", "adm", "icd", "ward"))
    path = tmp_path / "t.csv"
    path.write_text("age,crp\n20,<5\n30,x\n40,12\n")
    read = read_any_table(path, schema).cells
    assert read["twice"].tolist() == [40, 60, 80]
    assert read["crp"].tolist() == ["5", "", "12"]
    assert read["crp_status"].tolist() == ["low", "lost", "value"]


def test_cells_of_no_convention_stay_and_are_named(tmp_path: Path) -> None:
    schema = schema_of(**GERMAN)
    rows = of_source()
    rows[0][3], rows[1][4], rows[2][0] = "31/31/2019", "never", "150"
    read = read_any_table(written(tmp_path / "t.csv", rows, ";"), schema)
    assert read.cells["adm"].tolist()[0] == "31/31/2019"
    problems = " ".join(map(str, Codec(schema).conforms(read.cells)))
    for words in ("not of type date: 1 cell", "none of the 22 categories: 1", "above the maximum"):
        assert words in problems


def test_a_table_of_neither_convention_is_refused_without_touching_the_schema(
    tmp_path: Path,
) -> None:
    schema = schema_of(**GERMAN)
    path = written(tmp_path / "t.csv", of_source(), "\t")
    for read in (read_any_table, check_any_table):
        with pytest.raises(TableError, match="leave the schema's dialect") as caught:
            read(path, schema)
        assert "write dialect" not in str(caught.value)
    assert FORMS == ("auto", "source", "iso")
    with pytest.raises(InputError, match="auto, source, iso"):
        read_any_table(path, schema, "mine")


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_the_columns_that_are_absent_are_those_of_the_nearest_way(
    delimiter: str, tmp_path: Path
) -> None:
    """With the other separator, the whole header is one name, and every column seems absent."""
    path = tmp_path / "t.csv"
    path.write_text(delimiter.join(NAMES[1:]) + "\n")
    with pytest.raises(TableError, match="lacks a column of the schema: age[.]"):
        check_any_table(path, schema_of(delimiter=";", decimal=","))


def test_linked_tables_of_the_source_are_read_like_those_of_dpsynth(tmp_path: Path) -> None:
    schema = clinic_schema()
    tables: dict[str, Any] = dict(clinic_tables())
    document = schema.to_dict()
    for resource in document["resources"]:
        own = resource.setdefault("dpsynth", {})
        own["dialect"] = {"delimiter": ";", "decimal": ","}
    german = LinkedSchema.from_dict(document)
    files: dict[str, Any] = {}
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False, sep=";", decimal=",")
        files[name] = tmp_path / f"{name}.csv"
    read, notes = read_any_tables(files, german)
    plain, _ = read_any_tables(tables, schema)
    assert not notes
    for name in tables:
        assert read[name].equals(plain[name]), name  # type: ignore[union-attr]
