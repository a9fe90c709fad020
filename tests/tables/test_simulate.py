"""The demo cohort keeps its promises: stable, within its schema's range, with known structure.

Expected shares are computed from the constants in the docstring of `tables.simulated`; the seeds
are fixed, so no test can fail by chance.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pandas.testing
import pytest

from dpsynth.errors import InputError
from dpsynth.schema import code_list
from dpsynth.tables import simulate

COLUMNS = [
    "patient_id", "visit_date", "sex", "age", "smoker", "bmi", "sbp", "dbp", "hba1c", "ldl",
    "diabetes", "medication", "ward", "diagnosis", "length_of_stay", "readmitted_30d",
]  # fmt: skip


@pytest.fixture(scope="module")
def cohort() -> pd.DataFrame:
    return simulate(20_000, seed=7)


@pytest.mark.long
def test_the_same_seed_gives_the_same_table_in_another_process() -> None:
    program = "from dpsynth.tables import simulate; print(simulate(50, seed=3).to_csv())"
    elsewhere = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert elsewhere.strip() == simulate(50, seed=3).to_csv().strip()
    assert not simulate(50, seed=3).equals(simulate(50, seed=4))


def test_the_first_patients_of_seed_1_are_pinned() -> None:
    first = simulate(4, seed=1)
    values = first[["patient_id", "visit_date", "sex", "age", "ward", "diagnosis"]].astype(str)
    assert values.to_numpy().tolist() == [
        ["P000001", "2021-12-30", "female", "42", "obstetrics", "650"],
        ["P000002", "2020-04-18", "female", "40", "surgery", "574.10"],
        ["P000002", "2021-01-23", "female", "41", "obstetrics", "650"],
        ["P000002", "2021-02-16", "female", "41", "cardiology", "414.01"],
        ["P000003", "2019-05-17", "male", "74", "cardiology", "428.0"],
        ["P000004", "2018-12-15", "female", "87", "medicine", "434.91"],
    ]


def test_a_larger_cohort_begins_with_the_smaller_one() -> None:
    small, large = simulate(300, seed=11), simulate(301, seed=11)
    pandas.testing.assert_frame_equal(large.iloc[: len(small)], small)
    assert set(large["patient_id"].iloc[len(small) :]) == {"P000301"}


def test_columns_types_and_ranges(cohort: pd.DataFrame) -> None:
    assert list(cohort.columns) == COLUMNS
    assert cohort["patient_id"].nunique() == 20_000
    for name, low, high in [
        ("age", 18, 100), ("bmi", 10, 80), ("sbp", 60, 240), ("dbp", 30, 160), ("hba1c", 4, 14),
        ("ldl", 0.5, 10), ("length_of_stay", 1, 30),
    ]:  # fmt: skip
        assert cohort[name].dropna().between(low, high).all(), name
    assert cohort["visit_date"].between("2018-01-01", "2024-12-31").all()
    assert str(cohort["sbp"].dtype) == "Int64"
    assert cohort["readmitted_30d"].dtype == cohort["diabetes"].dtype == bool
    assert set(cohort["medication"]) == {"none", "oral", "insulin", "both"}
    assert set(cohort["smoker"]) == {"never", "former", "current"}
    assert (cohort["dbp"] < cohort["sbp"]).fillna(True).all()
    for name in ("bmi", "hba1c", "ldl"):
        tenths = cohort[name].dropna() * 10
        assert np.allclose(tenths, tenths.round())


def test_patients_have_one_to_eight_visits_and_sicker_ones_more(cohort: pd.DataFrame) -> None:
    visits = cohort.groupby("patient_id").size()
    assert (visits.min(), visits.max()) == (1, 8)
    assert 1.7 < visits.mean() < 2.0
    assert (visits > 4).mean() > 0.03
    diabetic = cohort.groupby("patient_id")["diabetes"].first()
    assert visits[diabetic].mean() > visits[~diabetic].mean() + 0.3


@pytest.mark.long
def test_dates_and_readmission_agree(cohort: pd.DataFrame) -> None:
    by_patient = cohort.groupby("patient_id")
    assert by_patient["visit_date"].is_monotonic_increasing.all()
    leaves = cohort["visit_date"] + pd.to_timedelta(cohort["length_of_stay"], unit="D")
    gap = (by_patient["visit_date"].shift(-1) - leaves).dt.days
    followed = gap.notna()
    assert (gap[followed] <= 30).equals(cohort["readmitted_30d"][followed])
    assert (gap[followed] >= 1).all()
    # A readmission is seen in the table unless it would be a ninth visit or after 2024.
    unseen = cohort["readmitted_30d"] & ~followed
    eighth = by_patient.cumcount() == 7
    assert (eighth | (leaves > "2024-11-30"))[unseen].all()
    assert unseen.any()


def test_hand_readings_pile_up_on_tens_and_fives(cohort: pd.DataFrame) -> None:
    share = (cohort["sbp"].dropna() % 10).value_counts(normalize=True)
    # By hand 0.6: of these 0.6 to tens, 0.2 to fives (half of them end in 0), 0.2 to even digits
    # (a fifth each); by machine 0.4, a tenth each.
    assert abs(share[0] - (0.6 * (0.6 + 0.2 / 2 + 0.2 / 5) + 0.04)) < 0.01
    assert abs(share[5] - (0.6 * 0.2 / 2 + 0.04)) < 0.01
    assert abs(share[3] - 0.04) < 0.01


def test_absence_of_hba1c_tells_of_diabetes(cohort: pd.DataFrame) -> None:
    measured = cohort["hba1c"].notna().groupby(cohort["diabetes"]).mean()
    assert abs(measured[True] - 0.85) < 0.02
    assert abs(measured[False] - 0.22) < 0.02
    missing = cohort.isna().mean()
    assert missing[["bmi", "sbp", "dbp", "ldl", "diagnosis"]].gt(0.005).all()
    assert (cohort["sbp"].isna() == cohort["dbp"].isna()).all()
    complete = [name for name in COLUMNS if name not in ("bmi", "sbp", "dbp", "hba1c", "ldl")]
    assert missing[complete].drop("diagnosis").eq(0).all()


def test_the_readmission_interaction_is_invisible_in_pairs(cohort: pd.DataFrame) -> None:
    # The interaction acts through the age at the first visit.
    first = cohort.drop_duplicates("patient_id")
    older = np.where(first["age"] >= 60, 1, -1)
    female = np.where(first["sex"] == "female", 1, -1)
    long = np.where(first["length_of_stay"] >= 4, 1, -1)
    readmitted = first["readmitted_30d"].to_numpy(float)

    def contrast(sign: np.ndarray) -> float:
        return float(readmitted[sign > 0].mean() - readmitted[sign < 0].mean())

    pairs = [contrast(a * b) for a, b in ((older, female), (older, long), (female, long))]
    assert max(abs(value) for value in pairs) < 0.05
    # A logit of -0.7 against +0.7 around a base of about one in eight is a difference above 0.1.
    assert contrast(older * female * long) > 0.1


def test_codes_and_wards_fit_the_patient(cohort: pd.DataFrame) -> None:
    codes = code_list("ICD-9-CM", "chapter-diabetes")
    chapter = cohort["diagnosis"].dropna().map(codes.roll_up)
    assert chapter.notna().all()
    assert chapter.nunique() >= 14
    rows = cohort.loc[chapter.index]
    assert (rows["sex"] == "female")[chapter == "pregnancy"].all()
    assert rows["diabetes"][chapter == "diabetes"].all()
    assert ((chapter == "pregnancy") == (rows["ward"] == "obstetrics")).all()
    assert (cohort["medication"] == "none")[~cohort["diabetes"]].all()


@pytest.mark.parametrize(("patients", "seed"), [(0, 1), (-3, 1), (2_000_000, 1), (5, -1)])
def test_numbers_out_of_range_are_refused(patients: int, seed: int) -> None:
    with pytest.raises(InputError, match="give a number"):
        simulate(patients, seed=seed)


def test_one_patient_is_a_cohort() -> None:
    assert simulate(1, seed=5)["patient_id"].nunique() == 1
