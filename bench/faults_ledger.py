"""Faults and load of a ledger: what a write costs at 10, 1 000 and 10 000 entries, and a crowd.

    python bench/faults_ledger.py                     # all of it, in a temporary folder
    python bench/faults_ledger.py --sizes 10 1000 --racers 50
    python bench/faults_ledger.py --location postgresql://office@host/empty_database

A write is one of the four that a fit makes: reserve (with the policy's check), begin, saw, charge.
Entries are made by the ledger's own code, spread over two years, and stored in one transaction.
The status is 1 if a write costs more in a long ledger, if a writer fails, or a cap is overspent.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpsynth.errors import BudgetError
from dpsynth.ledger.actions import adopt
from dpsynth.ledger.book import Transaction
from dpsynth.ledger.chain import Record
from dpsynth.ledger.charging import charge_of
from dpsynth.ledger.entry import CHARGED, READING, RESERVED
from dpsynth.ledger.evidence import verify_ledger
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.store import RECORDS
from dpsynth.ledger.tally import Tally, orders_of
from dpsynth.policy.policy import Policy
from dpsynth.privacy.events import JointHistograms
from dpsynth.privacy.unit import EACH_ROW

SIZES, RACERS, FITS = (10, 1_000, 10_000), 220, 20
MAX_GROWTH = 2  # of the cost of a fit's writes, from the smallest ledger to the largest
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


class Bulk(Transaction):
    """Makes records as every `Transaction` does, and stores them when it is told to."""

    def __init__(self, ledger: Ledger, connection: Any) -> None:
        """Begin where the ledger ends."""
        super().__init__(ledger.store, ledger.facts, connection)
        self.made: list[Record] = []

    def store_all(self) -> None:
        """Store what was made."""
        self.nodes.flush(*(record.state for record in self.made))
        self._connection.execute(RECORDS.insert(), [vars(record) for record in self.made])
        self.made.clear()

    def _records(self, begins: str) -> list[Record]:
        return [record for record in self.made[-2:] if record.entry == begins]

    def _append(self, made: Any, tally: Tally) -> Record:
        record: Record = made(state=tally.save())
        self.tally, self.head, self.latest = tally, record.head, record.at
        self.made.append(record)
        return record


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
        with ledger.store.writing() as connection:
            pen = Bulk(ledger, connection)
            pen.summed(orders_of(pen.policy))
            for number in range(entries):
                set_to(start + span * (number / entries))
                entry = uuid.uuid4().hex
                for kind, content in ((RESERVED, body), (READING, {"note": ""}), (CHARGED, {})):
                    pen.write(kind, entry, content)
                if number % 500 == 499 or number == entries - 1:
                    pen.store_all()


def timed(ledger: Ledger, taken: dict[str, list[float]]) -> None:
    """Add the milliseconds of each write of one fit."""

    def clocked(name: str, call: Any) -> Any:
        begun = time.perf_counter()
        result = call()
        taken.setdefault(name, []).append(1000 * (time.perf_counter() - begun))
        return result

    entry = clocked("reserve", lambda: ledger.reserve(**reservation("ward")))
    clocked("begin", lambda: ledger.begin(entry.id))
    clocked("certificate", lambda: charge_of(ledger, entry))
    clocked("saw", lambda: ledger.saw(entry.id, "a" * 64))
    clocked("charge", lambda: ledger.charge(entry.id))


def costs(ledgers: dict[int, Ledger], fits: int) -> dict[int, dict[str, float]]:
    """Return the median milliseconds of each kind of write.

    Ledgers of all sizes take turns, so that other work on the machine slows each as much.
    """
    taken: dict[int, dict[str, list[float]]] = {size: {} for size in ledgers}
    for _ in range(fits):
        for size, ledger in ledgers.items():
            timed(ledger, taken[size])
    return {
        size: {name: round(statistics.median(found), 1) for name, found in kinds.items()}
        for size, kinds in taken.items()
    }


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
    forks.set_forkserver_preload(["dpsynth.ledger.ledger", "dpsynth.ledger.database"])
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


def note(what: str, begun: float) -> None:
    """Say how far the program is."""
    print(f"{what}: {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)


def measured(
    sizes: Sequence[int], racers: int, fits: int, location: str | None = None
) -> dict[str, Any]:
    """Measure ledgers of some sizes, and a crowd of writers; say each step on standard error.

    Args:
        sizes: how many entries.
        racers: processes that write at once; 0 for no race.
        fits: whose writes are timed, at each size.
        location: an empty database, for the first size and the race; default: SQLite files.
    """
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        ledgers = {}
        for size in sizes[:1] if location else sizes:
            begun = time.perf_counter()
            ledgers[size] = Ledger.create(location or Path(folder) / f"{size}.sqlite")
            fill(ledgers[size], size)
            if not location:
                kilobytes = Path(ledgers[size].place).stat().st_size / 1000 / size
                figures.setdefault("kilobytes an entry", {})[size] = round(kilobytes, 1)
            note(f"filled with {size} entries", begun)
        figures["milliseconds of a write"] = costs(ledgers, fits)
        for size, ledger in ledgers.items():
            begun = time.perf_counter()
            verify_ledger(ledger)
            seconds = round(time.perf_counter() - begun, 1)
            figures.setdefault("seconds of verify", {})[size] = seconds
        if racers:
            begun = time.perf_counter()
            place = location or Path(folder) / "race.sqlite"
            ledger = Ledger(place) if ledgers and location else Ledger.create(place)
            figures["race"] = crowd(ledger, racers)
            verify_ledger(ledger)
            note(f"{racers} writers at once", begun)
    return figures


def findings(figures: dict[str, Any]) -> list[str]:
    """Say what should not be."""
    found = []
    costs = figures["milliseconds of a write"]
    if len(costs) > 1:
        minimum, maximum = (sum(costs[size].values()) for size in (min(costs), max(costs)))
        if maximum > MAX_GROWTH * minimum:
            found.append(
                f"a fit's writes cost {maximum:.0f} ms at {max(costs)} entries and {minimum:.0f} "
                f"ms at {min(costs)}"
            )
    if race := figures.get("race"):
        failed = race["racers"] - sum(race["ends"].get(end, 0) for end in ("admitted", "refused"))
        if failed:
            found.append(f"{failed} of {race['racers']} writers at once failed: {race['ends']}")
        if race["epsilon"] > race["cap"]:
            found.append(f"a cap of {race['cap']:g} was overspent: {race['epsilon']:g}")
    return found


def main() -> None:
    """Measure, print one JSON document, and end with 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--racers", type=int, default=RACERS)
    parser.add_argument("--fits", type=int, default=FITS, help="whose writes are timed, each size")
    parser.add_argument("--location", help="an empty database, for one size and the race")
    words = parser.parse_args()
    figures = measured(words.sizes, words.racers, words.fits, words.location)
    print(json.dumps(figures, indent=2))
    problems = findings(figures)
    for one in problems:
        print(f"FOUND: {one}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
