"""An order: the settings of a run with everything that follows from them and from public facts.

Making one reads the schema, the policy and the gates, and no private row.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from dpsynth._util.seeds import fresh_seed
from dpsynth._util.short_repr import short_repr
from dpsynth.assessment.results_folder import PAGE
from dpsynth.errors import InputError
from dpsynth.eval import Gate
from dpsynth.eval.gates import gates
from dpsynth.inspection import check_accepted
from dpsynth.ledger import check_request
from dpsynth.policy import Policy
from dpsynth.schema import AnySchema, LinkedSchema, Schema, load_any, without_share
from dpsynth.synthesis import Prepared, PreparedCohort, prepare, require_small_delta
from dpsynth.tables import Reference, linked_sources
from dpsynth.tables.splitting import HOLDOUT, TRAIN
from dpsynth.workflow.settings import Settings
from dpsynth.workflow.work_folder import Log


@dataclass(frozen=True)
class ResolvedSettings:
    """What a run is to do.

    Attributes:
        settings: with nothing left open.
        schema: of the whole table.
        fitted: of the part that the fit sees.
        prepared: the plan of the fit.
        limits: the internal gates.
        policy: one that is named; the ledger may have its own.
    """

    settings: Settings
    schema: AnySchema
    fitted: AnySchema
    prepared: Prepared | PreparedCohort
    limits: tuple[Gate, ...]
    policy: Policy | None

    def __repr__(self) -> str:
        """Name the order."""
        return short_repr(
            self,
            f"schema {self.schema.name}",
            f"dataset {self.settings.dataset}",
            f"output {self.bundle}",
        )

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Work out what follows from settings.

        A seed that is left open is that of the work folder, if there is one already.

        Raises:
            InputError: the schema, a file that is named, the budget or the folders are wrong.
        """
        schema = load_any(settings.schema)
        schema.require_complete()
        check_accepted(settings.accept, schema)
        fitted = without_share(schema, settings.holdout)
        prepared = prepare(
            fitted,
            epsilon=settings.epsilon,
            delta=settings.delta,
            model=settings.model,
            publish_quality=settings.publish_quality,
        )
        require_small_delta(schema, settings.epsilon, settings.delta)
        check_request(
            settings.dataset, settings.purpose, settings.tier, settings.epsilon, settings.delta
        )
        if settings.opt_out is not None and schema.unit.column is None:
            raise InputError(
                f"schema {schema.name} has no column with the role unit, so an opt-out list cannot "
                "match any row; declare the column, or leave out the list"
            )
        _require_apart(settings)
        log = Log.read(settings.work_folder)
        return cls(
            settings.resolved(
                model=prepared.model,
                rows=(fitted.rows if isinstance(fitted, Schema) else fitted.population).value,
                seed=fresh_seed() if log is None else log.seed,
            ),
            schema,
            fitted,
            prepared,
            tuple(gates(settings.gates)),
            None if settings.policy is None else Policy.load(settings.policy),
        )

    def references(self) -> tuple[Reference, ...]:
        """Return what the private source is made of, each checked to be there.

        Raises:
            InputError: something is missing, or no table.
        """
        data = self.settings.data
        if isinstance(self.schema, LinkedSchema):
            sources = map(str, linked_sources(data, self.schema).values())
            references = tuple(map(Reference.of, dict.fromkeys(sources)))
        else:
            references = (Reference.of(data),)
        for reference in references:
            reference.check()
        return references

    @property
    def splits(self) -> bool:
        """Whether the fit sees another file than the source."""
        return bool(self.settings.holdout) or self.settings.opt_out is not None

    @property
    def split(self) -> Path:
        """The folder of train and holdout."""
        return self.settings.work_folder / "split"

    @property
    def train(self) -> Path | str:
        """The private table, or tables, that are fitted."""
        data = self.settings.data
        return self._side(TRAIN) if self.splits else data

    @property
    def holdout(self) -> Path | None:
        """The private table of people whom the fit does not see."""
        if not self.settings.holdout:
            return None
        return self._side(HOLDOUT)

    def _side(self, name: str) -> Path:
        """Return a side of the split: a file, or a folder of linked tables."""
        linked = isinstance(self.schema, LinkedSchema)
        return self.split / (name if linked else name + Reference.of(self.settings.data).copied_as)

    @property
    def attacks(self) -> bool:
        """Whether the table is attacked: it takes people who are not in the data."""
        return self.settings.attacks and self.holdout is not None

    @property
    def run(self) -> Path:
        """The folder of the fit's run."""
        return self.settings.work_folder / "run"

    @property
    def table(self) -> Path:
        """The synthetic table, or tables, that are judged and released."""
        name = "synthetic" if isinstance(self.schema, LinkedSchema) else "synthetic.parquet"
        return self.settings.work_folder / name

    @property
    def bundle(self) -> Path:
        """The folder that leaves the office."""
        return self.settings.output

    @property
    def internal(self) -> Path:
        """The folder of evaluation and audit."""
        return self.settings.internal_folder

    @property
    def page(self) -> Path:
        """The page with which a person begins."""
        return self.internal / PAGE

    @cached_property
    def data_sha256(self) -> str:
        """SHA-256 of what identifies the private table; it stays in the work folder."""
        total = hashlib.sha256()
        for reference in self.references():
            for block in reference.content():
                total.update(block)
        return total.hexdigest()


def _require_apart(settings: Settings) -> None:
    """Refuse folders that lie in one another."""
    named = {
        "output": settings.output,
        "work": settings.work_folder,
        "internal": settings.internal_folder,
    }
    whole = {name: Path(os.path.realpath(path)) for name, path in named.items()}
    for one, path in whole.items():
        for other, above in whole.items():
            if one != other and (path == above or above in path.parents):
                raise InputError(
                    f"{one} ({named[one]}) is inside {other} ({named[other]}): the bundle, the "
                    "internal results and the work folder must be three separate folders"
                )
