"""``dpsynth`` with internal stages that take a moment; started by the jobs of an office in tests.

``QUICK_WAIT`` names a file for which the fit waits, once it has told so by a file beside it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import file_digest
from dpsynth.assessment.results_folder import AUDIT, EVALUATION, PAGE, beside, write_results
from dpsynth.cli import main
from dpsynth.workflow import stages, subjects


def evaluated(_: Any, source: Any, candidate: Any, *rest: Any, output: Path, **more: Any) -> None:
    tables = {"synthetic": {"sha256": file_digest(candidate.table)}}
    kept(output, EVALUATION, AUDIT, {"tables": tables, "gates": []})


def audited(_: Any, *, real: Any, output: Path, **more: Any) -> None:
    sha256 = None if real is None else file_digest(real.candidate.table)
    document = {"tables": {"synthetic": {"sha256": sha256}}, "findings": [], "controls": []}
    kept(output, AUDIT, EVALUATION, document)


def kept(folder: Path, name: str, other: str, document: dict[str, Any]) -> None:
    before = beside(folder, other, None)
    both = {name: document} | ({} if before is None else {other: before})
    page = "<!DOCTYPE html><html lang=en><title>x</title><h1>Internal page</h1></html>"
    write_results(folder, both, {PAGE: page})


def waiting(stage: Any) -> Any:
    def carry_out(self: Any, job: Any) -> Any:
        made = stage(self, job)
        if place := os.environ.get("QUICK_WAIT"):
            Path(f"{place}.reached").touch()
            while not Path(place).exists():
                time.sleep(0.05)
        return made

    return carry_out


if __name__ == "__main__":
    subjects.evaluate, subjects.audit = evaluated, audited  # type: ignore[assignment]
    stages.read_audits = lambda run: ()  # type: ignore[assignment, return-value]
    stages.FitStage.carry_out = waiting(stages.FitStage.carry_out)  # type: ignore[method-assign]
    main(sys.argv[1:])
