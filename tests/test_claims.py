"""What a certificate says in words: what was spent on the patients, as budgets are written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dpsynth.certificate import Certificate
from dpsynth.claims import not_covered
from dpsynth.schema import Schema


@pytest.mark.parametrize(
    ("fits", "epsilon", "delta", "words"),
    [
        (1, 3.0, 1e-6, "the ledger held 1 fit on dataset 'cohort', with epsilon 3 and delta 1e-6"),
        (2, 6.0, 2e-6, "held 2 fits on dataset 'cohort', with epsilon 6 and delta 2e-6"),
        (3, 0.30001, 3e-10, "with epsilon 0.3001 and delta 3e-10"),
        (4, 9.0, 1.23412e-6, "delta 1.235e-6"),  # never less than it is
    ],
)
def test_what_all_fits_spent_is_a_sum(
    forger: Any, every_type: Schema, fits: int, epsilon: float, delta: float, words: str
) -> None:
    charge = Certificate.from_dict(forger.read("privacy.json")).ledger
    assert charge is not None
    charge = replace(charge, fits=fits, epsilon_total=epsilon, delta_total=delta)
    said = not_covered(every_type, charge)[0]
    assert f"{words} in sum" in said and "composed" not in said
