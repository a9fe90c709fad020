"""What a fit will take is said before its charge, from public facts; too much is refused there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth._util.memory_limit import MemoryLimit
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.models.registry import LINKED, NAMES
from dpsynth.schema import AnySchema, LinkedSchema, Schema
from dpsynth.synthesis import (
    FitCost,
    charged_fit,
    estimated,
    fit,
    fit_cost,
    prepare,
)
from dpsynth.tables import simulate

from ..support.clinic import clinic_schema, clinic_tables
from ..support.command_outcome import Outcome
from ..support.small_cohort import small

BUDGET = {"epsilon": 3.0, "delta": 1e-6}
SPEED = fit_cost.Speed(2e-11, 1e-9, 1e-6)
LINKED_TABLES = "linked tables"
KINDS = ["one table", LINKED_TABLES]


class SaidError(Exception):
    """Stops a fit when it has said what it will take."""


@pytest.fixture(autouse=True)
def speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All machines are alike."""
    monkeypatch.setattr(fit_cost, "speed_of_this_machine", lambda: SPEED)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "own.sqlite")


def table_of(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"age": [40] * rows, "event": [True] * rows, "treated": [False] * rows})


def fit_of(kind: str, ledger: Ledger, **changes: Any) -> Any:
    """Fit one small table, or linked ones."""
    settings = {**BUDGET, "dataset": "cohort", "ledger": ledger} | changes
    if kind == LINKED_TABLES:
        return fit(clinic_tables(), clinic_schema(), **settings)
    return dpsynth.fit(table_of(20), small(), **{"model": "independent"} | settings)


def limited(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    limit = MemoryLimit(size, "this machine has")
    monkeypatch.setattr(fit_cost, "memory_limit", lambda: limit)


def charged_when_told(verb: Callable[[Callable[[str], None]], Any], ledger: Ledger) -> list[int]:
    """Return how many fits the ledger counts each time when a verb says what it will take."""
    found = []

    def advise(sentence: str) -> None:
        assert sentence.startswith("This fit will take about ")
        found.append(len(ledger.entries()))
        raise SaidError

    with pytest.raises(SaidError):
        verb(advise)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_said_before_the_charge(kind: str, ledger: Ledger) -> None:
    told = charged_when_told(lambda advise: fit_of(kind, ledger, advise=advise), ledger)
    assert told == [0]
    assert ledger.entries() == []


def test_a_fit_that_says_it_after_its_charge_is_caught(ledger: Ledger) -> None:
    def twin(advise: Callable[[str], None]) -> None:
        said: list[str] = []
        fit_of("one table", ledger, advise=said.append)
        advise(said[0])

    assert charged_when_told(twin, ledger) == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_needs_more_memory_than_there_is_leaves_no_charge(
    kind: str, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, 10**6)
    with pytest.raises(InputError, match=r"needs about .* MB of memory, .* has 1 MB") as refused:
        fit_of(kind, ledger, output=tmp_path / "run")
    assert "nothing was charged" in str(refused.value) and "--any-memory" in str(refused.value)
    assert ledger.entries() == [] and not (tmp_path / "run").exists()


def test_it_is_fitted_all_the_same_if_asked(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, 10**6)
    fit_of("one table", ledger, execution=dpsynth.Execution(any_memory=True))
    assert [entry.status for entry in ledger.entries()] == ["charged"]


def sentences(fits: Callable[[pd.DataFrame, Callable[[str], None]], Any]) -> set[str]:
    """Return what is said of tables of few rows and of many, by one schema."""
    found: list[str] = []
    for rows in (20, 700):
        fits(table_of(rows), found.append)
    assert len(found) == 2
    return set(found)


def fit_and_say(table: pd.DataFrame, advise: Callable[[str], None]) -> None:
    settings = {**BUDGET, "dataset": "cohort", "model": "independent", "without_ledger": True}
    dpsynth.fit(table, small(), advise=advise, **settings)


def test_an_estimate_reads_no_row() -> None:
    assert len(sentences(fit_and_say)) == 1


def test_an_estimate_that_counts_the_rows_of_the_table_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def twin(table: pd.DataFrame, advise: Callable[[str], None]) -> None:
        def counting(prepared: Any, **settings: Any) -> FitCost:
            cost = estimated(prepared, **settings)
            return replace(cost, parts={**cost.parts, "reading": float(len(table))})

        monkeypatch.setattr(charged_fit, "estimated", counting)
        fit_and_say(table, advise)

    assert len(sentences(twin)) == 2


def wide(columns: int, rows: int) -> Schema:
    """Return the schema of so many categories."""
    basis, categories = {"bounds_basis": "protocol", "on_unknown": "a"}, ["a", "b", "c", "d"]
    size = {"value": rows, "basis": "protocol"}
    fields = [
        {
            "name": f"c{place}",
            "type": "string",
            "constraints": {"enum": categories, "required": True},
            "dpsynth": basis,
        }
        for place in range(columns)
    ]
    own = {"version": 1, "population": size, "rows": size}
    return Schema.from_dict({"name": "wide", "fields": fields, "dpsynth": own})


def cost_of(schema: AnySchema, model: str) -> FitCost:
    return estimated(prepare(schema, **BUDGET, model=model))


@pytest.mark.parametrize("model", NAMES)
def test_more_columns_and_more_rows_take_longer_and_more_memory(model: str) -> None:
    costs = [cost_of(wide(*size), model) for size in ((10, 6_000), (40, 6_000), (40, 9_000))]
    assert costs[0].seconds < costs[1].seconds <= costs[2].seconds
    assert costs[0].bytes < costs[1].bytes <= costs[2].bytes
    assert all(second > 0 for cost in costs for second in cost.parts.values())


def test_more_steps_take_longer() -> None:
    prepared = prepare(wide(10, 6_000), **BUDGET, model="autoregressive")
    steps = prepared.plan.event("DP-SGD steps")
    more = replace(steps, steps=10 * steps.steps)
    events = tuple(more if event is steps else event for event in prepared.plan.events)
    longer = replace(prepared, plan=replace(prepared.plan, events=events))
    known, found = estimated(prepared).parts, estimated(longer).parts
    assert found["training"] > 5 * known["training"]
    assert found["mixture"] == known["mixture"]


@pytest.mark.parametrize("model", LINKED)
def test_more_patients_take_longer(model: str) -> None:
    document = clinic_schema().to_dict()
    costs = []
    for patients in (2_000, 200_000):
        document["dpsynth"]["population"] = {"value": patients, "basis": "protocol"}
        costs.append(cost_of(LinkedSchema.from_dict(document), model))
    assert costs[0].seconds < costs[1].seconds and costs[0].bytes < costs[1].bytes


def test_rows_that_are_not_in_memory_take_none() -> None:
    prepared = prepare(wide(20, 50_000_000), **BUDGET, model="mixture")
    in_memory, elsewhere = (estimated(prepared, in_memory=where) for where in (True, False))
    assert in_memory.bytes > 4 * 10**9 > 10**9 > elsewhere.bytes


def test_a_plan_says_it_too(command_line: Callable[..., Outcome]) -> None:
    budget = ("--epsilon", "3", "--delta", "1e-6", "--model", "mixture")
    for schema in ("demo", "clinic"):
        model = budget if schema == "demo" else (*budget[:4], "--model", "cohort")
        text = command_line("plan", schema, *model)
        (line,) = [one for one in text.out.splitlines() if one.startswith("takes ")]
        takes = command_line("plan", schema, *model, "--json").json["takes"]
        assert set(takes) == {"seconds", "bytes", "complete"} and takes["seconds"] > 0
        assert fit_cost.duration(takes["seconds"]) in line
        assert fit_cost.memory(takes["bytes"]) in line


def test_the_command_refuses_before_it_charges(
    command_line: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(200, seed=1).to_csv(tmp_path / "cohort.csv", index=False)
    fit = ["fit", "demo", "cohort.csv", "--dataset", "cohort", "--epsilon", "3"]
    fit += ["--delta", "1e-6", "--model", "independent", "-o", "run", "--no-ledger"]
    limited(monkeypatch, 10**6)
    refused = command_line(*fit)
    assert refused.code == 2 and "this fit needs about" in refused.err
    assert not (tmp_path / "run").exists()
    fitted = command_line(*fit, "--any-memory")
    assert fitted.code == 0
    words = fitted.err
    assert words.index("This fit will take about ") < words.index("reading")
