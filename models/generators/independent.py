"""`independent`: every column on its own, from joint noisy one-way histograms.

The baseline that any other generator must beat: it keeps each column's distribution, heaping and
missingness, and no relation between columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models import Codes, Domain, Progress, shares_of, silent
from dpsynth.models.marginals import (
    even_points,
    leaves_of,
    levelled,
    mean_by_unit,
    measure_grains,
    noisy_total,
    points_of,
    sizes_of,
)
from dpsynth.models.marginals.log_probability import FLOOR
from dpsynth.models.marginals.measured_pairs import UNITS
from dpsynth.models.presets import ONE_WAY
from dpsynth.privacy import (
    JointHistograms,
    ObservedPlan,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    joint_histograms,
)

if TYPE_CHECKING:
    from dpsynth.encoding import AnyRows, Cohort
    from dpsynth.privacy import Entropy

Truth = npt.NDArray[np.bool_]


class Independent:
    """Product of the columns' noisy distributions."""

    name: ClassVar[str] = "independent"

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain
        self.shares_: tuple[npt.NDArray[np.float64], ...] = ()
        self.grains_: npt.NDArray[np.float64] | None = None
        self.total_: float | None = None

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Spend the whole budget on one event: the joint one-way histograms."""
        return shares_of(self.name, self.domain, budget)

    def fit(
        self,
        cohort: AnyRows,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> Self:
        """Release the histograms and keep their projections; rows are only counted."""
        event = plan.event(ONE_WAY)
        assert isinstance(event, JointHistograms)
        progress("histograms", 0.0)
        grains = measure_grains(cohort, self.domain, plan, entropy)
        self.grains_ = None if grains is None else grains.weights(self.domain)
        points = points_of(self.domain, grains)
        cohort = levelled(cohort, self.domain)
        noisy = joint_histograms(cohort, sizes_of(self.domain), event, entropy)
        if isinstance(plan, ObservedPlan):
            sigmas = [event.sigma] * len(noisy)
            plan.observer.counted(noisy, sigmas, event, lambda some: levelled(some, self.domain))
        total = noisy_total(noisy)
        self.total_, sigma = total, event.sigma
        leaves = leaves_of(self.domain, noisy, total=total, sigma=sigma, alike=True, points=points)
        self.shares_ = tuple(column.code_shares(total) for column in leaves)
        progress("histograms", 1.0)
        return self

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes, each column on its own."""
        columns = []
        for shares in self.shares_:
            ends = np.cumsum(shares)
            points = even_points([np.zeros(rows, np.int64)], rng) if even else rng.random(rows)
            codes = np.searchsorted(ends, points * ends[-1], side="right")
            columns.append(np.minimum(codes, len(shares) - 1).astype(np.uint16))
        return np.column_stack(columns)

    def given(self, allowed: Mapping[int, Truth]) -> tuple[Self | None, float]:
        """Return the product under a condition on codes: closed form, however rare it is."""
        kept = type(self)(self.domain)
        kept.shares_ = tuple(
            np.where(allowed[place], shares, 0.0) if place in allowed else shares
            for place, shares in enumerate(self.shares_)
        )
        whole = [
            (old.sum(), new.sum()) for old, new in zip(self.shares_, kept.shares_, strict=True)
        ]
        share = float(np.prod([new / old for old, new in whole]))
        return (kept if share > 0 else None), share

    def log_prob(self, cohort: Cohort) -> npt.NDArray[np.float64]:
        """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats."""
        codes = cohort.codes[cohort.mask]
        shares = [share[codes[:, j]] for j, share in enumerate(self.shares_)]
        return mean_by_unit(cohort, np.log(np.maximum(shares, FLOOR)).sum(axis=0))

    def config(self) -> dict[str, Any]:
        """Nothing but the arrays is learned."""
        return {}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Shares of all columns' codes, ``[sum of sizes]``; counted rows; and weights of grains."""
        grains = {} if self.grains_ is None else {"grains": self.grains_}
        total = {} if self.total_ is None else {UNITS: np.array([self.total_])}
        return grains | total | {"shares": np.concatenate(self.shares_)}

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Cut the shares back into columns."""
        fitted = cls(domain)
        ends = np.cumsum(domain.sizes)[:-1]
        fitted.shares_ = tuple(np.split(arrays["shares"].astype(np.float64), ends))
        fitted.grains_ = arrays.get("grains")
        fitted.total_ = float(arrays[UNITS][0]) if UNITS in arrays else None
        return fitted
