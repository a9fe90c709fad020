"""Do histories keep the codes of a table of rows, and how they follow each other?

usage: linked_codes.py [--epsilon 1 3 10] [--alone]

Takes diabetes130 as linked tables: patients with their sex, and their encounters in order, each
with age and principal diagnosis. Fits the generator `cohort` with a public list of categories of
ICD-9-CM, and with chapters, whose codes are then drawn alike. Prints the total variation distance
of codes, of codes with age, and of the codes of two encounters in a row, beside a bootstrap.
``--alone`` counts codes without their groups, as before groups were counted. Needs DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from codes import DELTA, apart, public_list, schema_of, source

from dpsynth.encoding import history_codec as linked_codec
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.synthesis import fit

KEY, ORDER, CODE, AGE = "patient_nbr", "encounter_id", "diag_1", "age"
KINDS = ("chapters", "codes")


def package(*, emitted: bool) -> LinkedSchema:
    """Return the linked tables, with diagnoses as codes, or as chapters."""
    flat = schema_of(public_list(), emitted=emitted).to_dict()
    fields = {field["name"]: field for field in flat["fields"]}
    number = {"value": 71_518, "basis": "Strack et al. 2014"}
    key = {"name": KEY, "type": "string"}
    encounters = {
        "foreignKeys": [{"fields": [KEY], "reference": {"resource": "patients", "fields": [KEY]}}],
        "missingValues": ["", "?"],
        "fields": [key, {"name": ORDER, "type": "integer"}, fields[AGE], fields[CODE]],
    }
    own = {"order": ORDER, "max_rows": {"value": 5, "basis": "a stated choice"}}
    document: dict[str, Any] = {
        "name": "diabetes130-histories",
        "resources": [
            {
                "name": "patients",
                "schema": {"primaryKey": [KEY], "fields": [key, fields["gender"]]},
            },
            {"name": "encounters", "schema": encounters, "dpsynth": own},
        ],
        "dpsynth": {"version": 1, "patients": "patients", "population": number},
    }
    return LinkedSchema.from_dict(document)


def tables() -> dict[str, pd.DataFrame]:
    """Read both tables, each cell as text."""
    rows = pd.read_csv(source(), dtype=str, keep_default_na=False)
    patients = rows.drop_duplicates(KEY)[[KEY, "gender"]].reset_index(drop=True)
    return {"patients": patients, "encounters": rows[[KEY, ORDER, AGE, CODE]]}


def spread(codes: pd.Series, schema: Schema, rng: np.random.Generator) -> pd.Series:
    """Draw a code of the list for each chapter, all alike."""
    declared = schema.column(CODE).codes
    assert declared is not None
    of = pd.Series(declared.group_of, index=list(declared.categories))
    members = {group: part.index.to_numpy() for group, part in of.groupby(of)}
    drawn = codes.copy()
    for group, rows in codes.groupby(codes).groups.items():
        drawn.loc[rows] = rng.choice(members[group], len(rows))
    return drawn


def with_next(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows by patient and order, each with the code of the patient's next one."""
    rows = rows.assign(**{ORDER: pd.to_numeric(rows[ORDER])}).sort_values([KEY, ORDER])
    return rows.assign(next=rows.groupby(KEY)[CODE].shift(-1))


def figures(real: pd.DataFrame, other: pd.DataFrame) -> str:
    """Write the distances of one table."""
    followed = [frame[frame["next"].notna()] for frame in (real, other)]
    found = apart(real, other, [CODE]), apart(real, other, [CODE, AGE])
    return f"{found[0]:.4f} | {found[1]:.4f} | {apart(*followed, [CODE, 'next']):.4f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    schemas = {kind: package(emitted=kind == "codes") for kind in KINDS}
    data, rng = tables(), np.random.default_rng(0)
    encounters = schemas["codes"].children[0].schema
    column = encounters.column(CODE)
    assert column.codes is not None
    source_rows = data["encounters"]
    known = {text: column.codes.roll_up(text) for text in source_rows[CODE].unique()}
    capped = source_rows.assign(**{CODE: source_rows[CODE].map(known)})
    capped = capped.sample(frac=1.0, random_state=0).groupby(KEY).head(5)
    real = with_next(capped)
    print("| epsilon | modelled | codes | codes with age | codes in a row |")
    print("| --- | --- | ---: | ---: | ---: |")
    budget = {"delta": DELTA, "dataset": "codes", "without_ledger": True}
    columns_of = linked_codec._columns_of

    def alone(codec: Any) -> Any:
        return tuple(replace(one, parents=()) for one in columns_of(codec))

    for epsilon in options.epsilon:
        for kind in KINDS:
            used = alone if options.alone else columns_of
            with mock.patch.object(linked_codec, "_columns_of", used):
                run = fit(data, schemas[kind], model="cohort", epsilon=epsilon, **budget)
                drawn = run.sample(len(data["patients"]), seed=1)["encounters"]
            if kind == "chapters":
                drawn = drawn.assign(**{CODE: spread(drawn[CODE], encounters, rng)})
            print(f"| {epsilon:g} | {kind} | {figures(real, with_next(drawn))}", flush=True)
    picked = real[KEY].drop_duplicates().sample(frac=1.0, replace=True, random_state=1)
    again = real.merge(picked.to_frame(), on=KEY)
    print(f"| | bootstrap of patients | {figures(real, again)}")


if __name__ == "__main__":
    main()
