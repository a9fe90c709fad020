"""P02: a generator of another package gets private rows through the events of its plan, once each.

Broken twins: a plug-in that looks for rows in whatever it can reach, one whose network would keep
them, one that runs an event twice, and one that runs an event that is not in its plan. Where
dpsynth itself is broken (the desk hands out the cohort; forgets what was run), the same plug-ins
succeed, so the tests can tell.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpsynth.encoding import Cohort
from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.models import Domain, Feature, outside_events, silent
from dpsynth.models.outside import Mechanisms
from dpsynth.models.outside.desk import Desk
from dpsynth.models.outside.mechanisms import rebuilt, serve, traced
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS
from dpsynth.privacy import OsEntropy, PoissonSgd, PrivacyBudget, PrivacyPlan

DOMAIN = Domain((Feature("a", 4, 0), Feature("b", 3, 0), Feature("c", 5, 0)), 300, 2)
BUDGET = PrivacyBudget(3.0, 1e-6)


def plan(*names: str) -> PrivacyPlan:
    """A plan of these events, of some noise; what it costs is not looked at here."""
    events: dict[str, Any] = {name: e.with_mu(0.5) for name, e in outside_events(DOMAIN).items()}
    events[STEPS] = PoissonSgd(STEPS, 0.2, 2, 1.0)
    return PrivacyPlan(BUDGET, tuple(events[name] for name in names), 2.0)


def cohort() -> Cohort:
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, size, (300, 2)) for size in DOMAIN.sizes], axis=-1)
    mask = np.ones((300, 2), dtype=bool)
    return Cohort(codes.astype(np.uint16), mask)


def desk_of(*names: str) -> Desk:
    events = names or (ONE_WAY, PAIRS, STEPS)
    paid = plan(*events)
    return Desk(cohort(), DOMAIN.with_visits(), paid, paid.opened(OsEntropy()), silent)


def run(work: Callable[[Mechanisms], None], desk: Desk | None = None) -> Desk:
    desk = desk or desk_of()
    serve(work, desk.answers, "toy")
    return desk


class Loss(nn.Module):
    """One loss per row of the four columns, the hidden one first."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.last = nn.Embedding(8, 3), nn.Linear(12, 1)

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.last(self.embedding(rows).flatten(1))
        return out[:, 0].square()


def everything(mechanisms: Mechanisms) -> None:
    mechanisms.count_columns()
    mechanisms.count_pairs([(1, 2), (1, 3)])
    mechanisms.train(Loss())


def test_a_plug_in_that_keeps_to_its_plan_runs_every_event() -> None:
    assert run(everything).unused == ()


def reached(start: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Arrays of private shape that can be reached from objects, modules left out."""
    found, visited, left = [], set(), list(start)
    while left:
        some = left.pop()
        if id(some) in visited or isinstance(some, types.ModuleType | type):
            continue
        visited.add(id(some))
        if isinstance(some, np.ndarray) and len(some) == 300 and some.ndim == 3:
            found.append(some)
        if isinstance(some, types.FunctionType):
            left += [some.__closure__, some.__defaults__, some.__kwdefaults__]
        elif isinstance(some, types.FrameType):
            left += list(some.f_locals.values())
        elif isinstance(some, types.TracebackType):
            left += [some.tb_frame, some.tb_next]
        elif isinstance(some, BaseException):
            left += [some.__traceback__, some.__cause__, some.__context__, some.args]
        else:
            left += [referent for referent in gc.get_referents(some) if referent is not sys.modules]
    return found


def looking(at: list[Any]) -> Callable[[Mechanisms], None]:
    """A plug-in that looks at all it is given, at its stack, its answers and its errors."""

    def work(mechanisms: Mechanisms) -> None:
        start: list[Any] = [mechanisms, mechanisms.count_columns()]
        try:
            mechanisms.count_pairs([(0, 9)])
        except InputError as error:
            start.append(error)
        frame = sys._getframe()
        while frame is not None:
            start.append(frame)
            frame = cast(Any, frame.f_back)
        at.extend(reached(start))

    return work


def test_nothing_that_a_plug_in_is_handed_leads_to_a_row() -> None:
    found: list[Any] = []
    with pytest.raises(InputError, match="a pair is two columns"):  # it was its last question
        run(looking(found))
    assert found == []


def test_the_search_finds_rows_where_the_desk_is_handed_out() -> None:
    """The twin: work is called in the thread, and with the methods, of the desk itself."""
    found: list[Any] = []
    desk = desk_of()

    class Handed:
        count_columns = staticmethod(lambda: desk.answers["count_columns"](bins=16))
        count_pairs = staticmethod(lambda pairs: desk.answers["count_pairs"](pairs=pairs))

    with pytest.raises(InputError):
        looking(found)(cast(Any, Handed()))
        raise InputError("as above")
    assert found


def test_no_code_of_a_plug_in_runs_on_rows() -> None:
    tables: list[Any] = []

    class Keeping(Loss):
        def forward(self, rows: Tensor) -> Tensor:
            tables.append(rows)
            return super().forward(rows)

    def work(mechanisms: Mechanisms) -> None:
        mechanisms.count_columns()
        mechanisms.train(Keeping())

    run(work, desk_of(ONE_WAY, STEPS))
    assert len(tables) == 1 and isinstance(tables[0], torch.fx.Proxy)


def hooked() -> nn.Module:
    network = Loss()
    network.last.register_forward_hook(lambda *given: None)
    return network


def patched() -> nn.Module:
    network = Loss()
    cast(Any, network.last).forward = lambda rows: rows
    return network


class Own(nn.Linear):
    """A layer of the package's own, whose class could keep what it sees."""


def derived() -> nn.Module:
    network = Loss()
    network.last = Own(12, 1)
    cast(Any, Own).forward = lambda self, rows: rows.tolist()
    return network


class Writing(Loss):
    def forward(self, rows: Tensor) -> Tensor:
        rows.share_memory_()
        return super().forward(rows)


class Constant(Loss):
    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.zeros(1)

    def forward(self, rows: Tensor) -> Tensor:
        return super().forward(rows) + self.kept.add_(1.0)


@pytest.mark.parametrize("make", [hooked, patched, derived, Writing, Constant])
def test_a_network_that_could_keep_rows_is_refused(make: Callable[[], nn.Module]) -> None:
    with pytest.raises(InputError):
        rebuilt(*traced(make()))


def test_a_trained_network_is_a_copy() -> None:
    """So no gradient of a unit, which Opacus keeps on parameters, lies where a plug-in sees it."""
    network = Loss()
    graph, layers = traced(network)
    theirs = {id(p) for p in network.parameters()}
    copy = rebuilt(graph, layers)
    assert not theirs & {id(p) for p in copy.parameters()}
    assert not {p.data_ptr() for p in network.parameters()} & {
        p.data_ptr() for p in copy.parameters()
    }


@pytest.mark.parametrize("again", ["count_columns", "count_pairs", "train"])
@pytest.mark.parametrize("caught", [False, True])
def test_an_event_runs_once_also_for_those_who_catch_the_refusal(again: str, caught: bool) -> None:
    calls: dict[str, Callable[[Mechanisms], Any]] = {
        "count_columns": lambda mechanisms: mechanisms.count_columns(),
        "count_pairs": lambda mechanisms: mechanisms.count_pairs([(1, 2)]),
        "train": lambda mechanisms: mechanisms.train(Loss()),
    }
    answers: list[Any] = []

    def work(mechanisms: Mechanisms) -> None:
        everything(mechanisms)
        try:
            answers.append(calls[again](mechanisms))
        except BudgetError:
            if not caught:
                raise

    with pytest.raises(DpsynthError):
        run(work)
    assert answers == []


@pytest.mark.parametrize("missing", [PAIRS, STEPS])
def test_an_event_that_is_not_in_the_plan_is_refused(missing: str) -> None:
    desk = desk_of(*(name for name in (ONE_WAY, PAIRS, STEPS) if name != missing))
    with pytest.raises(BudgetError, match=missing):
        run(everything, desk)


def test_an_event_that_failed_is_gone() -> None:
    """Else a plug-in could let it fail after it has seen a part, and ask again."""
    desk = desk_of()

    def work(mechanisms: Mechanisms) -> None:
        mechanisms.count_columns()
        with pytest.raises(InputError):
            mechanisms.count_pairs([(0, 99)])
        with pytest.raises(BudgetError):
            mechanisms.count_pairs([(0, 1)])

    with pytest.raises(InputError, match="a pair is two columns"):
        run(work, desk)


def test_only_the_mechanisms_can_be_asked_for() -> None:
    def work(mechanisms: Mechanisms) -> None:
        mechanisms._ask("_columns")

    with pytest.raises(InputError, match="no such mechanism"):
        run(work)


def test_mechanisms_answer_no_more_when_the_fit_has_ended() -> None:
    kept: list[Mechanisms] = []
    run(lambda mechanisms: kept.append(mechanisms), desk_of(ONE_WAY))
    with pytest.raises(InputError, match="has ended"):
        kept[0].count_columns()


def test_an_error_of_a_plug_in_is_named_by_kind_and_not_quoted() -> None:
    def work(mechanisms: Mechanisms) -> None:
        raise ValueError("whatever it holds")

    with pytest.raises(InputError) as caught:
        run(work)
    assert str(caught.value) == "generator 'toy' failed in its fit (ValueError)"
    assert caught.value.__cause__ is None


def test_answers_carry_noise() -> None:
    first: list[Any] = []
    for _ in range(2):
        run(lambda mechanisms: first.append(mechanisms.count_columns().units), desk_of(ONE_WAY))
    assert first[0] != first[1] and 300 not in first
