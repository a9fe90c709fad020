"""P15: curves, scores, counts and clocks of the fit, released along with what was paid for.

The run's own document says nothing about the fit but what was planned: with loss, batches, clock,
machine and number of rows all changed while the noise is held fixed, ``run.json`` and
``samples.json`` are the same but for the arrays' digests.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import dpsynth
from dpsynth.ledger import Ledger
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.marginals import measurement
from dpsynth.privacy import PaidEntropy, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, readers

Visits = Callable[[int], pd.DataFrame]
SETTINGS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "dataset": "clinic"}


def other_loss(patch: pytest.MonkeyPatch) -> None:
    """The loss is a million higher at every private step: no gradient changes."""
    step = DpSgd.step

    def higher(self: DpSgd, loss: Any, *rest: Any, **options: Any) -> None:
        step(self, lambda rows, activations: loss(rows, activations) + 1e6, *rest, **options)

    patch.setattr(DpSgd, "step", higher)


def other_gradients(patch: pytest.MonkeyPatch) -> None:
    """Every gradient is a thousand times as long: all units are clipped, and by another factor."""
    step = DpSgd.step

    def longer(self: DpSgd, loss: Any, *rest: Any, **options: Any) -> None:
        step(self, lambda rows, activations: 1000 * loss(rows, activations), *rest, **options)

    patch.setattr(DpSgd, "step", longer)


def other_batches(patch: pytest.MonkeyPatch) -> None:
    """Half of the units are drawn instead of a tenth."""

    def half(self: DpSgd, units: int) -> Any:
        chosen = np.arange(0, units, 2)
        self._drawn = len(chosen)
        return chosen

    patch.setattr(DpSgd, "sample_batch", half)


def other_circumstances(patch: pytest.MonkeyPatch) -> None:
    """Another day, machine, user, process and working folder."""
    now = time.time
    patch.setattr(time, "time", lambda: now() + 1e8)
    patch.setattr(time, "perf_counter", lambda: now() + 2e8)
    patch.setattr(platform, "node", lambda: "elsewhere")
    patch.setattr(getpass, "getuser", lambda: "somebody")
    patch.setattr(os, "getpid", lambda: 4711)
    patch.setenv("DPSYNTH_USER", "somebody")
    Path("elsewhere").mkdir()
    patch.chdir("elsewhere")


CHANGES = [other_loss, other_gradients, other_batches, other_circumstances]


@pytest.fixture
def same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold fixed what the noisy histograms release, whatever the table."""

    def columns(cohort: Any, sizes: Any, event: Any, entropy: Any) -> list[Any]:
        return [np.arange(5, 5 + 10 * size, 10, dtype=np.int64) for size in sizes]

    def pairs(cohort: Any, sizes: Any, chosen: Any, *rest: Any) -> list[Any]:
        return [np.full((sizes[i], sizes[j]), 9, dtype=np.int64) for i, j in chosen]

    monkeypatch.setattr(measurement, "joint_histograms", columns)
    monkeypatch.setattr(measurement, "chosen_histograms", pairs)
    monkeypatch.setattr(PaidEntropy, "unused", ())  # the stand-ins draw no noise of the plan


@pytest.fixture
def papers(
    clinic: Schema, office: Path, few_steps: None, quick_plans: None, same_counts: None
) -> Callable[..., dict[str, Any]]:
    """Fit and sample with fixed noise; give the run's documents, less digests of its arrays."""

    def of(frame: pd.DataFrame) -> dict[str, Any]:
        folder = office / f"run{len(list(office.glob('run*')))}"
        run = dpsynth.fit(
            frame,
            clinic,
            model="tvae",
            without_ledger=True,
            entropy=SeededEntropy(8),
            output=folder,
            **SETTINGS,
        )
        document = json.loads((folder / "run.json").read_text())
        del document["sha256"], document["state"]["sha256"]
        return {
            "run.json": document,
            "files": sorted((path.name, path.stat().st_size) for path in folder.iterdir()),
            "arrays": {name: array.tobytes() for name, array in run.arrays.items()},
        }

    return of


def shows(
    papers: Callable[..., dict[str, Any]],
    visits: Visits,
    patch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch], None] | None,
) -> set[str]:
    """What shows a change of the fit's circumstances, or of the number of rows if there is none.

    The arrays may tell of other gradients and other units, with noise: that is what was paid for.
    """
    before = papers(visits(70))
    with patch.context() as patched:
        if change is not None:
            change(patched)
        after = papers(visits(70) if change else visits(95))
    paid = {"arrays"} if change in (other_gradients, other_batches, None) else set()
    return {key for key in set(before) - paid if before[key] != after[key]}


@pytest.mark.parametrize("change", [*CHANGES, None])
def test_the_documents_of_a_run_say_nothing_about_the_fit(
    change: Callable[[pytest.MonkeyPatch], None] | None,
    papers: Callable[..., dict[str, Any]],
    visits: Visits,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shows(papers, visits, monkeypatch, change) == set()


Note = Callable[[dict[str, Any]], dict[str, Any]]
TWINS: dict[str, tuple[Note, Callable[[pytest.MonkeyPatch], None] | None]] = {
    "the last loss": (lambda seen: {"loss": seen["loss"]}, other_loss),
    "what was clipped": (lambda seen: {"clipped": seen["norm"]}, other_gradients),
    "the last batch": (lambda seen: {"batch": seen["units"]}, other_batches),
    "the day": (lambda seen: {"made": time.time() // 1e7}, other_circumstances),
    "the number of units": (lambda seen: {"units": seen["cohort"]}, None),
}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What a careless fit would note down while it runs."""
    noted: dict[str, Any] = {}
    clipped_sum, read_cohort = DpSgd.clipped_sum, readers.read_cohort

    def summing(self: DpSgd, loss: Any, batch: Any, mask: torch.Tensor) -> torch.Tensor:
        gradient = clipped_sum(self, loss, batch, mask)
        noted["units"] = len(mask)
        with torch.no_grad():
            noted["loss"] = round(float(loss(batch, None).mean()) / 1e5) if len(batch) else None
        noted["norm"] = round(float(gradient.norm()), 4)
        return gradient

    def reading(*arguments: Any, **how: Any) -> Any:
        cohort = read_cohort(*arguments, **how)
        noted["cohort"] = len(cohort.mask)
        return cohort

    monkeypatch.setattr(DpSgd, "clipped_sum", summing)
    monkeypatch.setattr(readers, "read_cohort", reading)
    yield noted


@pytest.mark.parametrize("name", TWINS)
def test_a_run_that_notes_the_fit_down_is_caught(
    name: str,
    papers: Callable[..., dict[str, Any]],
    visits: Visits,
    seen: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Broken twins: one more setting in the run's document."""
    (note, change), save = TWINS[name], Run.save

    def noting(self: Run, folder: Any) -> Path:
        return save(replace(self, config=self.config | note(seen)), folder)

    monkeypatch.setattr(Run, "save", noting)
    assert "run.json" in shows(papers, visits, monkeypatch, change)


def test_the_ledger_tells_of_fits_and_of_nothing_else(
    clinic: Schema, visits: Visits, office: Path
) -> None:
    """What the certificate takes from the ledger: its identity, public sums, a keyed hash."""
    ledger = Ledger(office / "ledger.sqlite")
    charges = [
        dpsynth.fit(frame, clinic, model="independent", ledger=ledger, **SETTINGS).certificate
        for frame in (visits(70), visits(20).assign(age="?"))
    ]
    first, second = charges[0]["ledger"], charges[1]["ledger"]
    assert {key for key in first if first[key] != second[key]} == {
        "entry", "fits", "epsilon_total", "delta_total", "record", "seal",
    }  # fmt: skip
    assert (second["fits"], second["epsilon_total"], second["delta_total"]) == (2, 4.0, 2e-5)
