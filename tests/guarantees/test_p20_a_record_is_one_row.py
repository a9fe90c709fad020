"""P20: a patient is one unit in a text file too: no record is broken into two patients.

A line break inside a cell without quotes, a footer, or a repeated header gives a line of another
width than the header. Taken for a row, the rest of a patient's record is a unit of its own, which
the epsilon of the patient does not cover. So a fit refuses such a file before the ledger is
charged. The broken twin pads short lines with missing cells, as many readers do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth import fit
from dpsynth.errors import TableError
from dpsynth.ledger import Ledger
from dpsynth.tables import Keys, Reference, open_table, split_file
from dpsynth.tables.csv import CsvTable
from dpsynth.tables.records import RecordScanner

from ..support.small_table import HEADER, small_schema

SCHEMA = small_schema()
PATIENTS = 60
WHOLE = [f"{i},p{i},seen,{20 + i % 60},{'FM'[i % 2]}\n" for i in range(PATIENTS)]
FLAWS = {
    "break": HEADER + "".join(WHOLE).replace(",seen,", ",seen\nagain,"),
    "break at the end": HEADER + "".join(f"{line}pain,5\n" for line in WHOLE),
    "footer": HEADER + "".join(WHOLE) + "Total,60\n",
    "header": HEADER + "".join(WHOLE) + HEADER + "".join(WHOLE),
    "mark": HEADER + "".join(WHOLE) + "\ufeff" + "".join(WHOLE),
    "quote": HEADER + "".join(WHOLE).replace(",p30,", ',"p30,'),
}


def units(path: Path) -> int:
    """Count the units of a file as a fit does."""
    keys, table = Keys(SCHEMA), open_table(path, SCHEMA)
    for chunk in table.chunks():
        keys.units(chunk)
    return len(keys)


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_broken_record_is_refused_before_the_charge(flaw: str, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(FLAWS[flaw], encoding="utf-8")
    with pytest.raises(TableError, match="line"):
        units(path)
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    budget = {"epsilon": 2.0, "delta": 1e-5, "dataset": "visits", "ledger": ledger}
    with pytest.raises(TableError, match="line"):
        fit(path, SCHEMA, model="independent", **budget)  # type: ignore[arg-type]
    assert ledger.entries() == [], "a fit that cannot be made was charged"
    with pytest.raises(TableError, match="line"):
        split_file(path, SCHEMA, tmp_path / "parts")
    assert not list((tmp_path / "parts").rglob("*.csv"))


def test_a_reader_that_pads_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: the rest of a record becomes a row, and so a unit."""
    path = tmp_path / "visits.csv"
    path.write_text(FLAWS["break at the end"], encoding="utf-8")

    def padded(self: RecordScanner, row: Any, start: int) -> None:
        raise AssertionError

    def rows(self: RecordScanner, *, cells: bool = True) -> Iterator[Any]:
        for row in self._parsed(self._physical):
            yield [*row, *[None] * (5 - len(row))]

    with monkeypatch.context() as patched:
        patched.setattr(RecordScanner, "_irregular_row", padded)
        patched.setattr(RecordScanner, "rows", rows)
        assert units(path) > PATIENTS, "the twin pads, and nobody sees it"
    with pytest.raises(TableError):
        units(path)
    path.write_text(HEADER + "".join(WHOLE), encoding="utf-8")
    assert units(path) == PATIENTS


def test_whole_files_are_read_as_they_are(tmp_path: Path) -> None:
    """What is refused follows from the lines; a file without a flaw is never refused."""
    path = tmp_path / "visits.csv"
    path.write_text(HEADER + "".join(WHOLE).replace("seen", '"a, b\nc"'), encoding="utf-8")
    assert units(path) == PATIENTS
    table = CsvTable.open(Reference.of(path), ("patient", "age"), SCHEMA)
    assert pd.concat(table.chunks()).shape == (PATIENTS, 2)
