"""The demo cohort of linked tables: histories of simulated patients, from a process known in full.

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

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_YEAR, _VISITS, _LAST = 365.25, 24, 1826
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


def _logistic(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


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
    for number in range(_VISITS):
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
