"""Sums beside the chain: what forges, removes or puts back a part of them is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from dpsynth.errors import BudgetError, VerificationError
from dpsynth.ledger import (
    Ledger,
    MemoryNodes,
    Spending,
    StoredNodes,
    adopt,
    charge_of,
    past_of,
    verify_ledger,
    void,
)
from dpsynth.ledger.chain import linked
from dpsynth.ledger.ledger import Entry
from dpsynth.ledger.store import RECORDS, STATE
from dpsynth.ledger.sum_tree import Leaf, Sums, Tree
from dpsynth.policy import Policy
from dpsynth.privacy import JointHistograms

Reserve = Callable[..., Entry]
CHANGED = "changed by something other than dpsynth"


def write(ledger: Ledger, *statements: Any) -> None:
    """Write into a SQLite ledger as somebody who owns the file."""
    with ledger.store.database.engine.connect() as connection:
        connection = connection.execution_options(dpsynth_writes=True)
        with connection.begin():
            for verb in ("update", "delete"):
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS dpsynth_state_no_{verb}")
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS dpsynth_records_no_{verb}")
            for statement in statements:
                connection.execute(statement)


def nodes(ledger: Ledger) -> dict[str, Any]:
    with ledger.store.reading() as connection:
        return {row.hash: json.loads(row.text) for row in connection.execute(sa.select(STATE))}


def cheaper(ledger: Ledger) -> None:
    """Every sum of epsilons is a tenth of what it was."""
    for name, document in nodes(ledger).items():
        text = json.dumps(document, sort_keys=True, separators=(",", ":")).replace("1/2", "1/20")
        write(ledger, sa.update(STATE).where(STATE.c.hash == name).values(text=text))


def removed(ledger: Ledger) -> None:
    write(ledger, sa.delete(STATE))


def put_back(ledger: Ledger) -> None:
    """The last record says that the sums are those of the first."""
    state = ledger.records()[0].state
    last = ledger.records()[-1].number
    write(ledger, sa.update(RECORDS).where(RECORDS.c.number == last).values(state=state))


FORGED = [cheaper, removed, put_back]


def noticed(
    forge: Callable[[Ledger], None], ledger: Ledger, reserve: Reserve, policy: Policy
) -> bool:
    """Whether a write after a forgery is refused for it."""
    for _ in range(3):
        reserve(ledger, policy=policy)
    forge(ledger)
    try:
        reserve(ledger, policy=policy)
    except BudgetError as refused:
        return CHANGED in str(refused)
    return False


@pytest.mark.parametrize("forge", FORGED)
def test_forged_sums_are_refused_by_the_next_write(
    forge: Callable[[Ledger], None], sqlite: Ledger, reserve: Reserve, capped: Callable[..., Policy]
) -> None:
    assert noticed(forge, sqlite, reserve, capped(9.0))
    with pytest.raises(VerificationError):
        verify_ledger(sqlite)


def test_sums_that_are_not_held_against_the_chain_are_forged_unnoticed(
    tmp_path: Path,
    reserve: Reserve,
    capped: Callable[..., Policy],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken twin: nodes are taken by their name, whatever their text is."""

    def read(self: Any, name: str) -> Any:
        if name not in self._known:
            query = sa.select(STATE.c.text).where(STATE.c.hash == name)
            self._known[name] = json.loads(self._connection.execute(query).scalar())
        return self._known[name]

    monkeypatch.setattr(StoredNodes, "read", read)
    ledger = Ledger.create(tmp_path / "broken.sqlite")
    assert not noticed(cheaper, ledger, reserve, capped(9.0))


def test_sums_of_other_records_are_found(sqlite: Ledger, reserve: Reserve) -> None:
    """A chain that was written anew over sums that are sound, and of something else."""
    for _ in range(3):
        reserve(sqlite)
    first, second, third = sqlite.records()
    fields = {name: getattr(third, name) for name in ("kind", "entry", "at", "who")}
    forged = linked(second.head, body=third.document, state=first.state, **fields)
    change = {"state": forged.state, "hash": forged.hash}
    write(sqlite, sa.update(RECORDS).where(RECORDS.c.number == 3).values(change))
    with pytest.raises(VerificationError, match="are not those of the records"):
        verify_ledger(sqlite)


def test_writing_reads_no_other_entry(
    ledger: Ledger, reserve: Reserve, monkeypatch: pytest.MonkeyPatch, capped: Callable[..., Policy]
) -> None:
    """What a fit writes, it writes without a look at the whole chain."""
    monkeypatch.setenv("DPSYNTH_USER", "office")
    reserve(ledger, policy=capped(9.0))
    monkeypatch.setattr(type(ledger.store), "records", None)
    entry = reserve(ledger, policy=capped(9.0))
    ledger.begin(entry.id)
    assert charge_of(ledger, entry).fits == 2
    assert ledger.saw(entry.id, "a" * 64) == ()
    ledger.charge(entry.id)
    other = reserve(ledger, policy=capped(9.0))
    assert void(ledger, other.id[:8], "never began").status == "voided"
    with pytest.raises(BudgetError, match="epsilon in all"):
        reserve(ledger, epsilon=8.5, policy=capped(9.0))
    assert charge_of(ledger, entry).fits == 2


def test_a_rule_of_an_earlier_dpsynth_is_added_up_anew(
    sqlite: Ledger, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        reserve(sqlite)
    for module in ("tally", "state", "evidence"):
        monkeypatch.setattr(f"dpsynth.ledger.{module}.RULE", 2)
    assert verify_ledger(sqlite)
    entry = reserve(sqlite)
    assert charge_of(sqlite, entry).fits == 4
    assert verify_ledger(sqlite)


def test_a_new_rule_counts_in_every_figure_before_the_next_write(
    sqlite: Ledger, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later dpsynth counts twice as much for a fit: so does what its certificates state."""
    entry = reserve(sqlite)
    before = charge_of(sqlite, entry).epsilon_total

    def twice(fit: Entry) -> list[Spending]:
        spend = replace(past_of(fit).spend, epsilon=2 * fit.epsilon)
        return [(fit.id, 0, replace(past_of(fit), spend=spend))]

    for module in ("book", "state", "evidence"):
        monkeypatch.setattr(f"dpsynth.ledger.{module}.spendings", twice)
    assert charge_of(sqlite, entry).epsilon_total == before  # by the rule of before
    for module in ("tally", "state", "evidence"):
        monkeypatch.setattr(f"dpsynth.ledger.{module}.RULE", 99)
    assert charge_of(sqlite, entry).epsilon_total == 2 * before


def test_fits_of_next_to_nothing_add_up(
    sqlite: Ledger, reserve: Reserve, capped: Callable[..., Policy]
) -> None:
    small = capped(1e-9)
    for _ in range(2):
        reserve(sqlite, epsilon=4e-10, policy=small)
    with pytest.raises(BudgetError, match="epsilon in all"):
        reserve(sqlite, epsilon=4e-10, policy=small)


def edited(ledger: Ledger, number: int, old: str, new: str) -> None:
    """Change one record where it lies, and nothing else."""
    [body] = [record.body for record in ledger.records() if record.number == number]
    assert old in body
    change = sa.update(RECORDS).where(RECORDS.c.number == number)
    write(ledger, change.values(body=body.replace(old, new)))


def test_an_entry_that_was_edited_does_not_go_on(sqlite: Ledger, reserve: Reserve) -> None:
    """Whoever writes reads this entry alone, and checks what it reads."""
    entry = reserve(sqlite)
    reserve(sqlite)
    reserve(sqlite)
    edited(sqlite, 1, '"epsilon": 0.5', '"epsilon": 0.1')
    for verb in (sqlite.begin, sqlite.charge, sqlite.fail):
        with pytest.raises(BudgetError, match=CHANGED):
            verb(entry.id)


EDITS = {  # of caps, which makes a reader add up anew; of what needs no sums; and one that is empty
    "cap": ('"epsilon": 1.0', '"epsilon": 9.0'),
    "generator": ('["mixture"]', '["independent"]'),
    "population": ('"value": 80000', '"value": 8'),
    "spaces": ('"models": ', '"models":  '),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_policy_that_was_edited_admits_nothing(
    edit: str,
    sqlite: Ledger,
    reserve: Reserve,
    capped: Callable[..., Policy],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever writes reads the record of the policy alone, and holds it against the tally."""
    monkeypatch.setenv("DPSYNTH_USER", "office")
    people = {"value": 80_000, "basis": "test"}
    adopt(sqlite, capped(1.0, models=["mixture"], minimum_population=people))
    wanted = {"model": "mixture", "population": 90_000}
    reserve(sqlite, **wanted, epsilon=0.1)
    reserve(sqlite, **wanted, epsilon=0.1)
    edited(sqlite, 1, *EDITS[edit])
    refused = {"cap": {"epsilon": 5.0}, "generator": {"model": "independent"}}
    refused["population"] = {"population": 70_000}
    with pytest.raises(BudgetError, match=CHANGED):
        reserve(sqlite, **({"epsilon": 0.1} | wanted | refused.get(edit, {})))
    with pytest.raises(BudgetError, match=CHANGED), sqlite.looking() as view:
        assert view.policy


def test_caps_of_several_orders_are_all_summed(
    sqlite: Ledger, reserve: Reserve, capped: Callable[..., Policy]
) -> None:
    """One order was summed already, the other not: earlier fits are added up at both."""
    plan = {"events": [JointHistograms("histograms", 1, 1, 4000.0).to_dict()]}
    reserve(sqlite, plan=plan, policy=capped(10.0))
    caps = {"year": {"epsilon": 10.0, "basis": "t"}, "total": {"epsilon": 50.0, "basis": "t"}}
    reserve(sqlite, plan=plan, policy=capped(0.0, caps=caps))
    assert verify_ledger(sqlite)


@pytest.mark.parametrize("count", [1, 16, 17, pytest.param(300, marks=pytest.mark.long)])
def test_a_part_of_a_tree_sums_what_lies_in_it_and_no_more(count: int) -> None:
    """Against a loop over all leaves, with ends that are leaves, between them and beyond them."""
    rng = np.random.default_rng(count)
    keys = sorted({f"{int(number):08x}" for number in rng.integers(0, 5_000, count) ** 2})
    costs = {key: Fraction(1, 1 + place) for place, key in enumerate(keys)}
    leaves = [Leaf(key, Sums(1, cost, Fraction(0), {})) for key, cost in costs.items()]
    tree = Tree.of(MemoryNodes(), leaves)
    ends = ["", "g", "0", "00", *rng.choice(keys, 20), *(key[:-1] for key in rng.choice(keys, 9))]
    for low in ends:
        for high in ends:
            inside = [cost for key, cost in costs.items() if low <= key < high]
            assert tree.sums(low, high).epsilon == sum(inside, Fraction(0))
            assert [leaf.key for leaf in tree.leaves(low, high)] == [
                key for key in keys if low <= key < high
            ]


def test_sums_are_of_the_orders_that_caps_need(
    ledger: Ledger, reserve: Reserve, capped: Callable[..., Policy]
) -> None:
    """A policy that is named for the first time is asked about all earlier fits."""
    plan = {"events": [JointHistograms("histograms", 1, 1, 4000.0).to_dict()]}
    for _ in range(3):
        reserve(ledger, plan=plan)
    for cap in (10.0, 50.0, 10.0):
        entry = reserve(ledger, plan=plan, policy=capped(cap))
        verify_ledger(ledger)
    with ledger.looking() as view:
        orders = view.tally.orders
        assert len(orders) == 2
        assert view.tally.spent(["cardio"]).fits == 6 == view.spent(["cardio"]).fits
    assert entry == ledger.entries()[-1]


def test_what_no_record_seals_is_not_stored(sqlite: Ledger, reserve: Reserve) -> None:
    """A fit that ends goes from one place of the tree to another; the tree between is nobody's."""
    for dataset in ("ward", "icu", "cardio"):
        for _ in range(4):
            sqlite.charge(reserve(sqlite, dataset).id)
    there = nodes(sqlite)

    def below(part: Any) -> set[str]:
        if isinstance(part, str):
            return {part} | below(there[part]) if part in there else set()
        return set().union(*map(below, part)) if isinstance(part, list) else set()

    assert set(there) == set().union(*(below(record.state) for record in sqlite.records()))
