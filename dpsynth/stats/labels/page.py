"""Labels as a page of one file: how many rows have which label, how sure, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.certificate import Certificate
from dpsynth.privacy import TeacherVotes
from dpsynth.stats.labels.task import Task
from dpsynth.stats.page import rendered


def labels_page(
    task: Task, certificate: Certificate, stamps: Sequence[str], shares: pd.DataFrame
) -> bytes:
    """Return the page as HTML; it holds what the files beside it hold, and nothing else.

    Args:
        task: what was labelled.
        certificate: of the labels.
        stamps: reasons why they may not be released.
        shares: what teachers and student say of each row, as `Labels.shares` has it.
    """
    (event,) = certificate.events
    assert isinstance(event, TeacherVotes)
    return rendered(
        "labels.html",
        certificate,
        stamps,
        title=task.schema.title or task.schema.name,
        label=task.label,
        teachers=f"{event.teachers:,}",
        sigma=figure(event.sigma),
        asked=f"{task.asked:,}",
        rows=f"{len(shares):,}",
        classes=[_class(name, shares) for name in task.axis.labels],
    ).encode()


def _class(name: str, shares: pd.DataFrame) -> dict[str, Any]:
    return {
        "name": name,
        "student": f"{int((shares['student'] == name).sum()):,}",
        "teachers": f"{int((shares['teachers'] == name).sum()):,}",
        "share": f"{float(shares[f'share: {name}'].mean()):.3f}",
    }
