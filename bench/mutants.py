"""Break the privacy argument one line at a time, and see whether the tests notice.

Each mutation of mutants.toml is a believable slip: noise left out, a bound that is off by one, a
charge that comes too late. It is applied to a copy of the tree, and only the tests that are meant
to catch it are run. A mutation that they let pass shows a hole in the tests; exit code 1 says so.
The tests have to pass on the unmutated copy first.

    python bench/mutants.py                        # all of them, one after another
    python bench/mutants.py --only P20 --jobs 2    # those whose name or pitfall matches
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from mutant_trial import BROKEN, HANG, KILLED, SURVIVED, Copy, Mutant, Outcome, listed


class Bench:
    """Copies of the tree for so many trials at a time, and what is known of their tests."""

    def __init__(self, folder: Path, jobs: int, limit: float) -> None:
        """Make the copies."""
        self.limit = limit
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            self._copies.put(Copy(folder / str(number)))
        self._sound: dict[str, Outcome] = {}
        self._locks: dict[str, Lock] = {}
        self._lock = Lock()

    def prepare(self, mutants: Sequence[Mutant]) -> None:
        """Run the tests of all mutations on an unmutated copy at once, which is quick.

        Where one of them fails, each is run alone when its turn comes.
        """
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        copy = self._copies.get()
        try:
            whole = copy.sound(tests, self.limit * max(1, len(tests)))
        finally:
            self._copies.put(copy)
        print(f"{len(tests)} sets of tests, unmutated: {whole.seconds:.0f} s {whole.by}")
        if whole.verdict == SURVIVED:
            self._sound = dict.fromkeys(tests, whole)

    def trial(self, mutant: Mutant) -> Outcome:
        """Try a mutation in a copy that is free, after its tests on the unmutated one."""
        copy = self._copies.get()
        try:
            for test in mutant.tests:
                whole = self._passes(copy, test)
                if whole.verdict != SURVIVED:
                    return Outcome(BROKEN, whole.seconds, f"unmutated {whole.verdict}: {whole.by}")
            return copy.trial(mutant, self.limit)
        finally:
            self._copies.put(copy)

    def _passes(self, copy: Copy, test: str) -> Outcome:
        """Run a test, or a file of them, on the unmutated copy; once."""
        with self._lock:
            lock = self._locks.setdefault(test, Lock())
        with lock:
            if test not in self._sound:
                self._sound[test] = copy.sound([test], self.limit)
            return self._sound[test]


def chosen(mutants: Sequence[Mutant], pattern: str | None) -> list[Mutant]:
    """Pick the mutations whose name, pitfall or definition matches a regular expression."""
    if pattern is None:
        return list(mutants)
    fits = re.compile(pattern, re.IGNORECASE).search
    return [
        mutant for mutant in mutants if fits(f"{mutant.name} {mutant.pitfall} {mutant.definition}")
    ]


def outcomes(bench: Bench, mutants: Sequence[Mutant], jobs: int) -> Iterator[Outcome]:
    """Try mutations, so many at a time; outcomes come in the order of the list."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(bench.trial, mutants)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def summary(verdicts: Sequence[str], seconds: float) -> str:
    """Give the kill rate; what is broken counts neither way."""
    count = Counter(verdicts)
    killed = count[KILLED] + count[HANG]
    tried = killed + count[SURVIVED]
    rate = f"{killed / tried:.1%}" if tried else "none"
    return (
        f"{tried} tried: {killed} killed ({count[HANG]} by the time limit), "
        f"{count[SURVIVED]} survived, {count[BROKEN]} broken; kill rate {rate}; {seconds:.0f} s"
    )


def main() -> int:
    """Run the trials and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", help="regular expression on name, pitfall and definition")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time, each on a core")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds of one run of tests")
    parser.add_argument("--list", action="store_true", help="show the mutations and stop")
    options = parser.parse_args()
    mutants = chosen(listed(), options.only)
    width = max((len(mutant.name) for mutant in mutants), default=0)
    if options.list:
        for one in mutants:
            print(f"{one.name:{width}}  {one.pitfall:10}  {one.definition}: {one.why}")
        return 0
    verdicts: list[str] = []
    total = 0.0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder), options.jobs, options.limit)
        bench.prepare(mutants)
        for one, outcome in zip(mutants, outcomes(bench, mutants, options.jobs), strict=True):
            line = f"{one.name:{width}}  {one.pitfall:10}  {outcome.verdict:13}"
            print(f"{line}  {outcome.seconds:5.1f} s  {outcome.by}", flush=True)
            verdicts.append(outcome.verdict)
            total += outcome.seconds
    print(summary(verdicts, total))
    return int(SURVIVED in verdicts or not verdicts)


if __name__ == "__main__":
    sys.exit(main())
