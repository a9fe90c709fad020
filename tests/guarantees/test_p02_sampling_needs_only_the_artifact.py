"""P02: a latent prior, a mean or a row of the private table that the sampler keeps or looks up.

Two checks. Sampling gives the same table to the byte when the source is gone, in a fresh process
that knows nothing but the run. And nothing but the paid mechanisms carries private rows into the
run: with their output held fixed, two different tables give the same run to the bit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.models import generator_class
from dpsynth.models.dpsgd import DpSgd
from dpsynth.models.generators import Independent, Tvae, independent
from dpsynth.models.marginals import measurement
from dpsynth.privacy import PaidEntropy, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, Sampler, preparation

from ..support.some_cases import each_generator

Visits = Callable[[int], pd.DataFrame]
Draw = Callable[[Path], bytes]
SETTINGS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "dataset": "clinic"}


def fitted(folder: Path, frame: pd.DataFrame, schema: Schema, model: str) -> Path:
    """A run, and beside it the table that it was fitted on."""
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "source.csv", index=False)
    dpsynth.fit(
        folder / "source.csv",
        schema,
        model=model,
        without_ledger=True,
        output=folder / "run",
        **SETTINGS,
    )
    return folder


def drawn(folder: Path) -> bytes:
    return Run.load(folder / "run").sample(120, seed=9).to_csv(index=False).encode()


def drawn_around_the_mean(folder: Path) -> bytes:
    """Broken twin: the latent prior is the mean of the source's encoded rows."""
    run = Run.load(folder / "run")
    codec = Codec(run.schema)
    source = folder / "source.csv"
    mean = codec.encode(pd.read_csv(source, dtype=str)).mean() if source.exists() else 0.0
    rng = np.random.default_rng([9, int(mean)])
    codes = Sampler.of(run).generator.sample(120, rng)
    return codec.decode(codes, rng).to_csv(index=False).encode()


def needs_the_source(draw: Draw, folder: Path) -> bool:
    before = draw(folder)
    (folder / "source.csv").unlink()
    try:
        return draw(folder) != before
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("model", each_generator("ctgan"))
@pytest.mark.usefixtures("few_steps")
def test_the_same_table_when_the_source_is_gone(
    model: str, clinic: Schema, visits: Visits, tmp_path: Path
) -> None:
    assert needs_the_source(
        drawn_around_the_mean, fitted(tmp_path / "broken", visits(80), clinic, model)
    )
    assert not needs_the_source(drawn, fitted(tmp_path / "real", visits(80), clinic, model))


@pytest.mark.usefixtures("few_steps")
def test_a_fresh_process_with_nothing_but_the_run_draws_the_same(
    clinic: Schema, visits: Visits, tmp_path: Path
) -> None:
    home = fitted(tmp_path / "office", visits(80), clinic, "tvae")
    expected = drawn(home)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / "run").rename(elsewhere / "run")
    for left in home.iterdir():
        left.unlink()
    code = (
        "import sys\nfrom dpsynth import Run\n"
        "from dpsynth.synthesis import Sampler\n"
        "[frame] = Sampler.of(Run.load('run')).frames(120, seed=9)\n"
        "sys.stdout.buffer.write(frame.to_csv(index=False).encode())\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DPSYNTH_")}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=elsewhere,
        env=environment | {"OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    assert ended.stdout == expected


class Remembering(Tvae):
    """Broken twin: keeps the mean of the encoded rows as the place to sample around."""

    def _train(self, cohort: Any, *rest: Any) -> None:
        super()._train(cohort, *rest)
        codes = self.binning_.coarsen(cohort)[cohort.mask]
        net = self.network_
        hidden = torch.tanh(net.encode_in(net.one_hot(torch.from_numpy(codes).long()), None))
        self.mean_ = net.encode_out(hidden, None)[:, : self.preset_.latent].mean(dim=0)

    def arrays(self) -> dict[str, Any]:
        return super().arrays() | {"latent_mean": self.mean_.numpy()}


class Counting(Independent):
    """Broken twin: notes the number of rows as a setting."""

    def fit(self, cohort: Any, *rest: Any) -> Any:
        self.rows_ = int(cohort.mask.sum())
        return super().fit(cohort, *rest)

    def config(self) -> dict[str, Any]:
        return {"rows": self.rows_}


@pytest.fixture
def without_mechanisms(monkeypatch: pytest.MonkeyPatch, few_steps: Any) -> None:
    """Hold fixed what the paid mechanisms release; all else runs as it is."""

    def same_counts(cohort: Any, sizes: Any, event: Any, entropy: Any) -> list[Any]:
        return [np.arange(5, 5 + 10 * size, 10, dtype=np.int64) for size in sizes]

    def same_pairs(cohort: Any, sizes: Any, pairs: Any, *rest: Any) -> list[Any]:
        return [np.full((sizes[i], sizes[j]), 9, dtype=np.int64) for i, j in pairs]

    def no_units(self: DpSgd, units: int) -> Any:
        return np.zeros(0, dtype=np.int64)

    monkeypatch.setattr(independent, "joint_histograms", same_counts)
    monkeypatch.setattr(measurement, "joint_histograms", same_counts)
    monkeypatch.setattr(measurement, "chosen_histograms", same_pairs)
    monkeypatch.setattr(DpSgd, "sample_batch", no_units)
    monkeypatch.setattr(DpSgd, "step", lambda *arguments, **options: None)


def other_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of other patients, sizes and cells; no neighbour, but as far off as can be."""
    other = frame.iloc[::3].assign(patient="only one", weight="", sex="?", age="4000")
    return pd.concat([other, frame.iloc[:50]], ignore_index=True)


def bypasses_the_mechanisms(
    kind: type[Any], schema: Schema, visits: Visits, patch: pytest.MonkeyPatch
) -> bool:
    """Whether two tables give two runs although the paid mechanisms said the same."""
    patch.setattr(preparation, "generator_class", lambda name: kind)
    patch.setattr(PaidEntropy, "unused", ())  # fits whose mechanisms are held fixed use no event
    runs = [
        dpsynth.fit(
            frame,
            schema,
            model=kind.name,
            without_ledger=True,
            entropy=SeededEntropy(3),
            **SETTINGS,
        )
        for frame in (visits(90), other_table(visits(70)))
    ]
    first, second = ({name: a.tobytes() for name, a in run.arrays.items()} for run in runs)
    return first != second or runs[0].config != runs[1].config


@pytest.mark.usefixtures("without_mechanisms")
@pytest.mark.parametrize("twin", [Remembering, Counting])
def test_what_a_generator_keeps_on_the_side_is_caught(
    twin: type[Any], clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bypasses_the_mechanisms(twin, clinic, visits, monkeypatch)


@pytest.mark.usefixtures("without_mechanisms")
@pytest.mark.parametrize("model", each_generator("ctgan"))
def test_private_rows_enter_a_run_by_the_paid_mechanisms_only(
    model: str, clinic: Schema, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = generator_class(model)
    assert not bypasses_the_mechanisms(real, clinic, visits, monkeypatch)
