"""Tables that are drawn and written: by several processes at once, and those of replicates.

Each block of a table has a random stream of its own, so who draws it makes no difference. A worker
also puts its block into the form in which it is written, which takes about as long as drawing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpsynth._util.engines import local_engine, ordered
from dpsynth._util.seeds import check_drawn, check_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.schema import SINGLE, AnySchema, Schema
from dpsynth.synthesis.replicates import Replicates, check_count, check_size, plan_of
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sample_log import Sample, check_replaced, read_replicates, record_sample
from dpsynth.synthesis.sampler import Acceptance, FittedTo, Sampler, default_size
from dpsynth.tables import (
    Shape,
    check_synthetic_output,
    shape_of,
    table_kind,
    write_shaped,
    write_synthetic,
)

LARGE = 10_000_000  # cells that several processes draw sooner than one, which need not start
LARGE_COHORT = 100_000  # patients, the same of linked tables


def write_drawn(
    run: FittedTo[Any],
    sampler: Sampler,
    output: str | Path,
    size: int,
    *,
    seed: int,
    suffix: str = ".csv",
    workers: int | None = 1,
    overwrite: bool = False,
    private: bool = False,
    progress: Callable[[float], None] | None = None,
) -> dict[str, str]:
    """Draw rows, or patients, of a run, and write them; see `tables.write_synthetic` for errors.

    Args:
        run: what a fit learned.
        sampler: of this run; it counts how much of what was drawn met the rules, whoever draws it.
        output: the table, or a folder for linked tables.
        size: rows, or patients, to draw.
        seed: of the draw; the same seed gives the same bytes, with any number of workers.
        suffix: of the files of linked tables.
        workers: processes that draw; None for one for each core if there is much to draw. They are
            spawned, so a script that asks for several needs its ``if __name__ == "__main__":``.
        overwrite: replace what is there.
        private: whether the output is for its owner alone.
        progress: called with the fraction done.

    Returns:
        The SHA-256 (hex) of each file by the name of its table.
    """
    check_drawn(size, sampler.noun)
    check_seed(seed)
    schema: AnySchema = run.schema
    shape = shape_of(output, schema) if isinstance(schema, Schema) else None
    drawing = Drawing.of(run, sampler, size, seed, shape)
    workers = drawing.usual_workers if workers is None else workers
    alone = workers == 1 or len(drawing) == 1
    if isinstance(schema, Schema) and not alone:  # the workers shape their blocks, too
        with closing(drawn(drawing, workers, sampler, progress)) as blocks:
            given = {"overwrite": overwrite, "private": private}
            return {SINGLE: write_shaped(blocks, output, schema, **given)}
    options: dict[str, Any] = {"suffix": suffix, "overwrite": overwrite, "private": private}
    if alone:
        frames = sampler.frames(size, seed=seed, progress=progress)
        return write_synthetic(frames, output, schema, **options)
    with closing(drawn(drawing, workers, sampler, progress)) as blocks:
        return write_synthetic(blocks, output, schema, **options)


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
    sampler: Sampler,
    progress: Callable[[float], None] | None,
) -> Generator[Any, None, None]:
    """Yield the content of blocks in order, as they are asked for; closing it ends the workers.

    Args:
        drawing: draws the block of a number.
        workers: processes.
        sampler: counts what the workers have counted.
        progress: called with the fraction done.
    """
    blocks = len(drawing)
    with closing(ordered(local_engine(workers), drawing, blocks)) as answers:
        for number, block in enumerate(answers):
            sampler.count(block.acceptance)
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
        balance: the column whose categories are drawn in equal numbers.
        size: rows, or patients, in all.
        seed: of the draw.
        block_size: of the run's sampler.
        shape: makes of a frame what is written; None to leave blocks as they are.
    """

    run: FittedTo[Any]
    where: str | None
    plain: bool
    balance: str | None
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
        law = (where, sampler.plain, sampler.balance)
        return cls(run, *law, size, seed, sampler.block_size, shape)

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
        law: dict[str, Any] = {"where": self.where, "plain": self.plain, "balance": self.balance}
        sampler: Sampler = Sampler.of(self.run, **law)
        return sampler

    def warm(self) -> None:
        """Rebuild the generator."""
        _ = self.sampler

    def __call__(self, number: int) -> DrawnBlock:
        """Draw a block, and shape it."""
        size = min(self.block_size, self.size - number * self.block_size)
        self.sampler.count(None)
        block = self.sampler.block(size, seed=self.seed, number=number)
        content = block if self.shape is None else self.shape(block)
        return DrawnBlock(content, self.sampler.acceptance)


def write_replicates(
    folder: str | Path,
    m: int,
    output: str | Path,
    *,
    size: int | None = None,
    seed: int | None = None,
    where: str | None = None,
    suffix: str = ".csv",
    overwrite: bool = False,
    progress: Callable[[float], None] | None = None,
) -> tuple[Sample, ...]:
    """Write m replicates of the run in ``folder``, and record each in its ``samples.json``.

    Args:
        folder: the run; nothing else is read.
        m: how many, 2 to 100.
        output: such as ``out.parquet``, for ``out-1.parquet`` to ``out-m.parquet``; of linked
            tables such as ``cohort``, for folders ``cohort-1`` to ``cohort-m``.
        size: rows of each, or patients of linked tables; by default as many as the schema declares.
        seed: makes them repeatable; a fresh one if None, recorded.
        where: draw only rows, or patients, that meet this condition.
        suffix: of the files of linked tables: .csv, .csv.gz or .parquet.
        overwrite: replace files that exist and that `check_replaced` knows.
        progress: called with the fraction done.

    Raises:
        ArtifactError: the run, or its ``samples.json``, is damaged.
        InputError: a file exists or cannot be written; m, size, seed or condition are wrong; or the
            run was fitted without privacy. All that is known before a refit is checked before it.
    """
    check_count(m)
    run: Run = Run.load(folder)
    schema: AnySchema = run.schema
    paths = numbered(output, m, schema)
    size = default_size(run) if size is None else size
    check_size(run, size)
    plan_of(run)  # which a run without privacy does not have
    Sampler.of(run, where=where)  # refuses a condition that cannot be read
    for path in paths:
        check_synthetic_output(path, schema, suffix=suffix, overwrite=overwrite)
        if overwrite:
            check_replaced(folder, path)
    read_replicates(folder)
    refits, records = Replicates.of(run, seed=seed), []
    for number, path in enumerate(paths, start=1):
        frames = refits.frames(number, size, where=where)
        digests = write_synthetic(frames, path, schema, suffix=suffix, overwrite=overwrite)
        drawing: dict[str, Any] = {"size": size, "seed": refits.seed, "condition": where}
        drawing |= {"plain": True, "replicate": number, "digests": digests}
        records.append(record_sample(folder, path, **drawing))
        if progress is not None:
            progress(number / m)
    return tuple(records)


def numbered(output: str | Path, m: int, schema: AnySchema) -> list[Path]:
    """Name the files of m replicates, or their folders where tables are linked.

    >>> [path.name for path in numbered("out.csv.gz", 2, Schema.load("demo"))]
    ['out-1.csv.gz', 'out-2.csv.gz']

    Raises:
        TableError: the suffix is unknown.
    """
    path = Path(output)
    end = len(table_kind(path)) if isinstance(schema, Schema) else 0
    stem, suffix = path.name[: len(path.name) - end], path.name[len(path.name) - end :]
    return [path.with_name(f"{stem}-{number}{suffix}") for number in range(1, m + 1)]
