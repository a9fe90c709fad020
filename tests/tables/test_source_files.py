"""Excel, SPSS, SAS, Stata, DuckDB and TSV as private tables: what is read, and what is refused."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import pyreadstat
import pytest

import dpsynth
from dpsynth.errors import NoRowsError, TableError
from dpsynth.ledger import source_digest
from dpsynth.tables import Reference, open_table, split_file, workbooks

from ..support.sas_files import DOUBLE, STRING, write_sas
from .sources_schema import HEADER, ROWS, TEXTS, schema_of

LABELS = {"sex": {1: "Male", 2: "Female"}}
CODES = {"Male": 1.0, "Female": 2.0, None: None}
SEED = 0  # which puts one patient on either side at least
Write = Callable[[Path], str]


def workbook(path: Path, rows: list[Any] | None = None, **sheets: list[Any]) -> str:
    book = openpyxl.Workbook()
    book.active.title = "Stays"
    for name, cells in ({"Stays": rows or [HEADER, *ROWS]} | sheets).items():
        sheet = book.active if name == "Stays" else book.create_sheet(name)
        for row in cells:
            sheet.append(row)
    book.save(path / "stays.xlsx")
    return str(path / "stays.xlsx")


def coded() -> pd.DataFrame:
    """The rows as statistics programs keep them: numbers, and codes of sex."""
    frame = pd.DataFrame(ROWS, columns=HEADER).drop(columns="note")
    frame["sex"] = frame["sex"].map(CODES)
    frame["smoker"] = frame["smoker"].map({True: 1.0, False: 0.0})
    return frame


def sav(path: Path) -> str:
    pyreadstat.write_sav(coded(), path / "stays.sav", variable_value_labels=LABELS)
    return str(path / "stays.sav")


def dta(path: Path) -> str:
    frame = coded().assign(admitted=pd.to_datetime(coded()["admitted"]))
    pyreadstat.write_dta(frame, path / "stays.dta", variable_value_labels=LABELS)
    return str(path / "stays.dta")


def sas(path: Path) -> str:
    days = {"admitted": (date(1960, 1, 1), 86_400), "seen": (datetime(1960, 1, 1), 1)}
    kinds = {"patient": STRING, "sex": STRING}
    forms = {"admitted": "DATE9", "seen": "DATETIME20"}
    names = HEADER[:-1]
    variables = [(name, kinds.get(name, DOUBLE), forms.get(name)) for name in names]

    def cell(name: str, value: Any) -> Any:
        if value is None or name in kinds:
            return value
        start, unit = days.get(name, (None, 1))
        return float(value if start is None else (value - start).total_seconds() / unit)

    rows = [[cell(name, value) for name, value in zip(names, row, strict=False)] for row in ROWS]
    return str(write_sas(path / "stays.sas7bdat", variables, rows))


def duck(path: Path) -> str:
    with duckdb.connect(str(path / "stays.duckdb")) as connection:
        connection.execute("CREATE TYPE sex_t AS ENUM ('Female', 'Male')")
        types = "varchar sex_t utinyint double date timestamp boolean varchar".split()
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(HEADER, types, strict=True))
        connection.execute(f"CREATE TABLE stays ({columns})")
        connection.executemany(f"INSERT INTO stays VALUES ({', '.join('?' * 8)})", ROWS)
    return str(path / "stays.duckdb")


def tsv(path: Path) -> str:
    rows = [[f"{c:g}" if type(c) is float else c for c in row] for row in ROWS]
    pd.DataFrame(rows, columns=HEADER, dtype=object).to_csv(
        path / "stays.tsv", sep="\t", index=False
    )
    return str(path / "stays.tsv")


KINDS: list[Write] = [workbook, sav, dta, sas, duck, tsv]


def refusal(name: str, **own: Any) -> str:
    with pytest.raises(TableError) as refused:
        for _ in open_table(name, schema_of(**own)).chunks():
            pass
    error = refused.value
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    assert "SECRET" not in str(error)
    return str(error)


@pytest.mark.parametrize("write", KINDS)
def test_every_kind_gives_the_same_texts(write: Write, tmp_path: Path) -> None:
    name, labels = write(tmp_path), {"dialect": {"labels": True}}
    frame = dpsynth.read_table(name, schema_of(**labels))
    assert {column: frame[column].tolist() for column in TEXTS} == TEXTS
    assert [None if text is None else text[:10] for text in frame["seen"]] == [
        "2001-02-03", None, "2010-12-31", "2020-01-01",
    ]  # fmt: skip
    codes = dpsynth.encoding.codec.Codec(schema_of()).encode(frame)
    assert codes[:, -1].tolist() == [1, 0, 2, 1]  # smoker: true, false, missing, true


@pytest.mark.parametrize("write", KINDS)
def test_every_kind_is_split_and_told_apart(write: Write, tmp_path: Path) -> None:
    name, schema = write(tmp_path), schema_of(dialect={"labels": True})
    train, holdout = split_file(name, schema, tmp_path / "parts", holdout=0.5, seed=SEED)
    assert train.suffix == (".tsv" if write is tsv else ".parquet")
    assert sorted(path.name for path in train.parent.iterdir()) == [holdout.name, train.name]
    parts = [dpsynth.read_table(path, schema) for path in (train, holdout)]
    whole = dpsynth.read_table(name, schema)
    both = pd.concat(parts).sort_values(["patient", "age"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(both, whole.sort_values(["patient", "age"], ignore_index=True))
    assert set(parts[0]["patient"]).isdisjoint(parts[1]["patient"])
    other = source_digest(tsv(tmp_path) if write is not tsv else sav(tmp_path), b"key")
    assert source_digest(name, b"key") == source_digest(Path(name), b"key") != other


def test_a_part_is_named_behind_the_file(tmp_path: Path) -> None:
    name = workbook(tmp_path, Notes=[["patient"], ["SECRET"]])
    assert "has 2 sheets; name the one to read: 'stays.xlsx#NAME'" in refusal(name)
    assert "no sheet with the name given" in refusal(f"{name}#stays")
    assert dpsynth.read_table(f"{name}#Stays", schema_of())["age"].tolist() == TEXTS["age"]
    assert source_digest(f"{name}#Stays", b"k") != source_digest(f"{name}#Notes", b"k")
    base = duck(tmp_path)
    assert source_digest(base, b"k") == source_digest(f"{base}#main.stays", b"k")
    with duckdb.connect(base) as connection:
        connection.execute("CREATE VIEW many AS SELECT * FROM stays")
        connection.execute("CREATE VIEW outside AS SELECT * FROM read_csv('/etc/passwd')")
    assert "has 3 tables; name the one to read" in refusal(base)
    assert "no table or view called none" in refusal(f"{base}#none")
    assert "cannot be read as a DuckDB file" in refusal(f"{base}#outside")
    assert dpsynth.read_table(f"{base}#many", schema_of())["age"].tolist() == TEXTS["age"]
    assert "has no parts" in refusal(f"{tsv(tmp_path)}#x")


def test_each_cell_of_excel_is_a_text_of_its_own(tmp_path: Path) -> None:
    """A column may mix what its type allows: numbers, texts of numbers, and errors."""
    rows = [["007", "Male", 34.0, 70.5, datetime(2001, 2, 3), datetime(2001, 2, 3, 1), True]]
    rows += [["8", "#DIV/0!", "<5", "70.5", "2001-02-03", None, "FALSE"]]
    name = workbook(tmp_path, [HEADER[:-1], [None] * 7, *rows])
    frame = dpsynth.read_table(name, schema_of())
    assert frame["patient"].tolist() == ["007", "8"]
    assert frame["sex"].tolist() == ["Male", "#DIV/0!"]
    assert frame["age"].tolist() == ["34", "<5"]
    assert frame["weight"].tolist() == ["70.5", "70.5"]
    assert frame["admitted"].tolist() == ["2001-02-03", "2001-02-03"]
    assert frame["smoker"].tolist() == ["TRUE", "FALSE"]


@pytest.mark.parametrize(
    "place, cell, own, message",
    [
        (0, 7, {}, "column 'patient' holds floating-point numbers, and it is the key"),
        (1, 250, {}, "column 'sex' holds floating-point numbers, and its type is string"),
        (1, True, {}, "column 'sex' holds truth values"),
        (3, datetime(2001, 5, 3), {}, "column 'weight' holds dates or times"),
        (3, 70.5, {"decimal": ",", "delimiter": ";"}, "declares ',' as decimal sign"),
    ],
)
def test_cells_of_excel_that_could_be_coded_otherwise_are_refused(
    place: int, cell: Any, own: dict[str, Any], message: str, tmp_path: Path
) -> None:
    row = [*ROWS[0][:place], cell, *ROWS[0][place + 1 :]]
    name = workbook(tmp_path, [HEADER, ROWS[1], row])
    assert message in refusal(name, dialect=own)


def test_a_formula_has_its_stored_value_or_is_refused(tmp_path: Path) -> None:
    name = workbook(tmp_path, [HEADER, [*ROWS[0][:2], "=30+4", *ROWS[0][3:]]])
    assert "column 'age' has formulas without a stored value" in refusal(name)
    with zipfile.ZipFile(name) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b"<f>30+4</f><v />", b"<f>30+4</f><v>34</v>")
    parts[sheet] = parts[sheet].replace(b"<f>30+4</f><v></v>", b"<f>30+4</f><v>34</v>")
    with zipfile.ZipFile(name, "w") as archive:
        for one, content in parts.items():
            archive.writestr(one, content)
    assert dpsynth.read_table(name, schema_of())["age"].tolist() == ["34"]


def test_workbooks_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stays.xlsx"
    path.write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 512 + "EncryptedPackage".encode("utf-16-le"))
    assert "is encrypted: open it in Excel" in refusal(str(path))
    path.write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 512)
    assert "old workbook (.xls)" in refusal(str(path))
    path.write_bytes(b"PK\3\4 not a workbook SECRET")
    assert "not an Excel workbook, or it is damaged" in refusal(str(path))
    assert "save the workbook as .xlsx" in refusal(str(tmp_path / "stays.xls"))
    name = workbook(tmp_path, [HEADER])
    with pytest.raises(NoRowsError):
        list(open_table(name, schema_of()).chunks())
    wide = [*ROWS[0], "SECRET"]
    assert "to the right of the last column" in refusal(workbook(tmp_path, [HEADER, wide]))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/bomb.xml", b"\0" * (2 * workbooks.MIN_CHECKED))
    assert "unpacks to more than" in refusal(str(path))
    monkeypatch.setattr(workbooks, "MAX_RATIO", 10**9)  # the broken version opens it
    workbooks.WorkbookFile(path).check()


def test_a_date_out_of_range_is_not_quoted_in_a_warning(tmp_path: Path) -> None:
    name = workbook(tmp_path)
    book = openpyxl.load_workbook(name)
    book.active["E2"] = 99_999_999
    book.active["E2"].number_format = "yyyy-mm-dd"
    book.save(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dpsynth.read_table(name, schema_of())["admitted"][0] == "#VALUE!"


def test_types_of_statistics_programs_that_are_refused(tmp_path: Path) -> None:
    name = sav(tmp_path)
    assert "column 'sex' holds floating-point numbers" in refusal(name)
    assert "dialect: {labels: true}" in refusal(name)
    frame = coded().assign(weight=coded()["weight"].astype("float32"), sex="Male")
    pd.DataFrame(frame.drop(columns=["admitted", "seen"])).assign(
        admitted=pd.to_datetime(frame["admitted"]), seen=pd.to_datetime(frame["seen"])
    ).to_stata(tmp_path / "single.dta", write_index=False, version=118)
    message = refusal(str(tmp_path / "single.dta"))
    assert "column 'weight'" in message and "reduced precision" in message
    clock = coded().assign(age=pd.to_timedelta(coded()["age"], unit="h"))
    pyreadstat.write_sav(
        clock.assign(age=coded()["age"] * 3600),
        tmp_path / "clock.sav",
        variable_format={"age": "TIME8"},
        variable_value_labels=LABELS,
    )
    message = refusal(str(tmp_path / "clock.sav"), dialect={"labels": True})
    assert "column 'age' holds times of day, and its type is integer" in message
    for suffix in (".sav", ".sas7bdat", ".dta", ".duckdb"):
        path = tmp_path / f"damaged{suffix}"
        path.write_bytes(b"$FL2 SECRET" * 100)
        assert "damaged" in refusal(str(path))


def test_a_tsv_has_tabs(tmp_path: Path) -> None:
    assert "is a text file with tabs" in refusal(tsv(tmp_path), dialect={"delimiter": ";"})
    assert Reference.of("x.tsv.gz").copied_as == ".tsv.gz"
