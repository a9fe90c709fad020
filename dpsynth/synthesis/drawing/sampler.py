"""Synthetic rows from a run: streamed, repeatable by seed, kept to the schema's rules.

The sampler gets a run and nothing else; there is no way to hand it private rows. Rows are drawn in
blocks of a fixed size, each with a random stream of its own, so a table depends on the run, the
seed and the number of rows only, not on how it is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.seeds import check_drawn, check_seed, fresh_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Codec, Codes, out_of_bounds
from dpsynth.errors import ArtifactError, InputError
from dpsynth.models import Domain, Generator, generator_class
from dpsynth.schema import Rule, impossible
from dpsynth.synthesis.drawing.acceptance import Acceptance, Truth
from dpsynth.synthesis.drawing.conditioned import Conditioned, ImpossibleCondition
from dpsynth.synthesis.drawing.fitted import Fitted

BLOCK = 65_536
SPARSEST = 1_000  # give up when fewer than one drawn row in so many satisfies the rules
PILOT = 20_000  # rows from which the share of a condition is told,
FEW = 4_000  # or so many, where a generator is kept to it already
MIN_BATCH = 4_096  # rows drawn at a time where some may be dropped
_MISFIT = (  # what a model may raise over arrays that are none of its own
    *(ArithmeticError, AttributeError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)


@dataclass(frozen=True)
class Sampler:
    """A fitted generator with the codec that decodes what it draws.

    ``acceptance`` counts how many drawn rows met the rules.
    """

    generator: Generator
    codec: Codec
    rules: tuple[Rule, ...]
    where: Rule | None = None
    plain: bool = False
    conditioned: Conditioned | None = None
    acceptance: Acceptance = field(
        default_factory=Acceptance, init=False, compare=False, repr=False
    )

    def __repr__(self) -> str:
        """Say what it draws."""
        return short_repr(
            self,
            f"model {self.generator.name}",
            counted(len(self.codec.names), "column"),
            f"where {self.where.text}" if self.where else None,
        )

    @classmethod
    def of(cls, run: Fitted, *, where: str | None = None, plain: bool = False) -> Sampler:
        """Rebuild the generator of a run.

        Args:
            run: the artifact of a fit.
            where: an optional condition in the schema's rule language: rows are drawn among those
                that satisfy it, in closed form or by importance weights where the generator can,
                by leaving out others where it cannot.
            plain: draw independent rows. Otherwise rows are spread more evenly than chance, which
                brings a table closer to what was learned, and makes its rows dependent.

        Raises:
            ArtifactError: the run's state does not fit its model.
            InputError: the condition cannot be read, names a column that does not exist, or cannot
                be met.
        """
        codec = Codec(run.schema)
        domain = Domain.of(run.schema, codec)
        kind = generator_class(run.model)
        with fitting_state(kind.name):
            generator = kind.restore(domain, run.config, run.arrays)
            codec = codec.following_grains(run.arrays.get("grains"))
        condition = None if where is None else _condition(where, run)
        kept = None
        if condition is not None:
            with fitting_state(kind.name):
                kept = Conditioned.of(generator, condition, codec)
        return cls(generator, codec, run.schema.rules, condition, plain, kept)

    def frames(
        self, rows: int, *, seed: int, progress: Callable[[float], None] | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield exactly ``rows`` synthetic rows, in frames of at most `BLOCK` rows.

        Raises:
            InputError: rows or seed are out of range, or the rules leave (almost) nothing.
        """
        for frame, _ in self._blocks(rows, seed, progress):
            yield frame

    def codes(self, rows: int, *, seed: int) -> Codes:
        """Return the codes ``[rows, columns]`` of the rows that ``frames`` yields in words.

        Raises:
            InputError: as `frames`.
        """
        return np.concatenate([codes for _, codes in self._blocks(rows, seed, None)])

    def _blocks(
        self, rows: int, seed: int, progress: Callable[[float], None] | None
    ) -> Iterator[tuple[pd.DataFrame, Codes]]:
        check_seed(seed)
        check_drawn(rows)
        for block, start in enumerate(range(0, rows, BLOCK)):
            yield self._block(min(BLOCK, rows - start), stream_of(seed, block))
            if progress is not None:
                progress(min(1.0, (start + BLOCK) / rows))

    def share(self) -> float:
        """Return the share of all rows that meet the condition and the rules, by the model.

        It follows from what was released. About so many of the source's rows are behind the rows
        that are drawn; of few, a model knows little.
        """
        rng = np.random.default_rng(0)
        whole, rows = 1.0, PILOT
        if self.conditioned is not None:
            whole, rows = float(self.conditioned.shares.sum()), FEW
        with fitting_state(self.generator.name):
            codes = self._drawn(rows, rng)
            frame = self.codec.decode(codes, rng)
        kept = np.ones(len(frame), dtype=bool)
        if self.where is not None:
            kept &= self.where.holds(frame, missing=False)
        return whole * float(kept.sum()) / rows

    def effective(self, rows: int) -> float | None:
        """Return about how many effective proposals a table of so many rows is chosen from.

        A network proposes rows that meet the condition and chooses among them by weight, block
        after block.

        Returns:
            None where rows are drawn under the condition, or without one, and not chosen.
        """
        if self.conditioned is None:
            return None
        blocks = [min(BLOCK, rows - start) for start in range(0, rows, BLOCK)]
        found = [self.conditioned.effective(max(block, MIN_BATCH)) for block in blocks]
        return None if None in found else float(sum(each or 0.0 for each in found))

    def _drawn(self, rows: int, rng: np.random.Generator) -> Codes:
        law = self.generator if self.conditioned is None else self.conditioned
        return law.sample(rows, rng, even=not self.plain)

    def block(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw some rows; those that break a rule or the condition are drawn again."""
        return self._block(rows, rng)[0]

    def _block(self, rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Codes]:
        """Draw one block, and its codes; rows that break a rule are drawn again."""
        conditions = [*self._drawn_again(), *([self.where.text] if self.where else [])]
        batch = max(rows, MIN_BATCH) if conditions else rows
        frames: list[pd.DataFrame] = []
        code_blocks: list[Codes] = []
        missing, draws, satisfied = rows, 0, 0
        while missing > 0:
            with fitting_state(self.generator.name):
                codes = self._drawn(batch, rng)
                frame = self.codec.decode(codes, rng)
            frame = frame[self._lawful(frame)]
            if self.where is not None:  # a condition on a missing value is not met
                frame = frame[self.where.holds(frame, missing=False)]
            draws, satisfied = draws + batch, satisfied + len(frame)
            frames.append(frame.iloc[:missing])
            code_blocks.append(codes[frames[-1].index])  # the index still counts the drawn rows
            missing -= len(frames[-1])
            if satisfied:  # the rest needs so many draws, and some to spare
                batch = min(BLOCK, max(MIN_BATCH, math.ceil(1.1 * missing * draws / satisfied)))
            if missing > 0 and draws >= 20 * SPARSEST and satisfied * SPARSEST < draws:
                raise InputError(f"fewer than one drawn row in {SPARSEST} {self._unmet()}")
        frame = pd.concat(frames, ignore_index=True) if conditions else frames[0]
        return frame, np.concatenate(code_blocks)

    def _unmet(self) -> str:
        """Say what hardly any drawn row meets, and what to do."""
        rules = "; ".join(self._drawn_again())
        if self.where is None:
            return f"satisfies the rules {rules}; loosen one of them"
        too = f" and meets the schema's rules {rules}" if rules else ""
        return (
            f"satisfies the condition {self.where.text}{too}; loosen the condition, or look "
            "whether a rule, a bound or present_if excludes it"
        )

    def _drawn_again(self) -> list[str]:
        """Name what rows are drawn again for: rules, and bounds of columns with a formula."""
        derived = [column for column in self.codec.published.modelled if column.derived is not None]
        return [
            *(rule.text for rule in self.rules),
            *(_bounds_of(column.name) for column in derived),
        ]

    def _lawful(self, frame: pd.DataFrame) -> Truth:
        """Tell which drawn rows break no rule and no bound of a formula, and count them."""
        met, broken = np.ones(len(frame), dtype=bool), {}
        for rule in self.rules:  # a rule about a missing value is not broken
            holds = rule.holds(frame)
            broken[rule.text] = int((~holds).sum())
            met &= holds
        for name, beyond in out_of_bounds(frame, self.codec.published).items():
            broken[_bounds_of(name)] = int(beyond.sum())
            met &= ~beyond
        if self._drawn_again():
            self.acceptance.add(len(frame), met, broken)
        return met


def _bounds_of(name: str) -> str:
    return f"{name} within its bounds"


def stream_of(seed: int, block: int) -> np.random.Generator:
    """Return the random stream of one block of a table."""
    return np.random.default_rng([seed, block])


@contextmanager
def fitting_state(model: str) -> Iterator[None]:
    """Word what goes wrong with arrays that are none of a model: of other shapes, out of range."""
    try:
        yield
    except _MISFIT as error:
        raise ArtifactError(
            f"the run's state is not that of model '{model}' on this schema; it was damaged, or "
            "written by another version of dpsynth"
        ) from error


def _condition(text: str, run: Fitted) -> Rule:
    """Read a ``where`` condition and check its columns."""
    rule = Rule.parse(text)
    problems = rule.problems(run.schema.modelled)
    if problems:
        raise InputError(f"condition {text!r}: {'; '.join(problems)}")
    if (words := impossible(run.schema, rule)) is not None:
        raise ImpossibleCondition(f"condition {text!r}: {words}")
    return rule


def default_rows(run: Fitted) -> int:
    """Return the number of rows to draw when nobody says: the schema's public ``rows``."""
    return run.schema.rows.value


def sample_frames(run: Fitted, rows: int, seed: int) -> Iterator[pd.DataFrame]:
    """Yield ``rows`` synthetic rows of a run; see `Sampler.frames`."""
    return Sampler.of(run).frames(rows, seed=seed)


def sample(
    run: Fitted,
    rows: int | None = None,
    *,
    seed: int | None = None,
    where: str | None = None,
    plain: bool = False,
) -> pd.DataFrame:
    """Draw a synthetic table in memory; see `Sampler` to stream one, and for ``where``.

    >>> import dpsynth
    >>> from dpsynth.tables import simulate
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
    >>> run = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
    >>> sample(run, 5, seed=1).shape
    (5, 15)
    """
    frames = Sampler.of(run, where=where, plain=plain).frames(
        default_rows(run) if rows is None else rows,
        seed=fresh_seed() if seed is None else seed,
    )
    return pd.concat(frames, ignore_index=True)
