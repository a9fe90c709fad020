"""The chain: every way to change a ledger behind its back, and what shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.ledger import Head, Record, origin
from dpsynth.ledger.chain import breaks, linked

START = origin("ledger", 2, "2026-11-21T00:00:00+00:00", b"key")
FIELDS = ["number", "kind", "entry", "at", "who", "body", "hash"]


def chain(length: int, start: Head = START) -> list[Record]:
    records: list[Record] = []
    head = start
    for place in range(length):
        body = {"epsilon": 0.5, "place": place}
        record = linked(
            head, kind="reserved", entry=f"e{place}", at=f"t{place}", who="w", body=body
        )
        records.append(record)
        head = record.head
    return records


def test_a_chain_as_it_was_written_holds() -> None:
    assert breaks(START, []) == []
    assert breaks(START, chain(20)) == []
    assert chain(3)[-1].document == {"epsilon": 0.5, "place": 2}


@pytest.mark.parametrize("place", [0, 3, 9])
@pytest.mark.parametrize("field", FIELDS)
def test_an_edit_of_any_field_is_found(place: int, field: str) -> None:
    records = chain(10)
    old = getattr(records[place], field)
    changed = old + 1 if field == "number" else old + " "
    records[place] = replace(records[place], **{field: changed})
    assert breaks(START, records)


def test_an_edit_that_leaves_the_meaning_is_found() -> None:
    """Texts are sealed, not values: 0.50 is not 0.5, and no parser decides what was written."""
    records = chain(3)
    same = records[1].body.replace("0.5", "0.50")
    assert json.loads(same) == records[1].document
    records[1] = replace(records[1], body=same)
    assert breaks(START, records) == ["record 2 is not the one that was written there"]


def edited(records: list[Record]) -> Sequence[Record]:
    return [*records[:4], replace(records[4], body='{"epsilon": 0.1}'), *records[5:]]


def removed(records: list[Record]) -> Sequence[Record]:
    return records[:4] + records[5:]


def removed_and_renumbered(records: list[Record]) -> Sequence[Record]:
    return records[:4] + [replace(record, number=record.number - 1) for record in records[5:]]


def swapped(records: list[Record]) -> Sequence[Record]:
    return [*records[:4], records[5], records[4], *records[6:]]


def swapped_and_renumbered(records: list[Record]) -> Sequence[Record]:
    one, two = replace(records[5], number=5), replace(records[4], number=6)
    return [*records[:4], one, two, *records[6:]]


def repeated(records: list[Record]) -> Sequence[Record]:
    return [*records[:5], records[4], *records[5:]]


def first_removed(records: list[Record]) -> Sequence[Record]:
    return records[1:]


def of_another_ledger(records: list[Record]) -> Sequence[Record]:
    return chain(10, origin("other", 2, "2026-11-21T00:00:00+00:00", b"key"))


def of_another_key(records: list[Record]) -> Sequence[Record]:
    return chain(10, origin("ledger", 2, "2026-11-21T00:00:00+00:00", b"other"))


def inserted(records: list[Record]) -> Sequence[Record]:
    new = linked(records[4].head, kind="voided", entry="e1", at="t4", who="w", body={})
    return [*records[:5], new, *[replace(r, number=r.number + 1) for r in records[5:]]]


TAMPERED: list[Callable[[list[Record]], Sequence[Record]]] = [
    edited,
    removed,
    removed_and_renumbered,
    swapped,
    swapped_and_renumbered,
    repeated,
    first_removed,
    of_another_ledger,
    of_another_key,
    inserted,
]


@pytest.mark.parametrize("tamper", TAMPERED)
def test_tampering_is_found(tamper: Callable[[list[Record]], Sequence[Record]]) -> None:
    assert breaks(START, tamper(chain(10)))


def test_a_chain_without_its_end_holds() -> None:
    """Why certificates keep the head: the chain alone cannot show this, nor a rewritten one."""
    assert breaks(START, chain(10)[:7]) == []
    head = chain(10)[6].head
    forged = linked(head, kind="reserved", entry="other", at="t7", who="w", body={})
    assert breaks(START, [*chain(10)[:7], forged]) == []


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(
        lambda kept: kept != sorted(set(kept)) or kept != list(range(len(kept)))
    )
)
def test_no_selection_of_records_but_a_beginning_holds(kept: list[int]) -> None:
    records = chain(10)
    assert breaks(START, [records[place] for place in kept])
