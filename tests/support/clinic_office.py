"""A folder with a charged run of the simulated clinic, and its ledger; bundles made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dpsynth.certificate import certify
from dpsynth.encoding import typed_frames
from dpsynth.ledger import Ledger, charge_of
from dpsynth.privacy import Unit
from dpsynth.schema import LinkedSchema, synthetic_tables
from dpsynth.synthesis import Run, prepare
from dpsynth.tables import write_table

from .clinic import clinic_run, clinic_schema
from .forger import Forger

RULE = "first(visits).date <= event(death)"
FORMATS = (".parquet", ".csv")


def ruled_schema() -> LinkedSchema:
    """The clinic's schema with a temporal rule."""
    document = clinic_schema().to_dict()
    document["dpsynth"]["rules"] = [RULE]
    return LinkedSchema.from_dict(document)


def clinic_office(folder: Path) -> Path:
    """Save `run`, charged to `ledger.sqlite`: what was learned once, under a schema with a rule."""
    schema, learned = ruled_schema(), clinic_run()
    plan = prepare(schema, epsilon=3.0, delta=1e-5).plan
    ledger = Ledger.create(folder / "ledger.sqlite")
    entry = ledger.reserve(
        "clinic",
        purpose="",
        plan=plan.to_dict(),
        epsilon=3.0,
        delta=1e-5,
        model=learned.model,
        schema_hash=schema.hash(),
        unit=Unit.of(schema),
        allow_refuse=False,
        population=schema.population.value,
    )
    ledger.begin(entry.id)
    certificate = certify(schema, plan, model=learned.model, charge=charge_of(ledger, entry))
    run = Run(schema, learned.model, learned.config, learned.arrays, certificate)
    ledger.charge(entry.id, run=run.digest)
    run.save(folder / "run")
    return folder


class TableForger(Forger):
    """Edits the tables of a bundle of the clinic, in both formats."""

    def frame(self, name: str) -> pd.DataFrame:
        """Read a table."""
        table = synthetic_tables(ruled_schema())[name]
        return pd.concat(typed_frames(self.bundle / f"data/synthetic-{name}.parquet", table))

    def put(self, name: str, frame: pd.DataFrame) -> None:
        """Write a table as a release would, and renew the manifest."""
        schema = synthetic_tables(ruled_schema())[name].schema
        for suffix in FORMATS:
            path = self.bundle / f"data/synthetic-{name}{suffix}"
            write_table([frame], path, schema, overwrite=True)
        self.relist()

    def retable(self, name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        """Edit a table."""
        self.put(name, change(self.frame(name).reset_index(drop=True)))
