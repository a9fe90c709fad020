"""Do the conditions of nafld keep their codes, whom they belong to, and when in life they come?

usage: conditions.py [--epsilon 1 3 10]

Takes the conditions of the cohort nafld as a table of rows: a day and a code of ICD-9-CM, of which
ten occur (by a public mapping of the ten words of the source). Fits the generator `cohort` three
times: with chapters, whose codes are then drawn alike; with a public list of 1 342 codes; and with
codes that the fit discovers. Prints the total variation distance of codes, of pairs of different
codes that a patient has, of codes with the decade of age, and of the codes of two rows in a row;
of discovered codes also how many were found, missed and false, and how many were predicted from
the exact numbers of patients, which no fit knows. Beside it a bootstrap of patients. Needs
DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from codes import DELTA, apart, public_list

from dpsynth.models import DISCOVERY
from dpsynth.privacy import CodeDiscovery, Outlook
from dpsynth.schema import LinkedSchema, discovering
from dpsynth.synthesis import fit, prepare

CODES = {
    "dyslipidemia": "272",
    "diabetes": "250",
    "htn": "401",
    "MI": "410",
    "ang/isc": "413",
    "afib": "427.31",
    "cardiac arrest": "427.5",
    "heart failure": "428",
    "stroke": "434",
    "nafld": "571",
}
KINDS = ("chapters", "list", "discovered")
MOST = 8  # rows of a patient
BASIS = "Allen et al. 2018"
SYSTEM: dict[str, Any] = {"system": "ICD-9-CM"}


def package(kind: str) -> LinkedSchema:
    """Return the linked tables: conditions as chapters, as listed codes, or to be discovered."""
    listed = {"model": "chapter", "list": {"codes": sorted({*public_list(), *CODES.values()})}}
    codes = {
        "chapters": SYSTEM | {"rollup": "chapter"},
        "list": SYSTEM | listed,
        "discovered": SYSTEM | {"rollup": "chapter", "discover": True, "expected": 20},
    }[kind]
    key = {"name": "id", "type": "string"}
    own = {"bounds_basis": BASIS}
    age = {"minimum": 18, "maximum": 98, "required": True}
    patients = [
        key,
        {"name": "age", "type": "integer", "constraints": age, "dpsynth": own},
        {
            "name": "male",
            "type": "integer",
            "constraints": {"enum": [0, 1], "required": True},
            "dpsynth": own,
        },
    ]
    rows = [
        key,
        {"name": "days", "type": "integer"},
        {
            "name": "code",
            "type": "string",
            "constraints": {"required": True},
            "dpsynth": {"codes": codes},
        },
    ]
    foreign = [{"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}]
    return LinkedSchema.from_dict(
        {
            "name": "nafld-conditions",
            "resources": [
                {"name": "patients", "schema": {"primaryKey": ["id"], "fields": patients}},
                {
                    "name": "conditions",
                    "schema": {"foreignKeys": foreign, "fields": rows},
                    "dpsynth": {
                        "time": "days",
                        "max_rows": {"value": MOST, "basis": "a stated choice"},
                    },
                },
            ],
            "dpsynth": {
                "version": 1,
                "patients": "patients",
                "population": {"value": 17_500, "basis": BASIS},
                "window": {"first": -14_600, "last": 7_305, "basis": BASIS},
            },
        }
    )


def tables() -> dict[str, pd.DataFrame]:
    """Read both tables, each cell as text."""
    folder = Path(os.environ["DPSYNTH_DATA"])
    patients = pd.read_csv(folder / "nafld_patients.csv.gz", dtype=str)[["id", "age", "male"]]
    rows = pd.read_csv(folder / "nafld_events.csv.gz", dtype=str)
    rows = rows.assign(code=rows["event"].map(CODES)).drop(columns="event")
    return {"patients": patients, "conditions": rows}


def with_groups(rows: pd.DataFrame, patients: pd.DataFrame) -> pd.DataFrame:
    """Return rows in order, with the decade of age and the code of the patient's next row."""
    ages = pd.to_numeric(patients.set_index("id")["age"]).astype(float) // 10
    rows = rows.assign(days=pd.to_numeric(rows["days"])).sort_values(["id", "days"], kind="stable")
    return rows.assign(age=rows["id"].map(ages), next=rows.groupby("id")["code"].shift(-1))


def pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each pair of different codes that a patient has, once."""
    own = rows[["id", "code"]].drop_duplicates()
    both = own.merge(own, on="id", suffixes=("", "_other"))
    return both[both["code"] < both["code_other"]]


def figures(real: pd.DataFrame, other: pd.DataFrame) -> str:
    """Write the distances of one table."""
    followed = [frame[frame["next"].notna()] for frame in (real, other)]
    found = (
        apart(real, other, ["code"]),
        apart(pairs(real), pairs(other), ["code", "code_other"]),
        apart(real, other, ["code", "age"]),
        apart(*followed, ["code", "next"]),
    )
    return " | ".join(f"{one:.4f}" for one in found)


def spread(codes: pd.Series, schema: LinkedSchema, rng: np.random.Generator) -> pd.Series:
    """Draw a code of the public list for each chapter, all alike."""
    declared = schema.children[0].schema.column("code").codes
    assert declared is not None
    of = pd.Series(declared.group_of, index=list(declared.categories))
    members = {group: part.index.to_numpy() for group, part in of.groupby(of)}
    drawn = codes.copy()
    for group, rows in codes.groupby(codes).groups.items():
        if group in members:
            drawn.loc[rows] = rng.choice(members[group], len(rows))
    return drawn


def predicted(real: pd.DataFrame, schema: LinkedSchema, epsilon: float) -> float:
    """Return the expected number of codes that are found, from exact numbers of patients."""
    event = prepare(schema, epsilon=epsilon, delta=DELTA, model="cohort").plan.event(DISCOVERY)
    assert isinstance(event, CodeDiscovery)
    own = real[["id", "code"]].drop_duplicates()
    each = own.groupby("id")["code"].transform("size")
    mass = (1 / np.sqrt(each)).groupby(own["code"]).sum()
    return float(Outlook(event).found(mass.to_numpy()).sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    options = parser.parse_args()
    schemas, data = {kind: package(kind) for kind in KINDS}, tables()
    rng = np.random.default_rng(0)
    source = data["conditions"].sample(frac=1.0, random_state=0).groupby("id").head(MOST)
    real = with_groups(source, data["patients"])
    names = ("codes", "pairs", "codes with age", "in a row", "found", "predicted", "false")
    print(f"| epsilon | modelled | {' | '.join(names)} |\n| --- | --- |{' ---: |' * len(names)}")
    budget = {"delta": DELTA, "dataset": "conditions", "without_ledger": True}
    for epsilon in options.epsilon:
        for kind in KINDS:
            run = fit(data, schemas[kind], model="cohort", epsilon=epsilon, **budget)
            drawn = run.sample(len(data["patients"]), seed=1)
            rows = drawn["conditions"]
            if kind == "chapters":
                rows = rows.assign(code=spread(rows["code"], schemas["list"], rng))
            searched = " | | "
            for table in discovering(run.schema):
                found = set(table.columns[0].discovery.found)  # type: ignore[union-attr,arg-type]
                false = len(found - set(CODES.values()))
                expected = predicted(real, schemas[kind], epsilon)
                searched = f"{len(found)} of {len(CODES)} | {expected:.1f} | {false}"
            words = figures(real, with_groups(rows, drawn["patients"]))
            print(f"| {epsilon:g} | {kind} | {words} | {searched} |", flush=True)
    ids = data["patients"]["id"].sample(frac=1.0, replace=True, random_state=1)
    again = pd.DataFrame({"id": ids, "as": np.arange(len(ids)).astype(str)})
    rows = real.merge(again, on="id").drop(columns="id").rename(columns={"as": "id"})
    print(f"| | bootstrap of patients | {figures(real, rows)} | | | |")


if __name__ == "__main__":
    main()
