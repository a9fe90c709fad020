"""Cohorts side by side at equal sizes: train, synthetic, held-out, and a bootstrap of train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Histories, HistoryCodec
from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    Variants,
    absolute,
    jackknife_error,
    plain,
)
from dpsynth.eval.core.estimate import Z
from dpsynth.eval.fidelity.total_variation import half_l1
from dpsynth.eval.longitudinal.cohort import Cohort, checked
from dpsynth.eval.longitudinal.facts import HistoryFacts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Statistic = Callable[[Cohort], Floats]

GROUPS = 20  # of patients, for the jackknife
MIN_REPEATED = 50  # patients of train with two rows or more, for figures on what follows what


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """What is compared: each of three cohorts of ``n`` patients with all patients of train.

    Attributes:
        facts: of the schema.
        train: all patients whom the generator saw.
        synthetic: a sample.
        holdout: a sample of other real patients; None if there are none.
        chance: a bootstrap of train: patients drawn with replacement, each with all her rows.
    """

    facts: HistoryFacts
    train: Cohort
    synthetic: Cohort
    holdout: Cohort | None
    chance: Cohort

    def __repr__(self) -> str:
        """Show no code."""
        return short_repr(self, f"schema {self.facts.name}")

    @classmethod
    def of(
        cls,
        codec: HistoryCodec,
        synthetic: Histories,
        train: Histories,
        holdout: Histories | None,
        rng: np.random.Generator,
    ) -> Compared:
        """Check, sample to equal sizes, and deal patients into groups.

        Raises:
            InputError: histories do not fit the schema, or have no patient.
        """
        facts = HistoryFacts.of(codec)
        real = checked(train, facts, "train")
        drawn = checked(synthetic, facts, "synthetic")
        other = None if holdout is None else checked(holdout, facts, "holdout")
        sizes = [len(one) for one in (real, drawn, other) if one is not None]
        size = min(sizes)

        def sample(histories: Histories, groups: int) -> Cohort:
            whole = Cohort.of(facts, histories)
            if size < len(histories):
                whole = whole.take(np.sort(rng.choice(len(histories), size, replace=False)))
            return Cohort.of(facts, whole.histories, groups, rng)

        bootstrap = Cohort.of(facts, real).take(rng.integers(len(real), size=size))
        return cls(
            facts,
            Cohort.of(facts, real, GROUPS, rng),
            sample(drawn, GROUPS),
            None if other is None else sample(other, 0),
            bootstrap,
        )

    @property
    def n(self) -> int:
        """Patients of the cohorts that are compared with train."""
        return len(self.synthetic)

    def repeated(self, number: int) -> bool:
        """Say whether enough patients of train have several rows of a series."""
        return bool((self.train.series[number].counts > 1).sum() >= MIN_REPEATED)

    def each(self, statistic: Statistic) -> Variants:
        """Compute a statistic of each cohort."""
        holdout = None if self.holdout is None else statistic(self.holdout)
        return Variants(
            statistic(self.train), statistic(self.synthetic), holdout, statistic(self.chance)
        )

    def distance(self, statistic: Statistic) -> JackknifeEstimate:
        """Return the total variation distance of shares ``[variants, cells]``."""
        found = JackknifeEstimate.of(half_l1, self.each(statistic))
        assert found is not None  # shares are finite
        return found

    def difference(self, statistic: Statistic) -> JackknifeEstimate | None:
        """Return the absolute difference of a number; None if it cannot be computed."""
        return JackknifeEstimate.of(absolute, self.each(statistic))

    def measure(
        self, key: str, title: str, figures: Sequence[JackknifeEstimate], meaning: str
    ) -> list[Measure]:
        """Return the mean of figures as a measure; none of no figure."""
        if not figures:
            return []
        estimate = JackknifeEstimate.mean(figures).estimate(self.n)
        return [Measure(key, title, estimate, 0.0, meaning)]

    def spoken(self, name: str, unit: str, statistic: Statistic) -> dict[str, Any]:
        """Return a number of each cohort in plain units, with intervals, in JSON types."""
        train, synthetic, holdout, _ = self.each(statistic)
        return {
            "name": name,
            "unit": unit,
            "source": _interval(train),
            "synthetic": _interval(synthetic),
            "holdout": None if holdout is None else plain(holdout.reshape(-1)[0]),
        }


def _interval(values: Floats) -> dict[str, float | None]:
    """Return a number with the normal interval of a jackknife over patients."""
    values = values.reshape(-1)
    value = plain(values[0])
    parts = values[1:][np.isfinite(values[1:])]
    if value is None or len(parts) < 2:
        return {"value": value, "low": None, "high": None}
    half = Z * jackknife_error(parts)
    return {"value": value, "low": plain(values[0] - half), "high": plain(values[0] + half)}


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    return np.where(below > 1e-9, above / np.where(below > 1e-9, below, 1.0), np.nan)
