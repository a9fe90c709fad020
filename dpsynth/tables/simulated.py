"""The demo cohort: hospital visits of simulated patients, drawn from a process known in full.

No real table is behind it: every number below is a choice, made so that the cohort has what makes
health tables hard. Patients are independent and identically distributed; a patient has 1 to 8
visits, more of them the sicker the patient is. The process, in the order in which it is drawn:

1. A patient has a hidden frailty u ~ N(0, 1), a sex, an age at the first visit (mean 58, standard
   deviation 17, between 18 and 93), a smoking habit by age and sex, and a body mass index
   (log-normal around 27). Diabetes follows a logistic law in age, body mass index and u; HbA1c is
   skewed to the right for diabetics; medication depends on HbA1c; LDL is lower under a hidden
   statin, which diabetics and the old take more often.
2. Each visit has a ward (obstetrics for women under 46 only), an ICD-9-CM diagnosis by ward and
   diabetes, and a geometric length of stay that grows with age, u, surgery and diabetes.
3. Blood pressure grows with age, body mass index and diabetes. Six readings of ten are taken by
   hand, and those end mostly in 0, often in 5, else in an even digit.
4. Readmission within 30 days follows a logistic law in u, length of stay, HbA1c above 8 % and
   smoking, plus 0.7 a b c with a, b, c = +1 or -1 for age 60 and over, female sex and a stay of 4
   days and more: three nearly balanced factors, hence an effect that no pair of columns shows.
5. After a visit the patient returns: within 30 days of discharge if readmitted, else perhaps later
   (the likelier, the frailer). Visits after 2024 are not recorded, nor is a ninth.
6. HbA1c is measured at 85 % of diabetics' visits and 22 % of others', so its absence is
   informative; LDL, body mass index, blood pressure and diagnosis are missing by ward or at random.

Age in steps 1 to 4 is the age at the first visit; the column holds the age at each visit.

The demo cohort of linked tables: histories of simulated patients, from a process known in full.

No real table is behind it; every number below is a choice. Patients are independent and identically
distributed. The process, in the order in which it is drawn:

1. A patient has a hidden frailty u ~ N(0, 1), a sex, an age (mean 62, standard deviation 11), and
   diabetes by a logistic law in age and u. She is included on a day of the years 2015 to 2019.
2. Death comes at an exponential time, sooner with age, u and diabetes; whoever leaves does so at an
   exponential time of mean eight years. Follow-up ends with the first of both, or after five years.
3. The first visit is within 30 days. The next one follows after a gap of 14 days and more, of mean
   100 days, shorter the frailer the patient, as long as she is followed; at most 24.
4. Systolic pressure has a level of 150 + 5 u + 0.3 (age - 62) + 4 with diabetes, less 8 for each
   drug; what a visit departs from it is half of what the last one did, and noise. Above 150, a drug
   more follows at the next visit in two cases of three, up to three. Weight is a random walk.
5. HbA1c is sampled at half of a diabetic's visits and at one of ten others, creatinine at a third;
   each is a patient's level and noise, and creatinine grows over the years with u.
6. Stroke and infarction come at exponential times, sooner with the level of pressure; those after
   the end of follow-up are not seen. A death within follow-up is its last day.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import InputError

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

_VISITS: Final = 8
_FIRST_DAY: Final = np.datetime64("2018-01-01", "D")
_LAST_DAY: Final = 2556  # 2024-12-31, counted from the first day
_ENROLMENT_DAYS: Final = 1461  # first visits fall into the four years 2018 to 2021
_WIDTH: Final = 256  # uniform numbers a patient owns; the process uses fewer

# Relative frequency of each ICD-9-CM code, by ward; of 250.xx for diabetics, further below.
_DIAGNOSES: Final[Mapping[str, Mapping[str, float]]] = {
    "medicine": {
        "486": 18, "491.21": 14, "599.0": 12, "038.9": 9, "584.9": 9, "276.1": 6, "285.9": 6,
        "578.9": 5, "682.6": 6, "434.91": 8, "162.9": 3, "296.30": 2, "V57.89": 4,
    },
    "cardiology": {
        "414.01": 30, "428.0": 27, "427.31": 18, "410.71": 13, "786.50": 9, "424.1": 4,
    },
    "surgery": {
        "574.10": 18, "715.36": 20, "820.8": 11, "550.90": 14, "540.9": 9, "153.9": 8,
        "996.64": 7, "560.9": 8, "707.03": 3, "747.0": 1,
    },
    "emergency": {
        "786.50": 18, "780.2": 15, "558.9": 14, "850.5": 9, "813.42": 13, "493.92": 12,
        "345.90": 6, "305.00": 9, "401.9": 5,
    },
    "obstetrics": {"650": 62, "644.21": 11, "642.41": 12, "659.71": 15},
}  # fmt: skip
_DIABETIC_CODES: Final = {"250.00": 30, "250.60": 22, "250.80": 20, "250.13": 10, "250.40": 18}
_WARDS: Final = tuple(_DIAGNOSES)
_HABITS: Final = ("never", "former", "current")
_MEDICATION: Final = ("none", "oral", "insulin", "both")


class _Draws:
    """A patient's uniform numbers, handed out column by column.

    Each patient owns a row of the block and the block fills row by row, so patient i of a seed is
    the same person in a cohort of any size: cohorts of n and n + 1 patients are neighbours.
    """

    def __init__(self, patients: int, seed: int) -> None:
        self._block = np.random.default_rng(seed).random((patients, _WIDTH))
        self._used = 0

    def uniform(self, count: int) -> Floats:
        """Give ``[patients, count]`` numbers in [0, 1)."""
        self._used += count
        if self._used > _WIDTH:
            raise ValueError("the process draws more numbers than a patient owns: raise _WIDTH")
        return self._block[:, self._used - count : self._used]

    def normal(self, count: int) -> Floats:
        """Give ``[patients, count]`` standard normal numbers (Box and Muller)."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(count)))
        turn: Floats = np.cos(2.0 * np.pi * self.uniform(count))
        return radius * turn


def simulate(patients: int, *, seed: int) -> pd.DataFrame:
    """Draw a cohort of ``patients``; one row per visit, as ``demo.schema.yaml`` declares it.

    Rows are ordered by patient and date. Whole numbers are ``Int64`` where they can be missing,
    measurements are ``float64`` (NaN is missing), texts are ``str`` (None is missing), dates are
    ``datetime64[ns]``. The same patients and seed give the same table; a larger cohort of the same
    seed begins with it.

    Raises:
        InputError: ``patients`` or ``seed`` is out of range.
    """
    if not 1 <= patients <= 1_000_000:
        raise InputError(f"patients is {patients}; give a number from 1 to 1000000")
    if seed < 0:
        raise InputError(f"seed is {seed}; give a number of at least 0")
    draws = _Draws(patients, seed)
    every = (patients, _VISITS)

    # One column per patient, broadcast over the visits.
    frailty = draws.normal(1)
    female = draws.uniform(1) < 0.52
    age = np.clip(58.0 + 17.0 * draws.normal(1), 18.0, 93.0)
    decades = (age - 58.0) / 10.0
    habit = _habits(draws, decades, female, frailty)
    bmi = np.clip(27.0 * np.exp(0.17 * draws.normal(1)), 15.0, 65.0)
    excess = bmi - 27.0
    diabetes = draws.uniform(1) < _logistic(-2.2 + 0.4 * decades + 0.13 * excess + 0.5 * frailty)
    skewed = draws.normal(1)
    hba1c = np.where(
        diabetes,
        6.3 + 1.1 * np.exp(0.5 * skewed) + 0.2 * frailty,
        5.5 + 0.08 * decades + 0.02 * excess + 0.3 * skewed,
    )
    insulin = diabetes & (draws.uniform(1) < _logistic(-1.2 + 0.6 * (hba1c - 7.5)))
    oral = diabetes & (draws.uniform(1) < _logistic(1.1 - 0.15 * decades))
    statin = draws.uniform(1) < np.where(diabetes, 0.65, np.where(age >= 65.0, 0.4, 0.08))
    ldl = 3.4 - 0.9 * statin + 0.7 * draws.normal(1)
    pressure = 122.0 + 4.2 * decades + 0.5 * excess + 5.0 * diabetes + 10.0 * draws.normal(1)

    # One column per visit.
    ward = _wards(draws, decades, female & (age < 46.0), habit == 2)
    diagnosis = _diagnoses(draws, ward, diabetes)
    surgical, urgent = ward == _WARDS.index("surgery"), ward == _WARDS.index("emergency")
    mean_stay = np.exp(
        0.9 + 0.12 * decades + 0.25 * frailty + 0.4 * surgical - 0.7 * urgent + 0.2 * diabetes
    )
    waiting = -np.log1p(-draws.uniform(_VISITS))
    stay = np.clip(1 + np.floor(waiting * mean_stay), 1, 30).astype(np.int64)
    systolic, diastolic = _pressures(draws, pressure, decades)
    visit_hba1c = np.clip(np.round(hba1c + 0.3 * draws.normal(_VISITS), 1), 4.0, 14.0)
    visit_ldl = np.clip(np.round(ldl + 0.25 * draws.normal(_VISITS), 1), 0.5, 10.0)
    visit_bmi = np.clip(np.round(bmi + 0.4 * draws.normal(_VISITS), 1), 10.0, 80.0)
    parity = _sign(age >= 60.0) * _sign(female) * _sign(stay >= 4)
    risk = _logistic(
        -2.4
        + 0.55 * frailty
        + 0.05 * (stay - 4.0)
        + 0.45 * (hba1c > 8.0)
        + 0.3 * (habit == 2)
        + 0.7 * parity
    )
    readmitted = draws.uniform(_VISITS) < risk
    recorded, day = _calendar(draws, readmitted, stay, -0.7 + 0.6 * frailty + 0.4 * diabetes)
    elapsed = (day - day[:, :1]) / 365.25

    hba1c_measured = draws.uniform(_VISITS) < np.where(diabetes, 0.85, 0.22)
    ldl_measured = draws.uniform(_VISITS) < np.where(ward == _WARDS.index("cardiology"), 0.8, 0.45)
    bmi_measured = draws.uniform(_VISITS) >= np.where(urgent, 0.25, 0.06)
    pressure_measured = draws.uniform(_VISITS) >= 0.04
    coded = draws.uniform(_VISITS) >= 0.01

    def visits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.broadcast_to(values, every)[recorded]

    def texts(codes: Whole, names: tuple[str, ...]) -> npt.NDArray[Any]:
        words: npt.NDArray[Any] = np.array(names, dtype=object)[visits(codes)]
        return words

    def whole(values: Whole, known: Flags) -> pd.Series:
        return pd.Series(visits(values), dtype="Int64").mask(~visits(known))

    identifiers = np.array([f"P{number:06d}" for number in range(1, patients + 1)], dtype=object)
    return pd.DataFrame(
        {
            "patient_id": visits(identifiers[:, None]),
            "visit_date": (_FIRST_DAY + visits(day)).astype("datetime64[ns]"),
            "sex": texts(female.astype(np.int64), ("male", "female")),
            "age": visits(np.floor(age + elapsed)).astype(np.int64),
            "smoker": texts(habit, _HABITS),
            "bmi": visits(np.where(bmi_measured, visit_bmi, np.nan)),
            "sbp": whole(systolic, pressure_measured),
            "dbp": whole(diastolic, pressure_measured),
            "hba1c": visits(np.where(hba1c_measured, visit_hba1c, np.nan)),
            "ldl": visits(np.where(ldl_measured, visit_ldl, np.nan)),
            "diabetes": visits(diabetes),
            "medication": texts(oral + 2 * insulin.astype(np.int64), _MEDICATION),
            "ward": texts(ward, _WARDS),
            "diagnosis": visits(np.where(coded, diagnosis, np.array(None))),
            "length_of_stay": visits(stay),
            "readmitted_30d": visits(readmitted),
        }
    )


def _logistic(score: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-score))


def _sign(condition: Flags) -> Whole:
    return np.where(condition, 1, -1)


def _choose(position: Floats, weights: Mapping[str, float]) -> npt.NDArray[Any]:
    """Pick a key by its relative weight from uniform positions in [0, 1)."""
    edges = np.cumsum(list(weights.values()))
    index = np.searchsorted(edges, position * edges[-1], side="right")
    chosen: npt.NDArray[Any] = np.array(list(weights), dtype=object)[index]
    return chosen


def _habits(draws: _Draws, decades: Floats, female: Flags, frailty: Floats) -> Whole:
    current = _logistic(-1.1 - 0.2 * decades - 0.3 * female + 0.25 * frailty)
    former = _logistic(-0.9 + 0.25 * decades - 0.4 * female)
    position = draws.uniform(1)
    stopped = position < current + (1.0 - current) * former
    return np.where(position < current, 2, np.where(stopped, 1, 0))


def _wards(draws: _Draws, decades: Floats, fertile: Flags, smokes: Flags) -> Whole:
    """Choose a ward's index per visit: rare ones first, internal medicine is what remains."""
    obstetrics = draws.uniform(_VISITS) < 0.35 * fertile
    heart = draws.uniform(_VISITS) < _logistic(-1.9 + 0.3 * decades + 0.5 * smokes)
    position = draws.uniform(_VISITS)
    rest = np.where(position < 0.25, 2, np.where(position < 0.5 - 0.03 * decades, 3, 0))
    return np.where(obstetrics, 4, np.where(heart, 1, rest))


def _diagnoses(draws: _Draws, ward: Whole, diabetes: Flags) -> npt.NDArray[Any]:
    position = draws.uniform(_VISITS)
    code = np.empty(ward.shape, dtype=object)
    for index, weights in enumerate(_DIAGNOSES.values()):
        here = ward == index
        code[here] = _choose(position[here], weights)
    for_diabetes = draws.uniform(_VISITS) < np.array([0.3, 0.06, 0.08, 0.15, 0.0])[ward]
    return np.where(diabetes & for_diabetes, _choose(position, _DIABETIC_CODES), code)


def _pressures(draws: _Draws, level: Floats, decades: Floats) -> tuple[Whole, Whole]:
    """Read systolic and diastolic pressure; a hand reading rounds both to the same step."""
    systolic = level + 8.0 * draws.normal(_VISITS)
    diastolic = 78.0 + 0.28 * (systolic - 125.0) - 1.2 * decades + 6.0 * draws.normal(_VISITS)
    by_hand = draws.uniform(_VISITS) < 0.6
    taste = draws.uniform(_VISITS)
    step = np.where(by_hand, np.where(taste < 0.6, 10, np.where(taste < 0.8, 5, 2)), 1)
    high = np.clip(np.round(systolic / step) * step, 70, 240)
    low = np.clip(np.round(diastolic / step) * step, 30, high - 10)
    return high.astype(np.int64), low.astype(np.int64)


def _calendar(
    draws: _Draws, readmitted: Flags, stay: Whole, returning: Floats
) -> tuple[Flags, Whole]:
    """Tell which of the visits take place and are recorded, and on which day they start."""
    later = draws.uniform(_VISITS) < _logistic(returning)
    position = draws.uniform(_VISITS)
    soon = 1 + np.floor(30.0 * position)
    distant = 31 + np.floor(-240.0 * np.log1p(-position))
    gap = np.where(readmitted, soon, distant).astype(np.int64)
    day = np.floor(_ENROLMENT_DAYS * draws.uniform(1)).astype(np.int64)
    day = np.concatenate([day, day + np.cumsum(stay + gap, axis=1)[:, :-1]], axis=1)
    first = np.full_like(later[:, :1], True)
    comes = np.concatenate([first, (readmitted | later)[:, :-1]], axis=1) & (day <= _LAST_DAY)
    return np.logical_and.accumulate(comes, axis=1), day


Ints = npt.NDArray[np.int64]

_YEAR, _MOST_VISITS, _LAST = 365.25, 24, 1826
_START = np.datetime64("2015-01-01", "D")


def simulate_cohort(patients: int, *, seed: int) -> dict[str, pd.DataFrame]:
    """Simulate the linked tables of the shipped schema ``clinic``: patients, visits, labs, events.

    Args:
        patients: how many.
        seed: of the simulation; the same seed gives the same tables.

    Raises:
        InputError: there is no patient to simulate.

    >>> cohort = simulate_cohort(100, seed=1)
    >>> {name: table.shape[1] for name, table in cohort.items()}
    {'patients': 6, 'visits': 5, 'labs': 4, 'events': 3}
    """
    if patients < 1:
        raise InputError(f"patients must be at least 1, not {patients}")
    rng = np.random.default_rng(seed)
    frailty = rng.normal(size=patients)
    age = np.clip(np.rint(rng.normal(62, 11, patients)), 40, 90)
    diabetes = rng.random(patients) < _logistic(-1.4 + 0.03 * (age - 62) + 0.5 * frailty)
    included = rng.integers(0, _LAST, patients)
    death = _waiting(30, 0.07 * (age - 62) + 0.5 * frailty + 0.5 * diabetes, rng)
    followed = np.minimum(death, np.minimum(_waiting(8, np.zeros(patients), rng), _LAST))
    baseline = pd.DataFrame(
        {
            "patient": [f"C{number:06d}" for number in range(1, patients + 1)],
            "sex": np.where(rng.random(patients) < 0.5, "female", "male"),
            "age": age.astype(np.int64),
            "diabetes": np.where(diabetes, "true", "false"),
            "included": _dates(included),
            "followed": followed,
        }
    )
    level = 150 + 5 * frailty + 0.3 * (age - 62) + 4 * diabetes
    visits = _visits(frailty, level, followed, rng)
    labs = _labs(visits, frailty, diabetes, rng)
    events = _events(level, death, followed, rng)
    return {"patients": baseline} | {
        name: _dated(table, baseline["patient"].to_numpy(), included)
        for name, table in (("visits", visits), ("labs", labs), ("events", events))
    }


def _waiting(years: float, log_hazard: Floats, rng: np.random.Generator) -> Ints:
    """Draw whole days until something happens whose mean time is so many years at hazard 0."""
    days = rng.exponential(years * _YEAR, len(log_hazard)) * np.exp(-log_hazard)
    return np.floor(np.minimum(days, 10**6)).astype(np.int64)


def _dates(days: Ints) -> npt.NDArray[np.str_]:
    return np.datetime_as_string(_START + days)


def _visits(
    frailty: Floats, level: Floats, followed: Ints, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw the visits, one after the other for all patients at once."""
    patients = len(frailty)
    day = rng.integers(0, 31, patients)
    drugs = rng.integers(0, 2, patients)
    apart = rng.normal(0, 12, patients)
    weight = np.clip(rng.normal(82, 14, patients) + 3 * frailty, 35, 190)
    rows = []
    for number in range(_MOST_VISITS):
        here = np.flatnonzero(day <= followed)
        pressure = np.clip(np.rint(level - 8 * drugs + apart), 70, 250)
        missing = rng.random((2, patients)) < 0.05
        rows.append(
            pd.DataFrame(
                {
                    "place": here,
                    "number": number,
                    "day": day[here],
                    "systolic": np.where(missing[0], np.nan, pressure)[here],
                    "weight": np.where(missing[1], np.nan, np.rint(2 * weight) / 2)[here],
                    "drugs": drugs[here],
                }
            )
        )
        more = (pressure > 150) & (rng.random(patients) < 2 / 3)
        drugs = np.minimum(drugs + more, 3)
        apart = 0.5 * apart + rng.normal(0, 10, patients)
        weight = np.clip(weight + rng.normal(0, 1.2, patients), 35, 190)
        day = day + 14 + rng.geometric(1 / (86 * np.exp(-0.2 * frailty)))
    table = pd.concat(rows).sort_values(["place", "number"], ignore_index=True)
    return table.astype({"systolic": "Int64"}).drop(columns="number")


def _labs(
    visits: pd.DataFrame, frailty: Floats, diabetes: npt.NDArray[np.bool_], rng: np.random.Generator
) -> pd.DataFrame:
    """Draw the samples that are taken at visits."""
    place, day = visits["place"].to_numpy(), visits["day"].to_numpy()
    sugar = np.where(
        diabetes, rng.gamma(4, 0.55, len(frailty)) + 6, rng.normal(5.5, 0.3, len(frailty))
    )
    kidney = np.exp(rng.normal(4.4, 0.25, len(frailty)) + 0.1 * frailty)
    hba1c = np.clip(sugar[place] + rng.normal(0, 0.35, len(place)), 4, 16)
    years = day / _YEAR
    creatinine = (
        kidney[place]
        * np.exp(0.02 * years * (1 + frailty[place]))
        * np.exp(rng.normal(0, 0.08, len(place)))
    )
    taken = rng.random((2, len(place))) < np.stack(
        [np.where(diabetes[place], 0.5, 0.1), np.full(len(place), 1 / 3)]
    )
    values = (np.round(hba1c, 1), np.rint(np.clip(creatinine, 20, 800)))
    tables = [
        pd.DataFrame({"place": place[own], "day": day[own], "test": test, "value": value[own]})
        for test, own, value in zip(("hba1c", "creatinine"), taken, values, strict=True)
    ]
    return pd.concat(tables).sort_values(["place", "day", "test"], ignore_index=True)


def _events(level: Floats, death: Ints, followed: Ints, rng: np.random.Generator) -> pd.DataFrame:
    """Draw what happens once, as far as it is within follow-up."""
    days = {
        "stroke": _waiting(60, 0.05 * (level - 150), rng),
        "infarction": _waiting(45, 0.04 * (level - 150), rng),
        "death": death,
    }
    tables = []
    for name, day in days.items():
        seen = np.flatnonzero(day <= followed)
        tables.append(pd.DataFrame({"place": seen, "day": day[seen], "event": name}))
    return pd.concat(tables).sort_values(["place", "day", "event"], ignore_index=True)


def _dated(table: pd.DataFrame, keys: npt.NDArray[np.object_], included: Ints) -> pd.DataFrame:
    """Put the patient's key and the date in place of her number and the day."""
    place, day = table["place"].to_numpy(), table["day"].to_numpy()
    columns = {"patient": keys[place], "date": _dates(included[place] + day)}
    return pd.DataFrame(columns | {name: table[name].to_numpy() for name in table.columns[2:]})
