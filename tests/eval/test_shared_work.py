"""Several processes find the figures of an evaluation and of an audit that one process finds."""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth import split
from dpsynth.eval.attacks import attacked
from dpsynth.eval.attacks.audit import audit
from dpsynth.eval.core import Tables
from dpsynth.eval.evaluation import ORDER, PIECES, evaluation
from dpsynth.eval.gates import gates
from dpsynth.schema import Schema
from dpsynth.tables import simulate

Told = list[tuple[str, float]]


@pytest.fixture(scope="module")
def clinic() -> Tables:
    schema = Schema.load("demo")
    source, holdout = split(simulate(900, seed=4), schema, holdout=0.4, seed=4)
    synthetic = simulate(900, seed=5).iloc[: len(source)]
    return Tables.read(schema, source, synthetic.drop(columns=[schema.unit.column]), holdout)


@pytest.mark.long
def test_an_evaluation_is_the_same_with_two_processes(clinic: Tables) -> None:
    told: Told = []

    def evaluated(workers: int) -> dict[str, Any]:
        told.clear()
        return evaluation(
            clinic,
            limits=gates(),
            seed=6,
            workers=workers,
            progress=lambda stage, part: told.append((stage, part)),
        )

    alone = evaluated(1)
    assert [stage for stage, _ in told] == list(PIECES)
    assert evaluated(2) == alone
    assert told == [("evaluation", done / len(PIECES)) for done in range(1, len(PIECES) + 1)]
    assert set(alone["parts"]) >= {"fidelity", "rules", "usefulness"}


def test_every_piece_of_an_evaluation_has_its_place_in_the_document() -> None:
    assert sorted(ORDER) == sorted(PIECES)


@pytest.mark.long
def test_an_audit_is_the_same_with_two_processes(clinic: Tables) -> None:
    def audited(workers: int) -> dict[str, Any]:
        attacks, played = attacked(
            clinic, claim=(3.0, 1e-6), seed=6, progress=lambda *_: None, workers=workers
        )
        schema = clinic.codec.published
        return audit(schema, attacks, played, tables=clinic, seed=6, settings={})

    alone = audited(1)
    assert audited(2) == alone
    assert alone["findings"] and alone["controls"] and not alone["broken"]
