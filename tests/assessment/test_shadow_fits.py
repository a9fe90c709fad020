"""Shadow fits: fair coins, kept time, kept results, and processes that end."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.assessment import shadows
from dpsynth.errors import InputError
from dpsynth.eval.core import Tables

from ..support.shadow_bench import TARGETS, Bench, leaking


@pytest.fixture
def bench(tables: Tables, tmp_path: Path) -> Bench:
    return Bench(tables, tmp_path / "shadows")


@pytest.mark.long
def test_a_table_that_was_given_back_is_found(bench: Bench) -> None:
    attack = bench.play(60, fit=leaking)
    assert attack.findings[0].found and attack.part.details["auc"]["value"] > 0.9
    assert attack.part.details["models"] == len(bench.made)


@pytest.mark.long
def test_a_fit_that_ignores_its_input_is_not_found(tables: Tables, tmp_path: Path) -> None:
    attacks = [Bench(tables, tmp_path).play(12, seed=seed) for seed in range(10)]
    assert not any(attack.findings[0].found for attack in attacks)
    assert all(attack.part.details["models"] >= 16 for attack in attacks)


def test_the_budget_is_kept(bench: Bench) -> None:
    started = bench.clock.now
    bench.play(20.5, seconds=lambda number: 60.0 + number % 3)
    assert bench.clock.now - started <= 20.5 * 60
    assert len(bench.made) == 1 + 2 * 19  # the first alone, then two at a time
    assert max(bench.teams[0].began) + 62 <= started + 20.5 * 60
    assert "38 more" in bench.said[0] and "in about 19.0 minutes" in bench.said[0]


def test_a_fit_is_not_started_if_one_as_slow_as_the_slowest_would_end_too_late(
    bench: Bench,
) -> None:
    started = bench.clock.now
    bench.play(40, seconds=lambda number: 300.0 if number == 5 else 60.0)
    assert max(bench.teams[0].began) + 300 <= started + 40 * 60


@pytest.mark.long
def test_there_are_at_most_200(bench: Bench) -> None:
    bench.play(1e6)
    assert len(bench.made) == 200
    bench.play(1e6)
    assert len(bench.made) == 200


def test_too_little_time_is_refused_before_more_is_spent(bench: Bench) -> None:
    with pytest.raises(InputError, match=r"16 shadow models are needed") as caught:
        bench.play(5)
    assert len(bench.made) == 1 and not bench.said
    minutes = re.search(r"about (\d+) minutes", str(caught.value))
    assert minutes is not None
    bench.play(int(minutes[1]))
    assert len(bench.made) >= 16


def test_a_first_fit_longer_than_the_budget_is_left(bench: Bench) -> None:
    started = bench.clock.now
    with pytest.raises(InputError, match="not one shadow model"):
        bench.play(1, seconds=lambda _: 1e6)
    assert bench.clock.now - started == pytest.approx(60)
    assert not bench.made


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_is_none_is_refused(bench: Bench, minutes: float) -> None:
    with pytest.raises(InputError, match="more than 0 minutes"):
        bench.play(minutes)


@pytest.mark.long
def test_an_interrupted_attack_goes_on_where_it_was(bench: Bench) -> None:
    with pytest.raises(KeyboardInterrupt):
        bench.play(30, stop=10)
    assert len(list(bench.folder.glob("*/fit-*.json"))) == 10
    first = {path: path.read_bytes() for path in bench.folder.glob("*/fit-*.json")}
    attack = bench.play(30)
    assert all(path.read_bytes() == content for path, content in first.items())
    assert attack.part.details["models"] == len(bench.made) == 10 + 1 + 2 * 29
    assert "10 are kept" in bench.said[-1]


@pytest.mark.long
def test_another_setting_has_a_place_of_its_own(bench: Bench) -> None:
    bench.play(10, workers=4)
    before = len(bench.made)
    bench.play(10, workers=4, epsilon=6.0)
    assert len(bench.made) == 2 * before
    assert len(list(bench.folder.iterdir())) == 2


@pytest.mark.long
def test_a_damaged_or_foreign_file_is_made_anew(bench: Bench) -> None:
    bench.play(10, workers=4)
    before, files = len(bench.made), sorted(bench.folder.glob("*/fit-*.json"))
    files[0].write_text("{")
    files[1].write_text(files[1].read_text().replace('"number": 1', '"number": 2'))
    files[2].write_text(re.sub(r'"settings": "\w', '"settings": "z', files[2].read_text()))
    bench.play(2, workers=4)
    assert len(bench.made) == before + 1 + 4
    assert bench.teams[1].began_with == [0, 1, 2, before, before + 1]


def test_what_is_kept_is_for_the_owner_only(bench: Bench) -> None:
    bench.play(10, workers=4)
    folders = [bench.folder, *bench.folder.iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    files = list(bench.folder.glob("*/*"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert all(b'"internal": true' in path.read_bytes() for path in files)


def test_nothing_is_kept_in_a_run(bench: Bench) -> None:
    bench.folder.mkdir()
    (bench.folder / "run.json").write_text("{}")
    with pytest.raises(InputError, match="run or a bundle"):
        bench.play(10)


@pytest.mark.long
def test_processes_carry_real_fits_out(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.assessment.shadow_models.MAX_FITS", 18)
    messages: list[str] = []
    parts: list[float] = []
    attack = shadows(
        *(tables.schema, "independent", 5.0, 1e-6, tables),
        folder=tmp_path,
        budget_minutes=5,
        workers=2,
        seed=1,
        targets=TARGETS,
        announce=messages.append,
        progress=lambda stage, part: parts.append(part),
    )
    assert attack.part.details["models"] == 18 and len(messages) == 1
    assert parts == sorted(parts) and parts[-1] == 1
    assert not attack.findings[0].found


POOL = """
import multiprocessing, sys, time
from dpsynth._util.workers import WorkerPool
from dpsynth.errors import DpsynthError, InputError

class Work:
    def warm(self): pass
    def __call__(self, number):
        if number == 1: raise ValueError("a secret cell")
        if number == 2: raise InputError("say this")
        if number == 3: sys.exit(9)
        if number == 4: return number
        time.sleep(600)

def play(number):
    with WorkerPool(Work()) as pool:
        pool.start_workers(2)
        while pool.idle < 2: pool.next()
        pool.start(number)
        pool.start(number)
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        try: print(pool.next(), flush=True)
        except DpsynthError as error: print(type(error).__name__, error, flush=True)

if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    play(int(sys.argv[1]))
"""


@pytest.fixture
def pool(tmp_path: Path) -> Callable[[int], subprocess.Popen[str]]:
    script = tmp_path / "pool.py"
    script.write_text(POOL)

    def start(number: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(number)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(processes: list[int], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, processes))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "DpsynthError a piece of work failed with ValueError"),
        (2, "InputError say this"),
        (
            3,
            "DpsynthError a worker process died; if memory ran out, use fewer workers",
        ),
        (4, "4"),
    ],
)
def test_a_crew_answers_or_says_what_went_wrong(
    pool: Callable[[int], subprocess.Popen[str]], number: int, words: str
) -> None:
    out, errors = pool(number).communicate(timeout=120)
    workers, said = out.strip().split("\n")
    assert said == words and "secret" not in errors
    assert len(workers.split()) == 2 and gone([int(one) for one in workers.split()])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are seen in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_pool_ends_with_the_process_that_started_it(
    pool: Callable[[int], subprocess.Popen[str]], how: signal.Signals
) -> None:
    begun = pool(5)
    assert begun.stdout is not None
    workers = [int(one) for one in begun.stdout.readline().split()]
    assert len(workers) == 2 and all(map(alive, workers))
    begun.send_signal(how)
    begun.communicate(timeout=120)
    assert gone(workers)
