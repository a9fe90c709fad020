"""A run: what a fit of one table learned; rows are drawn from it without the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_document
from dpsynth.errors import ArtifactError
from dpsynth.schema import LinkedSchema, Schema, is_linked
from dpsynth.synthesis.artifact import DOCUMENT, Artifact, schema_in

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Run(Artifact[Schema]):
    """The artifact of a fit of one table; see `Artifact` for its attributes.

    >>> import dpsynth
    >>> from dpsynth.tables import simulate
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
    >>> fitted = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
    >>> folder = fitted.save("run")
    >>> Run.load(folder).sample(5, seed=1).shape
    (5, 15)
    """

    def sample(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: str | None = None,
        plain: bool = False,
    ) -> pd.DataFrame:
        """Draw a synthetic table in memory.

        Args:
            rows: how many; default: as many as the schema declares.
            seed: public seed of the draw; default: a new one.
            where: keep only synthetic rows that meet this condition, in the language of the
                schema's rules and of ``dpsynth sample --where``. A missing value meets none.
            plain: draw independent rows; otherwise they are spread more evenly than chance.

        Raises:
            InputError: rows or seed are out of range, the condition cannot be read or names a
                column that is not in the synthetic table, or almost no row meets it.

        >>> import dpsynth
        >>> from dpsynth.tables import simulate
        >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
        >>> run = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
        >>> old = run.sample(5, seed=1, where="age >= 60 and sex in ('female', 'male')")
        >>> bool((old["age"] >= 60).all())
        True
        """
        from dpsynth.synthesis.sampler import sample

        return sample(self, rows, seed=seed, where=where, plain=plain)

    def replicates(
        self, m: int, rows: int | None = None, *, seed: int | None = None
    ) -> list[pd.DataFrame]:
        """Draw m tables, each from a refitted generator, for standard errors that hold.

        See `synthesis.replicates` for what they are, and `eval.combine` for their use.

        Raises:
            InputError: m, rows or seed are out of range, or the run was fitted without privacy.
        """
        from dpsynth.synthesis.replicates import replicates

        return replicates(self, m, rows, seed=seed)

    @classmethod
    def _read_schema(cls, document: Any, place: str) -> Schema:
        schema = schema_in(document, place)
        if not isinstance(schema, Schema):
            raise ArtifactError(
                f"{place} is a run of linked tables; in Python, load it with CohortRun.load"
            )
        return schema


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
        from dpsynth.synthesis.sampler import sample_cohort

        return sample_cohort(self, patients, seed=seed, plain=plain)

    def replicates(
        self, m: int, patients: int | None = None, *, seed: int | None = None
    ) -> list[dict[str, pd.DataFrame]]:
        """Draw m cohorts, each from a refitted generator, for standard errors by patient.

        See `synthesis.cohort_replicates` for what they are, and `eval.combine` for their use.

        Raises:
            InputError: m, patients or seed are out of range.
        """
        from dpsynth.synthesis.replicates import cohort_replicates

        return cohort_replicates(self, m, patients, seed=seed)

    @classmethod
    def _read_schema(cls, document: Any, place: str) -> LinkedSchema:
        schema = schema_in(document, place)
        if not isinstance(schema, LinkedSchema):
            raise ArtifactError(f"{place} is a run of one table; in Python, load it with Run.load")
        return schema


AnyRun = Run | CohortRun


def load_run(folder: str | Path) -> AnyRun:
    """Read a run, whichever it is; nothing in it is executed.

    Raises:
        ArtifactError: a file is missing, damaged, foreign, or of another version.
    """
    path = path_of(folder, "the folder of a run") / DOCUMENT
    linked = path.is_file() and is_linked(read_document(path).get("schema"))
    return CohortRun.load(folder) if linked else Run.load(folder)
