"""Labels as a page of one file: how many rows have which label, how sure, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pandas as pd
from jinja2 import Environment

from dpsynth._util.formatting import figure, figure_at_most
from dpsynth._util.html import environment
from dpsynth.certificate import Certificate, protected, readings
from dpsynth.privacy import TeacherVotes, units_of
from dpsynth.stats.labels.task import Task


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
    page = (
        _environment()
        .get_template("labels.html")
        .render(
            title=task.schema.title or task.schema.name,
            label=task.label,
            who=units_of(certificate.unit),
            epsilon=f"{certificate.epsilon:g}",
            delta=f"{certificate.delta:g}",
            stamps=", ".join(stamps),
            protected=protected(certificate.unit),
            readings=readings(certificate),
            teachers=f"{event.teachers:,}",
            sigma=figure(event.sigma),
            asked=f"{task.asked:,}",
            rows=f"{len(shares):,}",
            classes=[_class(name, shares) for name in task.axis.labels],
        )
    )
    return page.encode()


def _class(name: str, shares: pd.DataFrame) -> dict[str, Any]:
    return {
        "name": name,
        "student": f"{int((shares['student'] == name).sum()):,}",
        "teachers": f"{int((shares['teachers'] == name).sum()):,}",
        "share": f"{float(shares[f'share: {name}'].mean()):.3f}",
    }


@cache
def _environment() -> Environment:
    pages = environment("dpsynth.stats.labels")
    pages.filters |= {"bound": figure_at_most, "figure": figure}
    return pages
