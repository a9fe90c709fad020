"""Rows with the categories of a column in equal numbers, to train models on rare ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth._util.messages import shown
from dpsynth._util.seeds import check_drawn, check_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.schema import category_value
from dpsynth.synthesis.drawing.acceptance import Acceptance
from dpsynth.synthesis.drawing.conditioned import ImpossibleCondition
from dpsynth.synthesis.drawing.fitted import Fitted
from dpsynth.synthesis.drawing.sampler import BLOCK, Sampler


@dataclass(frozen=True, repr=False)
class Balanced:
    """A sampler for each category of a column.

    Attributes:
        samplers: in the order of the categories.
    """

    samplers: tuple[Sampler, ...]

    def __repr__(self) -> str:
        """Say how many categories there are."""
        return short_repr(self, f"{len(self.samplers)} categories")

    @classmethod
    def of(cls, run: Fitted, column: str, *, where: str | None, plain: bool) -> Balanced:
        """Keep a run to each category of a column in turn, and to a condition besides.

        A category that the model never draws is left out, with a warning.

        Raises:
            InputError: there is no such column, it has no categories, or the condition is wrong
                or met by no row.
        """
        declared = {one.name: one for one in run.schema.modelled}
        single = [n for n, one in declared.items() if one.is_categorical and one.several is None]
        if column not in single:
            named = ", ".join(single)
            raise InputError(
                f"rows can be balanced by a column with categories, not by {shown(column)}; "
                f"choose one of {named or 'none'}"
            )
        kind = declared[column].kind
        if where is not None:
            Sampler.of(run, where=where, plain=plain)  # refuses it in its own words
        samplers, never = [], []
        for level in declared[column].levels:
            value = level if kind.is_truth else category_value(declared[column], level)
            sign = '"' if "'" in str(value) else "'"
            text = f"{sign}{value}{sign}" if kind.is_text else str(value)
            condition = f"`{column}` == {text}"
            both = f"({where}) and {condition}" if where else condition
            try:
                samplers.append(Sampler.of(run, where=both, plain=plain))
            except ImpossibleCondition:
                never.append(str(value))
        if never:
            warnings.warn(
                f"the model never draws these categories of {shown(column)} here, so they are left "
                f"out: {', '.join(never)}",
                DpsynthWarning,
                stacklevel=2,
            )
        return cls(tuple(samplers))

    @property
    def acceptance(self) -> Acceptance:
        """How many drawn rows met the rules."""
        whole = Acceptance()
        for sampler in self.samplers:
            whole.join(sampler.acceptance)
        return whole

    def frames(
        self, rows: int, *, seed: int, progress: Callable[[float], None] | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield ``rows`` rows, in random order; categories differ by one row a block at most.

        Raises:
            InputError: rows or seed are out of range, or a category leaves (almost) nothing.
        """
        check_seed(seed)
        check_drawn(rows)
        each = len(self.samplers)
        for block, start in enumerate(range(0, rows, BLOCK)):
            rng = np.random.default_rng([seed, block])
            size = min(BLOCK, rows - start)
            numbers = np.full(each, size // each) + (np.arange(each) < size % each)
            parts = [
                sampler.block(int(number), rng)
                for sampler, number in zip(self.samplers, numbers, strict=True)
                if number
            ]
            frame = pd.concat(parts, ignore_index=True)
            yield frame.iloc[rng.permutation(size)].reset_index(drop=True)
            if progress is not None:
                progress(min(1.0, (start + size) / rows))
