"""Replicates: tables whose spread shows how uncertain a fit is, made without the source.

Tables drawn from one fitted generator differ by the chance of drawing alone. What a study needs to
know is how far the generator itself may be off: other patients could have been sampled, and the
noise of privacy could have fallen otherwise. So each replicate comes from a generator of its own,
by a parametric bootstrap of the whole private fit: a table of as many units as the schema declares
is drawn from the run, the run's plan is carried out on it once more, with noise as large as the
first time, and the replicate is drawn from what that learned. `dpsynth.eval.combine` turns
estimates from such tables into one with an honest standard error.

Everything here is post-processing of the run: no private row is read, and no ledger is charged. So
the noise of a refit hides nothing, and it may come from a seed, which makes replicates repeatable.

Of linked tables, patients are drawn with all of their rows. Both times, they are independent draws:
spread more evenly than chance, they would vary less than patients do. A patient's rows stay
together throughout, so estimates about visits vary as much as patients make them vary.

Not covered: a generator of one table draws rows that stand alone, so the rows of a bootstrapped
unit are independent of each other, where real visits of one patient are alike. Where a unit of one
table has several rows, the spread of replicates is therefore too small.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np

from dpsynth._util.seeds import check_drawn, check_seed, fresh_seed
from dpsynth.certificate import Certificate
from dpsynth.encoding import Cohort, HistoryCodec
from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.models import Domain, generator_class, histories_class
from dpsynth.models.histories import domain_of
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy
from dpsynth.schema import AnySchema, Schema
from dpsynth.synthesis.sampler import (
    Fitted,
    FittedTo,
    PatientSampler,
    Sampler,
    default_size,
    joined,
)

STAMP = "replicate"
"""Of a refitted run: a table of it is for standard errors, and is no release."""

NO_PLAN = (
    "the run was fitted without privacy, so it has no plan to repeat; replicates need a fit with a "
    "budget"
)
MIN_REPLICATES, MAX_REPLICATES = 2, 100
AnyFitted = TypeVar("AnyFitted", bound=FittedTo[Any])


@dataclass(frozen=True)
class Replicates(Generic[AnyFitted]):
    """Refits of a run, by number, from 1; each is a function of run, seed and number.

    Attributes:
        run: the artifact of a private fit.
        seed: of everything that is drawn.
    """

    run: AnyFitted
    seed: int

    @classmethod
    def of(cls, run: AnyFitted, *, seed: int | None = None) -> Replicates[AnyFitted]:
        """Check that the run can be refitted; a fresh seed if none is given.

        Raises:
            InputError: the run was fitted without privacy, so it has no plan, or the seed is out of
                range.

        Warns:
            DpsynthWarning: units have several rows.
        """
        if run.certificate is None:
            raise InputError(NO_PLAN)
        seed = fresh_seed() if seed is None else seed
        check_seed(seed)
        schema: AnySchema = run.schema
        if isinstance(schema, Schema) and schema.unit.max_rows > 1:
            warnings.warn(
                "units have several rows, and replicates draw them as if they were independent: "
                "standard errors about rows of the same patients will be too small",
                DpsynthWarning,
                stacklevel=3,
            )
        return cls(run, seed)

    def refit(self, number: int) -> AnyFitted:
        """Carry out the run's plan on a table drawn from the run; the result is stamped."""
        of_table, of_noise, _ = self._seeds(number)
        generator = _unfitted(self.run).fit(
            bootstrapped(self.run, seed=of_table), plan_of(self.run), SeededEntropy(of_noise)
        )
        return replace(
            self.run,
            config=generator.config(),
            arrays=generator.arrays(),
            stamps=(*self.run.stamps, STAMP),
        )

    def frames(self, number: int, size: int, *, where: str | None = None) -> Iterator[Any]:
        """Yield the rows, or patients, of one replicate: independent draws from its refit.

        Raises:
            InputError: size is out of range, or the condition cannot be read or met.
        """
        sampler: Sampler = Sampler.of(self.refit(number), where=where, plain=True)
        return sampler.frames(size, seed=self._seeds(number)[2])

    def _seeds(self, number: int) -> tuple[int, int, int]:
        return seeds_of(self.seed, number)


def seeds_of(seed: int, number: int) -> tuple[int, int, int]:
    """Return the seeds of a replicate: of the bootstrapped table, of the noise, of its rows."""
    words = np.random.SeedSequence([seed, number]).generate_state(3, np.uint64)
    table, noise, rows = (int(word >> np.uint64(1)) for word in words)
    return table, noise, rows


def replicates(
    run: FittedTo[Any],
    m: int,
    size: int | None = None,
    *,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Any]:
    """Draw m replicates in memory; a refit takes about as long as the fit did, without reading.

    Args:
        run: what a private fit learned; nothing else is read.
        m: how many, 2 to 100.
        size: of each, in rows, or in patients of linked tables; by default as many as the schema
            declares.
        seed: makes them repeatable; replicate i is the same for every m.
        progress: called with the fraction done.

    Raises:
        InputError: m, size or seed are out of range, or the run was fitted without privacy.
    """
    check_count(m)
    refits = Replicates.of(run, seed=seed)
    size = default_size(run) if size is None else size
    check_size(run, size)
    drawn = []
    for number in range(1, m + 1):
        drawn.append(joined(list(refits.frames(number, size))))
        if progress is not None:
            progress(number / m)
    return drawn


def bootstrapped(run: FittedTo[Any], *, seed: int) -> Any:
    """Draw a cohort of the schema's public size from a run: `Cohort`, or `Histories`.

    Patients of linked tables are drawn with all their rows. Rows of one table are independent
    draws, dealt out evenly: as many as the schema declares, but at least one and at most
    ``max_rows`` of a unit.
    """
    schema = run.schema
    units = schema.population.value
    if not isinstance(schema, Schema):
        sampler: PatientSampler = Sampler.of(run)
        return sampler.generator.sample(units, np.random.default_rng(seed), even=False)
    maximum = schema.unit.max_rows
    rows = min(max(schema.rows.value, units), units * maximum)
    row_codes = Sampler.of(cast(Fitted, run), plain=True).codes(rows, seed=seed)
    counts = rows // units + (np.arange(units) < rows % units)
    mask = np.arange(maximum) < counts[:, None]
    codes = np.zeros((units, maximum, row_codes.shape[1]), dtype=np.uint16)
    codes[mask] = row_codes
    return Cohort(codes, mask)


def _unfitted(run: FittedTo[Any]) -> Any:
    """Build the generator of a run anew, from public facts."""
    if not isinstance(run.schema, Schema):
        return histories_class(run.model)(domain_of(HistoryCodec(run.schema)))
    codec = Sampler.of(cast(Fitted, run)).codec
    return generator_class(run.model)(Domain.of(run.schema, codec))


def check_count(m: int) -> None:
    """Refuse a number of replicates outside 2 to 100."""
    if not MIN_REPLICATES <= m <= MAX_REPLICATES:
        raise InputError(f"replicates must be {MIN_REPLICATES} to {MAX_REPLICATES}, not {m}")


def check_size(run: FittedTo[Any], size: int) -> None:
    """Refuse no rows, or nobody, before the first refit."""
    check_drawn(size, "rows" if isinstance(run.schema, Schema) else "patients")


def plan_of(run: FittedTo[Any]) -> PrivacyPlan:
    """Read the plan off the certificate; the events are not accounted for again: none is paid.

    Raises:
        InputError: the run was fitted without privacy, so it has none.
    """
    if run.certificate is None:
        raise InputError(NO_PLAN)
    certificate = Certificate.from_dict(run.certificate)
    budget = PrivacyBudget(certificate.epsilon, certificate.delta)
    return PrivacyPlan(budget, certificate.events, certificate.composed_epsilon)
