"""Histories that cannot be: rows after the end, out of order, too many, or too far apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import Estimate, Measure, PartResult, about, plain
from dpsynth.eval.longitudinal.cohort import Cohort
from dpsynth.eval.longitudinal.compared import Compared

Bools = npt.NDArray[np.bool_]

BROKEN = (
    "Share of patients with a history that cannot be: a row or an event after the end of follow-up "
    "or outside the window, rows out of order, more rows than the schema keeps, or a gap longer "
    "than declared."
)


def broken(compared: Compared) -> PartResult:
    """Count patients who break each rule of histories, and any."""
    sides = {
        "source": compared.train, "synthetic": compared.synthetic, "holdout": compared.holdout
    }  # fmt: skip
    found = {name: dict(broken_rules(one)) for name, one in sides.items() if one is not None}
    rules = [
        {"rule": rule, **{name: plain(who[rule].mean()) for name, who in found.items()}}
        for rule in found["synthetic"]
    ]
    if not rules:
        return PartResult()
    shares = {name: float(np.any(list(one.values()), axis=0).mean()) for name, one in found.items()}
    chance = float(np.any([who for _, who in broken_rules(compared.chance)], axis=0).mean())
    share, n = shares["synthetic"], compared.n
    estimate: Estimate = about(
        share, (share * (1 - share) / n) ** 0.5, n, reference=shares.get("holdout"),
        chance=chance, minimum=0.0, maximum=1.0,
    )  # fmt: skip
    measure = Measure("broken_histories", "Histories that cannot be", estimate, 0.0, BROKEN)
    details: dict[str, Any] = {"rules": rules}
    notes: tuple[str, ...] = ()
    if compared.facts.events:
        notes = (
            "a coded history has one day for each event, so none can happen twice; rules within a "
            "row, and those of the tables, are checked where tables are written",
        )
    return PartResult((measure,), details, notes)


def broken_rules(cohort: Cohort) -> Iterator[tuple[str, Bools]]:
    """Yield each rule that the schema makes possible, and which patients break it."""
    facts, ends = cohort.facts, cohort.histories.ends
    timed = [one for one in cohort.series if one.facts.timed]
    size = len(cohort)

    def patients(hits: list[tuple[npt.NDArray[np.int64], Bools]]) -> Bools:
        found = np.zeros(size, dtype=bool)
        for who, hit in hits:
            found[who[hit]] = True
        return found

    if timed:
        yield (
            "a row after the end of follow-up",
            patients([(s.patients, s.days > ends[s.patients]) for s in timed]),
        )
        outside = [(s.patients, (s.days < facts.first) | (s.days > facts.last)) for s in timed]
        yield "a row outside the window", patients(outside)
        steps = [(s.patients[s.later], s.gaps) for s in timed]
        yield "rows out of order", patients([(who, gaps < 0) for who, gaps in steps])
        yield (
            "a gap longer than declared",
            patients(
                [(who, gaps > s.facts.longest) for s, (who, gaps) in zip(timed, steps, strict=True)]
            ),
        )
    if cohort.series:
        many = [one.counts > one.facts.max_rows for one in cohort.series]
        yield "more rows than the schema keeps", np.any(many, axis=0)
    if facts.events:
        onsets = cohort.histories.onsets
        late = ((onsets != NEVER) & (onsets > ends[:, None])).any(axis=1)
        yield "an event after the end of follow-up", late
