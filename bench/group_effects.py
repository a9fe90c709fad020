"""Do drawn histories keep differences between groups, at the first visit and later?

usage: group_effects.py [--patients 8000] [--epsilon 3] [--fits 3]

Simulates the clinic, fits `cohort`, draws as many patients, and prints mean systolic pressure by
age and by diabetes: at the first visit, at the third to fifth, and from the ninth on.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from dpsynth.encoding import Histories, HistoryCodec, decode_histories, read_histories
from dpsynth.models.histories import CohortGenerator, domain_of
from dpsynth.privacy import OsEntropy, PrivacyBudget, PrivacyPlan
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked, simulate_cohort

AGES = [39, 55, 65, 75, 90]
VISITS = {"first": (0, 0), "third to fifth": (2, 4), "ninth on": (8, 99)}


def show(name: str, histories: Histories, codec: HistoryCodec) -> None:
    """Print means of one cohort."""
    frames = decode_histories(histories, codec, np.random.default_rng(0))
    key = codec.schema.key
    visits = frames["visits"].merge(frames["patients"], on=key)
    visits["age"] = pd.cut(visits["age"].astype(float), AGES)
    place = visits.groupby(key).cumcount()
    for when, (first, last) in VISITS.items():
        part = visits[place.between(first, last)]
        means = [
            part.groupby(column, observed=True)["systolic"].mean().round(1).tolist()
            for column in ("age", "diabetes")
        ]
        print(f"| {name} | {when} | {means[0]} | {means[1]} |")


def main() -> None:
    """Simulate, fit some times over, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, default=8_000)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--fits", type=int, default=3)
    options = parser.parse_args()
    schema = LinkedSchema.load("clinic")
    codec = HistoryCodec(schema)
    tables = simulate_cohort(options.patients, seed=1)
    real = read_histories(open_linked(tables, schema), codec, OsEntropy())
    print("| cohort | visits | by age | without and with diabetes |\n| --- | --- | --- | --- |")
    show("source", real, codec)
    for fit in range(options.fits):
        generator = CohortGenerator(domain_of(codec))
        budget = PrivacyBudget(options.epsilon, 1e-6)
        plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
        generator.fit(real, plan, plan.opened(OsEntropy()))
        drawn = generator.sample(options.patients, np.random.default_rng(fit))
        show(f"fit {fit + 1}", drawn, codec)


if __name__ == "__main__":
    main()
