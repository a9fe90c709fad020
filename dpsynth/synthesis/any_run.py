"""The run of one table or of linked ones: which of the two, its schema says."""

from __future__ import annotations

from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_document
from dpsynth.schema import is_linked
from dpsynth.synthesis.artifact import DOCUMENT
from dpsynth.synthesis.cohort_run import CohortRun
from dpsynth.synthesis.run import Run

AnyRun = Run | CohortRun


def load_run(folder: str | Path) -> AnyRun:
    """Read a run, whichever it is; nothing in it is executed.

    Raises:
        ArtifactError: a file is missing, damaged, foreign, or of another version.
    """
    path = path_of(folder, "the folder of a run") / DOCUMENT
    linked = path.is_file() and is_linked(read_document(path).get("schema"))
    return CohortRun.load(folder) if linked else Run.load(folder)
