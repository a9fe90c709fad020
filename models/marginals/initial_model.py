"""What the histograms alone give: bins, and a mixture of products that was fitted to them.

It is the whole of the generator `mixture`, and where the networks begin: rows drawn from it cost
nothing more, so a network may be trained on them as long as one likes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth.models import Codes, Domain, Progress, silent
from dpsynth.models.marginals.binning import Binning, least_narrowed
from dpsynth.models.marginals.log_probability import (
    log_of_products,
    log_within_bins,
    mean_by_unit,
)
from dpsynth.models.marginals.measurement import measure
from dpsynth.models.marginals.pairs import weight_of
from dpsynth.models.marginals.product_fit import fit_products
from dpsynth.models.marginals.product_mixture import Products, Target
from dpsynth.models.marginals.released import Released

if TYPE_CHECKING:
    from dpsynth.encoding import AnyRows, Cohort
    from dpsynth.models import Preset
    from dpsynth.privacy import AnyPlan, Entropy

Ints = npt.NDArray[np.int64]
Truth = npt.NDArray[np.bool_]
MAX_ROWS = 60_000  # times 5: rows of the mixture that a network sees


@dataclass(frozen=True)
class InitialModel:
    """Bins and mixture of a fit.

    Attributes:
        binning: the bins of each column, the hidden one included.
        products: the mixture over them.
        target: what the mixture was fitted to; not kept with a run.
        released: what was counted; not kept with a run.
        weighed: whether the mixture is of rows already, and not of units.
    """

    binning: Binning
    products: Products
    target: Target | None = None
    released: Released | None = None
    weighed: bool = False

    @classmethod
    def fit(
        cls,
        cohort: AnyRows,
        domain: Domain,
        plan: AnyPlan,
        entropy: Entropy,
        preset: Preset,
        progress: Progress = silent,
    ) -> InitialModel:
        """Release both sets of histograms, then fit the mixture to them.

        Args:
            cohort: codes of the domain's columns, the hidden one included.
            domain: its public facts.
            plan: has the events of the histograms.
            entropy: source of noise.
            preset: settings, public.
            progress: of the stages ``histograms`` and ``mixture``.
        """
        progress("histograms", 0.0)
        measured = measure(
            cohort, domain, plan, entropy, most_bins=preset.bins, weight=weight_of(domain)
        )
        progress("histograms", 1.0)
        rng = entropy.generator()
        products = fit_products(
            measured.target,
            components=preset.components,
            steps=preset.mixture_steps,
            tie=preset.tie,
            rng=rng,
            progress=progress,
            # where products came first, few pairs have cells: held to them, others are worse
            released=measured.released if measured.target.products is None else None,
        )
        binning = measured.binning.following(products, rng)
        return cls(binning, products, measured.target, measured.released)

    def log_prob(self, cohort: Cohort) -> npt.NDArray[np.float64]:
        """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats.

        Args:
            cohort: codes of the domain's columns, the hidden one included; every unit has a row.
        """
        bins = self.binning.coarsen(cohort)[cohort.mask]
        of_bins = log_of_products(self.products, bins)
        return mean_by_unit(cohort, of_bins + log_within_bins(self.binning, cohort))

    def rows(self, rng: np.random.Generator) -> Ints:
        """Draw binned rows of the mixture for a network to start from, ``[rows, columns]``."""
        return self.products.draw(5 * min(self.binning.domain.population, MAX_ROWS), rng)

    def given(self, allowed: Mapping[int, Truth]) -> tuple[InitialModel | None, float]:
        """Return the model under a condition on codes, and the share of rows in its bins.

        Args:
            allowed: codes of some columns, by their place in the table.

        Returns:
            A law whose rows may hold other codes of the same bins, which have to be thrown away;
            `least_narrowed` says where.
        """
        drawn = self.binning.domain.drawn
        places = {drawn[place]: codes for place, codes in allowed.items()}

        def given(loose: Collection[int]) -> tuple[InitialModel | None, float]:
            binning, factors = self.binning.given(places, [drawn[place] for place in loose])
            conditioned, share = self._weighed().given(factors)
            if conditioned is None:
                return None, 0.0
            return InitialModel(binning, conditioned, weighed=True), share

        return least_narrowed(allowed, given)

    def _weighed(self) -> Products:
        """Return the mixture with the weights of rows, not of units."""
        factors = None if self.weighed else self.binning.row_factors()
        return self.products if factors is None else self.products.tilted(0, factors)

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes; the hidden column weighs the rows and is left out."""
        return self.binning.refine(self._weighed().draw(rows, rng, even=even), rng, even=even)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the mixture and the columns' bins."""
        mixture: dict[str, npt.NDArray[Any]]
        mixture = {"weights": self.products.weights, "tables": self.products.tables}
        return mixture | self.binning.arrays()

    @classmethod
    def restore(cls, domain: Domain, arrays: Mapping[str, npt.NDArray[Any]]) -> InitialModel:
        """Rebuild bins and mixture; what it was fitted to, where a checkpoint has kept it."""
        binning = Binning.restore(domain, arrays)
        products = Products(binning.sizes, arrays["weights"], arrays["tables"])
        target = Target.restore(binning.sizes, arrays)
        return cls(binning, products, target, Released.restore(binning.sizes, arrays))
