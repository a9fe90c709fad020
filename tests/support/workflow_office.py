"""An office that carries out `dpsynth run` on a small table, with quick internal stages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth._util.strict_json import file_digest
from dpsynth.assessment.results_folder import AUDIT, EVALUATION, PAGE, beside, write_results
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.workflow import Outcome, Settings, run_stages, stages, subjects

NAMES = ("check", "split", "fit", "sample", "evaluate", "audit", "release")

KEPT_COLUMNS = ("patient_id", "sex", "age", "smoker", "ward", "readmitted_30d")


def small_schema(path: Path) -> Path:
    """A few columns of the demo, so that a run takes a second."""
    document = Schema.load("demo").to_dict()
    document["fields"] = [one for one in document["fields"] if one["name"] in KEPT_COLUMNS]
    del document["dpsynth"]["rules"]
    document["dpsynth"]["population"]["value"] = 100
    document["dpsynth"]["rows"]["value"] = 300
    Schema.from_dict(document).save(path)
    return path


def office_in(
    folder: Path, table: pd.DataFrame, patch: pytest.MonkeyPatch, **settings: Any
) -> Office:
    """Settings of a run on this table, which is written into the folder; its stages are quick."""
    table.to_csv(folder / "cohort.csv", index=False)
    office = Office(
        folder,
        Settings.of(
            schema=str(small_schema(folder / "small.schema.yaml")),
            data=folder / "cohort.csv",
            dataset="demo",
            epsilon=3.0,
            delta=1e-6,
            model="independent",
            output=folder / "bundle",
            **settings,
        ),
    )
    patch.setattr(subjects, "evaluate", office.evaluate)
    patch.setattr(subjects, "audit", office.audit)
    patch.setattr(stages, "read_audits", lambda run: ())
    return office


@dataclass
class Office:
    """Settings of a run in a folder of its own, and what its internal stages will find."""

    folder: Path
    settings: Settings
    gates: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    controls: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def run(self, *, at: str | None = None, again: bool = False, **changes: Any) -> Outcome:
        """Carry out the stages; with ``at``, interrupt at that progress."""

        def progress(stage: str, fraction: float) -> None:
            if at == stage:
                raise KeyboardInterrupt

        return run_stages(
            replace(self.settings, **changes),
            fit_again=again,
            progress=progress,
        )

    def path(self, name: str) -> Path:
        return self.folder / name

    @property
    def work(self) -> Path:
        return self.path("bundle.work")

    @property
    def statuses(self) -> list[str]:
        return [entry.status for entry in Ledger().entries()]

    def evaluate(self, schema: Any, source: Any, candidate: Any, holdout: Any, **more: Any) -> None:
        self.calls.append(("evaluate", {"source": source, "holdout": holdout, **more}))
        tables = {"synthetic": {"sha256": file_digest(candidate.table)}}
        document = {"tables": tables, "gates": self.gates}
        self._write(more["output"], EVALUATION, AUDIT, document)

    def audit(self, schema: Any, *, real: Any, trained: Any, **more: Any) -> None:
        self.calls.append(("audit", {"real": real, "trained": trained, **more}))
        document: dict[str, Any] = {"findings": self.findings, "controls": self.controls}
        document["tables"] = None
        if real is not None:
            document["tables"] = {"synthetic": {"sha256": file_digest(real.candidate.table)}}
        self._write(more["output"], AUDIT, EVALUATION, document)

    def _write(self, folder: Path, name: str, other: str, document: dict[str, Any]) -> None:
        earlier = beside(folder, other, None)
        documents = {name: document} | ({} if earlier is None else {other: earlier})
        write_results(folder, documents, {PAGE: "page"})


def states(outcome: Outcome) -> dict[str, str]:
    return {state.stage: state.state for state in outcome.states}


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
