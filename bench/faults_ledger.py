"""Faults and load of a ledger: what a write costs at 10, 1 000 and 10 000 entries, and a crowd.

    python bench/faults_ledger.py                     # all of it, in a temporary folder
    python bench/faults_ledger.py --sizes 10 1000 --racers 50
    python bench/faults_ledger.py --location postgresql://office@host/empty_database

A write is one of the four that a fit makes: reserve (with the policy's check), begin, saw, charge.
Entries are filled in by the ledger's own code, in one transaction, spread over two years.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpsynth.charge import Charge
from dpsynth.errors import BudgetError
from dpsynth.events import JointHistograms
from dpsynth.ledger import Ledger
from dpsynth.ledger_entry import CHARGED, READING, RESERVED
from dpsynth.ledger_office import adopt
from dpsynth.ledger_tally import orders_of
from dpsynth.ledger_verify import verify_ledger
from dpsynth.policy import Policy
from dpsynth.unit import EACH_ROW

SIZES, RACERS, WRITES = (10, 1_000, 10_000), 220, 20
EPSILON = 0.001
BASIS = {"basis": "benchmark"}
UNIT = replace(EACH_ROW, name="patient_id", max_rows=5)


def policy(epsilon: float) -> Policy:
    """Cap a year and everything, so that each reservation needs every sum."""
    caps = {"year": {"epsilon": epsilon, **BASIS}, "total": {"epsilon": 2 * epsilon, **BASIS}}
    document = {"dpsynth_policy": 1, "name": "benchmark", "delta": 1e-5, "caps": caps}
    return Policy.from_dict(document, "benchmark")


def reservation(dataset: str) -> dict[str, Any]:
    """What a fit of two histograms says of itself."""
    event = JointHistograms("histograms", 2, 1, 4000.0)
    return {
        "dataset": dataset,
        "purpose": "benchmark",
        "plan": {"events": [event.to_dict()]},
        "epsilon": EPSILON,
        "delta": 1e-10,
        "model": "independent",
        "schema_hash": "f" * 64,
        "allow_refuse": False,
        "population": 70_000,
        "unit": UNIT,
    }


@contextmanager
def clock(ledger: Ledger) -> Iterator[Callable[[datetime], None]]:
    """Let the ledger's clock be set."""
    database: Any = type(ledger.store.database)
    now = database.now

    def set_to(moment: datetime) -> None:
        database.now = lambda self, connection: moment

    try:
        yield set_to
    finally:
        database.now = now


def fill(ledger: Ledger, entries: int) -> None:
    """Adopt a policy two years ago; since then enter fits that ended, in one transaction."""
    with tempfile.TemporaryDirectory() as folder:
        other = Ledger.create(Path(folder) / "other.sqlite")
        other.reserve(**reservation("ward"))
        body = other.records()[-1].document  # whatever a reservation says
    start, span = datetime.now(UTC) - timedelta(days=730), timedelta(days=730)
    with clock(ledger) as set_to:
        set_to(start)
        adopt(ledger, policy(2 * EPSILON * 11_000))
        with ledger.writing() as pen:
            pen.summed(orders_of(pen.policy))
            for number in range(entries):
                set_to(start + span * (number / entries))
                entry = uuid.uuid4().hex
                for kind, content in ((RESERVED, body), (READING, {"note": ""}), (CHARGED, {})):
                    pen.write(kind, entry, content)


def cost(ledger: Ledger) -> dict[str, float]:
    """Return the median milliseconds of each kind of write."""
    taken: dict[str, list[float]] = {}

    def timed(name: str, call: Any) -> Any:
        begun = time.perf_counter()
        result = call()
        taken.setdefault(name, []).append(1000 * (time.perf_counter() - begun))
        return result

    for _ in range(WRITES):
        entry = timed("reserve", lambda: ledger.reserve(**reservation("ward")))
        timed("begin", lambda entry=entry: ledger.begin(entry.id))
        timed("certificate", lambda entry=entry: Charge.of(ledger, entry))
        timed("saw", lambda entry=entry: ledger.saw(entry.id, "a" * 64))
        timed("charge", lambda entry=entry: ledger.charge(entry.id))
    return {name: round(statistics.median(found), 1) for name, found in taken.items()}


def race(location: str, start: Any, ends: Any) -> None:
    """Reserve once, and say how that ended and how long it took."""
    ledger = Ledger(location)
    warnings.simplefilter("ignore")  # that others are writing is what is tried here
    start.wait(600)
    begun = time.perf_counter()
    try:
        ledger.reserve(**reservation("crowd") | {"plan": {"events": []}})  # the plain sum alone
        end = "admitted"
    except BudgetError as refused:
        end = "refused" if "policy" in str(refused) else f"failed: {refused}"
    ends.put((end, time.perf_counter() - begun))


def crowd(ledger: Ledger, racers: int) -> dict[str, Any]:
    """Let processes reserve at the same moment; half of them find no budget left."""
    ledger_policy = policy(EPSILON * (racers // 2) + EPSILON / 2)
    adopt(ledger, ledger_policy)
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["dpsynth.ledger", "dpsynth.ledger_sqlite"])
    start, ends = forks.Barrier(racers + 1), forks.Queue()
    processes = [
        forks.Process(target=race, args=(ledger.location, start, ends)) for _ in range(racers)
    ]
    for process in processes:
        process.start()
    start.wait(600)
    begun = time.perf_counter()
    found = [ends.get(timeout=600) for _ in processes]
    seconds = time.perf_counter() - begun
    for process in processes:
        process.join(60)
    return {
        "racers": racers,
        "ends": dict(Counter(end for end, _ in found)),
        "seconds": round(seconds, 1),
        "longest wait": round(max(waited for _, waited in found), 1),
        "epsilon": ledger.spent("crowd").epsilon_sum,
        "cap": ledger_policy.caps.year.epsilon if ledger_policy.caps.year else None,
    }


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--racers", type=int, default=RACERS)
    parser.add_argument("--location", help="an empty database, for one size and the race")
    words = parser.parse_args()
    figures: dict[str, Any] = {"milliseconds of a write": {}}
    with tempfile.TemporaryDirectory() as folder:
        sizes = words.sizes[:1] if words.location else words.sizes
        ledger = None
        for size in sizes:
            ledger = Ledger.create(words.location or Path(folder) / f"{size}.sqlite")
            fill(ledger, size)
            figures["milliseconds of a write"][size] = cost(ledger)
            if not words.location:
                bytes_of = Path(ledger.place).stat().st_size
                figures.setdefault("bytes of the file", {})[size] = bytes_of
            begun = time.perf_counter()
            verify_ledger(ledger)
            seconds = round(time.perf_counter() - begun, 1)
            figures.setdefault("seconds of verify", {})[size] = seconds
            print(json.dumps(figures), flush=True)
        if words.racers and sizes:
            place = words.location or Path(folder) / "race.sqlite"
            ledger = Ledger(place) if words.location else Ledger.create(place)
            figures["race"] = crowd(ledger, words.racers)
            verify_ledger(ledger)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
