"""Where the work of a fit is done: what cannot be done is refused before anything is charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth import Execution, fit
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate, simulate_cohort

BUDGET: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "dataset": "clinic"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device must be one of auto, cpu, cuda, not 'gpu'"),
        ({"workers": 0}, "workers is 0; give at least 1"),
        ({"in_warehouse": True, "shards": "coded"}, "need neither engine nor shards"),
        ({"in_warehouse": True, "engine": "dask://here:1"}, "need neither engine nor shards"),
    ],
)
def test_what_can_be_done_nowhere_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Execution(**options)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("independent", {"device": "cuda"}, "distilled, autoregressive, tvae$"),
        ("distilled", {"ranks": object()}, "autoregressive, tvae$"),
        ("ctgan", {"shards": "coded"}, "independent, mixture, distilled, autoregressive, tvae$"),
        ("tvae", {"in_warehouse": True}, "independent, mixture, distilled$"),
        ("mixture", {"checkpoints": "kept"}, "autoregressive, tvae, ctgan; of linked tables"),
    ],
)
def test_what_a_generator_cannot_do_is_refused_before_the_charge(
    model: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    where = Execution(**options)
    with pytest.raises(InputError, match=message):
        fit(simulate(50, seed=1), "demo", model=model, execution=where, ledger=ledger, **BUDGET)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "options", [{"workers": 2}, {"shards": "coded"}, {"in_warehouse": True}, {"device": "cuda"}]
)
def test_linked_tables_are_read_and_learned_in_this_process(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))} is for a single table"):
        fit(
            simulate_cohort(40, seed=1),
            "clinic",
            execution=Execution(**options),
            without_ledger=True,
            **BUDGET,
        )


def test_it_shows_no_folder() -> None:
    assert repr(Execution(shards="/home/mary", device="cuda")) == "<Execution device cuda>"
