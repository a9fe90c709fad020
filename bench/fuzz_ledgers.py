"""Ledger files with something wrong in them: bytes, tables, columns, records, the chain."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from random import Random

from fuzz_bytes import damaged
from fuzz_documents import changed

from dpsynth.ledger.chain import Record, linked
from dpsynth.ledger.store import LedgerFacts


def ledger_file(rng: Random, content: bytes, path: Path) -> None:
    """Write a ledger with something wrong in it: bytes, tables, columns, records, the chain."""
    if rng.random() < 0.4:
        path.write_bytes(damaged(rng, content))
        return
    path.write_bytes(content)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        with contextlib.suppress(
            sqlite3.Error, ArithmeticError, RecursionError, TypeError, ValueError
        ):
            _rewrite(rng, database)


def _rewrite(rng: Random, database: sqlite3.Connection) -> None:
    for verb in ("update", "delete"):
        for table in ("records", "ledger", "state"):
            database.execute(f"DROP TRIGGER dpsynth_{table}_no_{verb}")
    if rng.random() < 0.25:
        table = rng.choice(("dpsynth_records", "dpsynth_ledger", "dpsynth_state"))
        columns_of = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        value = rng.choice(
            (None, b"\xff\xfe", b"", 1.5, -1, 2**62, "x", "\x1b[2J", "9" * 300, "{}")
        )
        where = f" WHERE rowid = {rng.randrange(1, 12)}" if rng.random() < 0.7 else ""
        database.execute(f"UPDATE {table} SET {rng.choice(columns_of)} = ?{where}", (value,))
        return
    if rng.random() < 0.1:
        for statement in rng.choice(_STATEMENTS):
            database.execute(statement)
        return
    _rechain(rng, database)


_STATEMENTS = (
    ["DROP TABLE dpsynth_records"],
    ["DROP TABLE dpsynth_sources", "CREATE VIEW dpsynth_sources AS SELECT 1 AS entry, 2 AS digest"],
    ["DELETE FROM dpsynth_state"],
    ["ALTER TABLE dpsynth_records RENAME COLUMN body TO text"],
    ["DELETE FROM dpsynth_ledger"],
    ["INSERT INTO dpsynth_ledger SELECT id || 'x', version, created, key FROM dpsynth_ledger"],
    ["CREATE TABLE other (x)", "PRAGMA user_version = 7"],
    ["DELETE FROM dpsynth_records WHERE number > 2"],
)


def _rechain(rng: Random, database: sqlite3.Connection) -> None:
    """Change the body of a record and write all hashes anew, with the ledger's own key."""
    facts = LedgerFacts(
        *next(database.execute("SELECT id, version, created, key FROM dpsynth_ledger"))
    )
    rows = list(database.execute("SELECT * FROM dpsynth_records ORDER BY number"))
    chosen, head = rng.randrange(len(rows)), facts.origin
    database.execute("DELETE FROM dpsynth_records")
    for place, row in enumerate(rows):
        record = Record(*row)
        body = json.loads(record.body)
        said = {name: getattr(record, name) for name in ("kind", "entry", "at", "who")}
        if place == chosen:
            body = changed(rng, body)
            said = changed(rng, said) if rng.random() < 0.2 else said
        said = said if isinstance(said, dict) else {}
        fields = {name: said.get(name, "") for name in ("kind", "entry", "at", "who")}
        made = linked(head, body=body, **fields)
        head = made.head
        values = tuple(vars(made).values())
        database.execute("INSERT INTO dpsynth_records VALUES (?, ?, ?, ?, ?, ?, ?)", values)
