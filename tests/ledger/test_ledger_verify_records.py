"""Records that no ledger writes are found: columns, types and bodies that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_json import digest
from dpsynth.errors import BudgetError, InputError, VerificationError
from dpsynth.ledger import Ledger, Record, verify_ledger
from dpsynth.ledger.chain import breaks, linked
from dpsynth.ledger.entry import Disorder, replayed
from dpsynth.ledger.ledger import Entry

from ..support.ledger_tampering import overwrite, require_unforgotten

Reserve = Callable[..., Entry]
pytestmark = pytest.mark.filterwarnings("ignore::dpsynth.errors.DpsynthWarning")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "refunded"},
        {"kind": "reserved"},
        {"entry": "unheard-of"},
        {"body": "not json"},
    ],
)
def test_records_that_no_ledger_writes_are_found(
    change: dict[str, Any], sqlite: Ledger, reserve: Reserve
) -> None:
    entry = reserve(sqlite)
    sqlite.begin(entry.id)
    first, second = sqlite.records()
    forged = replace(second, **change)
    if change.get("body") is None:
        forged = linked(
            first.head, kind=forged.kind, entry=forged.entry, at=forged.at, who="w", body={}
        )
    overwrite(sqlite, [first, forged])
    with pytest.raises(VerificationError):
        verify_ledger(sqlite)
    with pytest.raises(BudgetError):
        sqlite.spent("cardio")


def set_column(ledger: Ledger, table: str, column: str, value: str, where: str = "1") -> None:
    """Write an SQL expression into a column of a SQLite ledger, whatever it guards."""
    with ledger.store.database.engine.connect() as connection:
        connection = connection.execution_options(dpsynth_writes=True)
        with connection.begin():
            connection.exec_driver_sql(f"DROP TRIGGER {table}_no_update")
            done = connection.exec_driver_sql(
                f"UPDATE {table} SET {column} = {value} WHERE {where}"
            )
            assert done.rowcount == 1


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("column", ["kind", "entry", "at", "who", "body", "state", "hash"])
def test_a_blob_in_the_place_of_a_text_is_found(
    column: str, number: int, sqlite: Ledger, reserve: Reserve
) -> None:
    """The bytes are the same, and so would their text be."""
    entry = reserve(sqlite)
    sqlite.begin(entry.id)
    sqlite.charge(entry.id)
    blob = f"CAST({column} AS BLOB)"
    set_column(sqlite, "dpsynth_records", column, blob, f"number = {number}")
    with pytest.raises(VerificationError, match=f"record {number} holds a value of a wrong type"):
        verify_ledger(sqlite)
    require_unforgotten(sqlite, reserve, "cardio", 1)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "CAST(id AS BLOB)"),
        ("created", "x'00'"),
        ("version", "'two'"),
        ("version", "x'02'"),
        ("key", "'a text'"),
        ("key", "32"),
    ],
)
def test_facts_of_a_wrong_type_are_damage(
    column: str, value: str, sqlite: Ledger, tmp_path: Path
) -> None:
    set_column(sqlite, "dpsynth_ledger", column, value)
    with pytest.raises(InputError, match=r"is damaged: .* restore it from a backup"):
        Ledger(tmp_path / "ledger.sqlite")


def test_values_of_any_type_break_a_chain_and_raise_nothing(
    sqlite: Ledger, reserve: Reserve
) -> None:
    reserve(sqlite)
    (record,) = sqlite.records()
    assert breaks(sqlite.facts.origin, [record]) == []
    for name in vars(record):
        for value in (None, b"bytes", 1.5, [], True, 10**400 if name != "number" else b""):
            strange = replace(record, **{name: value})
            assert breaks(sqlite.facts.origin, [strange, record])
    assert breaks(sqlite.facts.origin, [replace(record, who="\ud800")])


def resealed(ledger: Ledger, records: list[Record]) -> list[Record]:
    """Write all hashes anew over whatever the records hold, by the definition of a seal."""
    rechained: list[Record] = []
    last = ledger.facts.origin.hash
    for record in records:
        *fields, _ = vars(record).values()
        last = digest([last, *fields])
        rechained.append(replace(record, hash=last))
    return rechained


def require_found(ledger: Ledger, records: list[Record]) -> None:
    """A whole chain of records that no ledger writes is a finding, and nothing reads it."""
    overwrite(ledger, resealed(ledger, records))
    assert breaks(ledger.facts.origin, ledger.records()) == []
    with pytest.raises(VerificationError, match=r"records: record \d"):
        verify_ledger(ledger)
    with pytest.raises(BudgetError, match="changed by something other than dpsynth: record"):
        ledger.entries()


@pytest.mark.parametrize(
    "body",
    [
        *("[]", '"text"', "5", "null", "", "{", '{"note": NaN}', '{"note": "a", "note": "b"}'),
        *("[" * 100_000, '{"a":' * 9999 + "1" + "}" * 9999, '{"note": ' + "9" * 5000 + "}"),
        *('{"note": 5}', '{"note": ["x"]}', '{"note": null}', '{"note": "\\u001b[2J"}'),
        *('{"note": "\\ud800"}', '{"note": "", "run": 5}', '{"note": "", "run": "\\u0007"}'),
    ],
)
def test_bodies_that_no_ledger_writes_are_found(
    body: str, sqlite: Ledger, reserve: Reserve
) -> None:
    sqlite.begin(reserve(sqlite).id)
    first, second = sqlite.records()
    assert resealed(sqlite, [first, second]) == [first, second]
    with pytest.raises(Disorder, match="record 1"):
        replayed([replace(first, body=body), second])
    require_found(sqlite, [first, replace(second, body=body)])


WRONG: list[tuple[str, str]] = [
    *(("epsilon", value) for value in ("1" + "0" * 400, "1e400", "true", '"1e-9"', "0", "null")),
    *(("delta", value) for value in ("true", '"1e-6"', "0", "1", "-1", "[]")),
    *(("dataset", value) for value in ("5", "null", '["a"]', '"a\\u001b[2J"', '"\\ud800"')),
    *(("tier", value) for value in ("7", "[]", "true")),
    *(("model", value) for value in ('["tvae"]', "null", "{}")),
    *(("policy", "3"), ("purpose", "null"), ("schema_hash", "1"), ("version", "1"), ("host", "[]")),
    *(("process", value) for value in ('"12"', "1.5", "true", "-1", "null")),
    *(("population", value) for value in ('"70000"', "1.5", "true", "-1")),
    *(("allow_refuse", value) for value in ("0", '"no"', "null")),
    *(("plan", value) for value in ("[]", '"x"', "null", '{"a": "\\u001b"}', '{"\\ud800": 1}')),
    ("plan", '{"a":' * 400 + "1" + "}" * 400),
    *(("sign_off", value) for value in ('"2"', "true", "-1", "1.5")),
    *(("gates", value) for value in ('"a"', "[1]", "null", '["\\u0007"]')),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_reservation_of_wrong_values_is_found(
    field: str, value: str, sqlite: Ledger, reserve: Reserve
) -> None:
    reserve(sqlite)
    (record,) = sqlite.records()
    assert field in record.document
    body = json.dumps(record.document | {field: "HERE"}).replace('"HERE"', value)
    require_found(sqlite, [replace(record, body=body)])


def test_a_reservation_of_other_fields_is_found(sqlite: Ledger, reserve: Reserve) -> None:
    reserve(sqlite)
    (record,) = sqlite.records()
    document = record.document
    more = {"\x1b[2J": 1}
    for body in (document | more, {key: document[key] for key in list(document)[1:]}):
        assert resealed(sqlite, [record]) == [record]
        with pytest.raises(Disorder, match=r"^record 1 has other fields than a reservation$"):
            replayed([replace(record, body=json.dumps(body))])


@pytest.mark.parametrize(
    "change",
    [
        {"at": "yesterday"},
        {"at": ""},
        {"at": "2026-11-21"},
        {"at": "2026-11-21T00:00:00"},
        {"at": "1999-12-31T23:59:59+00:00"},
        {"at": "2201-01-01T00:00:00+00:00"},
        {"at": "2026-11-21\x1b00:00:00+00:00"},
        {"who": "\x1b[2Jnobody"},
        {"entry": "\x07"},
    ],
)
def test_columns_that_no_ledger_writes_are_found(
    change: dict[str, str], sqlite: Ledger, reserve: Reserve
) -> None:
    reserve(sqlite)
    (record,) = sqlite.records()
    require_found(sqlite, [replace(record, **change)])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("signed", {"note": 5}),
        ("signed", {"note": "\x1b"}),
        ("released", {}),
        ("released", {"manifest": 5}),
        ("released", {"manifest": "a\nb"}),
        ("policy", {}),
        ("policy", {"policy": []}),
        ("policy", {"policy": "all"}),
        ("policy", "not json"),
        ("policy", "[" * 100_000),
    ],
)
def test_other_records_of_wrong_values_are_found(
    kind: str, body: dict[str, Any] | str, sqlite: Ledger, reserve: Reserve
) -> None:
    entry = reserve(sqlite)
    (record,) = sqlite.records()
    about = "" if kind == "policy" else entry.id
    written = body if isinstance(body, str) else json.dumps(body)
    forged = replace(record, number=2, kind=kind, entry=about, body=written)
    require_found(sqlite, [record, forged])


@pytest.mark.parametrize(
    "policy", [{}, {"name": "\x1b"}, {"dpsynth_policy": 1, "delta": 10**400, "caps": {"total": 1}}]
)
def test_a_policy_that_cannot_be_read_stops_the_ledger(
    policy: dict[str, Any], sqlite: Ledger, reserve: Reserve
) -> None:
    reserve(sqlite)
    (record,) = sqlite.records()
    body = json.dumps({"policy": policy})
    forged = replace(record, number=2, kind="policy", entry="", body=body)
    overwrite(sqlite, resealed(sqlite, [record, forged]))
    with pytest.raises(BudgetError, match="record 2 holds no policy that can be read"):
        sqlite.entries()
