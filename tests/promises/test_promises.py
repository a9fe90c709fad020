"""What users hold on to is as the pages beside this file say it; promises.toml names them.

To change a page, run these tests with DPSYNTH_RENEW_PROMISES=FOLDER and read the difference.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsynth.bundle import release
from dpsynth.ledger import Ledger

from ..support.clinic_office import clinic_office
from ..support.promised_documents import RENEW
from ..support.promised_pages import PAGES
from ..support.shapes import shape_of

HERE = Path(__file__).parent
MADE = {*PAGES, "files.txt", "documents.txt"}  # the last by every test that runs a command


def hold(name: str, text: str) -> None:
    """Compare a page with what there is, line by line."""
    page = HERE / name
    if os.environ.get(RENEW):
        page.write_text(text)
    assert text.splitlines() == page.read_text().splitlines(), f"{name}: {__doc__}"


def test_the_table_names_each_page() -> None:
    table = tomllib.loads((HERE / "promises.toml").read_text())["page"]
    assert set(table) == MADE == {path.name for path in HERE.glob("*.txt")}
    assert all(set(row) == {"promised", "what"} for row in table.values())


@pytest.mark.parametrize("name", PAGES)
def test_what_is_read_off_the_code(name: str) -> None:
    hold(name, PAGES[name]())


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = clinic_office(tmp_path_factory.mktemp("clinic"))
    ledger = Ledger(folder / "ledger.sqlite")
    release(folder / "run", folder / "bundle", size=60, seed=7, ledger=ledger)
    return folder


def test_files(
    run_folder: Path,
    bundle: Path,
    clinic: Path,
    made_ledger: Path,
    command_line: Callable[..., object],
) -> None:
    lines = [
        *described("a run of one table", run_folder),
        *described("a bundle of one table", bundle),
        *described("a run of linked tables", clinic / "run"),
        *described("a bundle of linked tables", clinic / "bundle"),
        *tables(made_ledger),
    ]
    hold("files.txt", "\n".join(lines) + "\n")


def described(title: str, folder: Path) -> Iterator[str]:
    """Give the files of a folder; keys of documents to a depth that formats promise."""
    yield title
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        yield f"  {path.relative_to(folder).as_posix()}"
        if path.suffix == ".json":
            shape = shape_of([json.loads(path.read_text())])
            for key, kinds in sorted(shape.items()):
                if key.count(".") < 2 and not key.startswith("@context."):
                    yield f"    {key}: {', '.join(sorted(kinds))}"
    yield ""


def tables(ledger: Path) -> Iterator[str]:
    """Give the tables of a ledger, their columns, and the keys of its records."""
    yield "a ledger"
    with sqlite3.connect(ledger) as database:
        for (name,) in sorted(
            database.execute("select name from sqlite_master where type = 'table'")
        ):
            columns = [row[1] for row in database.execute(f"pragma table_info({name})")]
            yield f"  {name}: {', '.join(columns)}"
