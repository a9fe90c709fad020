"""Races for the last of a budget: processes that reserve at the same moment never overspend."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy
from dpsynth.privacy.unit import EACH_ROW

FORKS = multiprocessing.get_context("forkserver")  # fresh processes, but quick to start
FORKS.set_forkserver_preload(["dpsynth.ledger.ledger", "psycopg"])
EPSILON = 0.1

Reserve = Callable[..., Entry]


def race(location: str, policy: Policy, start: Any, won: Any) -> None:
    """Ask for budget until there is none."""
    ledger = Ledger(location)
    start.wait(300)
    while True:
        try:
            ledger.reserve(
                "cardio",
                purpose="race",
                plan={"events": []},
                epsilon=EPSILON,
                delta=1e-6,
                model="independent",
                schema_hash="",
                unit=EACH_ROW,
                allow_refuse=False,
                population=70_000,
                policy=policy,
            )
        except BudgetError as refused:
            assert "epsilon in all" in str(refused), refused
            return
        with won.get_lock():
            won.value += 1


@pytest.mark.parametrize(
    ("processes", "fits"), [(8, 5), pytest.param(50, 17, marks=pytest.mark.long)]
)
def test_processes_racing_for_the_last_of_a_budget_never_overspend(
    processes: int, fits: int, location: str, capped: Callable[..., Policy]
) -> None:
    policy = capped(fits * EPSILON + EPSILON / 2)
    Ledger.create(location)
    start, won = FORKS.Barrier(processes), FORKS.Value("i", 0)
    racers = [
        FORKS.Process(target=race, args=(location, policy, start, won)) for _ in range(processes)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(300)
        racer.kill()
    assert [racer.exitcode for racer in racers] == [0] * processes
    assert won.value == fits  # all that fits, and no more
    ledger = Ledger(location)
    assert (ledger.spent("cardio").fits, ledger.spent("cardio").epsilon_sum) == (fits, fits / 10)
    assert [record.number for record in ledger.records()] == list(range(1, fits + 1))


def test_a_check_outside_the_transaction_would_overspend(ledger: Ledger, reserve: Reserve) -> None:
    """The broken twin of the race: look, then enter."""
    looked = threading.Barrier(4)

    def look_then_enter() -> None:
        if ledger.spent("cardio").epsilon_sum + 1 <= 1.5:
            looked.wait(30)
            reserve(ledger, epsilon=1)

    threads = [threading.Thread(target=look_then_enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent("cardio").epsilon_sum == 4
