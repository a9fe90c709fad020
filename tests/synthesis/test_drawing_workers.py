"""Tables that several processes draw: the same bytes as one process, and nothing half-written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.schema import Rule
from dpsynth.synthesis import Run, Sampler, workers, write_drawn
from dpsynth.synthesis import sampler as samplers
from dpsynth.synthesis.sampler import BLOCK
from dpsynth.tables import write_synthetic, write_table
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
    assert found == {"synthetic": expected} and told == [0.5, 1.0]
    assert sampler.acceptance == alone.acceptance and sampler.acceptance.drawn >= ROWS


@pytest.mark.parametrize("law", [{}, {"where": "age > 50"}, {"balance": "sex"}])
def test_a_cohort_of_workers_is_that_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, law: dict[str, Any]
) -> None:
    run, in_process = clinic_run(), workers.local_engine(1)
    monkeypatch.setattr(workers, "local_engine", lambda count: in_process)
    monkeypatch.setattr(samplers, "BLOCK_OF_PATIENTS", 50)
    files = []
    for count, place in ((1, tmp_path / "one"), (2, tmp_path / "two")):
        write_drawn(run, Sampler.of(run, **law), place, 120, seed=4, workers=count)
        files.append({path.name: path.read_bytes() for path in place.iterdir()})
    assert files[0] == files[1] and len(files[0]) == 5
    drawn = run.sample(120, seed=4, **law)
    write_synthetic([drawn], tmp_path / "memory", run.schema)
    assert files[0] == {p.name: p.read_bytes() for p in (tmp_path / "memory").iterdir()}


@pytest.mark.parametrize("size", [0, -1])
def test_nobody_is_refused_by_many_processes_as_by_one(tmp_path: Path, size: int) -> None:
    run = clinic_run()
    for processes in (1, 2):
        with pytest.raises(InputError, match="patients must be at least 1"):
            write_drawn(run, Sampler.of(run), tmp_path / "c", size, seed=1, workers=processes)


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
