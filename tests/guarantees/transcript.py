"""What a run does with private rows: every answer of a mechanism, every private step, every read.

A run goes through the office's own verbs, with the source of randomness that they take by
themselves. Three things are put in the place of real ones, and nothing else:

- `OsEntropy` draws from streams that repeat. Noise of counts is a multiple of 2^44, so that an
  answer shows both the exact number and the noise in it. Units stay in the order of their table.
- What a mechanism lets out follows from public facts alone, and so does the clipped sum of a step.
  What it computed of private rows is kept, to be looked at afterwards.
- Tables in memory say whether the ledger holds an open entry when they are read.
"""

from __future__ import annotations

import ast
import functools
import importlib
import logging
import pkgutil
import sys
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dpsynth
from dpsynth.ledger import Ledger
from dpsynth.models.dpsgd import DpSgd
from dpsynth.privacy import Answer, Deviation, OsEntropy, Selected
from dpsynth.tables.table import FrameTable

from ..support.source_code import ROOT, tree_of

UNIT = 2**44  # of noise: exact numbers of small tables are far below a half of it
DRAWS = ("uniform", "normal", "integers", "permutation", "discrete_gaussian", "discrete_laplace")
NOISE = ("discrete_gaussian", "discrete_laplace", "top")
OWN = Path(__file__).resolve().relative_to(ROOT).as_posix()
PASSED_ON = ("dpsynth/privacy/payments.py",)
"""Where draws are handed on to the source: what counts is who asked."""
Site = tuple[str, int]


def site_of(frame: Any, *, past: tuple[str, ...] = ()) -> Site:
    """The file and the line of the call that is under way in a frame, outside of this file."""
    while (site := _site(frame))[0] in (OWN, *past):
        frame = frame.f_back
    return site


def _site(frame: Any) -> Site:
    return _place(frame.f_code.co_filename), frame.f_lineno


@functools.cache
def _place(file: str) -> str:
    path = Path(file).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


@dataclass(eq=False)
class Call:
    """One call of a mechanism.

    Attributes:
        name: of the mechanism.
        event: what it was told to run; None where it only draws.
        arguments: private rows among them.
        draws: method, scale and number of each draw of noise within it.
        noise: what these draws gave.
        exact: what it computed of private rows, an array for each answer.
        entered: the noise in its answer.
        made_up: whether nothing was charged yet: a rehearsal, whose rows are made up.
    """

    name: str
    event: Any
    arguments: tuple[Any, ...]
    site: Site
    draws: list[tuple[str, float, int]] = field(default_factory=list)
    noise: list[Any] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    entered: list[Any] = field(default_factory=list)
    made_up: bool = False

    @property
    def moved(self) -> Any:
        """Exact numbers, each over the scale of its noise, in one vector."""
        scales = [np.full(size, scale) for _, scale, size in self.draws] or [np.ones(1)]
        return np.concatenate([part.ravel() for part in self.exact]) / np.concatenate(scales)


@dataclass(eq=False)
class Step:
    """One private step of a network.

    Attributes:
        trainer: who takes it.
        coins: of all units, in their order.
        chosen: the units that were drawn.
        batch: their rows, part by part; mask: their weights.
        total: the clipped sum of them, exact.
        normals: the noise that the source gave; noise: that in what the step let out.
        made_up: as of `Call`.
    """

    trainer: DpSgd
    made_up: bool
    coins: Any
    chosen: Any
    batch: tuple[Any, ...] = ()
    mask: Any = None
    total: Any = None
    normals: Any = None
    noise: Any = None


class Transcript:
    """All that one run did.

    Attributes:
        calls: of mechanisms, in order.
        steps: of networks, in order.
        sites: what was called from where: (name, file, line).
        stray: draws of noise that belong to no mechanism.
        unpaid: reads of a private table while no entry of the ledger was open.
        reads: how many there were in all.
    """

    def __init__(
        self, ledger: Ledger | None, private: Sequence[Any], *, everyone: bool = True, seed: int = 3
    ) -> None:
        """Start.

        Args:
            ledger: where what is read has to be charged.
            private: the tables whose reads count, in memory.
            everyone: whether coins of steps let all units in.
            seed: of all streams.
        """
        self.ledger, self.private = ledger, list(private)
        self.everyone, self.seed = everyone, seed
        self.calls: list[Call] = []
        self.steps: list[Step] = []
        self.sites: set[tuple[str, str, int]] = set()
        self.stray: list[Site] = []
        self.unpaid: list[Site] = []
        self.reads = 0
        self.charged = ledger is None
        self.open: list[Call] = []
        self.normals: list[Any] = []
        self.coins: list[Any] = []
        self._numbers: dict[str, int] = defaultdict(int)
        self._turn = threading.RLock()

    def is_charged(self) -> bool:
        """Whether there is an entry in the ledger."""
        if not self.charged and self.ledger is not None:
            self.charged = bool(Ledger(self.ledger.location).entries())
        return self.charged

    def stream(self, method: str) -> np.random.Generator:
        """A stream of its own for each draw, by method and number."""
        with self._turn:
            number = self._numbers[method]
            self._numbers[method] += 1
        return np.random.default_rng([self.seed, *method.encode(), number])

    def draw(self, method: str, *arguments: Any, frame: Any) -> Any:
        """Stand in for the operating system."""
        self.sites.add((method, *site_of(frame)))
        site = site_of(frame, past=PASSED_ON)
        self.sites.add((method, *site))
        rng = self.stream(method)
        if method == "uniform":
            (size,) = arguments
            coins = rng.random(size)
            if not site[0].startswith("models/dpsgd/"):
                return coins[::-1].copy()  # those of who comes last, whoever else is there
            self.coins.append(np.zeros_like(coins) if self.everyone else coins)
            return self.coins[-1].copy()
        if method == "permutation":
            return np.arange(arguments[0], dtype=np.int64)
        if method == "generator":
            return rng
        if method == "integers":
            low, high, size = arguments
            return rng.integers(low, high, size)
        if method == "normal":
            size, *kind = arguments
            normals = rng.standard_normal(size).astype(kind[0] if kind else np.float64)
            if site[0] != "models/dpsgd/optimizer.py":
                self.stray.append(site)
            self.normals.append(normals)
            return normals.copy()
        if not self.open:
            self.stray.append(site)
        return self._noise(method, rng, *arguments)

    def _noise(self, method: str, rng: np.random.Generator, *arguments: Any) -> Any:
        call = self.open[-1] if self.open else Call("", None, (), ("", 0))
        if method == "top":
            scores, count, scale = arguments
            call.draws.append((method, scale, len(scores)))
            call.exact.append(np.array(scores))
            return np.argsort(-scores, kind="stable")[:count].tolist()
        scale, size = arguments
        units = rng.integers(1, 8, size) * UNIT
        call.draws.append((method, float(scale), size))
        call.noise.append(units)
        return units.copy()


ACTIVE: list[Transcript] = []


def event_of(arguments: Sequence[Any]) -> Any:
    """The event among the arguments of a mechanism, whether bare or in what was taken of a plan."""
    for argument in arguments:
        for one in (argument, getattr(argument, "event", None)):
            if hasattr(one, "with_mu"):
                return one
    return None


def public(size: int, event: Any) -> Any:
    """Counts that follow from public facts."""
    mass = getattr(event, "mass", 1)
    return ((np.arange(size, dtype=np.int64) * 7 + size) % 11 * 5 + 10) * mass


def held(call: Call, answer: Any) -> Any:
    """Take an answer apart, and put one in its place that no private row has a part in."""
    if isinstance(answer, Selected):
        call.entered = [np.rint(answer.counts / UNIT).astype(np.int64) * UNIT]
        call.exact = [answer.codes, answer.counts - call.entered[0]]
        return Selected(answer.codes[:0], answer.counts[:0])
    if call.name == "top_choice":
        return list(range(len(answer)))
    if isinstance(answer, tuple):
        return tuple(Answer(held(call, one.counts), one.sigma) for one in answer)
    if isinstance(answer, list):
        return [held(call, one) for one in answer]
    noise = np.rint(answer / UNIT).astype(np.int64) * UNIT
    call.entered.append(noise.ravel())
    call.exact.append(answer - noise)
    return public(answer.size, call.event).reshape(answer.shape)


def heard(mechanism: Callable[..., Any]) -> Callable[..., Any]:
    """The mechanism, which keeps what it does while a transcript is taken."""

    @functools.wraps(mechanism)
    def listened(*arguments: Any, **named: Any) -> Any:
        if not ACTIVE:
            return mechanism(*arguments, **named)
        transcript, site = ACTIVE[-1], site_of(sys._getframe(1))
        given = (*arguments, *named.values())
        call = Call(mechanism.__name__, event_of(given), given, site)
        call.made_up = not transcript.is_charged()
        transcript.sites.add((call.name, *site))
        transcript.open.append(call)
        try:
            before = len(transcript.calls)
            answer = mechanism(*arguments, **named)
        finally:
            transcript.open.pop()
        if call.name in COINS or (len(transcript.calls) > before and not call.draws):
            return answer  # it lets nothing out, or what another mechanism within it let out
        transcript.calls.append(call)
        return held(call, answer)

    return listened


COINS = ("dealt",)  # who is with whom, by draws of their own: nothing of it is let out


@functools.cache
def mechanisms() -> tuple[Any, ...]:
    """Every function of dpsynth/privacy that is given a source of randomness."""
    found = []
    for path in sorted((ROOT / "dpsynth/privacy").rglob("*.py")):
        if path.relative_to(ROOT).as_posix() in PASSED_ON:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef) and _takes_entropy(node) and node.name[0] != "_":
                found.append(getattr(importlib.import_module(module), node.name))
    return tuple(found)


def _takes_entropy(node: ast.FunctionDef) -> bool:
    given = [*node.args.args, *node.args.kwonlyargs]
    return any(one.annotation and "Entropy" in ast.unparse(one.annotation) for one in given)


@functools.cache
def everything() -> None:
    """Import every module, so that none is imported while names are replaced."""
    for part in pkgutil.walk_packages(dpsynth.__path__, "dpsynth."):
        if not part.name.endswith("__main__"):
            importlib.import_module(part.name)


def replaced(patch: pytest.MonkeyPatch, real: Any, other: Any) -> None:
    """Put one function in the place of another wherever it was imported."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dpsynth") and module is not None:
            for attribute, value in list(vars(module).items()):
                if value is real:
                    patch.setattr(module, attribute, other)


@contextmanager
def listening(patch: pytest.MonkeyPatch, readers: Sequence[Any]) -> Iterator[None]:
    """Replace sources, mechanisms and steps; without a transcript, all do what they did."""
    everything()
    for mechanism in mechanisms():
        replaced(patch, mechanism, heard(mechanism))
    for reader in readers:
        replaced(patch, reader, noticed(reader))
    for method in (*DRAWS, "generator", "top"):
        patch.setattr(OsEntropy, method, _drawing(method))
    for name, made in (
        ("sample_batch", _sampling),
        ("step", _stepping),
        ("noisy_sum", _summing),
        ("clipped_sum", _clipping),
    ):
        patch.setattr(DpSgd, name, made(getattr(DpSgd, name)))
    exact = Deviation.exact

    def known(self: Deviation, rows: Any, total: float) -> Any:
        return exact(self, rows, 50.0 if ACTIVE else total)  # the number of rows is released

    patch.setattr(Deviation, "exact", known)
    chunks = FrameTable.chunks

    def paid(self: FrameTable, site: Site, progress: Any) -> Iterator[Any]:
        if ACTIVE and any(self.frame is one for one in ACTIVE[-1].private):
            _read(ACTIVE[-1], site)
        yield from chunks(self, progress)

    def reading(self: FrameTable, progress: Any = None) -> Iterator[Any]:
        site = site_of(sys._getframe(1))
        if ACTIVE:
            ACTIVE[-1].sites.add(("chunks", *site))
        return paid(self, site, progress)

    patch.setattr(FrameTable, "chunks", reading)

    def made(self: OsEntropy) -> None:
        if ACTIVE:
            ACTIVE[-1].sites.add(("OsEntropy", *site_of(sys._getframe(1))))

    patch.setattr(OsEntropy, "__init__", made)
    yield


def _read(transcript: Transcript, site: Site) -> None:
    transcript.reads += 1
    if transcript.ledger is not None:
        entries = Ledger(transcript.ledger.location).entries()
        if not any(entry.status == "reading" or entry.measured is not None for entry in entries):
            transcript.unpaid.append(site)


def noticed(reader: Callable[..., Any]) -> Callable[..., Any]:
    """A function that opens or reads private tables, which says from where it was called."""

    @functools.wraps(reader)
    def listened(*arguments: Any, **named: Any) -> Any:
        if ACTIVE:
            ACTIVE[-1].sites.add((reader.__name__, *site_of(sys._getframe(1))))
        return reader(*arguments, **named)

    return listened


def _drawing(method: str) -> Callable[..., Any]:
    real = getattr(OsEntropy, method)

    def draw(self: OsEntropy, *arguments: Any) -> Any:
        if not ACTIVE:
            return real(self, *arguments)
        return ACTIVE[-1].draw(method, *arguments, frame=sys._getframe(1))

    return draw


def _sampling(real: Any) -> Callable[..., Any]:
    def sample(self: DpSgd, units: int) -> Any:
        if not ACTIVE:
            return real(self, units)
        transcript = ACTIVE[-1]
        transcript.sites.add(("sample_batch", *site_of(sys._getframe(1))))
        before = len(transcript.coins)
        chosen = real(self, units)
        coins = transcript.coins[before:]
        made_up = not transcript.is_charged()
        one = Step(self, made_up, coins[0] if len(coins) == 1 else None, chosen)
        transcript.steps.append(one)
        return chosen

    return sample


def _stepping(real: Any) -> Callable[..., Any]:
    def step(self: DpSgd, loss: Any, batch: Any, mask: Any, **rest: Any) -> None:
        if ACTIVE:
            one = ACTIVE[-1].steps[-1]
            parts = batch if isinstance(batch, tuple) else (batch,)
            one.batch = tuple(part.numpy().copy() for part in parts)
            one.mask = mask.numpy().copy()
        real(self, loss, batch, mask, **rest)

    return step


def _clipping(real: Any) -> Callable[..., Any]:
    def clipped(self: DpSgd, loss: Any, batch: Any, mask: Any) -> Any:
        if not ACTIVE:
            return real(self, loss, batch, mask)
        owner = getattr(loss, "__self__", None)
        if hasattr(owner, "asked"):  # a critic: what it is asked of each row is drawn in turn
            rows, columns, labels = batch
            batch = rows, torch.zeros_like(columns), labels
        with still(owner) if hasattr(owner, "noise") else nullcontext():
            total = real(self, loss, batch, mask)
        ACTIVE[-1].steps[-1].total = total.numpy().copy()
        return torch.linspace(-1.0, 1.0, len(total)).to(total) * self.clipping_norm

    return clipped


class Still:
    """Latent noise that is the same in each row."""

    def standard_normal(self, size: Any, dtype: Any = np.float64) -> Any:
        return np.ones(size, dtype)


@contextmanager
def still(network: Any) -> Iterator[None]:
    """Let latent noise of a network not depend on how many rows are in a batch."""
    noise, network.noise = network.noise, Still()
    try:
        yield
    finally:
        network.noise = noise


def _summing(real: Any) -> Callable[..., Any]:
    def noisy(self: DpSgd, loss: Any, batch: Any, mask: Any) -> Any:
        if not ACTIVE:
            return real(self, loss, batch, mask)
        transcript = ACTIVE[-1]
        before = len(transcript.normals)
        total = real(self, loss, batch, mask)
        one, drawn = transcript.steps[-1], transcript.normals[before:]
        free = slice(None) if self.flat.free is None else self.flat.free.numpy()
        known = torch.linspace(-1.0, 1.0, len(total)).to(total) * self.clipping_norm
        one.noise = (total - known).numpy()[free]
        one.normals = drawn[0] if len(drawn) == 1 else None
        return total

    return noisy


@contextmanager
def taken(transcript: Transcript) -> Iterator[list[str]]:
    """Take a transcript; yields all that was logged and warned of."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    ACTIVE.append(transcript)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield said
        said += [str(one.message) for one in warned]
    finally:
        ACTIVE.pop()
        root.removeHandler(handler)
        root.setLevel(level)
