"""P11, end to end: how many patients there are decides nothing that anyone can see.

The check: a table and the same table less one patient are fitted, sampled and released, with the
true public population and with one that is wrong by a factor of ten either way. Budget, sigma,
sampling rate, steps, divisor, learning rates, default number of rows, and every key and public
value of run, certificate and manifest are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import release
from dpsynth.bundle.format.layout import PARQUET_SIZE
from dpsynth.ledger import Ledger
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.registry import AUTO, NAMES
from dpsynth.schema import Declared, Schema
from dpsynth.synthesis import Run, default_size, prepare

from ..support.some_cases import each_generator

Visits = Callable[[int], pd.DataFrame]
Settings = Callable[[pd.DataFrame, Schema], dict[str, Any]]
Facts = dict[str, Any]
PATIENTS, LARGER = 90, 91
NOISY = {"sha256", "hash", "bytes", "run_sha256", "id", "entry", "seal"}  # seal: under a random key
NOISY |= {PARQUET_SIZE}  # the size of one of the files, as "bytes" is of the others
NOISY |= {"tensors", "clipping_norm", "bins", "leaders"}  # these follow from noisy histograms


def declared(frame: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """The real way: everything is declared."""
    return {"schema": schema, "delta": 1e-5}


def counted_delta(frame: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """Broken twin: delta is one over the number of patients in the file."""
    return {"schema": schema, "delta": 1 / (10 * frame["patient"].nunique())}


def counted_population(frame: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """Broken twin: the population is that of the file."""
    patients = Declared(frame["patient"].nunique(), "counted in 2024")
    return {"schema": replace(schema, population=patients), "delta": 1e-5}


def counted_rows(frame: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """Broken twin: as many synthetic rows as there are real ones."""
    return {"schema": replace(schema, rows=Declared(len(frame), "counted in 2024")), "delta": 1e-5}


def public_part(value: Any) -> Any:
    """A document without digests, sizes, the ledger's identities, and what noise decides."""
    if isinstance(value, dict):
        return {k: k if k in NOISY else public_part(item) for k, item in value.items()}
    return [public_part(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def facts(
    tmp_path: Path, quick_plans: None, few_steps: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Facts]:
    """Fit, sample and release a table; gather what is public about it."""
    steps: list[tuple[float, float, float, float]] = []
    step = DpSgd.step

    def watched(self: DpSgd, *arguments: Any, **options: Any) -> None:
        rate = self.optimizer.rate(self.steps_taken)
        event = self.event
        steps.append((self.expected_units, event.sampling_rate, event.noise_multiplier, rate))
        step(self, *arguments, **options)

    monkeypatch.setattr(DpSgd, "step", watched)

    def of(frame: pd.DataFrame, schema: Schema, model: str, settings: Settings = declared) -> Facts:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        steps.clear()
        folder.mkdir(parents=True, exist_ok=True)
        run = dpsynth.fit(
            frame,
            **settings(frame, schema),
            epsilon=2.0,
            dataset="clinic",
            model=model,
            ledger=Ledger.create(folder / "ledger.sqlite"),
            output=folder / "run",
        )
        office = Ledger(folder / "ledger.sqlite")
        release(folder / "run", folder / "bundle", seed=3, ledger=office)
        documents = {
            path.name: public_part(json.loads(path.read_text()))
            for path in sorted(folder.rglob("*.json"))
        }
        return documents | {
            "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
            "steps": list(steps),
            "rows": (default_size(run), len(run.sample(seed=1))),
            "lines": len((folder / "bundle/data/synthetic.csv").read_text().splitlines()),
            "sizes": widths(run),
        }

    return of


def widths(run: Run) -> dict[str, Any]:
    """Number of axes and types of arrays; lengths too where they do not count bins."""
    lengths = {name: run.arrays[name].shape for name in ("shares", "bin_of") if name in run.arrays}
    return lengths | {name: (array.ndim, array.dtype) for name, array in run.arrays.items()}


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, int], Facts]:
    """What is public of the smaller table, by model and population: it is fitted once."""
    return {}


def size_shows(
    facts: Callable[..., Facts], visits: Visits, *how: Any, smaller: Facts | None = None
) -> list[str]:
    """What differs between a table and the same less one patient."""
    larger = visits(LARGER)
    assert larger["patient"].nunique() == LARGER and len(larger) > len(visits(PATIENTS))
    one, other = facts(larger, *how), smaller or facts(visits(PATIENTS), *how)
    assert one.keys() == other.keys()
    return sorted(key for key in one if one[key] != other[key])


# every model, and every factor, in `make test`; each combination of them in `make test-all`
SOME = ("independent", "autoregressive")
EACH = [
    pytest.param(model, factor, marks=() if factor == 10 or model in SOME else pytest.mark.long)
    for model in (*NAMES, AUTO)
    for factor in (0.1, 1, 10)
]


@pytest.mark.parametrize(("model", "factor"), EACH)
def test_one_patient_less_shows_nowhere(
    model: str,
    factor: float,
    facts: Callable[..., Facts],
    clinic: Schema,
    visits: Visits,
    known: dict[tuple[str, int], Facts],
) -> None:
    population = Declared(int(clinic.population.value * factor), "annual report")
    schema = replace(clinic, population=population)
    known[model, population.value] = smaller = facts(visits(PATIENTS), schema, model)
    assert size_shows(facts, visits, schema, model, smaller=smaller) == []


@pytest.mark.parametrize("twin", [counted_delta, counted_population, counted_rows])
def test_a_counted_size_is_caught(
    twin: Settings, facts: Callable[..., Facts], clinic: Schema, visits: Visits
) -> None:
    differing = size_shows(facts, visits, clinic, "independent", twin)
    assert {"run.json", "privacy.json"} <= set(differing)
    assert (twin is counted_rows) == ("rows" in differing) == ("lines" in differing)


def test_a_counted_divisor_is_caught(
    facts: Callable[..., Facts], clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: the gradient is divided by the sampling rate times the units of the file."""
    sample_batch = DpSgd.sample_batch

    def counting(self: DpSgd, units: int) -> Any:
        self.expected_units = self.event.sampling_rate * units
        return sample_batch(self, units)

    monkeypatch.setattr(DpSgd, "sample_batch", counting)
    assert size_shows(facts, visits, clinic, "tvae") == ["steps"]


@pytest.mark.parametrize("model", each_generator("ctgan"))
def test_the_events_of_a_fit_are_those_that_were_planned_without_any_data(
    model: str,
    facts: Callable[..., Facts],
    clinic: Schema,
    visits: Visits,
    known: dict[tuple[str, int], Facts],
) -> None:
    """And a wrong population moves the divisor in proportion, and no event, budget or default."""
    found = {}
    for population in (30, 300, 3000):
        schema = replace(clinic, population=Declared(population, "annual report"))
        plan = prepare(schema, epsilon=2.0, delta=1e-5, model=model).plan
        before = known.get((model, population))
        found[population] = facts_of_fit = before or facts(visits(PATIENTS), schema, model)
        certificate = facts_of_fit["privacy.json"]
        assert certificate["events"] == [event.to_dict() for event in plan.events]
        assert (certificate["epsilon"], certificate["delta"]) == (2.0, 1e-5)
        assert certificate["composed_epsilon"] == plan.epsilon <= 2.0
        assert facts_of_fit["rows"] == (250, 250) and facts_of_fit["lines"] == 251
    events, divisors = [], []
    for facts_of_fit in found.values():
        events.append(facts_of_fit["privacy.json"]["events"])
        divisors.append([step[0] for step in facts_of_fit["steps"]])
        assert [step[1:] for step in facts_of_fit["steps"]] == [
            step[1:] for step in found[300]["steps"]
        ]
    assert events[0] == events[1] == events[2]
    assert np.allclose(np.multiply(divisors[0], 100), np.multiply(divisors[1], 10))
    assert np.allclose(np.multiply(divisors[1], 10), divisors[2])
