"""`cohort`: histories of patients from noisy counts.

A mixture learns the person table, where each patient is a row with hidden columns of her history;
for every series another one learns the steps from row to row. Both are fitted to noisy counts of
one plan, in which a patient counts once with all her rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Histories, Roundings
from dpsynth.models import NO_CHECKPOINTS, Checkpoints, Progress, TrainingState, silent
from dpsynth.models.histories.beginnings import Beginnings, beginnings
from dpsynth.models.histories.chain import draw_series
from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.histories.drawn_steps import PATIENTS, with_networks
from dpsynth.models.histories.gap_calibration import factors_of
from dpsynth.models.histories.kept_counts import counts_of, grains_of, with_gaps
from dpsynth.models.histories.persons import (
    NUMBERS,
    Emphasis,
    Hidden,
    PersonNetwork,
    PersonTable,
    ReleasedPersons,
    learns_soon,
    one_row_each,
    thin_tails,
)
from dpsynth.models.histories.roundings import roundings
from dpsynth.models.histories.row_grains import Found, count_grains
from dpsynth.models.histories.row_weights import FirstRows
from dpsynth.models.histories.settings import (
    PERSONS,
    HistorySettings,
    conditions_of,
    shares_of_histories,
)
from dpsynth.models.histories.steps.fit import fit_steps
from dpsynth.models.histories.steps.model import StepModel, arrays_of, restored
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.models.histories.steps.table import MASS
from dpsynth.models.marginals import Binning, Products, fit_products, measure
from dpsynth.privacy import Entropy, ObservedPlan, PrivacyBudget, PrivacyPlan, Share

Ints = npt.NDArray[np.int64]

CHAINS = 4_000  # patients drawn in a round of the calibration of gaps, or as many as there are


class CohortGenerator:
    """Person table and step tables."""

    name = "cohort"
    binning: Binning
    products: Products
    network: PersonNetwork | None = None
    taught: PersonNetwork | None = None  # by the mixture; for a fit alone
    last = NUMBERS  # what a network of the person table draws last

    def __init__(self, domain: HistoryDomain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain
        self.person = PersonTable(domain)
        self.rounding: Roundings | None = None

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name every mechanism that ``fit`` will run, with its share of the budget."""
        return shares_of_histories(self.domain, budget)

    def fit(
        self,
        histories: Histories,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress = silent,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Self:
        """Run the plan's events on the histories, each once, and learn from what they release.

        Gaps are calibrated last, and then how numbers are rounded: both make up for whatever draws
        them. With checkpoints, what an earlier process kept is taken over.
        """
        self.last = HistorySettings.of(self.domain, plan.budget).last
        self.network = self.taught = None  # of an earlier fit, which is no part of this plan
        if checkpoints.state is None:
            grains = count_grains(histories, self.domain, plan, entropy)
            self._count(histories, plan, entropy, progress)
            checkpoints.save(TrainingState(0, {}, self._released(grains)))
        else:
            grains = self._take_over(checkpoints.state.arrays)
        self._train(histories, grains, plan, entropy, progress, checkpoints)
        self.models = self._calibrated(entropy.generator())
        if grains:
            drawn = self.sample(min(CHAINS, self.domain.population), entropy.generator())
            self.rounding = roundings(grains, self.domain, drawn)
        return self

    def _released(self, grains: Found) -> dict[str, npt.NDArray[Any]]:
        """Give all that counts have released, by name."""
        return CohortGenerator.arrays(self) | counts_of(self.models, grains)

    def _take_over(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Found:
        """Put what was released before in the place of counts; return the grains."""
        kept = CohortGenerator.restore(self.domain, self.config(), arrays)
        self.binning, self.products, self.taught = kept.binning, kept.products, kept.network
        self.models = with_gaps(kept.models, arrays)
        return grains_of(arrays)

    def _train(
        self,
        histories: Histories,
        grains: Found,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
        checkpoints: Checkpoints,
    ) -> None:
        """Learn more from whole histories: nothing, where counts are all."""

    def _count(
        self,
        histories: Histories,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
    ) -> None:
        """Release the counts of the plan, and learn the person table and the step tables."""
        settings = HistorySettings.of(self.domain, plan.budget)
        codes, emphasis = self.person.codes(histories), Emphasis(self.person, settings.first)
        progress("patients", 0.0)
        measured = measure(
            one_row_each(codes),
            self.person.as_domain,
            plan,
            entropy,
            most_bins=settings.person_bins,
            of=PERSONS,
            weight=emphasis.weight_of,
            importance=emphasis.importance_of,
            trends=True,
            kept=emphasis.is_compared,
        )
        self.binning = measured.binning
        self.products = fit_products(
            measured.target,
            components=settings.components,
            steps=settings.person_steps,
            tie=emphasis.ties(settings.tie, settings.loose_tie),
            rng=entropy.generator(),
            progress=lambda stage, part: progress("patients", part),
        )
        self.binning, self.products = thin_tails(
            self.person, self.binning, self.products, measured.target
        )
        watched = plan.observer.histories if isinstance(plan, ObservedPlan) else ()
        known = [(histories, codes), *((one, self.person.codes(one)) for one in watched)]
        released = ReleasedPersons(self.person, self.binning, self.products)
        self.models, run = [], (plan, entropy, settings.steps, progress)
        for place, table in enumerate(self.domain.tables):
            patients, *others = (
                TableRows.of(table, one.rows[place], own, one.ends) for one, own in known
            )
            hidden = self.person.hidden[place]
            series = list(zip(table.series, hidden, strict=True))
            self.models.append(
                fit_steps(
                    patients,
                    others,
                    self.domain,
                    [released.conditions(one, conditions_of(self.domain)) for one in hidden],
                    [released.cuts(*pair) for pair in series],
                    [released.firsts(*pair) for pair in series],
                    *run,
                )
            )
        if any(model.shares for models in self.models for model in models):
            self._give_networks(entropy.generator(), progress)

    def _give_networks(self, rng: np.random.Generator, progress: Progress) -> None:
        """Give wide steps networks, which learn on patients that are drawn from what is known."""
        if learns_soon(self.person):
            self.taught = self._taught(rng, progress)
        rows = FirstRows(self.taught, self.binning.columns)
        codes, starts = self._beginnings(min(PATIENTS, self.domain.population), rng)
        of_tables = zip(self.models, starts, self.person.hidden, strict=True)
        self.models = [with_networks(*table, codes, rows, rng) for table in of_tables]

    def _taught(self, rng: np.random.Generator, progress: Progress) -> PersonNetwork:
        return PersonNetwork.taught(self.person, self.products, rng, progress, self.last)

    def _calibrated(self, rng: np.random.Generator) -> list[list[StepModel]]:
        """Find, for each series, factors with which drawn gaps are the released ones."""
        if not any(model.released for models in self.models for model in models):
            return self.models
        _, starts = self._beginnings(min(CHAINS, self.domain.population), rng)
        found = []
        for models, begun in zip(self.models, starts, strict=True):
            series = np.sum([start.counts > 1 for start in begun], axis=0)
            factors = [
                factors_of(model, start, MASS // np.maximum(series * (start.counts - 1), 1), rng)
                for model, start in zip(models, begun, strict=True)
            ]
            pairs = zip(models, factors, strict=True)
            found.append([replace(model, factors=one, released=None) for model, one in pairs])
        return found

    def _patients(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Ints:
        """Draw rows of the person table."""
        bins = (self.network or self.products).draw(patients, rng, even=even)
        return self.binning.refine(bins, rng, even=even).astype(np.int64)

    def _beginnings(
        self, patients: int, rng: np.random.Generator
    ) -> tuple[Ints, list[list[Beginnings]]]:
        """Draw patients: rows of the person table, and how their series begin, by table."""
        codes = self._patients(patients, rng)
        ends = self.person.ends_of(self.person.baseline_of(codes))
        starts = [
            [
                self._start(model, hidden, codes, ends, rng)
                for model, hidden in zip(models, of_table, strict=True)
            ]
            for models, of_table in zip(self.models, self.person.hidden, strict=True)
        ]
        return codes, starts

    def _start(
        self, model: StepModel, hidden: Hidden, codes: Ints, ends: Ints, rng: np.random.Generator
    ) -> Beginnings:
        """Read off drawn rows how a series begins."""
        wide = model.table.table.is_wide
        numbers = self.binning.columns[hidden.count].shares if wide else None
        return beginnings(model, hidden, codes, ends, rng, numbers)

    def sample(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Histories:
        """Draw so many patients with all their rows; reads nothing but what was learned.

        With ``even``, patients and their steps are spread more evenly than chance: all have the law
        that was learned, but they vary less than independent patients would.
        """
        codes = self._patients(patients, rng, even=even)
        baseline = self.person.baseline_of(codes)
        ends = self.person.ends_of(baseline)
        onsets = self.person.onsets_of(codes, ends, rng)
        rows = tuple(
            tuple(
                draw_series(model, self._start(model, hidden, codes, ends, rng), rng, even=even)
                for model, hidden in zip(models, of_table, strict=True)
            )
            for models, of_table in zip(self.models, self.person.hidden, strict=True)
        )
        return Histories(baseline.astype(np.uint16), ends, onsets, rows)

    def config(self) -> dict[str, Any]:
        """Describe it in plain JSON values; all else follows from schema and arrays."""
        return {"ending": self.person.ending is not None}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give all that was learned, by name."""
        weights, tables = self.products.weights, self.products.tables
        arrays: dict[str, Any] = {"person.weights": weights, "person.tables": tables}
        arrays |= {f"person.{name}": array for name, array in self.binning.arrays().items()}
        for place, models in enumerate(self.models):
            arrays |= arrays_of(models, f"table{place}")
        arrays |= self.network.arrays() if self.network else {}
        return arrays | (self.rounding.arrays() if self.rounding else {})

    @classmethod
    def restore(
        cls,
        domain: HistoryDomain,
        config: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Rebuild a fitted generator."""
        if domain.end is not None and not config.get("ending", False):  # of an earlier version
            domain = replace(domain, end=replace(domain.end, status=None, event=None))
        fitted = cls(domain)
        own = {name.removeprefix("person."): array for name, array in arrays.items()}
        fitted.binning = Binning.restore(fitted.person.as_domain, own)
        fitted.products = Products(fitted.binning.sizes, own["weights"], own["tables"])
        fitted.network = PersonNetwork.restore(fitted.person, fitted.products, arrays, config)
        fitted.models = [
            restored(domain, table, fitted.person.features, arrays, f"table{place}")
            for place, table in enumerate(domain.tables)
        ]
        fitted.rounding = Roundings.restore(arrays, [len(one.series) for one in domain.tables])
        return fitted
