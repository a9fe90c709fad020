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
from dpsynth.errors import InputError
from dpsynth.eval import Gate
from dpsynth.eval.gates import gates
from dpsynth.inspection import check_accepted
from dpsynth.ledger import check_request
from dpsynth.policy import Policy
from dpsynth.schema import Schema, without_share
from dpsynth.synthesis import Prepared, prepare, require_small_delta
from dpsynth.tables import Reference
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
    schema: Schema
    fitted: Schema
    prepared: Prepared
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
        schema = Schema.load(settings.schema)
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
                rows=fitted.rows.value,
                seed=fresh_seed() if log is None else log.seed,
            ),
            schema,
            fitted,
            prepared,
            tuple(gates(settings.gates)),
            None if settings.policy is None else Policy.load(settings.policy),
        )

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
        """The private table that is fitted."""
        data = self.settings.data
        return self.split / (TRAIN + Reference.of(data).copied_as) if self.splits else data

    @property
    def holdout(self) -> Path | None:
        """The private table of people whom the fit does not see."""
        if not self.settings.holdout:
            return None
        return self.split / (HOLDOUT + Reference.of(self.settings.data).copied_as)

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
        """The synthetic table that is judged and released."""
        return self.settings.work_folder / "synthetic.parquet"

    @property
    def bundle(self) -> Path:
        """The folder that leaves the office."""
        return self.settings.output

    @property
    def internal(self) -> Path:
        """The folder of evaluation and audit."""
        return self.settings.internal_folder

    @cached_property
    def data_sha256(self) -> str:
        """SHA-256 of what identifies the private table; it stays in the work folder."""
        reference, total = Reference.of(self.settings.data), hashlib.sha256()
        reference.check()
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
