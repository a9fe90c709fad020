"""Progress in a notebook: bars of tqdm without being asked, and nothing anywhere else."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import dpsynth
from dpsynth._util.notebook import NotebookProgress, in_notebook, shown_in_notebooks
from dpsynth.assessment import Candidate, Real, audit
from dpsynth.tables import simulate

BUDGET: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "dataset": "x", "without_ledger": True}


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake notebook: an IPython whose shell belongs to a kernel."""
    fake = ModuleType("IPython")
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setattr(fake, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", fake)


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that a fake tqdm.auto was asked for."""
    rows: list[Any] = []

    class Bar:
        def __init__(self, *, total: int, desc: str, bar_format: str) -> None:
            self.total, self.desc, self.n, self.closed = total, desc, 0, False
            rows.append(self)

        def update(self, steps: int) -> None:
            assert steps > 0 and not self.closed
            self.n += steps

        def close(self) -> None:
            self.closed = True

    fake = ModuleType("tqdm.auto")
    monkeypatch.setattr(fake, "tqdm", Bar, raising=False)
    monkeypatch.setitem(sys.modules, "tqdm.auto", fake)
    return rows


def test_a_fit_in_a_notebook_shows_a_bar_for_each_stage(kernel: None, bars: list[Any]) -> None:
    assert in_notebook()
    dpsynth.fit(simulate(60, seed=1), "demo", model="independent", **BUDGET)
    assert [bar.desc for bar in bars][:1] == ["reading"] and len(bars) > 1
    assert all(bar.closed and 0 <= bar.n <= bar.total for bar in bars)


@pytest.mark.long
def test_an_audit_in_a_notebook_shows_bars(
    kernel: None, bars: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fits of the controls are left out: they take a minute."""
    monkeypatch.setattr("dpsynth.assessment.attack_audit.fitted_controls", lambda *given: [])
    people = simulate(500, seed=1)
    inside = people["patient_id"].isin(people["patient_id"].unique()[::2])
    synthetic = people.drop(columns="patient_id").sample(250, random_state=1)
    tables = Real(people[inside], Candidate("synthetic", synthetic), people[~inside])
    audit(dpsynth.Schema.load("demo"), real=tables)
    assert bars[0].desc == "reading" and len(bars) > 2
    assert all(bar.closed and 0 <= bar.n <= bar.total for bar in bars)


def test_a_callback_that_is_given_takes_the_place_of_the_bars(
    kernel: None, bars: list[Any]
) -> None:
    stages: list[str] = []
    dpsynth.fit(
        simulate(60, seed=1),
        "demo",
        model="independent",
        progress=lambda stage, fraction: stages.append(stage),
        **BUDGET,
    )
    assert "reading" in stages and bars == []


def test_elsewhere_nothing_is_shown(bars: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in a script nor in the shell of IPython, which has no kernel."""
    assert not in_notebook()
    dpsynth.fit(simulate(60, seed=1), "demo", model="independent", **BUDGET)
    assert bars == [] and capsys.readouterr() == ("", "")


def test_a_shell_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("IPython")
    monkeypatch.setattr(fake, "get_ipython", lambda: SimpleNamespace(config={}), raising=False)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    assert not in_notebook()


def test_without_tqdm_each_stage_has_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # importing it fails
    with NotebookProgress() as progress:
        for part in range(5):
            progress("reading", part / 5)
        progress("fitting", 0.0)
    assert capsys.readouterr().err == "reading ...\nfitting ...\n"


def test_bars_are_closed_when_a_verb_fails(
    kernel: None, bars: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    @shown_in_notebooks
    def broken(*, progress: Any = None) -> None:
        progress("reading", 0.5)
        raise ValueError

    with pytest.raises(ValueError):
        broken()
    assert [bar.closed for bar in bars] == [True]


def test_tqdm_itself_is_found() -> None:
    pytest.importorskip("tqdm")
    assert NotebookProgress()._kind.__module__.startswith("tqdm")
