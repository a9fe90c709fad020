"""A run of linked tables: what a fit of them learned; cohorts are drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsynth.errors import ArtifactError
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis.artifact import Artifact, schema_in

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class CohortRun(Artifact[LinkedSchema]):
    """The artifact of a fit of linked tables; see `Artifact` for its attributes."""

    def sample(
        self, patients: int | None = None, *, seed: int | None = None, plain: bool = False
    ) -> dict[str, pd.DataFrame]:
        """Draw a synthetic cohort in memory: a frame for each table, with keys that agree.

        Args:
            patients: how many; default: the public number of patients.
            seed: public seed of the draw; default: a new one.
            plain: draw independent patients; otherwise they are spread more evenly than chance.

        Raises:
            InputError: patients or seed are out of range, or the rules leave almost nobody.

        >>> from dpsynth.synthesis import fit_cohort
        >>> from dpsynth.tables import simulate_cohort
        >>> budget = {"epsilon": 3, "delta": 1e-5, "dataset": "example", "without_ledger": True}
        >>> run = fit_cohort(simulate_cohort(300, seed=1), "clinic", **budget)
        >>> cohort = run.sample(5, seed=1)
        >>> list(cohort), len(cohort["patients"])
        (['patients', 'visits', 'labs', 'events'], 5)
        """
        from dpsynth.synthesis.drawing.cohort_sampler import sample_cohort

        return sample_cohort(self, patients, seed=seed, plain=plain)

    def replicates(
        self, m: int, patients: int | None = None, *, seed: int | None = None
    ) -> list[dict[str, pd.DataFrame]]:
        """Draw m cohorts, each from a refitted generator, for standard errors by patient.

        See `synthesis.cohort_replicates` for what they are, and `eval.combine` for their use.

        Raises:
            InputError: m, patients or seed are out of range.
        """
        from dpsynth.synthesis.cohort_replicates import cohort_replicates

        return cohort_replicates(self, m, patients, seed=seed)

    @classmethod
    def _read_schema(cls, document: Any, place: str) -> LinkedSchema:
        schema = schema_in(document, place)
        if not isinstance(schema, LinkedSchema):
            raise ArtifactError(f"{place} is a run of one table; in Python, load it with Run.load")
        return schema
