"""Cohorts that several processes draw at once, block by block; they are what one process draws."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.synthesis.drawing.cohort_sampler import BLOCK, CohortSampler
from dpsynth.synthesis.drawing.fitted import FittedCohort
from dpsynth.synthesis.drawing.workers import DrawnBlock, drawn

LARGE = 100_000  # patients whom several processes draw sooner than one, which need not start


def usual_drawers(patients: int) -> int:
    """Return how many processes draw so many patients, if nobody says: one for each core if many.

    >>> usual_drawers(1_000)
    1
    """
    return os.cpu_count() or 1 if patients >= LARGE else 1


def drawn_patients(
    run: FittedCohort,
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
    workers = usual_drawers(patients) if workers is None else workers
    if workers == 1 or not BLOCK < patients:
        yield from sampler.frames(patients, seed=seed, progress=progress)
        return
    drawing = CohortDrawing(run, patients, seed, sampler.plain)
    blocks = -(-patients // BLOCK)
    with closing(drawn(drawing, blocks, workers, sampler.acceptance, progress)) as frames:
        yield from frames


@dataclass(frozen=True)
class CohortDrawing:
    """The work of drawing the patients of the block of a number."""

    run: FittedCohort
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
        count = min(BLOCK, self.patients - number * BLOCK)
        frames = self.sampler.block(count, seed=self.seed, number=number)
        return DrawnBlock(frames, self.sampler.acceptance)
