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

from dpsynth._util.engines import local_engine, ordered
from dpsynth._util.seeds import check_drawn, check_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.schema import Schema
from dpsynth.synthesis.sampler import Acceptance, Fitted, FittedTo, RowSampler, Sampler
from dpsynth.tables import Shape, shape_of, write_shaped, write_table

LARGE = 10_000_000  # cells that several processes draw sooner than one, which need not start
LARGE_COHORT = 100_000  # patients, the same of linked tables


def write_drawn(
    run: Fitted,
    sampler: RowSampler,
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
    drawing = Drawing.of(run, sampler, rows, seed, shape_of(path, schema))
    workers = drawing.usual_workers if workers is None else workers
    if workers == 1 or len(drawing) == 1:
        frames = sampler.frames(rows, seed=seed, progress=progress)
        return write_table(frames, path, schema, **options)
    check_seed(seed)
    with closing(drawn(drawing, workers, sampler.acceptance, progress)) as blocks:
        return write_shaped(blocks, path, schema, **options)


def drawn_frames(
    run: FittedTo[Any],
    sampler: Sampler,
    size: int,
    *,
    seed: int,
    workers: int | None = 1,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Any]:
    """Yield what `Sampler.frames` yields, drawn by so many processes.

    Args:
        run: what a fit learned.
        sampler: of this run; it counts how much of what was drawn met the rules, whoever draws it.
        size: rows, or patients, to draw.
        seed: of the draw.
        workers: processes; None for one for each core if there is much to draw.
        progress: called with the fraction done.
    """
    check_drawn(size, sampler.noun)
    check_seed(seed)
    drawing = Drawing.of(run, sampler, size, seed)
    workers = drawing.usual_workers if workers is None else workers
    if workers == 1 or len(drawing) == 1:
        yield from sampler.frames(size, seed=seed, progress=progress)
        return
    with closing(drawn(drawing, workers, sampler.acceptance, progress)) as blocks:
        yield from blocks


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
    drawing: Drawing,
    workers: int,
    acceptance: Acceptance,
    progress: Callable[[float], None] | None,
) -> Generator[Any, None, None]:
    """Yield the content of blocks in order, as they are asked for; closing it ends the workers.

    Args:
        drawing: draws the block of a number.
        workers: processes.
        acceptance: counts what the workers have counted.
        progress: called with the fraction done.
    """
    blocks = len(drawing)
    with closing(ordered(local_engine(workers), drawing, blocks)) as answers:
        for number, block in enumerate(answers):
            acceptance.join(block.acceptance)
            yield block.content
            if progress is not None:
                progress((number + 1) / blocks)


@dataclass(frozen=True)
class Drawing:
    """The work of drawing the block of a number.

    Attributes:
        run: what a fit learned.
        where: the condition on what is drawn.
        plain: whether draws are independent.
        size: rows, or patients, in all.
        seed: of the draw.
        block_size: of the run's sampler.
        shape: makes of a frame what is written; None to leave blocks as they are.
    """

    run: FittedTo[Any]
    where: str | None
    plain: bool
    size: int
    seed: int
    block_size: int
    shape: Shape | None = None

    @classmethod
    def of(
        cls, run: FittedTo[Any], sampler: Sampler, size: int, seed: int, shape: Shape | None = None
    ) -> Drawing:
        """Describe what a sampler draws, so that another process can draw it."""
        where = None if sampler.where is None else sampler.where.text
        return cls(run, where, sampler.plain, size, seed, sampler.block_size, shape)

    def __repr__(self) -> str:
        """Say what is drawn."""
        return short_repr(self, f"{self.size} of schema {self.run.schema.name}")

    def __len__(self) -> int:
        """Count the blocks."""
        return -(-self.size // self.block_size)

    @property
    def usual_workers(self) -> int:
        """How many processes draw it, if nobody says: one for each core if there is much."""
        schema = self.run.schema
        is_large = (
            self.size * len(schema.modelled) >= LARGE
            if isinstance(schema, Schema)
            else self.size >= LARGE_COHORT
        )
        return os.cpu_count() or 1 if is_large else 1

    @cached_property
    def sampler(self) -> Sampler:
        """The generator of the run, rebuilt once in each process."""
        sampler: Sampler = Sampler.of(self.run, where=self.where, plain=self.plain)
        return sampler

    def warm(self) -> None:
        """Rebuild the generator."""
        _ = self.sampler

    def __call__(self, number: int) -> DrawnBlock:
        """Draw a block, and shape it."""
        size = min(self.block_size, self.size - number * self.block_size)
        self.sampler.acceptance.clear()
        block = self.sampler.block(size, seed=self.seed, number=number)
        content = block if self.shape is None else self.shape(block)
        return DrawnBlock(content, self.sampler.acceptance)
