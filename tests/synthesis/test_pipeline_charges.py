"""Fits and the ledger: what is charged is what is certified, and nothing is read unpaid."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import BudgetError, InputError, RefusedCellError, SchemaError, TableError
from dpsynth.ledger import Ledger
from dpsynth.privacy import SeededEntropy, event_from_dict
from dpsynth.privacy import epsilon as composed_epsilon
from dpsynth.schema import Schema
from dpsynth.synthesis import Execution, Run, prepare, readers


def test_what_is_charged_is_what_is_certified(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, every_type: Schema
) -> None:
    run = fit(patients, purpose="first look")
    (entry,) = ledger.entries()
    assert (entry.status, entry.dataset, entry.purpose) == ("charged", "cohort", "first look")
    assert (entry.epsilon, entry.delta, entry.model) == (3.0, 1e-6, "independent")
    assert entry.schema_hash == every_type.hash()
    certificate = run.certificate
    assert certificate["events"] == entry.plan["events"]
    assert certificate["ledger"]["id"] == ledger.id
    assert certificate["ledger"]["entry"] == entry.id
    events = tuple(event_from_dict(event) for event in certificate["events"])
    assert composed_epsilon(events, 1e-6) <= certificate["composed_epsilon"] <= 3.0
    assert run.stamps == ()


def test_fits_on_one_dataset_add_up(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger
) -> None:
    fit(patients, epsilon=1.0)
    second = fit(patients, epsilon=0.5)
    assert second.certificate["ledger"]["fits"] == 2
    assert second.certificate["ledger"]["epsilon_total"] == 1.5
    assert ledger.spent("cohort").fits == 2 and ledger.spent("another").fits == 0


def test_stamps_say_why_a_run_may_not_be_released(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger
) -> None:
    free = fit(patients, ledger=None, without_ledger=True)
    assert free.stamps == ("no-ledger",) and free.certificate["ledger"] is None
    assert ledger.entries() == []
    both = fit(patients, without_ledger=True, entropy=SeededEntropy(1))
    assert set(both.stamps) == {"no-ledger", "seeded-entropy"}
    assert fit(patients, entropy=SeededEntropy(1)).stamps == ("seeded-entropy",)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> list[list[str]]:
    """Note, at the moment when the first row is read, what the ledger holds."""
    statuses: list[list[str]] = []
    open_table = readers.open_table

    class Watched:
        def __init__(self, table: Any) -> None:
            self._table = table
            self.columns = table.columns

        def chunks(self, progress: Any = None) -> Iterator[pd.DataFrame]:
            statuses.append([entry.status for entry in ledger.entries()])
            yield from self._table.chunks(progress)

    def watch(data: Any, schema: Schema) -> Watched:
        return Watched(open_table(data, schema))

    monkeypatch.setattr(readers, "open_table", watch)
    return statuses


def test_a_delta_that_allows_to_publish_a_unit_is_refused(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger
) -> None:
    with pytest.raises(InputError, match="is not below 1 over the population"):
        fit(patients, delta=0.02)
    assert ledger.entries() == []


def test_the_budget_is_reserved_before_the_first_row_is_read(
    fit: Callable[..., Run], patients: pd.DataFrame, watched: list[list[str]]
) -> None:
    fit(patients)
    assert watched == [["reading"]]


def test_no_row_is_read_when_the_ledger_refuses(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    watched: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise BudgetError("the cap is reached")

    monkeypatch.setattr(Ledger, "reserve_all", refuse)
    with pytest.raises(BudgetError, match="cap"):
        fit(patients)
    assert watched == []


def mistakes(tmp_path: Path) -> dict[str, tuple[dict[str, Any], type[Exception]]]:
    """Mistakes that can be seen before any row is read."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("a file, not a folder\n")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "headless.csv").write_text("a,b\n1,2\n")
    return {
        "output exists": ({"output": tmp_path / "taken"}, InputError),
        "output lies in a file": ({"output": tmp_path / "file" / "run"}, InputError),
        "output is a dangling link": ({"output": tmp_path / "dangling"}, InputError),
        "no such file": ({"data": tmp_path / "absent.csv"}, TableError),
        "no such columns": ({"data": tmp_path / "headless.csv"}, TableError),
        "unknown kind of file": ({"data": tmp_path / "file"}, TableError),
        "unknown model": ({"model": "tave"}, InputError),
        "unknown schema": ({"schema": "cardioo"}, InputError),
        "no budget": ({"epsilon": 0.0}, InputError),
        "delta of one": ({"delta": 1.0}, InputError),
        "budget too small": ({"epsilon": 1e-9, "delta": 1e-10}, InputError),
        "a name that cannot be counted": ({"dataset": "my cohort"}, InputError),
    }


@pytest.mark.parametrize(
    "mistake",
    [
        "output exists",
        "output lies in a file",
        "output is a dangling link",
        "no such file",
        "no such columns",
        "unknown kind of file",
        "unknown model",
        "unknown schema",
        "no budget",
        "delta of one",
        "budget too small",
        "a name that cannot be counted",
    ],
)
def test_a_mistake_is_refused_before_the_ledger_is_charged(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    ledger: Ledger,
    watched: list[list[str]],
    tmp_path: Path,
    mistake: str,
) -> None:
    changes, error = mistakes(tmp_path)[mistake]
    with pytest.raises(error):
        fit(**{"data": patients} | changes)
    assert ledger.entries() == []
    assert watched == []


def test_a_draft_is_refused(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, every_type: Schema
) -> None:
    with pytest.raises(SchemaError, match="draft"):
        fit(patients, replace(every_type, draft=True))
    assert ledger.entries() == []


def broken_csv(source: Path, target: Path, patch: pytest.MonkeyPatch) -> Path:
    """The table with a row of too many fields at its end, which appears after the charge."""
    patch.setattr("dpsynth.tables.table.require_records", lambda table: table)
    target.write_text(source.read_text() + ",".join(["SECRET"] * 30) + "\n")
    return target


def test_a_fit_that_dies_while_reading_counts_as_spent(
    fit: Callable[..., Run],
    sources: dict[str, Any],
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    damaged = broken_csv(sources["csv"], tmp_path / "damaged.csv", monkeypatch)
    with pytest.raises(TableError, match="30 fields") as caught:
        fit(damaged, output=tmp_path / "run")
    assert "SECRET" not in str(caught.value)
    (entry,) = ledger.entries()
    assert entry.status == "failed" and entry.history[-1].note == "TableError"
    assert ledger.spent("cohort").epsilon_sum == 3.0
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob(".tmp*"))


def test_an_error_after_the_charge_says_what_it_cost(
    fit: Callable[..., Run],
    sources: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a note of the exception, so that it reaches whoever sees the error."""
    damaged = broken_csv(sources["csv"], tmp_path / "damaged.csv", monkeypatch)
    with pytest.raises(TableError) as caught:
        fit(damaged)
    notes = " ".join(getattr(caught.value, "__notes__", []))
    assert "epsilon 3" in notes and "cohort" in notes


def test_an_interrupt_counts_as_spent_and_leaves_nothing(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, tmp_path: Path
) -> None:
    def interrupt(stage: str, fraction: float) -> None:
        if stage == "histograms":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(patients, output=tmp_path / "run", progress=interrupt)
    (entry,) = ledger.entries()
    assert entry.status == "failed" and entry.history[-1].note == "KeyboardInterrupt"
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob(".tmp*"))


def test_a_refused_cell_is_noted_without_its_content(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, every_type: Schema
) -> None:
    columns = tuple(
        replace(column, on_unknown="refuse") if column.name == "sex" else column
        for column in every_type.columns
    )
    wrong = patients.assign(sex=patients["sex"].mask(patients.index == 7, "SECRET"))
    with pytest.raises(RefusedCellError) as caught:
        fit(wrong, replace(every_type, columns=columns))
    (entry,) = ledger.entries()
    assert entry.allow_refuse and entry.history[-1].note == "refused a cell"
    assert "SECRET" not in str(caught.value)


def test_progress_tells_stages_and_fractions(
    fit: Callable[..., Run], patients: pd.DataFrame
) -> None:
    stages: list[tuple[str, float]] = []
    fit(patients, progress=lambda stage, part: stages.append((stage, part)))
    assert list(dict.fromkeys(stage for stage, _ in stages)) == ["reading", "histograms"]
    assert all(0 <= part <= 1 for _, part in stages)
    assert ("reading", 1.0) in stages and stages[-1] == ("histograms", 1.0)


def test_a_plan_needs_no_data(every_type: Schema) -> None:
    prepared = prepare(every_type, epsilon=2.0, delta=1e-6, model="tvae")
    assert 0.98 * 2.0 < prepared.plan.epsilon <= 2.0
    again = prepare(every_type, epsilon=2.0, delta=1e-6, model="tvae")
    assert again.plan == prepared.plan
    names = [event.name for event in prepared.plan.events]
    few_patients = ["products of contrasts", "departures from expected pairs"]
    first = ["granularity of numbers", "one-way histograms"]
    assert names == [*first, *few_patients, "two-way histograms", "DP-SGD steps"]


def test_shards_that_cannot_be_written_are_charged_only_once_rows_were_read(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, not a folder"):
        fit(patients, execution=Execution(shards=tmp_path / "file"))
    with pytest.raises(InputError, match="needs its rows in memory"):
        fit(patients, execution=Execution(shards=tmp_path / "place"), model="ctgan")
    assert ledger.entries() == []
    run = fit(patients, execution=Execution(shards=tmp_path / "place"))
    assert run.stamps == () and not list((tmp_path / "place").iterdir())

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(InputError, match="no space is left"):
        fit(patients, execution=Execution(shards=tmp_path / "place"))
    assert [entry.status for entry in ledger.entries()] == ["charged", "failed"]
    assert ledger.spent("cohort").fits == 2
    assert not list((tmp_path / "place").iterdir())
