"""Noise that a test can repeat: each test sees its own stream, the same one in every run.

A test that meets noise of the operating system fails now and then by chance, and one that fails by
chance teaches people to run it again. So tests draw from streams that begin with the test's name
(and ``DPSYNTH_TEST_NOISE``, a number; ``make steady`` tries several). What is replaced are the
three sources below ``OsEntropy``, not what it makes of them. Tests of the sources themselves say
``@pytest.mark.fresh_noise``. Processes that a test starts have fresh noise.
"""

from __future__ import annotations

import hashlib
import os
import random
import ssl
import sys
from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpsynth._util import seeds
from dpsynth.privacy import SeededEntropy, entropy

VARIANT = os.environ.get("DPSYNTH_TEST_NOISE", "0")


class Streams:
    """A repeatable stream for each source of randomness, so that threads do not disturb them."""

    def __init__(self) -> None:
        """Start with a name that no test has."""
        self.begin("")

    def begin(self, name: str) -> None:
        """Begin the streams of a test or a fixture."""
        self.name = name
        self._of: dict[str, np.random.Generator] = {}

    def of(self, source: str) -> np.random.Generator:
        """Return the stream of a source."""
        if source not in self._of:
            words = hashlib.sha256(f"{VARIANT}/{self.name}/{source}".encode()).digest()
            self._of[source] = np.random.default_rng(int.from_bytes(words, "little"))
        return self._of[source]

    def bytes_of(self, source: str) -> Callable[[int], bytes]:
        """Return what stands in for a function that gives so many random bytes."""
        return lambda count: self.of(source).bytes(count)

    def seed(self, below: int) -> int:
        """Stand in for ``secrets.randbelow``."""
        return int(self.of("seeds").integers(below))

    def discrete_gaussian(self, *space: Any, scale: float) -> Callable[[list[int]], list[int]]:
        """Stand in for OpenDP's measurement: the same law, by the project's algorithm for tests."""
        source = SeededEntropy(int(self.of("opendp").integers(2**62)))

        def measure(values: list[int]) -> list[int]:
            return (np.array(values) + source.discrete_gaussian(scale, len(values))).tolist()

        return measure

    def discrete_laplace(self, *space: Any, scale: float) -> Callable[[list[int]], list[int]]:
        """Stand in for OpenDP's measurement of Laplace noise."""
        source = SeededEntropy(int(self.of("opendp").integers(2**62)))

        def measure(values: list[int]) -> list[int]:
            return (np.array(values) + source.discrete_laplace(scale, len(values))).tolist()

        return measure

    def top(self, *space: Any, k: int, scale: float) -> Callable[[list[int]], list[int]]:
        """Stand in for OpenDP's choice of the largest scores."""
        source = SeededEntropy(int(self.of("opendp").integers(2**62)))
        return lambda scores: source.top(np.array(scores), k, scale)


STREAMS = Streams()
_PATCHES = pytest.MonkeyPatch()


def replace(wanted: bool) -> None:
    """Put the streams in the place of the sources, or the sources back."""
    from opendp import measurements

    if wanted == (entropy.os is not os):
        return
    _PATCHES.undo()
    if wanted:
        system = SimpleNamespace(urandom=STREAMS.bytes_of("system"))
        openssl = {
            "RAND_add": lambda *_: None,
            "RAND_bytes": STREAMS.bytes_of("openssl"),
            "OPENSSL_VERSION": ssl.OPENSSL_VERSION,
        }
        _PATCHES.setattr(entropy, "os", system)
        _PATCHES.setattr(entropy, "ssl", SimpleNamespace(**openssl))
        _PATCHES.setattr(seeds, "secrets", SimpleNamespace(randbelow=STREAMS.seed))
        _PATCHES.setattr(measurements, "make_gaussian", STREAMS.discrete_gaussian)
        _PATCHES.setattr(measurements, "make_laplace", STREAMS.discrete_laplace)
        _PATCHES.setattr(measurements, "make_noisy_top_k", STREAMS.top)


class ReplayedNoise:
    """The plugin: begins the streams anew for each test and each shared fixture."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin the test's streams, or leave it the sources."""
        replace(item.get_closest_marker("fresh_noise") is None)
        STREAMS.begin(item.nodeid)
        seed = STREAMS.seed(2**32)
        random.seed(seed)
        np.random.seed(seed)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Begin streams of its own for what several tests share: whichever comes first."""
        if fixturedef.scope == "function":
            return (yield)
        test, fresh = STREAMS.name, entropy.os is os
        replace(True)
        variant = getattr(request, "param_index", 0)
        STREAMS.begin(f"{fixturedef.baseid}::{fixturedef.argname}[{variant}]")
        try:
            return (yield)
        finally:
            replace(not fresh)
            STREAMS.begin(test)
