"""P14, end to end: no private row is read before the ledger has reserved for it, and none is free.

The check: a table whose rows can only be had while the ledger holds an open entry for them; the
entry is charged when the fit ends, failed when it dies of anything at all, and stays reserved when
the process is killed. All of these count. What is refused before the first row costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.errors import ArtifactError, DpsynthError
from dpsynth.ledger import Ledger
from dpsynth.ledger.ledger import Reservation
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.registry import NAMES
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, readers
from dpsynth.tables import open_table
from dpsynth.tables.table import FrameTable

Visits = Callable[[int], pd.DataFrame]
Shell = Callable[..., Any]
Fit = Callable[..., Run]


class Unpaid(Exception):
    """Rows were asked for while no entry was open."""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.fixture
def fit(clinic: Schema, visits: Visits, ledger: Ledger, few_steps: None, quick_plans: None) -> Fit:
    def once(**changes: Any) -> Run:
        settings: dict[str, Any] = {"data": visits(60), "schema": clinic, "epsilon": 2.0}
        settings |= {"delta": 1e-5, "dataset": "clinic", "model": "independent", "ledger": ledger}
        return dpsynth.fit(**(settings | changes))

    return once


@pytest.fixture
def guarded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give rows only while an entry is open, as another connection to the ledger sees it."""
    chunks = FrameTable.chunks

    def paid(self: FrameTable, progress: Any = None) -> Iterator[pd.DataFrame]:
        if "reading" not in [entry.status for entry in Ledger(ledger.location).entries("clinic")]:
            raise Unpaid
        yield from chunks(self, progress)

    monkeypatch.setattr(FrameTable, "chunks", paid)


def peeking_open(source: Any, schema: Schema) -> FrameTable:
    """Broken twin: opening a table looks at its rows."""
    table = open_table(source, schema)
    next(iter(table.chunks()))
    return table


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("model", NAMES)
def test_the_entry_stands_before_the_first_row(model: str, fit: Fit, ledger: Ledger) -> None:
    run = fit(model=model)
    [entry] = ledger.entries()
    assert (entry.status, entry.epsilon, entry.delta) == ("charged", 2.0, 1e-5)
    assert [status.status for status in entry.history] == ["reserved", "reading", "charged"]
    assert run.certificate["ledger"]["entry"] == entry.id
    assert entry.plan["events"] == run.certificate["events"]


@pytest.mark.usefixtures("guarded")
def test_rows_read_before_the_entry_are_caught(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "open_table", peeking_open)
    with pytest.raises(Unpaid):
        fit()


@pytest.mark.usefixtures("guarded")
def test_a_charge_at_the_end_alone_is_caught(
    fit: Fit, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: the entry is made when the fit has ended well."""
    kept: dict[str, Any] = {}

    def later(asked: Sequence[Reservation]) -> list[Any]:
        settings = [vars(one) | {"id": "later", "cost": (one.epsilon, one.delta)} for one in asked]
        return [type("Entry", (), one) for one in settings]

    monkeypatch.setattr(ledger, "reserve_all", later)
    monkeypatch.setattr(ledger, "begin", lambda entry_id: None)
    monkeypatch.setattr(ledger, "saw", lambda entry_id, digest: ())
    monkeypatch.setattr(ledger, "fail", lambda *arguments: kept.update(failed=True))
    with pytest.raises(Unpaid):
        fit()
    assert ledger.entries() == []


DEATHS: dict[str, BaseException] = {
    "a mistake": ValueError("patient 4711"),
    "an error of ours": DpsynthError("no"),
    "Ctrl-C": KeyboardInterrupt(),
    "the memory": MemoryError(),
    "an exit": SystemExit(0),
    "a closed generator": GeneratorExit(),
}


def die_while_reading(patch: pytest.MonkeyPatch, death: BaseException) -> None:
    chunks = FrameTable.chunks

    def dying(self: FrameTable, progress: Any = None) -> Iterator[pd.DataFrame]:
        yield next(iter(chunks(self, progress)))
        raise death

    patch.setattr(FrameTable, "chunks", dying)


def die_while_counting(patch: pytest.MonkeyPatch, death: BaseException) -> None:
    def dying(*arguments: Any) -> Any:
        raise death

    patch.setattr("dpsynth.models.marginals.measurement.joint_histograms", dying)


def die_while_training(patch: pytest.MonkeyPatch, death: BaseException) -> None:
    step = DpSgd.step

    def dying(self: DpSgd, *arguments: Any, **options: Any) -> None:
        step(self, *arguments, **options)
        if self.steps_taken == 2:
            raise death

    patch.setattr(DpSgd, "step", dying)


def die_while_saving(patch: pytest.MonkeyPatch, death: BaseException) -> None:
    replace = os.replace

    def dying(source: Any, target: Any) -> None:
        if Path(target).name == "run":
            raise death
        replace(source, target)

    patch.setattr("os.replace", dying)


PLACES = [die_while_reading, die_while_counting, die_while_training, die_while_saving]


def is_free(fit: Fit, ledger: Ledger, output: Path) -> bool:
    """Whether a fit that died after it had read rows was not counted, or left something behind."""
    with suppress(BaseException):
        fit(model="tvae", output=output)
    entries = ledger.entries()
    left = {path.name for path in output.parent.iterdir()} - {"ledger.sqlite"}
    return [entry.status for entry in entries] != ["failed"] or bool(left)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("death", ["Ctrl-C", "a mistake"])
def test_a_fit_that_dies_anywhere_counts(
    place: Callable[..., None],
    death: str,
    fit: Fit,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place(monkeypatch, DEATHS[death])
    assert not is_free(fit, ledger, tmp_path / "run")
    spent = ledger.spent("clinic")
    assert (spent.fits, spent.epsilon_sum, spent.delta_sum) == (1, 2.0, 1e-5)
    assert ledger.entries()[0].note == type(DEATHS[death]).__name__


@pytest.mark.parametrize("death", DEATHS)
def test_a_fit_that_dies_of_anything_counts(
    death: str, fit: Fit, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while_reading(monkeypatch, DEATHS[death])
    assert not is_free(fit, ledger, tmp_path / "run")


def test_a_ledger_that_forgives_is_caught(
    fit: Fit, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: only what Python calls an Exception closes the entry."""

    class Forgiving(Ledger):
        def fail(self, entry_id: str, note: str = "") -> None:
            if note != "KeyboardInterrupt":
                super().fail(entry_id, note)

    die_while_reading(monkeypatch, DEATHS["Ctrl-C"])
    forgiving = Forgiving(ledger.location)
    assert is_free(lambda **changes: fit(**changes, ledger=forgiving), ledger, tmp_path / "run")


def wrong(clinic: Schema, visits: Visits, folder: Path) -> dict[str, dict[str, Any]]:
    """What a fit refuses before it reads a row."""
    (folder / "taken").mkdir()
    (folder / "empty.csv").touch()
    visits(20).drop(columns="age").to_csv(folder / "short.csv", index=False)
    return {
        "a column is missing": {"data": visits(20).drop(columns="age")},
        "a column is missing in a file": {"data": folder / "short.csv"},
        "there is no file": {"data": folder / "nowhere.csv"},
        "an empty file": {"data": folder / "empty.csv"},
        "the output exists": {"output": folder / "taken"},
        "no such model": {"model": "gan"},
        "no budget": {"epsilon": 0.0},
        "too small a delta": {"delta": 1e-12},
        "no name": {"dataset": "../x"},
    }


def test_what_is_refused_before_the_first_row_costs_nothing(
    fit: Fit,
    ledger: Ledger,
    clinic: Schema,
    visits: Visits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(self: FrameTable, progress: Any = None) -> Iterator[pd.DataFrame]:
        raise AssertionError("a row was read")

    monkeypatch.setattr(FrameTable, "chunks", never)
    monkeypatch.setattr("dpsynth.tables.csv.CsvTable.chunks", never)
    for name, changes in wrong(clinic, visits, tmp_path).items():
        with pytest.raises(DpsynthError) as caught:
            fit(**changes)
        assert not isinstance(caught.value, ArtifactError), name
        assert ledger.entries() == [], name


def test_a_fit_without_ledger_is_stamped(fit: Fit, ledger: Ledger) -> None:
    assert fit(without_ledger=True, ledger=None).stamps == ("no-ledger",)
    assert ledger.entries() == []
