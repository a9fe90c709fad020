"""Rows of a ledger's database written over, as its owner could."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, Record, StoredNodes, Tally, charge_of
from dpsynth.ledger.chain import linked
from dpsynth.ledger.entry import Disorder, replayed
from dpsynth.ledger.ledger import Entry
from dpsynth.ledger.state import spendings
from dpsynth.ledger.store import RECORDS

Reserve = Callable[..., Entry]


def overwrite(ledger: Ledger, records: list[Record]) -> None:
    """Put other records into the database, whatever it guards."""
    with ledger.store.database.engine.connect() as connection:
        connection = connection.execution_options(dpsynth_writes=True)
        with connection.begin():
            if ledger.store.shared:
                connection.exec_driver_sql("ALTER TABLE dpsynth_records DISABLE TRIGGER USER")
                connection.exec_driver_sql(
                    "ALTER TABLE dpsynth_records DROP CONSTRAINT dpsynth_records_pkey"
                )
            else:
                for verb in ("update", "delete"):
                    connection.exec_driver_sql(f"DROP TRIGGER dpsynth_records_no_{verb}")
            connection.execute(sa.delete(RECORDS))
            for record in records:
                connection.execute(RECORDS.insert().values(vars(record)))


def rewritten(ledger: Ledger, records: list[Record]) -> list[Record]:
    """Write all hashes anew, as somebody who reads the code would."""
    rechained: list[Record] = []
    fits: list[Any] = []
    with ledger.store.writing() as connection:
        nodes = StoredNodes(ledger.store, connection)
        for record in records:
            head = rechained[-1].head if rechained else ledger.facts.origin
            fields = {name: getattr(record, name) for name in ("kind", "entry", "at", "who")}
            draft = linked(head, body=record.document, **fields)
            with suppress(Disorder):
                fits = [
                    spending
                    for entry in replayed([*rechained, draft])
                    for spending in spendings(entry)
                ]
            state = Tally.of(nodes, fits, (), None).save()  # the sums as well
            rechained.append(linked(head, body=record.document, state=state, **fields))
            nodes.flush(state)
    return rechained


def require_unforgotten(ledger: Ledger, reserve: Reserve, dataset: str, fits: int) -> None:
    """Nothing lists a changed chain; what writes refuses, or counts by the sums that it seals."""
    with pytest.raises(BudgetError, match="changed by something other than dpsynth"):
        ledger.entries()
    try:
        entry = reserve(ledger, dataset)
    except BudgetError as refused:
        assert "changed by something other than dpsynth" in str(refused)
    else:
        assert charge_of(ledger, entry).fits == fits + 1
