"""P20, accounting: a patient moves no more cells than accounting has counted.

Accounting adds a little to delta for each cell that a unit may move (accounting.py, step 5). A
patient moves one in each histogram for each of her steps, in all series of a table together. The
check: with as many rows in every series as there may be, she has as many steps as the events say.
Broken twin: the steps of her longest series alone, which certificates once stated. Then a fit is
refused before noise; such a certificate is read, and all steps are accounted for.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate, certify
from dpsynth.encoding import HistoryCodec
from dpsynth.errors import InputError
from dpsynth.models.histories import (
    CohortGenerator,
    HistoryTable,
    PersonTable,
    linked_domain,
    shares_of_histories,
)
from dpsynth.models.histories.networks import shares_of_linked
from dpsynth.models.histories.steps import TableRows
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.clinic import clinic_schema
from ..support.made_histories import domain_of, histories_of, hostile, with_patient

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
PATIENTS = 150


def of_the_longest(table: HistoryTable) -> int:
    """Count the steps of the longest series alone: the twin."""
    return max(series.max_rows - 1 for series in table.series)


def stated(table: str) -> set[int]:
    """Steps of a patient by the events of a table."""
    shares = shares_of_histories(domain_of(), BUDGET)
    events = [share.event for share in shares if share.event.name.startswith(f"{table}, steps")]
    return {event.rows_per_unit for event in events}  # type: ignore[union-attr]


def test_events_state_the_steps_of_all_series() -> None:
    domain, patient = domain_of(), hostile(60, equal=False, seed=1)
    codes = PersonTable(domain).codes(patient)
    for table, rows in zip(domain.tables, patient.rows, strict=True):
        steps = TableRows.of(table, rows, codes, patient.ends)
        moving = sum(int(np.count_nonzero(weights)) for weights in steps.weights)
        assert stated(table.name) == {moving}


def test_the_longest_series_alone_is_caught() -> None:
    assert stated("labs") == {118}
    domain = domain_of(PATIENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsynth.models.histories.settings.most_steps", of_the_longest)
        assert stated("labs") == {59}
        plan = PrivacyPlan.calibrate(BUDGET, shares_of_histories(domain, BUDGET))
    joined = with_patient(histories_of(PATIENTS), hostile(60, equal=False, seed=1))
    with pytest.raises(InputError, match="accounts for 59 rows of each unit; a unit has more"):
        CohortGenerator(domain).fit(joined, plan, SeededEntropy(1))


def test_a_certificate_of_the_longest_series_alone_is_refused() -> None:
    schema = clinic_schema()
    domain = linked_domain.domain_of(HistoryCodec(schema))

    def faults() -> list[str]:
        plan = PrivacyPlan.calibrate(BUDGET, shares_of_linked("cohort", domain, BUDGET))
        certificate = Certificate.from_dict(certify(schema, plan, model="cohort", charge=None))
        patch.undo()
        found = [str(problem) for problem in check_certificate(certificate, schema, None)]
        return [fault for fault in found if "no ledger was charged" not in fault]

    with pytest.MonkeyPatch.context() as patch:
        assert faults() == []
        patch.setattr("dpsynth.models.histories.settings.most_steps", of_the_longest)
        assert any("is not the one that model cohort runs" in fault for fault in faults())
