"""`mixture`: a mixture of product distributions, fitted to noisy one- and two-way histograms.

The fast default for small machines: seconds for a fit, no network. It keeps every pair of columns
that was measured, missing values included, and relations beyond pairs as far as they follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models import Codes, Domain, Preset, Progress, shares_of, silent
from dpsynth.models.marginals import Fitness, InitialModel, MeasuredPairs, cohort_with_visits

if TYPE_CHECKING:
    from dpsynth.encoding import AnyRows, Cohort
    from dpsynth.privacy import Entropy, ObservedPlan, PrivacyBudget, PrivacyPlan, Share


Truth = npt.NDArray[np.bool_]


class Mixture:
    """Mixture of product distributions over binned columns."""

    name: ClassVar[str] = "mixture"

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain.with_visits()

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Split the budget between one-way histograms and pairs."""
        return shares_of(self.name, self.domain, budget)

    def fit(
        self,
        cohort: AnyRows,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> Self:
        """Release both sets of histograms, then fit the mixture to them; rows are only counted."""
        preset = Preset.of(self.name, self.domain, plan.budget)
        cohort = cohort_with_visits(cohort)
        self.start_ = InitialModel.fit(cohort, self.domain, plan, entropy, preset, progress)
        assert self.start_.released is not None
        self.fitness_ = self.start_.released.fitness(self.start_.products.pair)
        self.measured_ = MeasuredPairs.of(self.start_.released)
        return self

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes; the hidden column weighs the rows and is left out."""
        return self.start_.sample(rows, rng, even=even)

    def given(self, allowed: Mapping[int, Truth]) -> tuple[InitialModel | None, float]:
        """Return the mixture under a condition on codes: closed form, however rare it is."""
        return self.start_.given(allowed)

    def log_prob(self, cohort: Cohort) -> npt.NDArray[np.float64]:
        """Return the mean log-likelihood of each unit's rows under the mixture, ``[units]``."""
        return self.start_.log_prob(cohort_with_visits(cohort))

    def config(self) -> dict[str, Any]:
        """Give the number of bins of each column."""
        return {"bins": list(self.start_.binning.sizes)}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the mixture, the columns' bins, what was counted, and how the fit meets it."""
        return self.start_.arrays() | self.fitness_.arrays() | self.measured_.arrays()

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild mixture and bins."""
        fitted = cls(domain)
        fitted.fitness_ = Fitness.restore(arrays)
        fitted.measured_ = MeasuredPairs.restore(arrays)
        fitted.start_ = InitialModel.restore(fitted.domain, arrays)
        return fitted
