"""Do cells of several codes keep which codes occur together?

usage: code_sets.py [--epsilon 1 3 10] [--seeds 1] [--kinds chapters set ordered]

Joins the three diagnoses of diabetes130 into one column ``a;b;c`` and fits the mixture to it, as a
set and as an ordered list of codes; beside them chapters alone, in three columns, whose codes are
then drawn alike. Prints the total variation distance of codes, of codes with age, of pairs of codes
of one cell, of the first code (where order is kept), and of the number of codes, beside a bootstrap
of the rows. Needs DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from codes import COLUMNS, DELTA, public_list, schema_of, source, spread

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.schema import Schema
from dpsynth.tables import open_table

NAME = "diagnoses"
KINDS = ("chapters", "set", "ordered")
Texts = list[tuple[str, ...]]


def schema_with_sets(*, ordered: bool) -> Schema:
    """Return the shipped schema with one column of up to three codes."""
    document: dict[str, Any] = schema_of(public_list(), emitted=True).to_dict()
    fields = [field for field in document["fields"] if field["name"] not in COLUMNS]
    first = next(field for field in document["fields"] if field["name"] == COLUMNS[0])
    codes = first["dpsynth"]["codes"] | {
        "several": {"separator": ";", "most": len(COLUMNS), "ordered": ordered}
    }
    own = {"role": "sensitive", "codes": codes}
    fields.append({"name": NAME, "type": "string", "missingValues": ["", "?"], "dpsynth": own})
    return Schema.from_dict(document | {"fields": fields})


def joined(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the diagnoses in one column."""
    texts = frame[list(COLUMNS)].fillna("").agg(";".join, axis=1)
    return frame.drop(columns=list(COLUMNS)).assign(**{NAME: texts})


def cells_of(frame: pd.DataFrame) -> Texts:
    """Return the codes of each cell."""
    return [tuple(text.split(";")) if text else () for text in frame[NAME].fillna("")]


def apart(real: list[Any], other: list[Any]) -> float:
    """Return the total variation distance of two lists of values."""
    shares = [pd.Series(values).value_counts(normalize=True) for values in (real, other)]
    return float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2)


def parts_of(cells: Texts, ages: npt.NDArray[Any]) -> tuple[list[Any], ...]:
    """Return codes, codes with age, pairs, first codes and numbers of codes."""
    texts = ages.tolist()
    return (
        [code for cell in cells for code in cell],
        [f"{code} {age}" for cell, age in zip(cells, texts, strict=True) for code in cell],
        [" ".join(pair) for cell in cells for pair in combinations(sorted(cell), 2)],
        [cell[0] for cell in cells if cell],
        [len(cell) for cell in cells],
    )


def figures(real: tuple[list[Any], ...], other: tuple[list[Any], ...], *, first: bool) -> str:
    """Write the distances of one table."""
    found = [f"{apart(a, b):.4f}" for a, b in zip(real, other, strict=True)]
    return " | ".join(found if first else [*found[:3], "", found[4]]) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    options = parser.parse_args()
    kept = {ordered: schema_with_sets(ordered=ordered) for ordered in (False, True)}
    columns = schema_of(public_list(), emitted=True)
    rows = pd.concat(open_table(str(source()), columns).chunks(), ignore_index=True)
    table, rng = joined(rows), np.random.default_rng(0)
    real_cells = Codec(kept[True]).bounded(table)
    real = parts_of(cells_of(real_cells), real_cells["age"].to_numpy())
    print("| epsilon | modelled | codes | codes with age | pairs in a cell | first | number |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    budget = {"delta": DELTA, "dataset": "codes", "without_ledger": True}
    for epsilon in options.epsilon:
        for kind in options.kinds:
            frame, schema = table, kept[kind == "ordered"]
            if kind == "chapters":
                frame, schema = rows, schema_of([], emitted=False)
            run = dpsynth.fit(frame, schema, model="mixture", epsilon=epsilon, **budget)
            for seed in range(options.seeds):
                drawn = run.sample(len(rows), seed=seed)
                if kind == "chapters":
                    drawn = Codec(kept[True]).bounded(joined(spread(drawn, columns, rng)))
                parts = parts_of(cells_of(drawn), drawn["age"].to_numpy())
                line = figures(real, parts, first=kind != "set")
                print(f"| {epsilon:g} | {kind} | {line}", flush=True)
    again = real_cells.sample(frac=1.0, replace=True, random_state=1)
    parts = parts_of(cells_of(again), again["age"].to_numpy())
    print(f"| | bootstrap of rows | {figures(real, parts, first=True)}")


if __name__ == "__main__":
    main()
