"""Fit the generator of histories to two real cohorts, and score what it draws.

usage: histories.py TABLE --scorer FOLDER [--epsilon 3] [--seeds 3] [--full] [--model M] [--rows]

TABLE is nafld or diabetes130. FOLDER holds the scorer (cohorts.py, cohort_tables.py), which is no
part of this project; DPSYNTH_DATA names the folder of the real tables. Bounds are public facts.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from history_rows import RowGenerator

from dpsynth.encoding import NEVER, Histories, SeriesRows
from dpsynth.models import Feature, histories_class
from dpsynth.models.histories import (
    FollowUp,
    HistoryDomain,
    HistoryTable,
    Series,
)
from dpsynth.models.registry import COHORT, LINKED
from dpsynth.privacy import OsEntropy, PrivacyBudget, PrivacyPlan

LABS = {"hdl": (5, 200, 1), "sbp": (50, 300, 1), "smoke": (0, 1, 1), "fib4": (0, 30, 0.01)}
MOST = {
    "time_in_hospital": 14,
    "num_lab_procedures": 150,
    "num_procedures": 10,
    "num_medications": 100,
    "number_outpatient": 50,
    "number_emergency": 100,
    "number_inpatient": 30,
    "number_diagnoses": 16,
}
WEEKS = 1044
ROWS = {"nafld": 16, "diabetes130": 8}  # of a patient in row mode


def feature(name: str, cells: int, size: int | None = None) -> Feature:
    """Return a column of ordered codes, and unordered ones after them."""
    return Feature(name, size or cells, cells, (1,) * cells)


class Nafld:
    """Laboratory values by day, conditions, and follow-up."""

    def __init__(self, train: Any, spec: Any) -> None:
        """Code the cohort."""
        people, self.spec = train.patients, spec
        self.cells = {t: round((high - low) / step) + 1 for t, (low, high, step) in LABS.items()}
        columns = [
            np.clip(people.age - 18, 0, 80),
            people.male,
            _coded(people.height, 100, 1, 121),
            _coded(people.bmi, 10, 0.1, 701),
            np.clip(np.rint(people.futime / 7), 0, WEEKS - 1),
            people.status,
        ]
        baseline = (
            feature("age", 81),
            feature("male", 0, 2),
            feature("height", 121, 122),
            feature("bmi", 701, 702),
            feature("futime", WEEKS),
            feature("status", 0, 2),
        )
        series = tuple(Series(t, (feature("value", self.cells[t]),), 300) for t in spec.visit)
        labs = HistoryTable("labs", series, True, 14_600, (True,))
        end = FollowUp(4, 7 * np.arange(WEEKS), status=5)
        self.domain = HistoryDomain(baseline, spec.events, (labs,), -14_600, 7_305, 14_000, end)
        ends = np.maximum(7 * np.rint(people.futime / 7), people.futime).to_numpy().astype(np.int64)
        onsets = np.stack([_first(train.events, e, people.index) for e in spec.events], axis=1)
        visits = train.visits.sort_values(["pid", "time"], kind="stable")
        place = people.index.get_indexer(visits.pid)
        rows = []
        for kind in spec.visit:
            own = (visits.type == kind).to_numpy()
            low, _, step = LABS[kind]
            codes = np.rint((visits.value.to_numpy(float)[own] - low) / step)
            codes = np.clip(codes, 0, self.cells[kind] - 1).astype(np.uint16)
            days = visits.time.to_numpy()[own].astype(np.int64)
            rows.append(SeriesRows(place[own], days, codes[:, None]))
        self.histories = Histories(_table(columns), ends, onsets, (tuple(rows),))

    def cohort(self, drawn: Histories, kind: Any) -> Any:
        """Return drawn histories as the scorer takes them."""
        codes = drawn.baseline.astype(int).T
        people = pd.DataFrame(
            {
                "age": codes[0] + 18,
                "male": codes[1],
                "height": np.where(codes[2] == 121, np.nan, codes[2] + 100.0),
                "bmi": np.where(codes[3] == 701, np.nan, 10 + codes[3] / 10),
                "futime": codes[4] * 7,
                "status": codes[5],
            },
            index=pd.RangeIndex(len(drawn), name="pid"),
        )
        events = []
        for days, event in zip(drawn.onsets.T, self.spec.events, strict=True):
            who = np.flatnonzero(days != NEVER)
            events.append(pd.DataFrame({"pid": who, "time": days[who], "event": event}))
        visits = []
        for rows, test in zip(drawn.rows[0], self.spec.visit, strict=True):
            values = LABS[test][0] + LABS[test][2] * rows.values[:, 0].astype(int)
            frame = {"pid": rows.patients, "time": rows.days, "type": test, "value": values}
            visits.append(pd.DataFrame(frame))
        table = pd.concat(visits).sort_values(["pid", "time"], kind="stable")
        return kind(people, table.reset_index(drop=True), pd.concat(events))


class Diabetes:
    """Encounters in order, without days."""

    def __init__(self, train: Any, spec: Any) -> None:
        """Code the cohort."""
        people, self.spec = train.patients, spec
        self.levels = {c: sorted(people[c].unique()) for c in people}
        columns = [people[c].map({v: i for i, v in enumerate(self.levels[c])}) for c in people]
        baseline = tuple(feature(c, 0, len(self.levels[c])) for c in people)
        visits = train.visits.sort_values(["pid", "time"], kind="stable")
        self.words = {c: sorted(visits[c].unique()) for c in spec.visit if c not in MOST}
        values = [
            np.clip(visits[c], 0, MOST[c])
            if c in MOST
            else visits[c].map({v: i for i, v in enumerate(self.words[c])})
            for c in spec.visit
        ]
        features = tuple(
            feature(c, MOST[c] + 1) if c in MOST else feature(c, 0, len(self.words[c]))
            for c in spec.visit
        )
        table = HistoryTable(
            "visits", (Series("visits", features, 40),), False, 1, (False,) * len(features)
        )
        self.domain = HistoryDomain(baseline, (), (table,), 0, 0, 57_000)
        place = people.index.get_indexer(visits.pid)
        rows = SeriesRows(place, np.zeros(len(place), np.int64), _table(values))
        none = np.empty((len(people), 0), np.int64)
        ends = np.zeros(len(people), np.int64)
        self.histories = Histories(_table(columns), ends, none, ((rows,),))

    def cohort(self, drawn: Histories, kind: Any) -> Any:
        """Return drawn histories as the scorer takes them."""
        people = pd.DataFrame(
            {
                c: np.array(levels)[codes]
                for (c, levels), codes in zip(self.levels.items(), drawn.baseline.T, strict=True)
            },
            index=pd.RangeIndex(len(drawn), name="pid"),
        )
        rows = drawn.rows[0][0]
        visits = pd.DataFrame({"pid": rows.patients})
        visits["time"] = visits.groupby("pid").cumcount()
        for c, codes in zip(self.spec.visit, rows.values.T, strict=True):
            visits[c] = codes.astype(int) if c in MOST else np.array(self.words[c])[codes]
        return kind(people, visits, None)


def _coded(values: pd.Series[float], low: float, step: float, missing: int) -> Any:
    codes = np.clip(np.rint((values.fillna(0) - low) / step), 0, missing - 1)
    return np.where(values.isna(), missing, codes)


def _first(events: pd.DataFrame, event: str, index: pd.Index[Any]) -> Any:
    days = events[events.event == event].groupby("pid").time.min().reindex(index).to_numpy(float)
    return np.where(np.isnan(days), NEVER, np.nan_to_num(days)).astype(np.int64)


def _table(columns: list[Any]) -> Any:
    return np.column_stack(columns).astype(np.uint16)


def main() -> None:
    """Fit and draw as many patients, a few times over; print the scores and their means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("nafld", "diabetes130"))
    parser.add_argument("--scorer", required=True)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=1, help="fits; seeds are of the draws alone")
    parser.add_argument("--model", choices=LINKED, default=COHORT)
    parser.add_argument("--rows", action="store_true", help="the flat mixture of joined rows")
    parser.add_argument("--full", action="store_true", help="with what trains classifiers")
    options = parser.parse_args()
    sys.path.insert(0, options.scorer)
    from cohort_tables import load
    from cohorts import Cohort, score

    train, holdout, spec = load(options.table, os.environ["DPSYNTH_DATA"])
    source = {"nafld": Nafld, "diabetes130": Diabetes}[options.table](train, spec)
    kept: dict[str, Any] = {}
    found = []
    for seed in range(options.seeds):
        generator: Any
        if options.rows:
            generator = RowGenerator(source.domain, ROWS[options.table])
        else:
            generator = histories_class(options.model)(source.domain)
        budget = PrivacyBudget(options.epsilon, 1e-5)
        plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
        start, worked = time.monotonic(), time.process_time()
        generator.fit(source.histories, plan, plan.opened(OsEntropy()))
        fitted, worked = time.monotonic() - start, time.process_time() - worked
        drawn = generator.sample(len(train.patients), np.random.default_rng(seed))
        cohort = source.cohort(drawn, Cohort)
        found.append(score(train, holdout, cohort, spec, cache=kept, quick=not options.full))
        print(f"fit {fitted:.1f} s, of which the processor worked {worked:.1f} s", flush=True)
        print(_line(found[-1]), flush=True)
    print("mean", _line({name: float(np.mean([one[name] for one in found])) for name in found[0]}))
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _line(scores: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.4f}" for name, value in scores.items())


if __name__ == "__main__":
    main()
