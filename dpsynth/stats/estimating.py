"""The verb `estimate`: what perturbed answers say of all people; no private row is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpsynth._util.arguments import require_list
from dpsynth.errors import InputError
from dpsynth.files import check_vacant
from dpsynth.stats.answers import Answers
from dpsynth.stats.local import LocalRequest, Reports


def estimate(
    reports: Reports | str | Path | Sequence[Reports | str | Path],
    *,
    confidence: float = 0.95,
    output: str | Path | None = None,
) -> Answers:
    """Estimate how many people have each category, from their perturbed answers.

    Args:
        reports: perturbed answers, or files of them with their settings beside; several of equal
            settings are joined.
        confidence: of each interval by itself.
        output: folder to write the estimates in.

    Returns:
        The estimates; table ``estimates`` has the counts and shares of each column.

    Raises:
        InputError: files that do not belong together, a confidence out of range, or the output.
        ArtifactError, TableError: a file is missing or damaged.

    Example:
        >>> from dpsynth.stats.perturbing import one_row_each, perturb
        >>> from dpsynth.schema import Schema
        >>> from dpsynth.tables import simulate
        >>> answers = perturb(simulate(500, seed=1), one_row_each(Schema.load("demo")), ["sex"],
        ...     epsilon=1.0)
        >>> list(estimate(answers).table("estimates").columns)[:5]
        ['column', 'category', 'count', 'lower', 'upper']
    """
    if output is not None:
        check_vacant(output)
    given = (
        [reports]
        if isinstance(reports, Reports | str | Path)
        else require_list(reports, "a list of tables of perturbed answers")
    )
    if not given:
        raise InputError("name at least one table of perturbed answers")
    loaded = [one if isinstance(one, Reports) else Reports.load(one) for one in given]
    request = LocalRequest(loaded[0].settings, confidence)
    if any(one.settings != request.settings for one in loaded):
        raise InputError("these tables were perturbed by different settings; estimate each alone")
    people = sum(one.people for one in loaded)
    if not people:
        raise InputError("nobody answered: there is nothing to estimate")
    supports = {
        column.name: sum(
            (column.randomiser.supports(one.reports[place]) for one in loaded),
            np.zeros(len(column.labels), dtype=np.int64),
        )
        for place, column in enumerate(request.settings.columns)
    }
    numbers = {"people": people, "supports": supports}
    found = Answers(request, numbers, None, request.settings.stamps)
    if output is not None:
        found.save(output)
    return found
