"""P28 through every kind of source: one unit changes how no other is coded.

As in `test_p28_one_unit_codes_no_other`, a table is made once as it is and once with one hostile
unit more, now as a workbook, a file of SPSS, SAS or Stata, or in a database. The broken version
takes whatever kinds the columns have. As there, keys and codes in which one number is written in
two ways are left out where a program makes whole numbers of them.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import DpsynthError
from dpsynth.tables import cell_kinds, open_table

from .source_kinds import WRITERS, Columns
from .table_cases import HOSTILE, KEYS, KINDS, ROWS, Case, key_cases, schema_of
from .test_p28_one_unit_codes_no_other import Facts, facts_of

FEW = len(HOSTILE) + 1  # one hostile cell beside each column
SHARES = pytest.mark.parametrize("share", [FEW, pytest.param(3, marks=pytest.mark.long)])
READ_HERE = [  # what pandas has written is read as the others are, and takes longest
    pytest.param(name, marks=pytest.mark.long) if name.endswith("by pandas") else name
    for name in WRITERS
]
TYPED = ("Excel by pandas", "SPSS by pandas", "SQLite by pandas")


def columns_of(sets: int) -> list[Case]:
    """Every kind of column, under the short name that every program allows.

    ``sets`` says how many sets of the others' cells there are of each.
    """
    return [
        Case("c", replace(schema_of({"c": kind.field}, "key"), name=name), cells)
        for name, kind in KINDS.items()
        if not kind.comma
        for cells in kind.cells[:sets]
    ]


def read(writer: str, columns: Columns, case: Case, rows: slice, server: str) -> Facts | None:
    """Write a table and code it; None if it cannot be written, or is refused whole."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            source = WRITERS[writer](columns, Path(name), server)
        except Exception:  # a table that a program cannot hold is not fitted
            return None
        try:
            return facts_of(source, case, open_table, rows)  # type: ignore[arg-type]
        except DpsynthError as error:  # of a query, whose columns have no types
            assert "holds" in str(error), error
            return None


def changes(
    writer: str, cases: list[Case], key: str, share: int, server: str
) -> tuple[int, list[str]]:
    """Compare each column alone and beside hostile units; return how many were compared."""
    compared, changed = Counter[str](), list[str]()
    for place, case in enumerate(cases):
        rest = tuple(f"p{row // 2}" for row in range(ROWS))
        alone = (
            {"key": rest, "c": case.others}
            if key == "key"
            else {key: case.others, "sex": ("F", "M") * 6}
        )
        before = read(writer, alone, case, slice(0, ROWS), server)
        if before is None:
            continue
        for text in HOSTILE[place % share :: share]:
            extra = {"key": "p99", "c": text, key: text, "sex": "F"}
            extra |= {"key": "p99"} if key == "key" else {}
            beside = {name: (extra[name], *cells, extra[name]) for name, cells in alone.items()}
            after = read(writer, beside, case, slice(1, ROWS + 1), server)
            if after is not None:
                compared[case.schema.name] += 1
                if after != before:
                    changed.append(f"{writer}: {case.schema.name} beside {text!r}")
    return compared.total(), changed


@pytest.fixture(scope="module")
def database(server: Any) -> str:
    address: str = server.new()
    return address


@SHARES
@pytest.mark.parametrize("writer", READ_HERE)
def test_no_cell_of_another_changes_a_code(writer: str, share: int, database: str) -> None:
    compared, changed = changes(writer, columns_of(60 // share), "key", share, database)
    assert changed == []
    assert compared >= 5, compared


@SHARES
@pytest.mark.parametrize("writer", READ_HERE)
def test_no_key_of_another_changes_a_unit(writer: str, share: int, database: str) -> None:
    cases = [replace_key(case) for case in key_cases("plain", "string")[0]]
    compared, changed = changes(writer, cases, "k", share, database)
    assert changed == []
    assert compared > 0 and len(cases) == len(KEYS)


def replace_key(case: Case) -> Case:
    sex = {"sex": {"type": "string", "constraints": {"enum": ["F", "M"]}}}
    sex["sex"]["dpsynth"] = {"bounds_basis": "made for this test"}
    return Case(case.name, schema_of(sex, "k"), case.others)


@pytest.mark.parametrize("writer", TYPED)
def test_the_check_finds_cells_that_are_coded_as_they_come(
    writer: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version: no kind of column is refused."""
    monkeypatch.setattr(cell_kinds, "refusal", lambda column, kind, schema: None)
    cases = [case for case in columns_of(1) if case.schema.name == "string, digits"]
    assert changes(writer, cases, "key", 3, database)[1]
