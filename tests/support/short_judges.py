"""Evaluations and attacks whose classifiers learn little, for tests of documents and files."""

from __future__ import annotations

import pytest

from dpsynth.eval.attacks import attribute_inference
from dpsynth.eval.core import PartResult
from dpsynth.eval.evaluation import PIECES
from dpsynth.eval.fidelity import records
from dpsynth.eval.utility import learners


def shorten_judges(patch: pytest.MonkeyPatch) -> None:
    """Let classifiers learn little and leave sdmetrics out, until the patch is undone."""
    patch.setattr(records, "SETTINGS", records.SETTINGS | {"max_iter": 8})
    patch.setattr(learners, "TREES", 8)
    patch.setattr(attribute_inference, "TREES", 8)
    patch.setitem(PIECES, "sdmetrics", lambda *_: {"fidelity": PartResult()})
