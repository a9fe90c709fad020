"""`mixture`: a mixture of product distributions, fitted to noisy one- and two-way histograms.

The fast default for small machines: seconds for a fit, no network. It keeps every pair of columns
that was measured, missing values included, and relations beyond pairs as far as they follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models.base import Codes, Domain, Progress, silent
from dpsynth.models.marginals import bin_arrays, bins_from, refined
from dpsynth.models.measure import (
    cohort_with_visits,
    measure,
    row_factors,
)
from dpsynth.models.presets import Preset, shares_of
from dpsynth.models.products import Products, fit_products

if TYPE_CHECKING:
    from dpsynth.cohort import Cohort
    from dpsynth.entropy import Entropy
    from dpsynth.plan import PrivacyBudget, PrivacyPlan, Share


class Mixture:
    """Mixture of product distributions over binned columns."""

    name: ClassVar[str] = "mixture"
    neural: ClassVar[bool] = False

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain.with_visits()
        self.hidden = len(self.domain.features) - len(domain.features)

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Split the budget between one-way histograms and pairs."""
        return shares_of(self.name, self.domain, budget)

    def fit(
        self, cohort: Cohort, plan: PrivacyPlan, entropy: Entropy, progress: Progress = silent
    ) -> Self:
        """Release both sets of histograms, then fit the mixture to them."""
        preset = Preset.of(self.name, self.domain, plan.budget)
        progress("histograms", 0.0)
        measured = measure(
            cohort_with_visits(cohort), self.domain, plan, entropy, most_bins=preset.bins
        )
        progress("histograms", 1.0)
        self.bins_ = measured.bins
        self.products_ = fit_products(
            measured.target,
            components=preset.components,
            steps=preset.mixture_steps,
            rng=entropy.generator(),
            progress=progress,
        )
        return self

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes; the hidden column weighs the rows and is left out."""
        products = self.products_
        if self.hidden:
            products = products.tilted(0, row_factors(self.bins_[0]))
        drawn = products.draw(rows, rng, even=even)
        return refined(drawn, self.bins_, rng, skip=self.hidden, even=even)

    def config(self) -> dict[str, Any]:
        """Give the bins of each column."""
        return {"bins": [column.count for column in self.bins_]}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the mixture and the columns' bins."""
        products = self.products_
        mixture: dict[str, npt.NDArray[Any]]
        mixture = {"weights": products.weights, "tables": products.tables}
        return mixture | bin_arrays(self.bins_)

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild mixture and bins."""
        fitted = cls(domain)
        fitted.bins_ = bins_from(fitted.domain, arrays)
        sizes = tuple(column.count for column in fitted.bins_)
        fitted.products_ = Products(sizes, arrays["weights"], arrays["tables"])
        return fitted
