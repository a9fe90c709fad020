"""How long temporal rules take: seconds for each rule, tables put in order anew each time.

python bench/temporal_rules.py            # 100,000 patients with 10 visits each on average
python bench/temporal_rules.py --patients 1000
"""

from __future__ import annotations

import argparse
import time

import pandas as pd

from dpsynth.schema import LinkedSchema, PatientRows, TemporalRule
from dpsynth.tables import simulate_cohort

RULES = (
    "each(visits).date >= patients.included",
    "next(visits).date > each(visits).date",
    "each(visits).date >= first(visits).date",
    "count(visits) >= 1 or patients.sex == 'F'",
    "each(visits).systolic > 60 implies each(visits).weight > 30",
)


def main() -> None:
    """Time each rule, and all of them over tables that are put in order once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, default=100_000)
    patients = parser.parse_args().patients
    schema, tables = LinkedSchema.load("clinic"), simulate_cohort(patients, seed=1)
    for name, column in (("patients", "included"), ("visits", "date")):  # as a sampler writes them
        tables[name][column] = pd.to_datetime(tables[name][column]).astype("datetime64[s]")
    print({name: len(table) for name, table in tables.items()})
    rules = [TemporalRule.parse(text) for text in RULES]
    for rule in rules:
        start = time.perf_counter()
        share = rule.holds(tables, schema).mean()
        print(f"{time.perf_counter() - start:6.2f} s  {share:6.1%} hold  {rule.text}")
    start = time.perf_counter()
    rows = PatientRows(tables, schema)
    for rule in rules:
        rule.holds_in(rows)
    print(f"{time.perf_counter() - start:6.2f} s  all of them together")


if __name__ == "__main__":
    main()
