"""Synthetic cohorts from a run of linked tables: streamed, repeatable by seed, kept to the rules.

The sampler gets a run and nothing else; there is no way to hand it private rows. Patients are drawn
in blocks of a fixed size, each with a random stream of its own, so any block can be drawn again by
itself, and a cohort depends on the run, the seed and the number of patients only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.seeds import check_drawn, check_seed, fresh_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import HistoryCodec, decode_histories, with_keys
from dpsynth.errors import InputError
from dpsynth.models import histories_class
from dpsynth.models.histories import CohortGenerator, domain_of
from dpsynth.schema import LinkedSchema, PatientRows, Schema
from dpsynth.synthesis.drawing.acceptance import Acceptance
from dpsynth.synthesis.drawing.fitted import FittedCohort
from dpsynth.synthesis.drawing.sampler import SPARSEST, fitting_state

BLOCK = 8_192
"""Patients that share a random stream."""
MIN_BATCH = 1_024  # patients drawn at a time where some may be left out

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CohortSampler:
    """A fitted generator of histories with the codec that decodes what it draws.

    ``acceptance`` counts how many drawn patients met the rules.
    """

    generator: CohortGenerator
    codec: HistoryCodec
    plain: bool = False
    acceptance: Acceptance = field(
        default_factory=Acceptance, init=False, compare=False, repr=False
    )

    def __repr__(self) -> str:
        """Say what it draws."""
        tables = counted(len(self.codec.schema.table_names), "table")
        return short_repr(self, f"model {self.generator.name}", tables)

    @classmethod
    def of(cls, run: FittedCohort, *, plain: bool = False) -> CohortSampler:
        """Rebuild the generator of a run.

        Args:
            run: the artifact of a fit.
            plain: draw independent patients. Otherwise patients and their steps are spread more
                evenly than chance, which brings a cohort closer to what was learned.

        Raises:
            ArtifactError: the run's state does not fit its model.
        """
        codec = HistoryCodec(run.schema)
        with fitting_state(run.model):
            kind = histories_class(run.model)
            generator = kind.restore(domain_of(codec), run.config, run.arrays)
            codec = codec.following(generator.rounding)
        return cls(generator, codec, plain)

    def frames(
        self, patients: int, *, seed: int, progress: Callable[[float], None] | None = None
    ) -> Iterator[dict[str, pd.DataFrame]]:
        """Yield exactly so many patients, in blocks of at most `BLOCK`: a frame for each table.

        Keys are numbers from 1, in the order in which patients are drawn.

        Raises:
            InputError: patients or seed are out of range, or the rules leave almost nobody.
        """
        check_seed(seed)
        check_drawn(patients, "patients")
        for number, start in enumerate(range(0, patients, BLOCK)):
            yield self.block(min(BLOCK, patients - start), seed=seed, number=number)
            if progress is not None:
                progress(min(1.0, (start + BLOCK) / patients))

    def block(self, patients: int, *, seed: int, number: int) -> dict[str, pd.DataFrame]:
        """Draw the patients of one block alone; those who break a rule are drawn again."""
        rng = np.random.default_rng([seed, number])
        schema, drawn, kept = self.codec.schema, 0, 0
        parts: list[dict[str, pd.DataFrame]] = []
        while kept < patients:
            batch = patients if not _has_rules(schema) else max(patients - kept, MIN_BATCH)
            with fitting_state(self.generator.name):
                histories = self.generator.sample(batch, rng, even=not self.plain)
                frames = decode_histories(histories, self.codec, rng)
            allowed = _allowed(frames, schema, batch)
            if _has_rules(schema):
                self.acceptance.add(batch, allowed)
            keys = np.where(allowed, number * BLOCK + kept + np.cumsum(allowed), -1)
            keys[keys > number * BLOCK + patients] = -1
            parts.append(with_keys(frames, schema, keys))
            drawn, kept = drawn + batch, kept + int((keys >= 0).sum())
            if kept < patients and drawn >= 20 * SPARSEST and kept * SPARSEST < drawn:
                raise InputError(
                    f"fewer than one drawn patient in {SPARSEST} keeps the rules of schema "
                    f"{schema.name}; loosen them"
                )
        return _joined(parts)


def _has_rules(schema: LinkedSchema) -> bool:
    return bool(schema.rules or schema.patients.rules) or any(
        child.schema.rules for child in schema.children
    )


def _allowed(frames: Mapping[str, pd.DataFrame], schema: LinkedSchema, patients: int) -> Bools:
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


def _joined(parts: list[dict[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    if len(parts) == 1:
        return parts[0]
    return {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}


def sample_cohort(
    run: FittedCohort, patients: int | None = None, *, seed: int | None = None, plain: bool = False
) -> dict[str, pd.DataFrame]:
    """Draw a synthetic cohort in memory; see `CohortSampler` to stream one, and for ``plain``."""
    count = run.schema.population.value if patients is None else patients
    blocks = CohortSampler.of(run, plain=plain).frames(
        count, seed=fresh_seed() if seed is None else seed
    )
    return _joined(list(blocks))
