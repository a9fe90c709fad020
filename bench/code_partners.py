"""Would it pay to draw a rare code, within its group, given the patient's age?

usage: code_partners.py [--epsilon 1 3 10] [--share 0.05 0.1 0.2]

Fits the mixture to diabetes130 with listed codes. Then it draws the codes that share the bin of
their group again, given age, from a joint count of codes and age whose noise is that of a share of
the budget, and from the exact count. Each code's departure from its group's ages is shrunk as its
noise says (James and Stein, positive part). Prints the total variation distance of codes with age,
as means over the three diagnoses. The share is not taken away from the fit, so a fit would gain
less. Needs DPSYNTH_DATA.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from codes import COLUMNS, DELTA, fitted, public_list, schema_of, source

from dpsynth.encoding import Codec
from dpsynth.privacy import gaussian_mu
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables import open_table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def joint(
    codes: Ints, column: int, age: int, sizes: tuple[int, ...], weights: Any = None
) -> Floats:
    """Count codes by age, ``[codes, ages]``."""
    cells = codes[:, column] * sizes[age] + codes[:, age]
    counts = np.bincount(cells, weights, minlength=sizes[column] * sizes[age])
    return counts.reshape(sizes[column], sizes[age]).astype(np.float64)


def apart(one: Floats, other: Floats) -> float:
    """Return the total variation distance of two tables of counts."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def given_age(counts: Floats, totals: Floats, ages: Floats, sigma: float) -> Floats:
    """Estimate the rows of the codes of one bin by age: what noise does not explain is kept."""
    even = totals[:, None] * ages
    gone = counts - even
    noise = counts.shape[1] * sigma**2
    signal = np.maximum((gone**2).sum(axis=1) - noise, 0.0)
    kept = np.divide(signal, signal + noise, out=np.ones(len(gone)), where=noise > 0)
    found = np.maximum(even + kept[:, None] * gone, 0.0)
    sums = found.sum(axis=1)
    scale = np.divide(np.maximum(totals, 0.0), sums, out=np.zeros(len(gone)), where=sums > 0)
    return found * scale[:, None] + 1e-9 * (even + 1e-9)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    parser.add_argument("--share", type=float, nargs="*", default=[0.05, 0.1, 0.2])
    options = parser.parse_args()
    schema, rng = schema_of(public_list(), emitted=True), np.random.default_rng(0)
    codec = Codec(schema)
    frames = list(open_table(str(source()), schema).chunks())
    real = np.concatenate([codec.encode(frame) for frame in frames]).astype(np.int64)
    keys = np.concatenate([frame[schema.unit.column].to_numpy(str) for frame in frames])
    unit = np.unique(keys, return_inverse=True)[1]
    weights = 1.0 / np.bincount(unit)[unit]  # a patient weighs one
    age, places = codec.names.index("age"), [codec.names.index(name) for name in COLUMNS]
    shares = " | ".join(f"{share:.0%}" for share in options.share)
    print(f"| epsilon | by group alone | {shares} | exact |")
    for epsilon in options.epsilon:
        run = fitted(schema, epsilon)
        sampler = Sampler.of(run)
        drawn = sampler.codes(len(real), seed=1).astype(np.int64)
        binning = sampler.generator.start_.binning
        found: dict[float, list[float]] = {share: [] for share in (0.0, *options.share, 1.0)}
        for place in places:
            column = binning.columns[place + binning.hidden]
            exact = joint(real, place, age, codec.sizes, weights)
            target, own = (joint(codes, place, age, codec.sizes) for codes in (real, drawn))
            found[0.0].append(apart(own, target))
            for share in (*options.share, 1.0):
                sigma = np.sqrt(len(places) / share) / gaussian_mu(epsilon, DELTA)
                sigma = 0.0 if share == 1.0 else float(sigma)
                counts, again = exact + rng.normal(0.0, 1.0, exact.shape) * sigma, own.copy()
                for group in np.flatnonzero(np.bincount(column.bin_of) > 1):
                    members = np.flatnonzero(column.bin_of == group)
                    rows = own[members].sum(axis=0)
                    totals = column.shares[members] * exact.sum()
                    ages = rows / max(rows.sum(), 1.0)
                    law = given_age(counts[members], totals, ages, sigma)
                    for at, number in enumerate(rows.astype(int)):
                        odds = law[:, at] / law[:, at].sum()
                        again[members, at] = rng.multinomial(number, odds)
                found[share].append(apart(again, target))
        cells = [f"{np.mean(values):.4f}" for values in found.values()]
        print(f"| {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
