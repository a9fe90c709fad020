"""P19: a report of the local model is drawn with another person's coin, a used one, or none.

`perturb` is played with a source that records its streams, over people who mostly answered alike.
Then each report is computed anew, by hand, from that person's category and that person's draws, and
the streams must hold these draws alone. The law of one report would not show such slips: each
report by itself has the right law where all who answered alike share one coin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.stats import (
    Randomiser,
    Reports,
    perturb,
)
from dpsynth.stats import (
    local as randomiser,
)
from dpsynth.stats.local import RESPONSE, UNARY

PARTS = 2**24
WORDS = [f"w{n}" for n in range(30)]
COLUMNS = {"smokes": ["yes", "no"], "grade": ["a", "b", "c"], "again": ["a", "b", "c"],
           "job": WORDS}  # fmt: skip
PEOPLE = 60
Honest = Callable[[Randomiser, Any, Any], Any]
honest: Honest = Randomiser.reports


class Recorded(SeededEntropy):
    """Randomness of a seed that puts down what it was asked for, and what it gave."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.log: list[tuple[Any, ...]] = []

    def uniform(self, size: Any) -> Any:
        self.log.append(("uniform", size))
        return super().uniform(size)

    def permutation(self, count: int) -> Any:
        drawn = super().permutation(count)
        self.log.append(("permutation", count, drawn))
        return drawn

    def integers(self, low: int, high: int, size: Any) -> Any:
        drawn = super().integers(low, high, size)
        self.log.append(("integers", low, high, size, drawn.copy()))
        return drawn

    def generator(self) -> Any:
        raise AssertionError("a report needs no generator")


def schema() -> Schema:
    count = {"value": 900, "basis": "declared"}
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": "string",
            "constraints": {"enum": words},
            "dpsynth": {"bounds_basis": "declared"},
        }
        for name, words in COLUMNS.items()
    ]
    fields.insert(0, {"name": "id", "type": "string", "dpsynth": {"role": "unit"}})
    table = {"version": 1, "population": count, "rows": count, "max_rows": count | {"value": 1}}
    return Schema.from_dict({"name": "form", "fields": fields, "dpsynth": table})


def answers() -> pd.DataFrame:
    """Most people answered alike; some gave no answer."""
    rng = np.random.default_rng(5)
    table: dict[str, Any] = {"id": [f"p{n}" for n in range(PEOPLE)]}
    for name, words in COLUMNS.items():
        cells = np.array([words[1]] * PEOPLE, dtype=object)
        cells[:20] = rng.choice(words, 20)
        cells[20:30] = None
        table[name] = cells
    return pd.DataFrame(table)


def codes_of(name: str, table: pd.DataFrame) -> list[int]:
    words = COLUMNS[name]
    return [len(words) if cell is None else words.index(cell) for cell in table[name]]


def by_hand(one: Randomiser, code: int, draws: Any, coin: int) -> Any:
    """One person's report of a column, from their own draws."""
    if one.kind == RESPONSE:
        if draws < one.odds:
            return code
        others = [place for place in range(one.size) if place != code]
        return others[(int(draws) - one.odds) // PARTS]
    bits = [int(draw < PARTS) for draw in draws]
    bits[code] = coin
    return bits


def played() -> tuple[Recorded, Reports]:
    entropy = Recorded(3)
    return entropy, perturb(answers(), schema(), list(COLUMNS), epsilon=6.0, entropy=entropy)


def slips(entropy: Recorded, found: Reports) -> list[str]:
    """Say what is wrong with reports and the streams they were drawn from; empty if nothing is."""
    table, log, wrong = answers(), list(entropy.log), []
    if [entry[:2] for entry in log[:2]] != [("uniform", PEOPLE), ("permutation", PEOPLE)]:
        return ["rows and seats are not drawn once, for all"]
    seat = log[1][2]
    log = log[2:]
    for column, reports in zip(found.settings.columns, found.reports, strict=True):
        one, size = column.randomiser, column.randomiser.size
        unary = one.kind == UNARY
        step = max(1, randomiser._BLOCK // size) if unary else PEOPLE
        rows = [min(step, PEOPLE - start) for start in range(0, PEOPLE, step)]
        shapes: list[tuple[Any, ...]] = []
        for count in rows:
            shapes.append((0, one.whole, (count, size) if unary else count))
            shapes += [(0, 2, count)] * unary
        if [entry[1:4] for entry in log[: len(shapes)]] != shapes:
            return [*wrong, f"the draws of '{column.name}' are not one for each person"]
        every = [entry[4] for entry in log[: len(shapes)]]
        draws = np.concatenate(every[:: 2 if unary else 1])
        coins = np.concatenate(every[1::2]) if unary else np.zeros(PEOPLE, dtype=int)
        log = log[len(shapes) :]
        for person, code in enumerate(codes_of(column.name, table)):
            place = seat[person]
            expected = by_hand(one, code, draws[place], int(coins[place]))
            if np.asarray(reports[place]).tolist() != expected:
                wrong.append(f"report {person} of '{column.name}' is not by its own draws")
    return wrong + ["there are more draws than reports need"] * bool(log)


@pytest.mark.parametrize("block", [2**21, 31 * 7])
def test_each_report_is_drawn_by_the_persons_own_coins(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(randomiser, "_BLOCK", block)
    entropy, found = played()
    kinds = {column.randomiser.kind for column in found.settings.columns}
    assert kinds == {RESPONSE, UNARY}
    assert slips(entropy, found) == []


def test_those_who_answered_alike_report_differently() -> None:
    """Whatever the streams: people of one category, or none, do not all say the same."""
    table = answers().assign(**{name: None for name in COLUMNS})
    found = perturb(table, schema(), list(COLUMNS), epsilon=2.0, entropy=SeededEntropy(4))
    assert all(len(np.unique(reports, axis=0)) > 1 for reports in found.reports)


def one_for_those_alike(self: Randomiser, codes: Any, entropy: Any) -> Any:
    reports = honest(self, codes, entropy)
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return reports[first[place]]


def one_for_all(self: Randomiser, codes: Any, entropy: Any) -> Any:
    return honest(self, codes, Same(entropy))


def missing_as_it_is(self: Randomiser, codes: Any, entropy: Any) -> Any:
    return exact_where(self, codes, honest(self, codes, entropy), codes == self.size - 1)


def first_as_it_is(self: Randomiser, codes: Any, entropy: Any) -> Any:
    return exact_where(self, codes, honest(self, codes, entropy), np.arange(len(codes)) == 0)


def rare_as_it_is(self: Randomiser, codes: Any, entropy: Any) -> Any:
    counts = np.bincount(codes, minlength=self.size)
    return exact_where(self, codes, honest(self, codes, entropy), counts[codes] == 1)


def again_if_untrue(self: Randomiser, codes: Any, entropy: Any) -> Any:
    first, second = honest(self, codes, entropy), honest(self, codes, entropy)
    truth = exact_where(self, codes, first.copy(), np.ones(len(codes), dtype=bool))
    untrue = (first != truth) if first.ndim == 1 else (first != truth).any(axis=1)
    first[untrue] = second[untrue]
    return first


def better_of_two(self: Randomiser, codes: Any, entropy: Any) -> Any:
    """Two draws for each person, asked for at once."""
    twice = honest(self, np.repeat(codes, 2), entropy)
    return twice[::2]


def shifted(self: Randomiser, codes: Any, entropy: Any) -> Any:
    """Each person's report is drawn by the next one's coin."""

    class Next(Same):
        def integers(self, low: int, high: int, size: Any) -> Any:
            return np.roll(self.source.integers(low, high, size), 1, axis=0)

    return honest(self, codes, Next(entropy))


def exact_where(one: Randomiser, codes: Any, reports: Any, rows: Any) -> Any:
    reports[rows] = codes[rows] if reports.ndim == 1 else np.eye(one.size, dtype=int)[codes[rows]]
    return reports


class Same:
    """A source that gives the first person's draws to everyone."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def integers(self, low: int, high: int, size: Any) -> Any:
        drawn = self.source.integers(low, high, size)
        return np.broadcast_to(drawn[:1], drawn.shape).copy()


class Remembered:
    """A source that gives equal questions equal answers: columns share their coins."""

    def __init__(self, source: Any) -> None:
        self.source, self.known = source, dict[Any, Any]()

    def integers(self, *of: Any) -> Any:
        if of not in self.known:
            self.known[of] = self.source.integers(*of)
        return self.known[of].copy()


_SHARED: dict[int, Remembered] = {}


def coins_of_the_column_before(self: Randomiser, codes: Any, entropy: Any) -> Any:
    source = _SHARED.setdefault(id(entropy), Remembered(entropy))
    return honest(self, codes, source)


TWINS: list[Honest] = [
    one_for_those_alike,
    one_for_all,
    missing_as_it_is,
    first_as_it_is,
    rare_as_it_is,
    again_if_untrue,
    better_of_two,
    shifted,
    coins_of_the_column_before,
]


@pytest.mark.parametrize("twin", TWINS)
def test_every_broken_twin_is_caught(twin: Honest, monkeypatch: pytest.MonkeyPatch) -> None:
    _SHARED.clear()
    monkeypatch.setattr(Randomiser, "reports", twin)
    assert slips(*played())


def test_an_order_that_is_kept_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """People sit as they came, though seats were drawn."""
    drawn = Recorded.permutation

    def kept(self: Recorded, count: int) -> Any:
        drawn(self, count)
        return np.arange(count)

    monkeypatch.setattr(Recorded, "permutation", kept)
    assert slips(*played())
