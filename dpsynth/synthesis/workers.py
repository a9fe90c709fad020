"""Tables that several processes draw at once, block by block; they are what one process draws.

Each block of a table has a random stream of its own, so who draws it makes no difference. A worker
also puts its block into the form in which it is written, which takes about as long as drawing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth._util.engines import local_engine, ordered
from dpsynth._util.seeds import check_drawn, check_seed
from dpsynth._util.short_repr import short_repr
from dpsynth._util.workers import Work
from dpsynth.synthesis.sampler import (
    BLOCK,
    BLOCK_OF_PATIENTS,
    Acceptance,
    CohortSampler,
    Fitted,
    FittedLinked,
    Sampler,
    stream_of,
)
from dpsynth.tables import Shape, shape_of, write_shaped, write_table

LARGE = 10_000_000  # cells that several processes draw sooner than one, which need not start


def write_drawn(
    run: Fitted,
    sampler: Sampler,
    path: str | Path,
    rows: int,
    *,
    seed: int,
    workers: int | None = 1,
    overwrite: bool = False,
    private: bool = False,
    progress: Callable[[float], None] | None = None,
) -> str:
    """Draw rows of a run, and write them; see `tables.write_table` for files and errors.

    Args:
        run: the artifact of a fit.
        sampler: of this run; it counts how many drawn rows met the rules, whoever draws them.
        path: of the table.
        rows: to draw.
        seed: of the table; the same seed gives the same bytes, with any number of workers.
        workers: processes that draw; None for one for each core if there is much to draw. They are
            spawned, so a script that asks for several needs its ``if __name__ == "__main__":``.
        overwrite: replace the file if it exists.
        private: whether the file is for its owner alone.
        progress: called with the fraction done.

    Returns:
        The SHA-256 (hex) of the file.
    """
    check_drawn(rows)
    schema = run.schema
    options: dict[str, Any] = {"overwrite": overwrite, "private": private}
    if workers is None:
        workers = usual_drawers(rows * len(schema.modelled))
    if workers == 1 or rows <= BLOCK:
        frames = sampler.frames(rows, seed=seed, progress=progress)
        return write_table(frames, path, schema, **options)
    check_seed(seed)
    where = None if sampler.where is None else sampler.where.text
    drawing = Drawing(run, where, sampler.plain, rows, seed, shape_of(path, schema))
    with closing(drawn(drawing, len(drawing), workers, sampler.acceptance, progress)) as blocks:
        return write_shaped(blocks, path, schema, **options)


def usual_drawers(cells: int) -> int:
    """Return how many processes draw so many cells, if nobody says: one for each core if many.

    >>> usual_drawers(1_000)
    1
    """
    return os.cpu_count() or 1 if cells >= LARGE else 1


@dataclass(frozen=True)
class DrawnBlock:
    """What a worker has drawn.

    Attributes:
        content: the rows, in the form in which they are wanted.
        acceptance: how many draws met the rules.
    """

    content: Any
    acceptance: Acceptance


def drawn(
    drawing: Work[DrawnBlock],
    blocks: int,
    workers: int,
    acceptance: Acceptance,
    progress: Callable[[float], None] | None,
) -> Generator[Any, None, None]:
    """Yield the content of blocks in order, as they are asked for; closing it ends the workers.

    Args:
        drawing: draws the block of a number.
        blocks: how many.
        workers: processes.
        acceptance: counts what the workers have counted.
        progress: called with the fraction done.
    """
    with closing(ordered(local_engine(workers), drawing, blocks)) as answers:
        for number, block in enumerate(answers):
            acceptance.join(block.acceptance)
            yield block.content
            if progress is not None:
                progress((number + 1) / blocks)


@dataclass(frozen=True)
class Drawing:
    """The work of drawing the block of a number."""

    run: Fitted
    where: str | None
    plain: bool
    rows: int
    seed: int
    shape: Shape

    def __repr__(self) -> str:
        """Say what is drawn."""
        return short_repr(self, f"{self.rows} rows")

    def __len__(self) -> int:
        """Count the blocks."""
        return -(-self.rows // BLOCK)

    @cached_property
    def sampler(self) -> Sampler:
        """The generator of the run, rebuilt once in each process."""
        return Sampler.of(self.run, where=self.where, plain=self.plain)

    def warm(self) -> None:
        """Rebuild the generator."""
        _ = self.sampler

    def __call__(self, number: int) -> DrawnBlock:
        """Draw a block, and shape it."""
        rows = min(BLOCK, self.rows - number * BLOCK)
        self.sampler.acceptance.clear()
        frame = self.sampler.block(rows, stream_of(self.seed, number))
        return DrawnBlock(self.shape(frame), self.sampler.acceptance)


MANY_PATIENTS = (
    100_000  # patients whom several processes draw sooner than one, which need not start
)


def usual_drawers_of_patients(patients: int) -> int:
    """Return how many processes draw so many patients, if nobody says: one for each core if many.

    >>> usual_drawers(1_000)
    1
    """
    return os.cpu_count() or 1 if patients >= MANY_PATIENTS else 1


def drawn_patients(
    run: FittedLinked,
    sampler: CohortSampler,
    patients: int,
    *,
    seed: int,
    workers: int | None = 1,
    progress: Callable[[float], None] | None = None,
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield what `CohortSampler.frames` yields, drawn by so many processes.

    Args:
        run: the artifact of a fit.
        sampler: of this run; it counts how many drawn patients met the rules, whoever draws them.
        patients: to draw.
        seed: of the cohort.
        workers: processes; None for one for each core if there are many patients.
        progress: called with the fraction done.
    """
    workers = usual_drawers_of_patients(patients) if workers is None else workers
    if workers == 1 or not BLOCK_OF_PATIENTS < patients:
        yield from sampler.frames(patients, seed=seed, progress=progress)
        return
    drawing = CohortDrawing(run, patients, seed, sampler.plain)
    blocks = -(-patients // BLOCK_OF_PATIENTS)
    with closing(drawn(drawing, blocks, workers, sampler.acceptance, progress)) as frames:
        yield from frames


@dataclass(frozen=True)
class CohortDrawing:
    """The work of drawing the patients of the block of a number."""

    run: FittedLinked
    patients: int
    seed: int
    plain: bool

    def __repr__(self) -> str:
        """Say what is drawn."""
        return short_repr(self, f"{self.patients} patients")

    @cached_property
    def sampler(self) -> CohortSampler:
        """The generator of the run, rebuilt once in each process."""
        return CohortSampler.of(self.run, plain=self.plain)

    def warm(self) -> None:
        """Rebuild the generator."""
        _ = self.sampler

    def __call__(self, number: int) -> DrawnBlock:
        """Draw a block of patients."""
        self.sampler.acceptance.clear()
        count = min(BLOCK_OF_PATIENTS, self.patients - number * BLOCK_OF_PATIENTS)
        frames = self.sampler.block(count, seed=self.seed, number=number)
        return DrawnBlock(frames, self.sampler.acceptance)
