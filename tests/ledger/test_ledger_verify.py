"""Verification of a ledger against certificates: every way of tampering, done for real.

The tamperer owns the database: triggers are dropped and rows written as somebody with its password
could. Some write all later hashes anew, with the ledger's own key and code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dpsynth._util.strict_json import digest
from dpsynth.bundle.evidence import evidence_by_folder
from dpsynth.errors import BudgetError, InputError, VerificationError
from dpsynth.ledger.actions import void
from dpsynth.ledger.chain import Record, breaks, linked
from dpsynth.ledger.charging import charge_of
from dpsynth.ledger.entry import Disorder, replayed
from dpsynth.ledger.ledger import Entry, Ledger
from dpsynth.ledger.state import spendings
from dpsynth.ledger.storage.store import RECORDS
from dpsynth.ledger.sums.nodes import StoredNodes
from dpsynth.ledger.sums.tally import Tally
from dpsynth.ledger.verification import verify_ledger
from dpsynth.synthesis.run import Run

Reserve = Callable[..., Entry]
pytestmark = pytest.mark.filterwarnings("ignore::dpsynth.errors.DpsynthWarning")


@pytest.fixture
def runs(fit: Callable[..., Run], tmp_path: Path) -> list[Path]:
    """Three fits on two datasets, with their runs."""
    folders = [tmp_path / f"run{number}" for number in range(3)]
    for output, dataset in zip(folders, ("first", "second", "first"), strict=True):
        fit(dataset=dataset, output=output)
    return folders


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
                fits = [one for entry in replayed([*rechained, draft]) for one in spendings(entry)]
            state = Tally.of(nodes, fits, (), None).save()  # the sums as well
            rechained.append(linked(head, body=record.document, state=state, **fields))
            nodes.flush(state)
    return rechained


def cheaper(record: Record) -> Record:
    """The same record with a smaller budget."""
    return replace(record, body=record.body.replace('"epsilon": 0.5', '"epsilon": 0.1'))


def edit(ledger: Ledger, records: list[Record]) -> list[Record]:
    return [cheaper(records[0]), *records[1:]]


def edit_who(ledger: Ledger, records: list[Record]) -> list[Record]:
    return [*records[:3], replace(records[3], who="somebody else"), *records[4:]]


def edit_time(ledger: Ledger, records: list[Record]) -> list[Record]:
    return [replace(records[0], at="2020-01-01T00:00:00+00:00"), *records[1:]]


def remove(ledger: Ledger, records: list[Record]) -> list[Record]:
    return records[:3] + records[6:]


def reorder(ledger: Ledger, records: list[Record]) -> list[Record]:
    moved = [*records[3:6], *records[:3], *records[6:]]
    return [replace(record, number=number + 1) for number, record in enumerate(moved)]


def cut_off(ledger: Ledger, records: list[Record]) -> list[Record]:
    return records[:6]


def cut_off_and_go_on(ledger: Ledger, records: list[Record]) -> list[Record]:
    """Drop the last fit, and hide it by others."""
    return rewritten(ledger, [*records[:6], *records[3:6], *records[3:6]])


def edit_and_rewrite(ledger: Ledger, records: list[Record]) -> list[Record]:
    return rewritten(ledger, edit(ledger, records))


def remove_and_rewrite(ledger: Ledger, records: list[Record]) -> list[Record]:
    return rewritten(ledger, remove(ledger, records))


def void_and_rewrite(ledger: Ledger, records: list[Record]) -> list[Record]:
    """Pretend that the last fit never began."""
    reserved = records[6]
    voided = replace(records[7], kind="voided", body='{"note": "x"}')
    return rewritten(ledger, [*records[:6], reserved, voided])


def empty(ledger: Ledger, records: list[Record]) -> list[Record]:
    return []


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


SHOWN_BY_THE_CHAIN = [edit, edit_who, edit_time, remove, reorder]
SHOWN_BY_CERTIFICATES = [
    cut_off,
    cut_off_and_go_on,
    edit_and_rewrite,
    remove_and_rewrite,
    void_and_rewrite,
    empty,
]


def test_a_ledger_as_it_was_written_is_verified(ledger: Ledger, runs: list[Path]) -> None:
    assert len(ledger.records()) == 9
    checks = verify_ledger(ledger, evidence_by_folder(runs))
    assert len(checks) == 4 and "9 records" in checks[0]


@pytest.mark.parametrize("tamper", SHOWN_BY_THE_CHAIN)
def test_the_chain_shows(
    tamper: Callable[..., list[Record]], ledger: Ledger, runs: list[Path], reserve: Reserve
) -> None:
    overwrite(ledger, tamper(ledger, ledger.records()))
    with pytest.raises(VerificationError):
        verify_ledger(ledger)
    require_unforgotten(ledger, reserve, "first", 2)


@pytest.mark.parametrize("tamper", SHOWN_BY_CERTIFICATES)
def test_a_certificate_shows(
    tamper: Callable[..., list[Record]], ledger: Ledger, runs: list[Path]
) -> None:
    overwrite(ledger, tamper(ledger, ledger.records()))
    with pytest.raises(VerificationError) as caught:
        verify_ledger(ledger, evidence_by_folder([runs[-1]]))
    assert str(runs[-1]) in str(caught.value)


def test_the_newest_certificate_protects_all_before_it(ledger: Ledger, runs: list[Path]) -> None:
    """Why one bundle is enough: a change of the first fit shows by the last one's."""
    overwrite(ledger, edit_and_rewrite(ledger, ledger.records()))
    verify_ledger(ledger)  # the chain alone is whole
    with pytest.raises(VerificationError, match="rewritten"):
        verify_ledger(ledger, evidence_by_folder([runs[-1]]))


def test_the_seal_needs_the_key(ledger: Ledger, runs: list[Path]) -> None:
    """The bundle tells nothing about how fits ended: without the key, no guess can be checked."""
    document = json.loads((runs[0] / "run.json").read_text())
    seal = document["certificate"]["ledger"]["seal"]
    head = ledger.records()[1].head
    assert seal == head.seal(ledger.key)
    assert seal not in (head.hash, head.seal(b""), head.seal(bytes(32)))
    assert ledger.key.hex() not in json.dumps(document)


def test_the_digest_of_the_file_is_no_part_of_the_chain(ledger: Ledger, runs: list[Path]) -> None:
    with ledger.store.reading() as connection:
        sources = ledger.store.sources(connection)
    assert len(sources) == 3 and len(set(sources.values())) == 1
    text = json.dumps([vars(record) for record in ledger.records()])
    assert not any(digest in text for digest in sources.values())


def test_another_ledger_is_told(ledger: Ledger, runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="it was charged by another ledger"):
        verify_ledger(Ledger.create(tmp_path / "other.sqlite"), evidence_by_folder(runs))


def test_a_voided_entry_that_was_fitted_is_found(
    ledger: Ledger, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Entry, "voidable", True)
    monkeypatch.setitem(
        __import__("dpsynth.ledger.entry", fromlist=["FOLLOWS"]).FOLLOWS,
        "voided",
        ("charged",),
    )
    void(ledger, ledger.entries()[0].id, "hide it")
    with pytest.raises(VerificationError, match="was voided, though it was fitted"):
        verify_ledger(ledger, evidence_by_folder([runs[0]]))


def test_what_is_no_bundle_is_told(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a bundle nor a run"):
        verify_ledger(ledger, evidence_by_folder([tmp_path]))


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
