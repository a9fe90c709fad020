"""Tables that are not CSV, by the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

from dpsynth.tables import simulate

from ..support.command_line import Cli


@pytest.fixture
def address(server: Any) -> str:
    url: str = server.new()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    simulate(120, seed=2).astype(str).to_sql("stays", engine, index=False)
    engine.dispose()
    return url


def test_a_table_and_a_query_of_a_database(cli: Cli, address: str, tmp_path: Path) -> None:
    table = cli("schema", "check", "demo", f"{address}#stays")
    query = tmp_path / "stays.sql"
    query.write_text("SELECT * FROM stays")
    queried = cli("schema", "check", "demo", address, "--query", str(query))
    assert table.code == queried.code == 0 and table.out == queried.out
    split = cli("split", "demo", address, "--query", str(query), "-o", str(tmp_path / "parts"))
    assert split.code == 0 and (tmp_path / "parts" / "train.parquet").exists()


def test_the_same_source_under_another_name_is_noticed(
    cli: Cli, address: str, tmp_path: Path
) -> None:
    budget = ("--epsilon", "1", "--delta", "1e-6", "--model", "independent")
    fit = ("fit", "demo", f"{address}#stays", *budget)
    one = cli(*fit, "--dataset", "a", "-o", str(tmp_path / "a"))
    assert one.code == 0, one.err
    two = cli(*fit, "--dataset", "b", "-o", str(tmp_path / "b"))
    assert two.code == 0 and "the same data were fitted as dataset 'a' before" in two.err


def test_a_query_needs_a_url(cli: Cli, tmp_path: Path) -> None:
    done = cli("schema", "check", "demo", "extract.csv", "--query", "q.sql")
    assert done.code == 2 and "--query needs the URL of a database" in done.err
    secret = cli("schema", "check", "demo", "postgresql://u:hunter2@host/db#t")
    assert secret.code == 2 and "holds a password" in secret.err and "hunter2" not in secret.err


def test_a_command_on_duckdb_says_nothing_of_its_libraries(tmp_path: Path) -> None:
    """As the process ends, DuckDB lists objects of its own that are still there: none may be."""
    frame = simulate(120, seed=2).astype(str)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE stays AS SELECT * FROM frame")
    command = ["schema", "check", "demo", str(tmp_path / "t.duckdb"), "--quiet"]
    refused = [*command[:3], f"{tmp_path / 't.duckdb'}#none"]
    code = (
        "import sys\nfrom dpsynth.cli import main\n"
        f"for words in {[command, [*command, '--in-warehouse'], refused]}:\n"
        "    try: main(words)\n"
        "    except SystemExit as end: print('ended', end.code or 0, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    *said, words, last = done.stderr.splitlines()
    assert (done.returncode, said, last) == (0, ["ended 0"] * 2, "ended 2") and len(frame)
    assert "none" in words
