"""Tables that several processes draw: the same bytes as one process, and nothing half-written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.schema import Rule
from dpsynth.synthesis import Run, Sampler, drawn_frames, workers, write_drawn
from dpsynth.synthesis import sampler as samplers
from dpsynth.synthesis.sampler import BLOCK
from dpsynth.tables import write_table
from dpsynth.tables.checks import CHUNK

from ..support.clinic import clinic_run

ROWS = BLOCK + 1_000  # two blocks


def test_a_block_is_what_a_file_is_written_in() -> None:
    assert BLOCK == CHUNK


@pytest.mark.parametrize(
    "suffix", ["csv", pytest.param("csv.gz", marks=pytest.mark.long), "parquet"]
)
def test_blocks_of_workers_are_the_table_of_one_process(
    made_run: Run, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Sampler.of(made_run)
    expected = write_table(alone.frames(ROWS, seed=3), tmp_path / f"one.{suffix}", made_run.schema)
    in_process = workers.local_engine(1)
    monkeypatch.setattr(workers, "local_engine", lambda count: in_process)
    told, sampler = list[float](), Sampler.of(made_run)
    found = write_drawn(
        made_run,
        sampler,
        tmp_path / f"two.{suffix}",
        ROWS,
        seed=3,
        workers=2,
        progress=told.append,
    )
    assert found == expected and told == [0.5, 1.0]
    assert sampler.acceptance == alone.acceptance and sampler.acceptance.drawn >= ROWS


def test_a_cohort_of_workers_is_that_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    run, in_process = clinic_run(), workers.local_engine(1)
    monkeypatch.setattr(workers, "local_engine", lambda count: in_process)
    monkeypatch.setattr(samplers, "BLOCK_OF_PATIENTS", 50)
    one, two = Sampler.of(run), Sampler.of(run)
    expected = list(one.frames(120, seed=4))
    found = list(drawn_frames(run, two, 120, seed=4, workers=2))
    assert len(found) == len(expected) == 3
    for left, right in zip(found, expected, strict=True):
        for name in right:
            pd.testing.assert_frame_equal(left[name], right[name])


@pytest.mark.parametrize("size", [0, -1])
def test_nobody_is_refused_by_many_processes_as_by_one(size: int) -> None:
    run = clinic_run()
    for processes in (1, 2):
        with pytest.raises(InputError, match="patients must be at least 1"):
            list(drawn_frames(run, Sampler.of(run), size, seed=1, workers=processes))


@pytest.mark.long
def test_two_processes_write_the_same_bytes_and_stop_at_an_error(
    made_run: Run, tmp_path: Path
) -> None:
    digests = {
        count: write_drawn(
            made_run,
            Sampler.of(made_run),
            tmp_path / f"{count}.csv",
            3 * BLOCK,
            seed=3,
            workers=count,
        )
        for count in (1, 2)
    }
    assert digests[1] == digests[2]
    rules = (Rule.parse("age > 40"), Rule.parse("age < 30"))
    ruled = replace(made_run, schema=replace(made_run.schema, rules=rules))
    with pytest.raises(InputError, match="one drawn row in 1000"):
        write_drawn(ruled, Sampler.of(ruled), tmp_path / "no.csv", 3 * BLOCK, seed=3, workers=2)
    assert not (tmp_path / "no.csv").exists()
