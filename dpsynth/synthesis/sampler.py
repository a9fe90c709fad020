"""Synthetic tables from a run: streamed, repeatable by seed, kept to the schema's rules.

The sampler gets a run and nothing else; there is no way to hand it private rows. Rows, or patients
of linked tables, are drawn in blocks of a fixed size, each with a random stream of its own. So any
block can be drawn again by itself, and what is drawn depends on the run, the seed and the number of
rows or patients only, not on how it is written.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
from typing_extensions import TypeVar

from dpsynth._util.formatting import counted
from dpsynth._util.messages import shown
from dpsynth._util.seeds import check_drawn, check_seed, fresh_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Codec, Codes, HistoryCodec, decode_histories, out_of_bounds, with_keys
from dpsynth.errors import ArtifactError, DpsynthWarning, InputError
from dpsynth.models import Domain, Generator, generator_class, histories_class
from dpsynth.models.histories import HistoryGenerator, domain_of
from dpsynth.schema import (
    AnySchema,
    LinkedSchema,
    PatientRows,
    Rule,
    Schema,
    impossible,
    level_in_rule,
    quoted,
    synthetic_tables,
)
from dpsynth.synthesis.conditions import Conditioned, ImpossibleCondition

Ints = npt.NDArray[np.int64]
Truth = npt.NDArray[np.bool_]
Drawn = TypeVar("Drawn", default=Any)


@dataclass
class Acceptance:
    """Counts of drawn rows, of one sampler since it was made; they follow from what was released.

    Attributes:
        drawn: rows, or patients of linked tables.
        met: those that broke no rule.
        broken: rows that broke each rule, by its text.

    >>> acceptance = Acceptance()
    >>> acceptance.add(4, np.array([True, True, False, True]), {"a < b": 1})
    >>> acceptance.words("row")
    "75 % of the drawn rows met the rules, the others were drawn again; broken most often: 'a < b'"
    >>> Acceptance(drawn=10_000, met=9_999).words("row")
    'almost 100 % of the drawn rows met the rules, the others were drawn again'
    """

    drawn: int = 0
    met: int = 0
    broken: dict[str, int] = field(default_factory=dict)

    def add(self, drawn: int, met: Truth, broken: dict[str, int] | None = None) -> None:
        """Count a batch: how many were drawn, which met all rules, and how many broke each."""
        self.drawn += drawn
        self.met += int(met.sum())
        for text, count in (broken or {}).items():
            self.broken[text] = self.broken.get(text, 0) + count

    def clear(self) -> None:
        """Count from nothing again."""
        self.drawn, self.met, self.broken = 0, 0, {}

    def join(self, other: Acceptance) -> None:
        """Count what another sampler of the same rows has counted."""
        self.drawn, self.met = self.drawn + other.drawn, self.met + other.met
        for text, count in other.broken.items():
            self.broken[text] = self.broken.get(text, 0) + count

    @property
    def share(self) -> float:
        """The share that met the rules; 1 before anything was drawn."""
        return self.met / self.drawn if self.drawn else 1.0

    def words(self, noun: str) -> str:
        """Say it in a line; ``noun`` is what was drawn."""
        if self.met == self.drawn:
            return f"every drawn {noun} met the rules"
        again = f"of the drawn {noun}s met the rules, the others were drawn again"
        most = max(self.broken, key=lambda text: self.broken[text], default=None)
        share = f"{100 * self.share:.3g}"
        return f"{'almost 100' if share == '100' else share} % {again}" + (
            f"; broken most often: {shown(most)}" if most is not None else ""
        )


BLOCK = 65_536  # rows that share a random stream
BLOCK_OF_PATIENTS = 8_192  # the same of linked tables
SPARSEST = 1_000  # give up when fewer than one drawn row in so many satisfies the rules
PILOT = 20_000  # rows from which the share of a condition is told,
FEW = 4_000  # or so many, where a generator is kept to it already; patients of linked tables
MIN_BATCH = 4_096  # rows drawn at a time where some may be dropped
MIN_PATIENTS = 1_024  # the same of patients
_MISFIT = (  # what a model may raise over arrays that are none of its own
    *(ArithmeticError, AttributeError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)


class Sampler(ABC, Generic[Drawn]):
    """A fitted generator with the codec that decodes what it draws.

    `Sampler.of` gives that of a run: a `RowSampler` of one table, which draws frames, or a
    `PatientSampler` of linked ones, which draws a frame for each table, by its name.

    Attributes:
        where: the condition that what is drawn meets.
        plain: whether draws are independent.
        balance: the column whose categories are drawn in equal numbers.
        acceptance: counts how many drawn rows, or patients, met the rules.
        noun: what is drawn: rows, or patients.
    """

    where: Rule | None
    plain: bool
    balance: str | None = None
    acceptance: Acceptance
    noun: str

    @property
    @abstractmethod
    def block_size(self) -> int:
        """How many rows, or patients, share a random stream."""

    @overload
    @staticmethod
    def of(run: Fitted, *, where: str | None = None, plain: bool = False) -> RowSampler: ...

    @overload
    @staticmethod
    def of(
        run: FittedLinked, *, where: str | None = None, plain: bool = False
    ) -> PatientSampler: ...

    @overload
    @staticmethod
    def of(
        run: FittedTo[Any],
        *,
        where: str | None = None,
        plain: bool = False,
        balance: str | None = None,
    ) -> Sampler[Any]: ...

    @staticmethod
    def of(
        run: FittedTo[Any],
        *,
        where: str | None = None,
        plain: bool = False,
        balance: str | None = None,
    ) -> Sampler[Any]:
        """Rebuild the generator of a run.

        Args:
            run: what a fit learned.
            where: an optional condition in the schema's rule language. Rows of one table are drawn
                among those that satisfy it, in closed form or by importance weights where the
                generator can, by leaving out others where it cannot. Of linked tables it is about
                a row of the table of patients, and other patients are left out.
            plain: draw independently. Otherwise rows, or patients and their steps, are spread more
                evenly than chance, which brings a table closer to what was learned, and makes its
                rows dependent.
            balance: draw the categories of this column in equal numbers, of linked tables a column
                of the table of patients. A category that the model never draws is left out, with
                a warning.

        Raises:
            ArtifactError: the run's state does not fit its model.
            InputError: the condition cannot be read, names a column that does not exist, or cannot
                be met; or the column to balance does not exist, or has no categories.
        """
        kind: Any = RowSampler if isinstance(run.schema, Schema) else PatientSampler
        if balance is not None:
            return BalancedSampler.rebuilt(run, balance, where, plain)
        found: Sampler[Any] = kind.rebuilt(run, where, plain)
        return found

    def frames(
        self, size: int, *, seed: int, progress: Callable[[float], None] | None = None
    ) -> Iterator[Drawn]:
        """Yield exactly so many rows, or patients, in blocks of at most ``block_size``.

        Keys of patients are numbers from 1, in the order in which they are drawn.

        Raises:
            InputError: size or seed are out of range, or the rules leave (almost) nothing.
        """
        for number, count in self.counts(size, seed=seed):
            yield self.block(count, seed=seed, number=number)
            if progress is not None:
                progress(min(1.0, (number + 1) * self.block_size / size))

    def counts(self, size: int, *, seed: int) -> Iterator[tuple[int, int]]:
        """Yield the number of each block, and how many rows, or patients, are in it.

        Raises:
            InputError: size or seed are out of range.
        """
        check_seed(seed)
        check_drawn(size, self.noun)
        for number, start in enumerate(range(0, size, self.block_size)):
            yield number, min(self.block_size, size - start)

    def block(self, size: int, *, seed: int, number: int) -> Drawn:
        """Draw one block alone; what breaks a rule or the condition is drawn again."""
        keys = number * self.block_size + np.arange(1, size + 1)
        return self.draw(size, stream_of(seed, number), keys)

    def count(self, acceptance: Acceptance | None) -> None:
        """Count what another sampler of the same has drawn; None to count from nothing again."""
        if acceptance is None:
            self.acceptance.clear()
        else:
            self.acceptance.join(acceptance)

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator, keys: Ints) -> Drawn:
        """Draw some rows, or patients; patients get these keys, in the order of the draw."""

    def share(self) -> float:
        """Return the share of all rows, or patients, that meet the condition and the rules.

        It follows from what was released. About so many of the source's are behind those that are
        drawn; of few, a model knows little.
        """
        raise NotImplementedError

    def effective(self, size: int) -> float | None:
        """Return about how many effective proposals so many rows are chosen from.

        Returns:
            None where they are drawn under the condition, or without one, and not chosen.
        """
        return None


@dataclass(frozen=True)
class RowSampler(Sampler[pd.DataFrame]):
    """A sampler of one table; see `Sampler`.

    Attributes:
        codec: decodes codes to cells.
        rules: of the schema.
        where: the condition that rows meet.
        conditioned: the generator under this condition, if it can be kept to it.
    """

    noun = "rows"

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

    @property
    def block_size(self) -> int:
        """`BLOCK` rows."""
        return BLOCK

    @classmethod
    def rebuilt(cls, run: Fitted, where: str | None, plain: bool) -> RowSampler:
        """Rebuild the generator of a run of one table; see `Sampler.of`."""
        codec = Codec(run.schema)
        domain = Domain.of(run.schema, codec)
        kind = generator_class(run.model)
        with fitting_state(kind.name):
            generator = kind.restore(domain, run.config, run.arrays)
            codec = codec.following_grains(run.arrays.get("grains"))
        condition = None if where is None else _condition(where, run.schema)
        kept = None
        if condition is not None:
            with fitting_state(kind.name):
                kept = Conditioned.of(generator, condition, codec)
        return cls(generator, codec, run.schema.rules, condition, plain, kept)

    def codes(self, rows: int, *, seed: int) -> Codes:
        """Return the codes ``[rows, columns]`` of the rows that ``frames`` yields in words.

        Raises:
            InputError: as `frames`.
        """
        blocks = self.counts(rows, seed=seed)
        return np.concatenate([self._block(n, stream_of(seed, i))[1] for i, n in blocks])

    def share(self) -> float:
        """Return the share of all rows that meet the condition and the rules; see `Sampler`."""
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

    def effective(self, size: int) -> float | None:
        """Return about how many effective proposals the rows are chosen from; see `Sampler`.

        A network proposes rows that meet the condition and chooses among them by weight, block
        after block.
        """
        if self.conditioned is None:
            return None
        blocks = [min(BLOCK, size - start) for start in range(0, size, BLOCK)]
        found = [self.conditioned.effective(max(block, MIN_BATCH)) for block in blocks]
        return None if None in found else float(sum(each or 0.0 for each in found))

    def _drawn(self, rows: int, rng: np.random.Generator) -> Codes:
        law = self.generator if self.conditioned is None else self.conditioned
        return law.sample(rows, rng, even=not self.plain)

    def draw(self, size: int, rng: np.random.Generator, keys: Ints) -> pd.DataFrame:
        """Draw some rows; those that break a rule or the condition are drawn again."""
        return self._block(size, rng)[0]

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


def _condition(text: str, schema: Schema) -> Rule:
    """Read a ``where`` condition and check its columns."""
    rule = Rule.parse(text)
    problems = rule.problems(schema.modelled)
    if problems:
        raise InputError(f"condition {text!r}: {'; '.join(problems)}")
    if (words := impossible(schema, rule)) is not None:
        raise ImpossibleCondition(f"condition {text!r}: {words}")
    return rule


@dataclass(frozen=True)
class PatientSampler(Sampler[dict[str, pd.DataFrame]]):
    """A sampler of linked tables: whole histories of patients; see `Sampler`.

    Attributes:
        codec: decodes histories to tables.
        where: the condition that rows of the table of patients meet.
    """

    noun = "patients"

    generator: HistoryGenerator
    codec: HistoryCodec
    where: Rule | None = None
    plain: bool = False
    acceptance: Acceptance = field(
        default_factory=Acceptance, init=False, compare=False, repr=False
    )

    def __repr__(self) -> str:
        """Say what it draws."""
        tables = counted(len(self.codec.schema.table_names), "table")
        where = f"where {self.where.text}" if self.where else None
        return short_repr(self, f"model {self.generator.name}", tables, where)

    @property
    def block_size(self) -> int:
        """`BLOCK_OF_PATIENTS` patients."""
        return BLOCK_OF_PATIENTS

    @classmethod
    def rebuilt(cls, run: FittedLinked, where: str | None, plain: bool) -> PatientSampler:
        """Rebuild the generator of a run of linked tables; see `Sampler.of`."""
        codec = HistoryCodec(run.schema)
        with fitting_state(run.model):
            kind = histories_class(run.model)
            generator = kind.restore(domain_of(codec), run.config, run.arrays)
            codec = codec.following(generator.rounding)
        condition = None if where is None else _condition(where, run.schema.patients)
        return cls(generator, codec, condition, plain)

    def draw(self, size: int, rng: np.random.Generator, keys: Ints) -> dict[str, pd.DataFrame]:
        """Draw some patients; those who break a rule or the condition are drawn again."""
        schema, drawn, kept = self.codec.schema, 0, 0
        parts: list[dict[str, pd.DataFrame]] = []
        while kept < size:
            batch = max(size - kept, MIN_PATIENTS) if self._leaves_out else size
            frames, allowed = self._batch(batch, rng)
            places = np.where(allowed, kept + np.cumsum(allowed) - 1, size)
            own = np.append(keys, -1)[np.minimum(places, size)]
            parts.append(with_keys(frames, schema, own))
            drawn, kept = drawn + batch, kept + int((own >= 0).sum())
            if kept < size and drawn >= 20 * SPARSEST and kept * SPARSEST < drawn:
                raise InputError(f"fewer than one drawn patient in {SPARSEST} {self._unmet()}")
        whole: dict[str, pd.DataFrame] = joined(parts)
        return whole

    def pilot(self) -> pd.DataFrame:
        """Draw some patients who meet the condition and the rules: their table alone."""
        frames, allowed = self._batch(FEW, np.random.default_rng(0))
        patients = frames[self.codec.schema.patients.name]
        kept: pd.DataFrame = patients.loc[allowed[patients[self.codec.schema.key].to_numpy()]]
        return kept

    def share(self) -> float:
        """Return the share of patients who meet the condition and the rules; see `Sampler`."""
        return len(self.pilot()) / FEW

    def _batch(self, size: int, rng: np.random.Generator) -> tuple[dict[str, pd.DataFrame], Truth]:
        """Draw patients by number, and tell which of them meet the rules and the condition."""
        schema = self.codec.schema
        with fitting_state(self.generator.name):
            histories = self.generator.sample(size, rng, even=not self.plain)
            frames = decode_histories(histories, self.codec, rng)
        allowed = _allowed(frames, schema, size)
        if _has_rules(schema):
            self.acceptance.add(size, allowed)
        if self.where is not None:  # a condition on a missing value is not met
            patients = frames[schema.patients.name]
            met = np.asarray(self.where.holds(patients, missing=False))
            allowed[patients[schema.key].to_numpy()[~met]] = False
        return frames, allowed

    @property
    def _leaves_out(self) -> bool:
        """Whether some drawn patients may be left out."""
        return self.where is not None or _has_rules(self.codec.schema)

    def _unmet(self) -> str:
        """Say what hardly any drawn patient meets, and what to do."""
        rules = f"keeps the rules of schema {self.codec.schema.name}"
        if self.where is None:
            return f"{rules}; loosen them"
        too = f" and {rules}" if _has_rules(self.codec.schema) else ""
        return f"satisfies the condition {self.where.text}{too}; loosen the condition"


def _has_rules(schema: LinkedSchema) -> bool:
    return bool(schema.rules or schema.patients.rules) or any(
        child.schema.rules for child in schema.children
    )


def _allowed(frames: Mapping[str, pd.DataFrame], schema: LinkedSchema, patients: int) -> Truth:
    """Tell which patients break no rule with any of their rows."""
    allowed = np.ones(patients, dtype=bool)
    tables: list[tuple[Schema, str]] = [(schema.patients, schema.key)]
    tables += [(child.schema, child.key) for child in schema.children]
    for own, key in tables:
        frame = frames[own.name]
        for rule in own.rules:  # a rule about a missing value is not broken
            broken = ~np.asarray(rule.holds(frame))
            allowed[frame[key].to_numpy()[broken]] = False
    if schema.rules:
        rows = PatientRows(frames, schema)
        for temporal in schema.rules:
            allowed &= temporal.holds_in(rows)
    return allowed


@dataclass(frozen=True, repr=False)
class BalancedSampler(Sampler[Any]):
    """A sampler for each category of a column, which are drawn in equal numbers.

    Attributes:
        schema: of the run.
        samplers: in the order of the categories.
    """

    schema: AnySchema
    samplers: tuple[Sampler[Any], ...]
    where: Rule | None
    plain: bool
    balance: str | None

    def __repr__(self) -> str:
        """Say how many categories there are."""
        return short_repr(self, f"{len(self.samplers)} categories of {self.balance}")

    @property
    def noun(self) -> str:  # type: ignore[override]
        """What is drawn."""
        return self.samplers[0].noun

    @property
    def block_size(self) -> int:
        """As many as the sampler of a category draws in a block."""
        return self.samplers[0].block_size

    @property
    def acceptance(self) -> Acceptance:  # type: ignore[override]
        """How many drawn rows, or patients, met the rules."""
        whole = Acceptance()
        for sampler in self.samplers:
            whole.join(sampler.acceptance)
        return whole

    def count(self, acceptance: Acceptance | None) -> None:
        """Count with the first category; see `Sampler`."""
        for sampler in self.samplers if acceptance is None else self.samplers[:1]:
            sampler.count(acceptance)

    @classmethod
    def rebuilt(
        cls, run: FittedTo[Any], balance: str, where: str | None, plain: bool
    ) -> BalancedSampler:
        """Keep a run to each category of a column in turn, and to a condition besides."""
        schema = run.schema
        own = schema if isinstance(schema, Schema) else schema.patients
        declared = {one.name: one for one in own.modelled}
        single = [n for n, one in declared.items() if one.is_categorical and one.several is None]
        if balance not in single:
            named = ", ".join(single)
            noun = "rows" if isinstance(schema, Schema) else "patients"
            raise InputError(
                f"{noun} can be balanced by a column with categories, not by {shown(balance)}; "
                f"choose one of {named or 'none'}"
            )
        column = declared[balance]
        condition = None if where is None else _condition(where, own)
        base: Sampler[Any] = Sampler.of(
            run, where=where, plain=plain
        )  # refuses what it cannot meet
        pilot = base.pilot() if isinstance(base, PatientSampler) else None
        samplers: list[Sampler[Any]] = []
        never = []
        for level in column.levels:
            category = f"{quoted(balance)} == {level_in_rule(column, level)}"
            both = f"({where}) and {category}" if where else category
            if pilot is not None and _share_of(pilot, category) * SPARSEST < 1:
                never.append(level)
                continue
            try:
                samplers.append(Sampler.of(run, where=both, plain=plain))
            except ImpossibleCondition:
                never.append(level)
        if never:
            warnings.warn(
                f"the model never draws these categories of {shown(balance)} here, or hardly ever, "
                f"so they are left out: {', '.join(never)}",
                DpsynthWarning,
                stacklevel=3,
            )
        return cls(schema, tuple(samplers), condition, plain, balance)

    def draw(self, size: int, rng: np.random.Generator, keys: Ints) -> Any:
        """Draw each category, in random order; their numbers differ by one at most."""
        each = len(self.samplers)
        numbers = np.full(each, size // each) + (np.arange(each) < size % each)
        order = rng.permutation(size)
        own = np.split(keys[np.argsort(order)], np.cumsum(numbers)[:-1])
        parts = [
            sampler.draw(int(number), rng, drawn)
            for sampler, number, drawn in zip(self.samplers, numbers, own, strict=True)
            if number
        ]
        whole = joined(parts)
        if isinstance(self.schema, Schema):
            return whole.iloc[order].reset_index(drop=True)
        for name, table in synthetic_tables(self.schema).items():
            assert table.key is not None
            of_rows = table.numbers(whole[name], table.schema.column(table.key)).astype(np.int64)
            places = np.argsort(of_rows.to_numpy(), kind="stable")
            whole[name] = whole[name].iloc[places].reset_index(drop=True)
        return whole


def _share_of(frame: pd.DataFrame, condition: str) -> float:
    """Return the share of rows that meet a condition; 0 of no rows."""
    return float(np.mean(Rule.parse(condition).holds(frame, missing=False))) if len(frame) else 0.0


def joined(parts: Sequence[Any]) -> Any:
    """Put blocks of one draw together: frames, or the frames of each of several tables."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}


def default_size(run: FittedTo[Any]) -> int:
    """Return how much is drawn when nobody says: the public number of rows, or of patients."""
    schema: AnySchema = run.schema
    return (schema.rows if isinstance(schema, Schema) else schema.population).value


@overload
def sample(
    run: Fitted,
    size: int | None = None,
    *,
    seed: int | None = None,
    where: str | None = None,
    plain: bool = False,
    balance: str | None = None,
) -> pd.DataFrame: ...


@overload
def sample(
    run: FittedLinked,
    size: int | None = None,
    *,
    seed: int | None = None,
    where: str | None = None,
    plain: bool = False,
    balance: str | None = None,
) -> dict[str, pd.DataFrame]: ...


def sample(
    run: FittedTo[Any],
    size: int | None = None,
    *,
    seed: int | None = None,
    where: str | None = None,
    plain: bool = False,
    balance: str | None = None,
) -> Any:
    """Draw synthetic rows, or patients, in memory; see `Sampler.of` for what the options do.

    >>> import dpsynth
    >>> from dpsynth.tables import simulate
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
    >>> run = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
    >>> sample(run, 5, seed=1).shape
    (5, 15)
    """
    sampler = Sampler.of(run, where=where, plain=plain, balance=balance)
    seed = fresh_seed() if seed is None else seed
    return joined(list(sampler.frames(default_size(run) if size is None else size, seed=seed)))


OfSchema = TypeVar("OfSchema", bound=AnySchema, covariant=True)


class FittedTo(Protocol[OfSchema]):
    """A fitted generator as plain data."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def schema(self) -> OfSchema:
        """Return the public facts that the generator was built from."""

    @property
    def model(self) -> str:
        """Return the generator's name."""

    @property
    def config(self) -> dict[str, Any]:
        """Return its own description, plain JSON values."""

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what it learned, by name."""

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Return the privacy certificate's document; None for a fit without privacy."""

    @property
    def stamps(self) -> tuple[str, ...]:
        """Return the reasons why it may not be released."""


Fitted = FittedTo[Schema]
"""Of one table; `Run` is one."""
FittedLinked = FittedTo[LinkedSchema]
"""Of linked tables; `Run` is one, too."""
